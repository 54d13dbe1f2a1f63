package bridgetest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

var refusalCases = []testCase{
	{"refusal/size-h2d", sizeMismatchH2D},
	{"refusal/size-d2h", sizeMismatchD2H},
	{"refusal/kind-h2d", kindMismatchH2D},
	{"refusal/kind-d2h", kindMismatchD2H},
	{"refusal/by-the-host", refuseOffer},
	{"refusal/target-timeout", targetTimeout},
	{"refusal/target-timeout-and-deadline", targetTimeoutAndDeadline},
	{"refusal/deadline", deadlineTransfer},
	{"refusal/device-memory", deviceMemory},
	{"refusal/process-ends", processEnds},
}

// status reads what an expect process answers.
func (e *env) status(ch bridge.Channel) abi.Status {
	e.Helper()
	return abi.Status(e.words(e.receive(ch), 1)[0])
}

// exchange makes an expect process read n bytes and sends them.
func (e *env) exchange(ports []bridge.Channel, n int) {
	e.Helper()
	e.send(ports[0], words(uint64(n)))
	require.NoError(e, ports[1].SendInd(e.ctx(), make([]byte, n)))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.send(ports[0], words(uint64(n)|expectWrite))
	require.NoError(e, ports[1].ReceiveInd(e.ctx(), make([]byte, n)))
	require.Equal(e, abi.OK, e.status(ports[0]))
}

// sizeMismatchH2D: both ends learn that their sizes differ, and of both sizes.
func sizeMismatchH2D(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	for _, c := range []struct{ host, device uint64 }{
		{100, 101}, {101, 100}, {0, 5}, {5, 0}, {100_000, 4096}, {4096, 100_000},
	} {
		e.send(ports[0], words(c.device))
		err := ports[1].SendInd(e.ctx(), make([]byte, c.host))
		e.isSizeError(err, c.host, c.device)
		require.Equal(e, abi.ErrSize, e.status(ports[0]))
		e.exchange(ports, 3000)
	}
}

func (e *env) isSizeError(err error, host, device uint64) {
	e.Helper()
	require.ErrorIs(e, err, bridge.ErrSizeMismatch)
	var s *bridge.SizeError
	require.ErrorAs(e, err, &s)
	require.Equal(e, bridge.SizeError{Host: host, Device: device}, *s)
}

// sizeMismatchD2H: on the way to the host a wrong size takes nothing: the host
// learns both sizes, and the right receive gets the transfer.
func sizeMismatchD2H(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	for _, c := range []struct{ host, device uint64 }{
		{100, 101}, {101, 100}, {0, 5}, {5, 0}, {100_000, 4096}, {4096, 100_000},
	} {
		b := newBuffer(int(c.host), 17)
		e.send(ports[0], words(c.device|expectWrite))
		for range 2 {
			e.isSizeError(ports[1].ReceiveInd(e.ctx(), b.data), c.host, c.device)
			e.isSizeError(receiveFunc(e.ctx(), ports[1], b.data, nil), c.host, c.device)
		}
		require.Negative(e, firstNot(b.whole, canary), "written although refused")
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: c.device})
		require.NoError(e, ports[1].ReceiveInd(e.ctx(), make([]byte, c.device)))
		require.Equal(e, abi.OK, e.status(ports[0]))
		e.exchange(ports, 3000)
	}
}

// offers requires that the device still offers o.
func (e *env) offers(ch bridge.Channel, o bridge.Offer) {
	e.Helper()
	now, err := ch.Next(e.ctx())
	require.NoError(e, err)
	require.Equal(e, o, now)
}

// kindMismatchH2D: a message for a process that wants a transfer.
func kindMismatchH2D(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	e.send(ports[0], words(64))
	require.ErrorIs(e, ports[1].Send(e.ctx(), []byte("direct")), bridge.ErrKindMismatch)
	require.Equal(e, abi.ErrKind, e.status(ports[0]))
	e.exchange(ports, 64)
	// Port 0 reads messages: there a transfer is the wrong kind.
	require.ErrorIs(e, ports[0].SendInd(e.ctx(), make([]byte, 8)), bridge.ErrKindMismatch)
}

// kindMismatchD2H: a receiver of messages where the device gives a transfer,
// and the other way round, takes nothing: the right receive gets it.
func kindMismatchD2H(e *env) {
	dev := e.device("")
	ports := e.run(dev, "expect", 2)
	e.send(ports[0], words(64|expectWrite))
	for range 2 {
		_, err := ports[1].Receive(e.ctx(), make([]byte, 56))
		require.ErrorIs(e, err, bridge.ErrKindMismatch)
		require.ErrorIs(e, ports[1].ReceiveFunc(e.ctx(), nil), bridge.ErrKindMismatch)
		_, _, err = ports[1].TryReceive(make([]byte, 56))
		require.ErrorIs(e, err, bridge.ErrKindMismatch)
	}
	e.offers(ports[1], bridge.Offer{Indirect: true, Size: 64})
	require.NoError(e, ports[1].ReceiveInd(e.ctx(), make([]byte, 64)))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.exchange(ports, 64)
	loop := e.run(dev, "loopback", 1)[0]
	e.send(loop, []byte("direct"))
	b := newBuffer(6, 0)
	for range 2 {
		require.ErrorIs(e, loop.ReceiveInd(e.ctx(), b.data), bridge.ErrKindMismatch)
		require.ErrorIs(e, receiveFunc(e.ctx(), loop, b.data, nil), bridge.ErrKindMismatch)
	}
	require.Negative(e, firstNot(b.whole, canary), "written although refused")
	require.Equal(e, "direct", string(e.receive(loop)))
	e.echo(loop, []byte("next"))
}

// refuseOffer: an error of the function is how a host refuses a transfer.
func refuseOffer(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	own := errors.New("not wanted")
	for _, n := range []uint64{0, 1, 100_000} {
		e.send(ports[0], words(n|expectWrite))
		require.ErrorIs(e, receiveFunc(e.ctx(), ports[1], make([]byte, n), func() error { return own }), own)
		require.Equal(e, abi.ErrAborted, e.status(ports[0]))
	}
	e.exchange(ports, 3000)
}

// targetTimeout: a device that bounds the wait says so with its own error.
func targetTimeout(e *env) {
	dev := e.device("target-timeout=50ms")
	ch := e.run(dev, "hold", 1)[0]
	for range 3 {
		err := ch.Send(e.ctx(), []byte("late"))
		require.ErrorIs(e, err, bridge.ErrTargetTimeout)
		require.ErrorIs(e, err, context.DeadlineExceeded)
		err = ch.SendInd(e.ctx(), make([]byte, 50_000))
		require.ErrorIs(e, err, bridge.ErrTargetTimeout)
	}
	e.echo(e.subscribe(dev, abi.TargetLoopback), []byte("in time"))
}

// targetTimeoutAndDeadline: a context that ends later does not lengthen the
// device's own bound, for a message or for a transfer, and one that ends sooner
// ends the call.
func targetTimeoutAndDeadline(e *env) {
	dev := e.device("target-timeout=50ms")
	ch := e.run(dev, "hold", 1)[0]
	late, cancel := context.WithTimeout(e.ctx(), patience)
	defer cancel()
	for _, op := range operations[:2] {
		err := op.do(late, ch)
		require.ErrorIs(e, err, bridge.ErrTargetTimeout, op.name)
		require.NotErrorIs(e, err, bridge.ErrWithdrawn, op.name)
	}
	dev = e.device("target-timeout=4m")
	ch = e.run(dev, "hold", 1)[0]
	for _, op := range operations[:2] {
		soon, cancel := context.WithTimeout(e.ctx(), 10*time.Millisecond)
		err := op.do(soon, ch)
		cancel()
		require.ErrorIs(e, err, bridge.ErrWithdrawn, op.name)
		require.ErrorIs(e, err, context.DeadlineExceeded, op.name)
	}
}

// deadlineTransfer: a deadline that passes while the target is not ready leaves
// nothing behind: the next transfer works at once.
func deadlineTransfer(e *env) {
	ports := e.run(e.device(""), "gate", 2)
	ctx, cancel := context.WithTimeout(e.ctx(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(e, ports[1].SendInd(ctx, make([]byte, 100_000)), context.DeadlineExceeded)
	p := call("second", func() error { return ports[1].SendInd(e.ctx(), make([]byte, 70_000)) })
	e.send(ports[0], nil)
	require.NoError(e, e.wait(p))
	require.Equal(e, words(1, 70_000), e.receive(ports[0]))
}

// deviceMemory: a transfer that device memory cannot hold is refused before a
// byte moves.
func deviceMemory(e *env) {
	dev := e.device("emem=16MiB")
	const n = 64 << 20
	data := e.pages(n)
	ports := e.run(dev, "expect", 2)
	e.send(ports[0], words(n))
	err := ports[1].SendInd(e.ctx(), data)
	require.Error(e, err)
	requireOneOf(e, err, bridge.ErrRange, bridge.ErrNoMemory)
	require.Contains(e, []abi.Status{abi.ErrRange, abi.ErrNoMemory}, e.status(ports[0]))
	e.exchange(ports, 4096)
	sink := e.run(dev, "sink", 1)[0]
	requireOneOf(e, sink.SendInd(e.ctx(), data), bridge.ErrRange, bridge.ErrNoMemory)
	e.sendPattern(sink, 4096, 0, 1)
	_, count, _ := e.sinkStat(sink)
	require.Equal(e, uint64(4096), count)
	m, err := dev.Memory(e.ctx(), abi.EMEM)
	require.NoError(e, err)
	require.Equal(e, uint64(16<<20), m.Size)
}

// processEnds: a process that stops ends what waits for it.
func processEnds(e *env) {
	dev := e.device("")
	p := e.start(dev, "hold", 4)
	var calls []*pending
	for i, op := range operations[:4] {
		ch := e.subscribe(dev, p.First+bridge.Target(i))
		calls = append(calls, call(op.name, func() error { return op.do(e.ctx(), ch) }))
	}
	e.untilBlocked(dev, len(calls))
	require.NoError(e, dev.Stop(e.ctx(), p.ID))
	for _, c := range calls {
		e.Log(c.name)
		require.ErrorIs(e, e.wait(c), bridge.ErrClosed)
	}
	require.ErrorIs(e, dev.Stop(e.ctx(), p.ID), bridge.ErrInvalid)
}
