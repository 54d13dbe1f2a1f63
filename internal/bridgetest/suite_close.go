package bridgetest

import (
	"context"
	"errors"
	"net"
	"runtime"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var closeCases = []testCase{
	{"close/half-h2d", closeHalfH2D},
	{"close/half-d2h", closeHalfD2H},
	{"close/other-half-blocked", closeBesideCall},
	{"close/ends-pending-calls", closePending},
	{"close/during-transfer", closeDuringTransfer},
	{"close/idempotent", closeIdempotent},
	{"close/use-after", closeUseAfter},
	{"close/subscribe-again", closeSubscribeAgain},
	{"close/other-side", closeByDevice},
	{"close/again-after-its-process", closeAgainAfterProcess},
	{"close/as-its-process-stops", closeAsProcessStops},
	{"subscribe/errors", subscribeErrors},
	{"subscribe/second-receiver", secondReceiver},
}

// closeHalfH2D: after CloseSend nothing can be sent, and what the target gives
// still arrives.
func closeHalfH2D(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	e.send(ch, []byte("last words"))
	require.NoError(e, ch.CloseSend())
	require.ErrorIs(e, ch.Send(e.Ctx(), nil), bridge.ErrClosed)
	require.ErrorIs(e, ch.SendInd(e.Ctx(), make([]byte, 10)), bridge.ErrClosed)
	require.Equal(e, "last words", string(e.receive(ch)))
	require.NoError(e, ch.CloseSend())
}

// closeHalfD2H: after CloseReceive nothing arrives, and sending continues.
func closeHalfD2H(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "sink", 1)[0]
	require.NoError(e, ch.CloseReceive())
	_, err := ch.Receive(e.Ctx(), make([]byte, 56))
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.ErrorIs(e, ch.ReceiveInd(e.Ctx(), make([]byte, 10)), bridge.ErrClosed)
	_, err = ch.Next(e.Ctx())
	require.ErrorIs(e, err, bridge.ErrClosed)
	e.send(ch, []byte("still"))
	require.NoError(e, ch.SendInd(e.Ctx(), make([]byte, 100_000)))
	require.NoError(e, ch.CloseReceive())
}

// closeBesideCall: a half closes while a call is blocked in the other, which
// continues.
func closeBesideCall(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	var got []byte
	receiver := Call("receive", func() error {
		buf := make([]byte, 56)
		n, err := ports[0].Receive(e.Ctx(), buf)
		got = buf[:n]
		return err
	})
	sender := Call("send", func() error { return ports[1].Send(e.Ctx(), make([]byte, 9)) })
	e.UntilBlocked(dev, 2)
	e.send(ports[0], nil)
	require.NoError(e, ports[0].CloseSend())
	require.NoError(e, ports[1].CloseReceive())
	require.NoError(e, e.Wait(sender))
	require.NoError(e, e.Wait(receiver))
	require.Equal(e, pattern.Words(0, 9), got)
}

// closePending: closing ends each kind of call that is blocked, with ErrClosed.
func closePending(e *Env) {
	dev := e.device("")
	for _, how := range []string{"half", "both"} {
		for _, op := range Operations {
			e.Log(how, op.Name)
			p := e.Start(dev, "hold", 1)
			ch := e.Subscribe(dev, p.First)
			c := Call(op.Name, func() error { return op.Do(e.Ctx(), ch) })
			e.UntilBlocked(dev, 1)
			if how == "half" {
				require.NoError(e, errors.Join(ch.CloseReceive(), ch.CloseSend()))
			}
			require.NoError(e, ch.Close())
			require.ErrorIs(e, e.Wait(c), bridge.ErrClosed)
			require.NoError(e, e.stop(dev, p))
		}
	}
}

// closeDuringTransfer: closing a channel whose transfer moves ends the call,
// and the buffer is quiet afterwards.
func closeDuringTransfer(e *Env) {
	dev := e.device("emem=256MiB")
	sink := e.Start(dev, "sink", 1)
	mem := e.pages(32 << 20)
	for range max(4, Scaled(20)) {
		ch := e.Subscribe(dev, sink.First)
		c := Call("SendInd", func() error { return ch.SendInd(e.Ctx(), mem) })
		e.Until("lists sent", func() bool { return ch.Stats().Lists > 0 || c.Over() })
		require.NoError(e, ch.Close())
		if err := e.Wait(c); err != nil {
			require.ErrorIs(e, err, bridge.ErrClosed)
		}
	}
	e.sendPattern(e.Subscribe(dev, sink.First), 1<<20, 3, 9)
}

// closeIdempotent: closing twice, by halves or as a whole, is no error.
func closeIdempotent(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	for range 2 {
		require.NoError(e, ch.CloseSend())
		require.NoError(e, ch.CloseReceive())
		require.NoError(e, ch.Close())
	}
	require.NoError(e, dev.Close())
	require.NoError(e, dev.Close())
	require.NoError(e, ch.Close())
}

// closeUseAfter: a closed channel refuses every call, and its error is also
// that of package net.
func closeUseAfter(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	target, channels := ch.Target(), dev.Stats().Channels
	require.NoError(e, ch.Close())
	for _, op := range Operations {
		e.Log(op.Name)
		err := op.Do(e.Ctx(), ch)
		require.ErrorIs(e, err, bridge.ErrClosed)
		require.ErrorIs(e, err, net.ErrClosed)
	}
	_, err := ch.TrySend(nil, nil)
	require.ErrorIs(e, err, bridge.ErrClosed)
	_, _, err = ch.TryReceive(nil)
	require.ErrorIs(e, err, bridge.ErrClosed)
	require.ErrorIs(e, ch.Arm(abi.H2D, make(chan struct{}, 1)), bridge.ErrClosed)
	ch.Disarm(abi.H2D, make(chan struct{}))
	require.Equal(e, target, ch.Target())
	require.Equal(e, channels-1, dev.Stats().Channels)
}

// closeSubscribeAgain: a closed target can be subscribed again, as often as one
// likes, and nothing of the old subscription shows up in the new one.
func closeSubscribeAgain(e *Env) {
	dev := e.device("")
	p := e.Start(dev, "loopback", 1)
	for i := range max(20, Scaled(300)) {
		ch := e.Subscribe(dev, p.First)
		e.Echo(ch, pattern.Words(uint64(i)))
		if i%2 == 0 {
			e.send(ch, pattern.Words(uint64(i), 1)) // never received
		}
		require.NoError(e, ch.Close())
	}
	e.Echo(e.Subscribe(dev, p.First), []byte("fresh"))
}

// closeByDevice: when the process ends, what it gave before can still be taken,
// and then the channel says that it is closed.
func closeByDevice(e *Env) {
	dev := e.device("")
	p := e.Start(dev, "loopback", 2)
	quiet, silent := e.Subscribe(dev, p.First), e.Subscribe(dev, p.First+1)
	e.Echo(quiet, []byte("alive"))
	require.NoError(e, e.stop(dev, p))
	for _, ch := range []bridge.Channel{quiet, silent} {
		require.ErrorIs(e, ch.Send(e.Ctx(), []byte("gone")), bridge.ErrClosed)
		_, err := ch.Receive(e.Ctx(), make([]byte, 56))
		require.ErrorIs(e, err, bridge.ErrClosed)
		require.NoError(e, ch.Close())
	}
}

// closeAgainAfterProcess: the targets of a process that ended are nobody's, until another
// is started with them.
func closeAgainAfterProcess(e *Env) {
	dev := e.device("")
	p := e.Start(dev, "loopback", 2)
	ch := e.Subscribe(dev, p.First)
	require.NoError(e, e.stop(dev, p))
	require.NoError(e, ch.Close())
	_, err := dev.Subscribe(e.Ctx(), p.First)
	require.ErrorIs(e, err, bridge.ErrNotSubscribed)
	again, err := dev.Start(e.Ctx(), bridge.Program{Name: "loopback", First: p.First, Targets: 2})
	require.NoError(e, err, "targets are free again")
	e.Echo(e.Subscribe(dev, again.First), []byte("reborn"))
}

// closeAsProcessStops: the process offers, hears that it is to stop and takes the
// offer back, all before it is notified of the close.
func closeAsProcessStops(e *Env) {
	dev := e.device("")
	for i := range max(20, Scaled(100)) {
		p := e.Start(dev, "loopback", 1)
		ch := e.Subscribe(dev, p.First)
		send := Call("send", func() error { return untilClosed(func() error { return ch.Send(e.Ctx(), nil) }) })
		receive := Call("receive", func() error {
			return untilClosed(func() error { _, err := ch.Receive(e.Ctx(), nil); return err })
		})
		for range i % 50 {
			runtime.Gosched()
		}
		stop := Call("stop", func() error { return e.stop(dev, p) })
		require.NoError(e, ch.Close())
		for _, c := range []*Pending{send, receive, stop} {
			require.NoError(e, e.Wait(c))
		}
	}
	require.Zero(e, dev.Stats().Faults)
}

// untilClosed repeats an operation until its channel is closed.
func untilClosed(do func() error) error {
	for {
		if err := do(); errors.Is(err, bridge.ErrClosed) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// subscribeErrors: targets that do not exist, are taken, or are no targets.
func subscribeErrors(e *Env) {
	dev := e.device("channels=100")
	for _, target := range []bridge.Target{50, 99, 100, 101, abi.ChannelsMax - 1, abi.ChannelsMax, 1<<32 - 1, 1 << 32, bridge.At(abi.MakeNode(1, 0, 0), abi.TargetLoopback)} {
		_, err := dev.Subscribe(e.Ctx(), target)
		require.ErrorIs(e, err, bridge.ErrNotSubscribed, "target %d", target)
	}
	_, err := dev.Subscribe(e.Ctx(), abi.TargetControl)
	require.Error(e, err)
	ch := e.Subscribe(dev, abi.TargetLoopback)
	_, err = dev.Subscribe(e.Ctx(), abi.TargetLoopback)
	require.ErrorIs(e, err, bridge.ErrBusy)
	e.Echo(ch, []byte("unharmed"))
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	_, err = dev.Subscribe(ctx, abi.TargetLoopback)
	require.Error(e, err)
	e.Echo(ch, []byte("unharmed"))
}

// secondReceiver: a channel has one receiver at a time.
func secondReceiver(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	var got []byte
	p := Call("receive", func() error {
		buf := make([]byte, 56)
		n, err := ch.Receive(e.Ctx(), buf)
		got = buf[:n]
		return err
	})
	e.UntilBlocked(dev, 1)
	_, err := ch.Receive(e.Ctx(), make([]byte, 56))
	require.ErrorIs(e, err, bridge.ErrBusy)
	require.ErrorIs(e, ch.ReceiveInd(e.Ctx(), make([]byte, 56)), bridge.ErrBusy)
	_, err = ch.Next(e.Ctx())
	require.ErrorIs(e, err, bridge.ErrBusy)
	e.send(ch, []byte("for the first"))
	require.NoError(e, e.Wait(p))
	require.Equal(e, "for the first", string(got))
}
