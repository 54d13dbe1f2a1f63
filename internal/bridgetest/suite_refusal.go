package bridgetest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
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
func (e *Env) status(ch bridge.Channel) abi.Status {
	e.Helper()
	return abi.Status(e.words(e.receive(ch), 1)[0])
}

// exchange makes an expect process read n bytes and sends them.
func (e *Env) exchange(ports []bridge.Channel, n int) {
	e.Helper()
	e.send(ports[0], pattern.Words(uint64(n)))
	require.NoError(e, ports[1].SendInd(e.Ctx(), make([]byte, n)))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.send(ports[0], pattern.Words(uint64(n)|pattern.ExpectWrite))
	require.NoError(e, ports[1].ReceiveInd(e.Ctx(), make([]byte, n)))
	require.Equal(e, abi.OK, e.status(ports[0]))
}

// sizeMismatchH2D: both ends learn that their sizes differ, and of both sizes.
func sizeMismatchH2D(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	for _, c := range []struct{ host, device uint64 }{
		{100, 101}, {101, 100}, {0, 5}, {5, 0}, {100_000, 4096}, {4096, 100_000},
	} {
		e.send(ports[0], pattern.Words(c.device))
		err := ports[1].SendInd(e.Ctx(), make([]byte, c.host))
		e.isSizeError(err, c.host, c.device)
		require.Equal(e, abi.ErrSize, e.status(ports[0]))
		e.exchange(ports, 3000)
	}
}

func (e *Env) isSizeError(err error, host, device uint64) {
	e.Helper()
	require.ErrorIs(e, err, bridge.ErrSizeMismatch)
	var s *bridge.SizeError
	require.ErrorAs(e, err, &s)
	require.Equal(e, bridge.SizeError{Host: host, Device: device}, *s)
}

// sizeMismatchD2H: on the way to the host a wrong size takes nothing: the host
// learns both sizes, and the right receive gets the transfer.
func sizeMismatchD2H(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	for _, c := range []struct{ host, device uint64 }{
		{100, 101}, {101, 100}, {0, 5}, {5, 0}, {100_000, 4096}, {4096, 100_000},
	} {
		b := NewBuffer(int(c.host), 17)
		e.send(ports[0], pattern.Words(c.device|pattern.ExpectWrite))
		for range 2 {
			e.isSizeError(ports[1].ReceiveInd(e.Ctx(), b.Data), c.host, c.device)
			e.isSizeError(receiveFunc(e.Ctx(), ports[1], b.Data, nil), c.host, c.device)
		}
		require.Negative(e, firstNot(b.whole, canary), "written although refused")
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: c.device})
		require.NoError(e, ports[1].ReceiveInd(e.Ctx(), make([]byte, c.device)))
		require.Equal(e, abi.OK, e.status(ports[0]))
		e.exchange(ports, 3000)
	}
}

// offers requires that the device still offers o.
func (e *Env) offers(ch bridge.Channel, o bridge.Offer) {
	e.Helper()
	now, err := ch.Next(e.Ctx())
	require.NoError(e, err)
	require.Equal(e, o, now)
}

// kindMismatchH2D: a message for a process that wants a transfer.
func kindMismatchH2D(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	e.send(ports[0], pattern.Words(64))
	require.ErrorIs(e, ports[1].Send(e.Ctx(), []byte("direct")), bridge.ErrKindMismatch)
	require.Equal(e, abi.ErrKind, e.status(ports[0]))
	e.exchange(ports, 64)
	// Port 0 reads messages: there a transfer is the wrong kind.
	require.ErrorIs(e, ports[0].SendInd(e.Ctx(), make([]byte, 8)), bridge.ErrKindMismatch)
}

// kindMismatchD2H: a receiver of messages where the device gives a transfer,
// and the other way round, takes nothing: the right receive gets it.
func kindMismatchD2H(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	e.send(ports[0], pattern.Words(64|pattern.ExpectWrite))
	for range 2 {
		_, err := ports[1].Receive(e.Ctx(), make([]byte, 56))
		require.ErrorIs(e, err, bridge.ErrKindMismatch)
		require.ErrorIs(e, ports[1].ReceiveFunc(e.Ctx(), nil), bridge.ErrKindMismatch)
		_, _, err = ports[1].TryReceive(make([]byte, 56))
		require.ErrorIs(e, err, bridge.ErrKindMismatch)
	}
	e.offers(ports[1], bridge.Offer{Indirect: true, Size: 64})
	require.NoError(e, ports[1].ReceiveInd(e.Ctx(), make([]byte, 64)))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.exchange(ports, 64)
	loop := e.Ports(dev, "loopback", 1)[0]
	e.send(loop, []byte("direct"))
	b := NewBuffer(6, 0)
	for range 2 {
		require.ErrorIs(e, loop.ReceiveInd(e.Ctx(), b.Data), bridge.ErrKindMismatch)
		require.ErrorIs(e, receiveFunc(e.Ctx(), loop, b.Data, nil), bridge.ErrKindMismatch)
	}
	require.Negative(e, firstNot(b.whole, canary), "written although refused")
	require.Equal(e, "direct", string(e.receive(loop)))
	e.Echo(loop, []byte("next"))
}

// refuseOffer: an error of the function is how a host refuses a transfer.
func refuseOffer(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	own := errors.New("not wanted")
	for _, n := range []uint64{0, 1, 100_000} {
		e.send(ports[0], pattern.Words(n|pattern.ExpectWrite))
		require.ErrorIs(e, receiveFunc(e.Ctx(), ports[1], make([]byte, n), func() error { return own }), own)
		require.Equal(e, abi.ErrAborted, e.status(ports[0]))
	}
	e.exchange(ports, 3000)
}

// targetTimeout: a device that bounds the wait says so with its own error.
func targetTimeout(e *Env) {
	dev := e.device("target-timeout=50ms")
	ch := e.Ports(dev, "hold", 1)[0]
	for range 3 {
		err := ch.Send(e.Ctx(), []byte("late"))
		require.ErrorIs(e, err, bridge.ErrTargetTimeout)
		require.ErrorIs(e, err, context.DeadlineExceeded)
		err = ch.SendInd(e.Ctx(), make([]byte, 50_000))
		require.ErrorIs(e, err, bridge.ErrTargetTimeout)
	}
	e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("in time"))
}

// targetTimeoutAndDeadline: a context that ends later does not lengthen the
// device's own bound, for a message or for a transfer, and one that ends sooner
// ends the call.
func targetTimeoutAndDeadline(e *Env) {
	dev := e.device("target-timeout=50ms")
	ch := e.Ports(dev, "hold", 1)[0]
	late, cancel := context.WithTimeout(e.Ctx(), patience)
	defer cancel()
	for _, op := range Operations[:2] {
		err := op.Do(late, ch)
		require.ErrorIs(e, err, bridge.ErrTargetTimeout, op.Name)
		require.NotErrorIs(e, err, bridge.ErrWithdrawn, op.Name)
	}
	dev = e.device("target-timeout=4m")
	ch = e.Ports(dev, "hold", 1)[0]
	for _, op := range Operations[:2] {
		soon, cancel := context.WithTimeout(e.Ctx(), 10*time.Millisecond)
		err := op.Do(soon, ch)
		cancel()
		require.ErrorIs(e, err, bridge.ErrWithdrawn, op.Name)
		require.ErrorIs(e, err, context.DeadlineExceeded, op.Name)
	}
}

// deadlineTransfer: a deadline that passes while the target is not ready leaves
// nothing behind: the next transfer works at once.
func deadlineTransfer(e *Env) {
	ports := e.Ports(e.device(""), "gate", 2)
	ctx, cancel := context.WithTimeout(e.Ctx(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(e, ports[1].SendInd(ctx, make([]byte, 100_000)), context.DeadlineExceeded)
	p := Call("second", func() error { return ports[1].SendInd(e.Ctx(), make([]byte, 70_000)) })
	e.send(ports[0], nil)
	require.NoError(e, e.Wait(p))
	require.Equal(e, pattern.Words(1, 70_000), e.receive(ports[0]))
}

// deviceMemory: a transfer that device memory cannot hold is refused before a
// byte moves.
func deviceMemory(e *Env) {
	dev := e.device("emem=16MiB")
	const n = 64 << 20
	data := e.pages(n)
	ports := e.Ports(dev, "expect", 2)
	e.send(ports[0], pattern.Words(n))
	err := ports[1].SendInd(e.Ctx(), data)
	require.Error(e, err)
	requireOneOf(e, err, bridge.ErrRange, bridge.ErrNoMemory)
	require.Contains(e, []abi.Status{abi.ErrRange, abi.ErrNoMemory}, e.status(ports[0]))
	e.exchange(ports, 4096)
	sink := e.Ports(dev, "sink", 1)[0]
	requireOneOf(e, sink.SendInd(e.Ctx(), data), bridge.ErrRange, bridge.ErrNoMemory)
	e.sendPattern(sink, 4096, 0, 1)
	_, count, _ := e.sinkStat(sink)
	require.Equal(e, uint64(4096), count)
	m, err := dev.Memory(e.Ctx(), abi.EMEM)
	require.NoError(e, err)
	require.Equal(e, uint64(16<<20), m.Size)
}

// processEnds: a process that stops ends what waits for it.
func processEnds(e *Env) {
	dev := e.device("")
	p := e.Start(dev, "hold", 4)
	var calls []*Pending
	for i, op := range Operations[:4] {
		ch := e.Subscribe(dev, p.First+bridge.Target(i))
		calls = append(calls, Call(op.Name, func() error { return op.Do(e.Ctx(), ch) }))
	}
	e.UntilBlocked(dev, len(calls))
	require.NoError(e, e.stop(dev, p))
	for _, c := range calls {
		e.Log(c.Name)
		require.ErrorIs(e, e.Wait(c), bridge.ErrClosed)
	}
	require.ErrorIs(e, e.stop(dev, p), bridge.ErrInvalid)
}
