package bridgetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var directCases = []testCase{
	{"direct/lengths", directLengths},
	{"direct/too-large", directTooLarge},
	{"direct/rendezvous", directRendezvous},
	{"direct/gate", directGate},
	{"direct/order", directOrder},
	{"direct/senders-in-turn", directSenders},
	{"direct/many-channels", directManyChannels},
	{"direct/ring-wraps", directRingWraps},
}

// directLengths: every length from 0 to 56 is sent and returned unchanged, at
// the service target and at a process.
func directLengths(e *Env) {
	dev := e.device("")
	for _, ch := range []bridge.Channel{e.Subscribe(dev, abi.TargetLoopback), e.Ports(dev, "loopback", 1)[0]} {
		for n := range abi.PayloadSize + 1 {
			msg := make([]byte, n)
			pattern.Fill(msg, 0, uint64(n))
			e.Echo(ch, msg)
		}
	}
}

// directTooLarge: a message over 56 bytes is refused, and a buffer that is too
// short leaves the message offered.
func directTooLarge(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	require.ErrorIs(e, ch.Send(e.Ctx(), make([]byte, abi.PayloadSize+1)), bridge.ErrTooLarge)
	e.send(ch, []byte("twelve bytes"))
	_, err := ch.Receive(e.Ctx(), make([]byte, 11))
	require.ErrorIs(e, err, bridge.ErrTooLarge)
	require.Equal(e, "twelve bytes", string(e.receive(ch)))
}

// directRendezvous: Send does not return before the target took the message.
func directRendezvous(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "hold", 1)[0]
	ctx, cancel := context.WithCancel(e.Ctx())
	p := Call("send to hold", func() error { return ch.Send(ctx, []byte("never read")) })
	e.UntilBlocked(dev, 1)
	e.Until("message parked", func() bool {
		h, err := dev.Health()
		return err == nil && h.Queued > 0
	})
	require.False(e, p.Over(), "send returned although nobody read")
	cancel()
	e.IsWithdrawn(e.Wait(p), context.Canceled)
}

// directGate: Send returns as soon as the target reads, and not before.
func directGate(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	for n := range 20 {
		msg := bytes.Repeat([]byte{byte(n)}, n)
		p := Call("send to gate", func() error { return ports[1].Send(e.Ctx(), msg) })
		e.UntilBlocked(dev, 1)
		require.False(e, p.Over(), "send returned before the gate opened")
		e.send(ports[0], []byte("open"))
		require.NoError(e, e.Wait(p))
		require.Equal(e, pattern.Words(0, uint64(n)), e.receive(ports[0]))
	}
}

// directOrder: messages arrive in the order they were sent.
func directOrder(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	n := uint64(Scaled(20000))
	p := Call("sender", func() error {
		for i := range n {
			if err := ch.Send(e.Ctx(), pattern.Words(i)); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range n {
		require.Equal(e, pattern.Words(i), e.receive(ch))
	}
	require.NoError(e, e.Wait(p))
}

// directSenders: concurrent senders take turns; nothing is lost, each sender's
// messages stay in order.
func directSenders(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	const senders = 8
	each := uint64(Scaled(2000))
	calls := make([]*Pending, senders)
	for i := range calls {
		calls[i] = Call("sender", func() error {
			for n := range each {
				if err := ch.Send(e.Ctx(), pattern.Words(uint64(i), n)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var next [senders]uint64
	for range senders * each {
		msg := e.receive(ch)
		require.Len(e, msg, 16)
		i := binary.LittleEndian.Uint64(msg)
		require.Equal(e, next[i], binary.LittleEndian.Uint64(msg[8:]), "sender %d", i)
		next[i]++
	}
	for _, p := range calls {
		require.NoError(e, e.Wait(p))
	}
}

// directManyChannels: a thousand channels at once, each with its own messages.
// One process echoes them all, so a channel is received from while others send.
func directManyChannels(e *Env) {
	dev := e.device("channels=2000&managers=3")
	n := e.most(Scaled(10000) / 10)
	before := dev.Stats().Channels
	ports := e.Ports(dev, "loopback", n)
	calls := make([]*Pending, n)
	for i, ch := range ports {
		calls[i] = Call("send", func() error { return ch.Send(e.Ctx(), pattern.Words(uint64(i))) })
	}
	for i, ch := range ports {
		echoed := Call("receive", func() error {
			buf := make([]byte, abi.PayloadSize)
			got, err := ch.Receive(e.Ctx(), buf)
			if err == nil && !bytes.Equal(pattern.Words(uint64(i)), buf[:got]) {
				err = fmt.Errorf("channel %d: got % x", i, buf[:got])
			}
			return err
		})
		calls = append(calls, echoed)
	}
	for _, c := range calls {
		require.NoError(e, e.Wait(c))
	}
	require.Equal(e, n, dev.Stats().Channels-before)
}

// directRingWraps: the smallest rings, far more messages than slots, more
// channels than slots, and both ways at once.
func directRingWraps(e *Env) {
	dev := e.device("slots=16&managers=1&channels=128")
	ports := e.Ports(dev, "loopback", e.most(48))
	rounds := max(4, Scaled(200))
	var wg sync.WaitGroup
	var bad atomic.Int64
	for i, ch := range ports {
		wg.Go(func() {
			buf := make([]byte, abi.PayloadSize)
			for r := range rounds {
				msg := pattern.Words(uint64(i), uint64(r))
				if ch.Send(e.Ctx(), msg) != nil {
					bad.Add(1)
					return
				}
				if n, err := ch.Receive(e.Ctx(), buf); err != nil || !bytes.Equal(buf[:n], msg) {
					bad.Add(1)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Zero(e, bad.Load(), "channels that lost or changed a message")
}
