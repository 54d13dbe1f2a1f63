package bridgetest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var cancelCases = []testCase{
	{"cancel/before", cancelBefore},
	{"cancel/before-device", cancelBeforeDevice},
	{"cancel/during", cancelDuring},
	{"cancel/deadline", cancelDeadline},
	{"cancel/takes-the-message-back", cancelTakesBack},
	{"cancel/keeps-the-offer", cancelKeepsOffer},
	{"cancel/queued-sender", cancelQueued},
}

// Operation is one of the blocking calls, on a channel nobody serves.
type Operation struct {
	Name string
	Do   func(ctx context.Context, ch bridge.Channel) error
}

// Operations are all blocking calls, the four plain ones first.
var Operations = []Operation{
	{"Send", func(ctx context.Context, ch bridge.Channel) error { return ch.Send(ctx, []byte("msg")) }},
	{"SendInd", func(ctx context.Context, ch bridge.Channel) error { return ch.SendInd(ctx, make([]byte, 100<<10)) }},
	{"Receive", func(ctx context.Context, ch bridge.Channel) error {
		_, err := ch.Receive(ctx, make([]byte, 56))
		return err
	}},
	{"ReceiveInd", func(ctx context.Context, ch bridge.Channel) error {
		return ch.ReceiveInd(ctx, make([]byte, 100<<10))
	}},
	{"ReceiveFunc", func(ctx context.Context, ch bridge.Channel) error {
		return ch.ReceiveFunc(ctx, func([]byte) error { return nil })
	}},
	{"ReceiveIndFunc", func(ctx context.Context, ch bridge.Channel) error {
		return receiveFunc(ctx, ch, make([]byte, 4096), func() error { return nil })
	}},
	{"SendInd of some bytes", func(ctx context.Context, ch bridge.Channel) error { return ch.SendInd(ctx, make([]byte, 100)) }},
	{"ReceiveInd of some bytes", func(ctx context.Context, ch bridge.Channel) error {
		return ch.ReceiveInd(ctx, make([]byte, 100))
	}},
	{"Next", func(ctx context.Context, ch bridge.Channel) error {
		_, err := ch.Next(ctx)
		return err
	}},
}

// cancelBefore: a context that is over already keeps a call from starting.
func cancelBefore(e *Env) {
	ch := e.Ports(e.device(""), "hold", 1)[0]
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	for _, op := range Operations {
		e.Log(op.Name)
		e.IsWithdrawn(op.Do(ctx, ch), context.Canceled)
	}
}

// deviceCalls are the calls of a device that take a context. Their arguments
// would do something.
var deviceCalls = []struct {
	name string
	do   func(ctx context.Context, dev bridge.Device) error
}{
	{"Subscribe", func(ctx context.Context, dev bridge.Device) error {
		_, err := dev.Subscribe(ctx, abi.TargetLoopback)
		return err
	}},
	{"Subscribe nothing", func(ctx context.Context, dev bridge.Device) error {
		_, err := dev.Subscribe(ctx, abi.TargetControl)
		return err
	}},
	{"Start", func(ctx context.Context, dev bridge.Device) error {
		_, err := dev.Start(ctx, bridge.Program{Name: "hold", Targets: 1})
		return err
	}},
	{"Stop", func(ctx context.Context, dev bridge.Device) error { return dev.Stop(ctx, 1<<40) }},
	{"Load", func(ctx context.Context, dev bridge.Device) error {
		_, err := dev.Load(ctx, nil)
		return err
	}},
	{"Programs", func(ctx context.Context, dev bridge.Device) error {
		_, err := dev.Programs(ctx)
		return err
	}},
	{"Memory", func(ctx context.Context, dev bridge.Device) error {
		_, err := dev.Memory(ctx, abi.EMEM)
		return err
	}},
	{"Reset", func(ctx context.Context, dev bridge.Device) error { return dev.Reset(ctx) }},
}

// cancelBeforeDevice: the same for the calls of a device. The existing channels stay open.
func cancelBeforeDevice(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	before, channels := dev.Info(), dev.Stats().Channels
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	for _, c := range deviceCalls {
		e.Log(c.name)
		e.IsWithdrawn(c.do(ctx, dev), context.Canceled)
	}
	require.Equal(e, before, dev.Info())
	require.Zero(e, dev.Stats().Resets)
	health := e.health(dev)
	require.Equal(e, channels, dev.Stats().Channels)
	e.Logf("%d processes", health.Processes)
	e.Echo(ch, []byte("still here"))
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("not taken"))
}

// cancelDuring: cancelling ends a blocked call, and the channel continues.
func cancelDuring(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "hold", 1)[0]
	for round := range 3 {
		for _, op := range Operations {
			e.Log(op.Name, round)
			ctx, cancel := context.WithCancel(e.Ctx())
			p := Call(op.Name, func() error { return op.Do(ctx, ch) })
			e.UntilBlocked(dev, 1)
			cancel()
			e.IsWithdrawn(e.Wait(p), context.Canceled)
		}
	}
	require.Zero(e, dev.Stats().Blocked)
}

// cancelDeadline: so does a deadline, which is a time-out as package net knows
// it.
func cancelDeadline(e *Env) {
	ch := e.Ports(e.device(""), "hold", 1)[0]
	for _, op := range Operations {
		e.Log(op.Name)
		ctx, cancel := context.WithTimeout(e.Ctx(), 5*time.Millisecond)
		err := op.Do(ctx, ch)
		cancel()
		require.ErrorIs(e, err, context.DeadlineExceeded)
		var timeout interface{ Timeout() bool }
		require.ErrorAs(e, err, &timeout)
		require.True(e, timeout.Timeout())
	}
}

// cancelTakesBack: what was withdrawn never reaches the target.
func cancelTakesBack(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	ctx, cancel := context.WithCancel(e.Ctx())
	for _, op := range Operations[:2] {
		first := Call(op.Name, func() error { return op.Do(ctx, ports[1]) })
		e.UntilBlocked(dev, 1)
		cancel()
		e.IsWithdrawn(e.Wait(first), context.Canceled)
		ctx, cancel = context.WithCancel(e.Ctx())
		second := Call("second", func() error { return ports[1].Send(e.Ctx(), make([]byte, 42)) })
		e.UntilBlocked(dev, 1)
		e.send(ports[0], nil)
		require.NoError(e, e.Wait(second))
		require.Equal(e, pattern.Words(0, 42), e.receive(ports[0]))
	}
	cancel()
}

// cancelKeepsOffer: a receiver that gave up leaves the message to the next one.
func cancelKeepsOffer(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	for range 20 {
		ctx, cancel := context.WithCancel(e.Ctx())
		var got [8]byte
		var n int
		p := Call("receive", func() (err error) {
			n, err = ch.Receive(ctx, got[:])
			return err
		})
		go cancel()
		e.send(ch, []byte("kept"))
		if err := e.Wait(p); err != nil {
			e.IsWithdrawn(err, context.Canceled)
			require.Equal(e, "kept", string(e.receive(ch)))
			continue
		}
		require.Equal(e, "kept", string(got[:n]))
	}
}

// cancelQueued: a sender that waits behind another can give up too.
func cancelQueued(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	for range 10 {
		first := Call("first", func() error { return ports[1].Send(e.Ctx(), make([]byte, 1)) })
		e.UntilBlocked(dev, 1)
		ctx, cancel := context.WithCancel(e.Ctx())
		second := Call("second", func() error { return ports[1].Send(ctx, make([]byte, 2)) })
		third := Call("third", func() error { return ports[1].Send(e.Ctx(), make([]byte, 3)) })
		cancel()
		e.IsWithdrawn(e.Wait(second), context.Canceled)
		for i, p := range []*Pending{first, third} {
			e.send(ports[0], nil)
			require.NoError(e, e.Wait(p))
			require.Equal(e, pattern.Words(0, uint64(1+2*i)), e.receive(ports[0]))
		}
	}
}
