package bridgetest

import (
	"context"
	"errors"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var extendedCases = []testCase{
	{"extended/message", extendedMessage},
	{"extended/message-refused", extendedMessageRefused},
	{"extended/transfer", extendedTransfer},
	{"extended/transfer-refused", extendedTransferRefused},
	{"extended/placed-late", placedLate},
	{"extended/place-fails", placeFails},
	{"extended/second-receiver", secondWhilePlacing},
}

// receiveFunc is ReceiveIndFunc into memory that is there.
func receiveFunc(ctx context.Context, ch bridge.Channel, data []byte, fn func() error) error {
	place := func() ([]byte, error) { return data, nil }
	return ch.ReceiveIndFunc(ctx, uint64(len(data)), place, func([]byte) error { return fn() })
}

var errRefused = errors.New("refused by the receiver")

// extendedMessage: while the receiver works on a message, the device's process
// is not released.
func extendedMessage(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	for i := range uint64(20) {
		e.send(ch, pattern.Words(i))
		require.NoError(e, ch.ReceiveFunc(e.Ctx(), func(msg []byte) error {
			require.Equal(e, pattern.Words(i), msg)
			ok, err := ch.TrySend(nil, nil)
			require.NoError(e, err)
			require.False(e, ok, "the process was released too early")
			return nil
		}))
	}
	e.Echo(ch, []byte("released"))
}

// extendedMessageRefused: an error of the function leaves the message offered.
func extendedMessageRefused(e *Env) {
	ch := e.Subscribe(e.device(""), abi.TargetLoopback)
	e.send(ch, []byte("twice"))
	for range 3 {
		require.ErrorIs(e, ch.ReceiveFunc(e.Ctx(), func([]byte) error { return errRefused }), errRefused)
	}
	require.Equal(e, "twice", string(e.receive(ch)))
	e.Echo(ch, []byte("next"))
}

// extendedTransfer: while the receiver works on a transfer, the device's
// process is not released either.
func extendedTransfer(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	for _, n := range []int{0, 1, 100_000} {
		b := NewBuffer(n, 33)
		e.send(ports[0], pattern.Words(uint64(n)|pattern.ExpectWrite))
		require.NoError(e, receiveFunc(e.Ctx(), ports[1], b.Data, func() error {
			_, ok, err := ports[0].TryReceive(make([]byte, 56))
			require.NoError(e, err)
			require.False(e, ok, "the process was released too early")
			return nil
		}))
		require.Equal(e, abi.OK, e.status(ports[0]))
		e.Check(b)
	}
}

// extendedTransferRefused: an error of the function aborts the transfer, and
// both ends know.
func extendedTransferRefused(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	for _, n := range []int{1, 50_000, 0} {
		b := NewBuffer(n, 1)
		e.send(ports[0], pattern.Words(uint64(n)|pattern.ExpectWrite))
		err := receiveFunc(e.Ctx(), ports[1], b.Data, func() error { return errRefused })
		require.ErrorIs(e, err, errRefused, "%d bytes", n)
		require.Equal(e, abi.ErrAborted, e.status(ports[0]), "%d bytes", n)
		require.NotErrorIs(e, err, bridge.ErrFault)
		e.exchange(ports, n+1)
	}
}

// placedLate: memory is asked for when a transfer of that size is offered, and
// not before, whatever the size.
func placedLate(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	const huge = 60 << 30
	never := func() ([]byte, error) { panic("memory was asked for") }
	ctx, cancel := context.WithCancel(e.Ctx())
	waits := Call("ReceiveIndFunc", func() error { return ports[1].ReceiveIndFunc(ctx, huge, never, nil) })
	e.UntilBlocked(dev, 1)
	cancel()
	e.IsWithdrawn(e.Wait(waits), context.Canceled)

	waits = Call("ReceiveIndFunc", func() error { return ports[1].ReceiveIndFunc(e.Ctx(), huge, never, nil) })
	e.UntilBlocked(dev, 1)
	e.send(ports[0], pattern.Words(100_000|pattern.ExpectWrite))
	e.isSizeError(e.Wait(waits), huge, 100_000)
	b := NewBuffer(100_000, 7)
	require.NoError(e, receiveFunc(e.Ctx(), ports[1], b.Data, func() error { return nil }))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.Check(b)

	loop := e.Ports(dev, "loopback", 1)[0]
	e.send(loop, []byte("direct"))
	require.ErrorIs(e, loop.ReceiveIndFunc(e.Ctx(), huge, never, nil), bridge.ErrKindMismatch)
	require.Equal(e, "direct", string(e.receive(loop)))
}

// placeFails: without memory the transfer stays offered.
func placeFails(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	for _, n := range []int{0, 1, 70_000} {
		e.send(ports[0], pattern.Words(uint64(n)|pattern.ExpectWrite))
		own := errors.New("no memory now")
		place := func() ([]byte, error) { return nil, own }
		require.ErrorIs(e, ports[1].ReceiveIndFunc(e.Ctx(), uint64(n), place, nil), own)
		place = func() ([]byte, error) { return make([]byte, n+1), nil }
		require.ErrorIs(e, ports[1].ReceiveIndFunc(e.Ctx(), uint64(n), place, nil), bridge.ErrInvalid)
		place = func() ([]byte, error) { panic(own) }
		require.PanicsWithValue(e, own, func() { _ = ports[1].ReceiveIndFunc(e.Ctx(), uint64(n), place, nil) })
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: uint64(n)})
		b := NewBuffer(n, 3)
		require.NoError(e, ports[1].ReceiveInd(e.Ctx(), b.Data))
		require.Equal(e, abi.OK, e.status(ports[0]))
		e.Check(b)
	}
}

// secondWhilePlacing: who looks for memory is still the channel's one receiver.
func secondWhilePlacing(e *Env) {
	ports := e.Ports(e.device(""), "expect", 2)
	b := NewBuffer(5000, 9)
	e.send(ports[0], pattern.Words(5000|pattern.ExpectWrite))
	require.NoError(e, ports[1].ReceiveIndFunc(e.Ctx(), 5000, func() ([]byte, error) {
		for _, op := range Operations {
			if !strings.HasPrefix(op.Name, "Send") {
				require.ErrorIs(e, op.Do(e.Ctx(), ports[1]), bridge.ErrBusy, op.Name)
			}
		}
		return b.Data, nil
	}, func([]byte) error { return nil }))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.Check(b)
}
