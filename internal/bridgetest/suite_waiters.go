package bridgetest

import (
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

// waiting waits for a half as a Select does: when woken it tries, and waits again if it was too
// late.
func (e *Env) waiting(ch bridge.Channel, half abi.Direction, try func(wake chan<- struct{}) (bool, error)) *Pending {
	wake := make(chan struct{}, 1)
	require.NoError(e, ch.Arm(half, wake))
	return Call("waiter", func() error {
		defer ch.Disarm(half, wake)
		for {
			select {
			case <-wake:
			case <-e.Ctx().Done():
				return e.Ctx().Err()
			}
			ok, err := try(wake)
			if ok || err != nil {
				return err
			}
			if err := ch.Arm(half, wake); err != nil {
				return err
			}
		}
	})
}

// armManyH2D: many wait for one target, and each has its turn.
func armManyH2D(e *Env) {
	ports := e.Ports(e.device(""), "gate", 2)
	const n = 20
	var calls []*Pending
	for i := range uint64(n) {
		calls = append(calls, e.waiting(ports[1], abi.H2D, func(wake chan<- struct{}) (bool, error) {
			if i%2 == 0 {
				return ports[1].TrySend(make([]byte, i), wake)
			}
			return ports[1].TrySendInd(e.Ctx(), make([]byte, i*1000), wake)
		}))
	}
	for i := range uint64(n) { // in order of arrival
		e.send(ports[0], nil)
		require.Equal(e, pattern.Words(i%2, i*(1+i%2*999)), e.receive(ports[0]))
	}
	for _, c := range calls {
		require.NoError(e, e.Wait(c))
	}
}

// armManyD2H: many wait for what one process offers, and each gets a message.
func armManyD2H(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	const n = 20
	var calls []*Pending
	for range n {
		calls = append(calls, e.waiting(ch, abi.D2H, func(chan<- struct{}) (bool, error) {
			_, ok, err := ch.TryReceive(make([]byte, abi.PayloadSize))
			return ok, err
		}))
	}
	for i := range uint64(n) {
		e.send(ch, pattern.Words(i))
	}
	for _, c := range calls {
		require.NoError(e, e.Wait(c))
	}
}

// armHandsOn: one that was woken and leaves without what it waited for, and a
// call that left the offer where it was, wake the next.
func armHandsOn(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	wakes := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
	for _, wake := range wakes {
		require.NoError(e, ports[1].Arm(abi.H2D, wake))
		require.NoError(e, ports[1].Arm(abi.H2D, wake), "once more changes nothing")
	}
	e.send(ports[0], nil)
	e.token(wakes[0])
	ports[1].Disarm(abi.H2D, wakes[0])
	e.token(wakes[1])
	ok, err := ports[1].TrySend(nil, wakes[1])
	require.NoError(e, err)
	require.True(e, ok)
	e.receive(ports[0])

	loop := e.Subscribe(dev, abi.TargetLoopback)
	for _, wake := range wakes {
		require.NoError(e, loop.Arm(abi.D2H, wake))
	}
	e.send(loop, []byte("x"))
	e.token(wakes[0])
	loop.Disarm(abi.D2H, wakes[0])
	e.token(wakes[1])
	looked := make(chan struct{})
	hold := Call("ReceiveFunc", func() error {
		return loop.ReceiveFunc(e.Ctx(), func([]byte) error { looked <- struct{}{}; <-looked; return bridge.ErrStopped })
	})
	<-looked
	_, _, err = loop.TryReceive(make([]byte, 1))
	require.ErrorIs(e, err, bridge.ErrBusy)
	require.NoError(e, loop.Arm(abi.D2H, wakes[1]))
	require.Empty(e, wakes[1], "somebody is at it")
	looked <- struct{}{}
	require.ErrorIs(e, e.Wait(hold), bridge.ErrStopped)
	e.token(wakes[1])
	require.Equal(e, "x", string(e.receive(loop)))
	loop.Disarm(abi.D2H, wakes[1])
}

// armAmongSenders: a waiter has its place among those who send. A target that
// waits waits for the first of them.
func armAmongSenders(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "gate", 2)
	first := Call("first", func() error { return ports[1].Send(e.Ctx(), make([]byte, 1)) })
	e.UntilBlocked(dev, 1)
	wake := make(chan struct{}, 1)
	require.NoError(e, ports[1].Arm(abi.H2D, wake))
	last := Call("last", func() error { return ports[1].Send(e.Ctx(), make([]byte, 3)) })
	e.UntilBlocked(dev, 2)
	open := func() []byte { e.send(ports[0], nil); return e.receive(ports[0]) }
	require.Equal(e, pattern.Words(0, 1), open())
	require.NoError(e, e.Wait(first))
	e.send(ports[0], nil)
	e.token(wake)
	require.False(e, last.Over(), "it came later")
	ok, err := ports[1].TrySend(make([]byte, 2), wake)
	require.NoError(e, err)
	require.True(e, ok)
	require.Equal(e, pattern.Words(0, 2), e.receive(ports[0]))
	require.Equal(e, pattern.Words(0, 3), open())
	require.NoError(e, e.Wait(last))

	// One that gives up lets the next continue.
	require.NoError(e, ports[1].Arm(abi.H2D, wake))
	last = Call("last", func() error { return ports[1].Send(e.Ctx(), make([]byte, 3)) })
	e.UntilBlocked(dev, 1)
	ports[1].Disarm(abi.H2D, wake)
	require.Equal(e, pattern.Words(0, 3), open())
	require.NoError(e, e.Wait(last))
}

// armAgain: a target that waited for several continues with another's message. The try that it
// refuses has used its waiter's place, and leaves a token, so that the waiter asks again.
func armAgain(e *Env) {
	ports := e.Ports(e.device(""), "loopback", 2)
	wake := make(chan struct{}, 1)
	again := func(try func() (bool, error)) {
		require.NoError(e, ports[1].Arm(abi.H2D, wake))
		e.token(wake)
		e.send(ports[0], []byte("y"))
		ok, err := try()
		require.NoError(e, err)
		require.False(e, ok, "the target offers what it took")
		e.token(wake)
		require.NoError(e, ports[1].Arm(abi.H2D, wake))
		require.Equal(e, "y", string(e.receive(ports[0])))
		e.token(wake)
		ok, err = try()
		require.NoError(e, err)
		require.True(e, ok)
		ports[1].Disarm(abi.H2D, wake)
	}
	again(func() (bool, error) { return ports[1].TrySend([]byte("x"), wake) })
	require.Equal(e, "x", string(e.receive(ports[1])))
	data := make([]byte, 5000)
	again(func() (bool, error) { return ports[1].TrySendInd(e.Ctx(), data, wake) })
	require.NoError(e, ports[1].ReceiveInd(e.Ctx(), data))
}

// trySendInd gives a transfer only to a target that waits, and leaves nothing
// behind otherwise.
func trySendInd(e *Env) {
	ports := e.Ports(e.device(""), "gate", 2)
	for _, n := range []int{0, 1, 5000, 300_000} {
		data := make([]byte, n)
		for range 3 {
			ok, err := ports[1].TrySendInd(e.Ctx(), data, nil)
			require.NoError(e, err)
			require.False(e, ok, "the gate is shut")
		}
		e.send(ports[0], nil)
		e.Until("target waits", func() bool {
			ok, err := ports[1].TrySendInd(e.Ctx(), data, nil)
			require.NoError(e, err)
			return ok
		})
		require.Equal(e, pattern.Words(1, uint64(n)), e.receive(ports[0]))
	}
	expect := e.Ports(e.device(""), "expect", 2)
	e.send(expect[0], pattern.Words(100))
	e.Until("target waits", func() bool {
		ok, err := expect[1].TrySendInd(e.Ctx(), make([]byte, 99), nil)
		require.False(e, ok)
		return err != nil
	})
	require.Equal(e, abi.ErrSize, e.status(expect[0]))
	e.exchange(expect, 3000)
}

// tryReceiveInd takes a transfer only if one is offered, of this size.
func tryReceiveInd(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	for _, n := range []uint64{0, 1, 5000, 300_000} {
		ok, err := ports[1].TryReceiveInd(e.Ctx(), make([]byte, n))
		require.NoError(e, err)
		require.False(e, ok, "nothing is offered")
		e.send(ports[0], pattern.Words(n|pattern.ExpectWrite))
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: n})
		_, err = ports[1].TryReceiveInd(e.Ctx(), make([]byte, n+1))
		e.isSizeError(err, n+1, n)
		ok, err = ports[1].TryReceiveInd(e.Ctx(), make([]byte, n))
		require.NoError(e, err)
		require.True(e, ok)
		require.Equal(e, abi.OK, e.status(ports[0]))
	}
	loop := e.Subscribe(dev, abi.TargetLoopback)
	e.send(loop, []byte("m"))
	e.offers(loop, bridge.Offer{Size: 1})
	_, err := loop.TryReceiveInd(e.Ctx(), make([]byte, 1))
	require.ErrorIs(e, err, bridge.ErrKindMismatch)
	require.Equal(e, "m", string(e.receive(loop)))
}

// tryNext looks at what is offered now, and takes nothing.
func tryNext(e *Env) {
	loop := e.Subscribe(e.device(""), abi.TargetLoopback)
	_, ok, err := loop.TryNext()
	require.NoError(e, err)
	require.False(e, ok)
	e.send(loop, []byte("seven b"))
	e.offers(loop, bridge.Offer{Size: 7})
	for range 3 {
		o, ok, err := loop.TryNext()
		require.NoError(e, err)
		require.True(e, ok)
		require.Equal(e, bridge.Offer{Size: 7}, o)
	}
	require.Equal(e, "seven b", string(e.receive(loop)))
	require.NoError(e, loop.CloseReceive())
	_, _, err = loop.TryNext()
	require.ErrorIs(e, err, bridge.ErrClosed)
}
