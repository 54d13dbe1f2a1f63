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

// directLengths: every length from 0 to 56 goes and comes back unchanged, at
// the service target and at a process.
func directLengths(e *env) {
	dev := e.device("")
	for _, ch := range []bridge.Channel{e.subscribe(dev, abi.TargetLoopback), e.run(dev, "loopback", 1)[0]} {
		for n := range abi.PayloadSize + 1 {
			msg := make([]byte, n)
			fillPattern(msg, 0, uint64(n))
			e.echo(ch, msg)
		}
	}
}

// directTooLarge: a message over 56 bytes is refused, and a buffer that is too
// short leaves the message offered.
func directTooLarge(e *env) {
	dev := e.device("")
	ch := e.subscribe(dev, abi.TargetLoopback)
	require.ErrorIs(e, ch.Send(e.ctx(), make([]byte, abi.PayloadSize+1)), bridge.ErrTooLarge)
	e.send(ch, []byte("twelve bytes"))
	_, err := ch.Receive(e.ctx(), make([]byte, 11))
	require.ErrorIs(e, err, bridge.ErrTooLarge)
	require.Equal(e, "twelve bytes", string(e.receive(ch)))
}

// directRendezvous: Send does not return before the target took the message.
func directRendezvous(e *env) {
	dev := e.device("")
	ch := e.run(dev, "hold", 1)[0]
	ctx, cancel := context.WithCancel(e.ctx())
	p := call("send to hold", func() error { return ch.Send(ctx, []byte("never read")) })
	e.untilBlocked(dev, 1)
	e.until("message parked", func() bool {
		h, err := dev.Health()
		return err == nil && h.Queued > 0
	})
	require.False(e, p.over(), "send returned although nobody read")
	cancel()
	e.isWithdrawn(e.wait(p), context.Canceled)
}

// directGate: Send returns as soon as the target reads, and not before.
func directGate(e *env) {
	dev := e.device("")
	ports := e.run(dev, "gate", 2)
	for n := range 20 {
		msg := bytes.Repeat([]byte{byte(n)}, n)
		p := call("send to gate", func() error { return ports[1].Send(e.ctx(), msg) })
		e.untilBlocked(dev, 1)
		require.False(e, p.over(), "send returned before the gate opened")
		e.send(ports[0], []byte("open"))
		require.NoError(e, e.wait(p))
		require.Equal(e, words(0, uint64(n)), e.receive(ports[0]))
	}
}

// directOrder: messages arrive in the order they were sent.
func directOrder(e *env) {
	dev := e.device("")
	ch := e.subscribe(dev, abi.TargetLoopback)
	n := uint64(scaled(20000))
	p := call("sender", func() error {
		for i := range n {
			if err := ch.Send(e.ctx(), words(i)); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range n {
		require.Equal(e, words(i), e.receive(ch))
	}
	require.NoError(e, e.wait(p))
}

// directSenders: concurrent senders take turns; nothing is lost, each sender's
// messages stay in order.
func directSenders(e *env) {
	dev := e.device("")
	ch := e.subscribe(dev, abi.TargetLoopback)
	const senders = 8
	each := uint64(scaled(2000))
	calls := make([]*pending, senders)
	for i := range calls {
		calls[i] = call("sender", func() error {
			for n := range each {
				if err := ch.Send(e.ctx(), words(uint64(i), n)); err != nil {
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
		require.NoError(e, e.wait(p))
	}
}

// directManyChannels: a thousand channels at once, each with its own messages.
// One process echoes them all, so a channel is received from while others send.
func directManyChannels(e *env) {
	dev := e.device("channels=2000&managers=3")
	n := scaled(10000) / 10
	ports := e.run(dev, "loopback", n)
	calls := make([]*pending, n)
	for i, ch := range ports {
		calls[i] = call("send", func() error { return ch.Send(e.ctx(), words(uint64(i))) })
	}
	for i, ch := range ports {
		echoed := call("receive", func() error {
			buf := make([]byte, abi.PayloadSize)
			got, err := ch.Receive(e.ctx(), buf)
			if err == nil && !bytes.Equal(words(uint64(i)), buf[:got]) {
				err = fmt.Errorf("channel %d: got % x", i, buf[:got])
			}
			return err
		})
		calls = append(calls, echoed)
	}
	for _, c := range calls {
		require.NoError(e, e.wait(c))
	}
	require.Equal(e, n, dev.Stats().Channels)
}

// directRingWraps: the smallest rings, far more messages than slots, more
// channels than slots, and both ways at once.
func directRingWraps(e *env) {
	dev := e.device("slots=16&managers=1&channels=128")
	ports := e.run(dev, "loopback", 48)
	rounds := max(4, scaled(200))
	var wg sync.WaitGroup
	var bad atomic.Int64
	for i, ch := range ports {
		wg.Go(func() {
			buf := make([]byte, abi.PayloadSize)
			for r := range rounds {
				msg := words(uint64(i), uint64(r))
				if ch.Send(e.ctx(), msg) != nil {
					bad.Add(1)
					return
				}
				if n, err := ch.Receive(e.ctx(), buf); err != nil || !bytes.Equal(buf[:n], msg) {
					bad.Add(1)
					return
				}
			}
		})
	}
	wg.Wait()
	require.Zero(e, bad.Load(), "channels that lost or changed a message")
}
