package bridgetest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// begunCases are about transfers that one goroutine begins on many channels and ends later. A
// back end that has none, or begins none of that size, keeps these rules as it is.
var begunCases = []testCase{
	{"begun/together", begunTogether},
	{"begun/goes-on", begunGoesOn},
	{"begun/cancelled", begunCancelled},
	{"begun/closed", begunClosed},
	{"begun/reset", begunReset},
	{"begun/another-size", begunAnotherSize},
	{"begun/refused", begunRefused},
}

const begunSize = 5000

// beginSend begins a send; nil if that cannot begin.
func beginSend(ctx context.Context, ch bridge.Channel, data []byte) bridge.Beginner {
	if b, ok := ch.(bridge.Beginner); ok && b.BeginSendInd(ctx, data) {
		return b
	}
	return nil
}

// beginReceive begins a receive; nil if that cannot begin.
func beginReceive(ctx context.Context, ch bridge.Channel, data []byte) bridge.Beginner {
	if b, ok := ch.(bridge.Beginner); ok && b.BeginReceiveInd(ctx, data) {
		return b
	}
	return nil
}

// sent polls until a send that was begun has ended.
func (e *Env) sent(b bridge.Beginner, data []byte) (err error) {
	e.Until("transfer ends", func() (ended bool) {
		ended, err = b.EndSendInd(e.Ctx(), data, false)
		return ended
	})
	return err
}

// received polls for the end of a receive that was begun, and then waits for it: one that met
// another offer of the device ends only so.
func (e *Env) received(b bridge.Beginner, data []byte) error {
	for range 100 {
		if ended, err := b.EndReceiveInd(e.Ctx(), data, false); ended {
			return err
		}
	}
	ended, err := b.EndReceiveInd(e.Ctx(), data, true)
	require.True(e, ended)
	return err
}

// begunTogether: transfers of many channels are under way at once, there and back.
func begunTogether(e *Env) {
	dev := e.device("")
	var ports []bridge.Channel
	for range 8 { // a process each: one would wait for its first echo to be taken
		ports = append(ports, e.Ports(dev, "loopback", 1)...)
	}
	for _, n := range []int{0, 1, begunSize, 1 << 16, 1<<16 + 1} {
		sent, back := make([]*Buffer, len(ports)), make([]*Buffer, len(ports))
		begun := make([]bridge.Beginner, len(ports))
		for i, ch := range ports {
			sent[i], back[i] = NewBuffer(n, 10*i), NewBuffer(n, 7*i)
			for j := range sent[i].Data {
				sent[i].Data[j] = byte(i + j)
			}
			begun[i] = beginSend(e.Ctx(), ch, sent[i].Data)
		}
		for i, ch := range ports {
			if begun[i] == nil {
				require.NoError(e, ch.SendInd(e.Ctx(), sent[i].Data))
				continue
			}
			require.NoError(e, e.sent(begun[i], sent[i].Data))
		}
		for i, ch := range ports {
			begun[i] = beginReceive(e.Ctx(), ch, back[i].Data)
		}
		for i, ch := range ports {
			if begun[i] == nil {
				require.NoError(e, ch.ReceiveInd(e.Ctx(), back[i].Data))
			} else {
				require.NoError(e, e.received(begun[i], back[i].Data))
			}
			require.Equal(e, sent[i].Data, back[i].Data)
			e.Check(back[i])
		}
	}
}

// stuck is a send that was begun to a target that does not read yet, and what makes it.
func (e *Env) stuck(ctx context.Context, dev bridge.Device, data []byte) (ports []bridge.Channel, b bridge.Beginner) {
	ports = e.Ports(dev, "gate", 2)
	b = beginSend(ctx, ports[1], data)
	if b != nil {
		ended, err := b.EndSendInd(ctx, data, false)
		require.False(e, ended, "the target does not read: %v", err)
	}
	return ports, b
}

// begunGoesOn: what was begun keeps its place, and is released when the target took it.
func begunGoesOn(e *Env) {
	data := make([]byte, begunSize)
	dev := e.device("")
	ports, b := e.stuck(e.Ctx(), dev, data)
	if b == nil {
		return
	}
	behind := Call("SendInd", func() error { return ports[1].SendInd(e.Ctx(), data[:99]) })
	e.UntilBlocked(dev, 1)
	require.Nil(e, beginSend(e.Ctx(), ports[1], data), "the half is another call's")
	for _, size := range []int{begunSize, 99} {
		e.send(ports[0], nil)
		if size == begunSize {
			_, err := b.EndSendInd(e.Ctx(), data, true)
			require.NoError(e, err)
		} else {
			require.NoError(e, e.Wait(behind))
		}
		require.Equal(e, []uint64{1, uint64(size)}, e.words(e.receive(ports[0]), 2))
	}
}

// begunCancelled: a context that ends takes back what was begun.
func begunCancelled(e *Env) {
	data := make([]byte, begunSize)
	ctx, cancel := context.WithCancel(e.Ctx())
	defer cancel()
	ports, b := e.stuck(ctx, e.device(""), data)
	if b == nil {
		return
	}
	cancel()
	ended, err := b.EndSendInd(ctx, data, true)
	require.True(e, ended)
	e.IsWithdrawn(err, context.Canceled)
	require.Nil(e, beginSend(ctx, ports[1], data), "its context has ended")
	waits := Call("SendInd", func() error { return ports[1].SendInd(e.Ctx(), data[:7]) })
	e.send(ports[0], nil)
	require.NoError(e, e.Wait(waits))
	require.Equal(e, []uint64{1, 7}, e.words(e.receive(ports[0]), 2), "the one that was cancelled is gone")

	ctx, cancel = context.WithCancel(e.Ctx())
	defer cancel()
	if r := beginReceive(ctx, ports[1], data); r != nil {
		cancel()
		ended, err = r.EndReceiveInd(ctx, data, true)
		require.True(e, ended)
		e.IsWithdrawn(err, context.Canceled)
	}
}

// begunClosed: a close ends what was begun, and waits for it.
func begunClosed(e *Env) {
	data := make([]byte, begunSize)
	ports, b := e.stuck(e.Ctx(), e.device(""), data)
	if b == nil {
		return
	}
	closes := Call("Close", ports[1].Close)
	_, err := b.EndSendInd(e.Ctx(), data, true)
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.NoError(e, e.Wait(closes))
	require.Nil(e, beginSend(e.Ctx(), ports[1], data))
	require.Nil(e, beginReceive(e.Ctx(), ports[1], data))
}

// begunReset: a reset ends what was begun; the buffer is the caller's again.
func begunReset(e *Env) {
	data, into := make([]byte, begunSize), make([]byte, begunSize)
	dev := e.device("")
	ports, b := e.stuck(e.Ctx(), dev, data)
	if b == nil {
		return
	}
	r := beginReceive(e.Ctx(), ports[1], into)
	resets := Call("Reset", func() error { return dev.Reset(e.Ctx()) })
	_, err := b.EndSendInd(e.Ctx(), data, true)
	require.ErrorIs(e, err, bridge.ErrDeviceLost)
	if r != nil {
		_, err = r.EndReceiveInd(e.Ctx(), into, true)
		require.ErrorIs(e, err, bridge.ErrDeviceLost)
	}
	require.NoError(e, e.Wait(resets))
}

// begunAnotherSize: a receive that was begun takes nothing but its size.
func begunAnotherSize(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	b := NewBuffer(begunSize, 3)
	r := beginReceive(e.Ctx(), ports[1], b.Data)
	if r == nil {
		return
	}
	ended, err := r.EndReceiveInd(e.Ctx(), b.Data, false)
	require.False(e, ended, "nothing is offered: %v", err)
	e.write(ports, 42)
	for range 100 { // whenever the offer comes
		ended, err = r.EndReceiveInd(e.Ctx(), b.Data, false)
		require.False(e, ended, "who does not wait takes no other offer: %v", err)
	}
	_, err = r.EndReceiveInd(e.Ctx(), b.Data, true)
	e.isSizeError(err, begunSize, 42)
	require.Negative(e, firstNot(b.whole, canary), "written although refused")
	require.NoError(e, ports[1].ReceiveInd(e.Ctx(), make([]byte, 42)))
}

// begunRefused: what cannot begin has not begun.
func begunRefused(e *Env) {
	dev := e.device("")
	loop := e.Ports(dev, "loopback", 1)[0]
	huge := make([]byte, 1<<20)
	require.Nil(e, beginSend(e.Ctx(), loop, huge), "it needs its caller")
	require.Nil(e, beginReceive(e.Ctx(), loop, huge), "it needs its caller")
	ended, cancel := context.WithCancel(e.Ctx())
	cancel()
	require.Nil(e, beginSend(ended, loop, huge[:1]))
	require.Nil(e, beginReceive(ended, loop, huge[:1]))
	e.EchoInd(loop, len(huge), 1)
}
