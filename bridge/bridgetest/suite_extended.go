package bridgetest

import (
	"context"
	"errors"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
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
func extendedMessage(e *env) {
	ch := e.subscribe(e.device(""), abi.TargetLoopback)
	for i := range uint64(20) {
		e.send(ch, words(i))
		require.NoError(e, ch.ReceiveFunc(e.ctx(), func(msg []byte) error {
			require.Equal(e, words(i), msg)
			ok, err := ch.TrySend(nil, nil)
			require.NoError(e, err)
			require.False(e, ok, "the process was released too early")
			return nil
		}))
	}
	e.echo(ch, []byte("released"))
}

// extendedMessageRefused: an error of the function leaves the message offered.
func extendedMessageRefused(e *env) {
	ch := e.subscribe(e.device(""), abi.TargetLoopback)
	e.send(ch, []byte("twice"))
	for range 3 {
		require.ErrorIs(e, ch.ReceiveFunc(e.ctx(), func([]byte) error { return errRefused }), errRefused)
	}
	require.Equal(e, "twice", string(e.receive(ch)))
	e.echo(ch, []byte("next"))
}

// extendedTransfer: while the receiver works on a transfer, the device's
// process is not released either.
func extendedTransfer(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	for _, n := range []int{0, 1, 100_000} {
		b := newBuffer(n, 33)
		e.send(ports[0], words(uint64(n)|expectWrite))
		require.NoError(e, receiveFunc(e.ctx(), ports[1], b.data, func() error {
			_, ok, err := ports[0].TryReceive(make([]byte, 56))
			require.NoError(e, err)
			require.False(e, ok, "the process was released too early")
			return nil
		}))
		require.Equal(e, abi.OK, e.status(ports[0]))
		e.check(b)
	}
}

// extendedTransferRefused: an error of the function aborts the transfer, and
// both ends know.
func extendedTransferRefused(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	for _, n := range []int{1, 50_000, 0} {
		b := newBuffer(n, 1)
		e.send(ports[0], words(uint64(n)|expectWrite))
		err := receiveFunc(e.ctx(), ports[1], b.data, func() error { return errRefused })
		require.ErrorIs(e, err, errRefused, "%d bytes", n)
		require.Equal(e, abi.ErrAborted, e.status(ports[0]), "%d bytes", n)
		require.NotErrorIs(e, err, bridge.ErrFault)
		e.exchange(ports, n+1)
	}
}

// placedLate: memory is asked for when a transfer of that size is offered, and
// not before, whatever the size.
func placedLate(e *env) {
	dev := e.device("")
	ports := e.run(dev, "expect", 2)
	const huge = 60 << 30
	never := func() ([]byte, error) { panic("memory was asked for") }
	ctx, cancel := context.WithCancel(e.ctx())
	waits := call("ReceiveIndFunc", func() error { return ports[1].ReceiveIndFunc(ctx, huge, never, nil) })
	e.untilBlocked(dev, 1)
	cancel()
	e.isWithdrawn(e.wait(waits), context.Canceled)

	waits = call("ReceiveIndFunc", func() error { return ports[1].ReceiveIndFunc(e.ctx(), huge, never, nil) })
	e.untilBlocked(dev, 1)
	e.send(ports[0], words(100_000|expectWrite))
	e.isSizeError(e.wait(waits), huge, 100_000)
	b := newBuffer(100_000, 7)
	require.NoError(e, receiveFunc(e.ctx(), ports[1], b.data, func() error { return nil }))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.check(b)

	loop := e.run(dev, "loopback", 1)[0]
	e.send(loop, []byte("direct"))
	require.ErrorIs(e, loop.ReceiveIndFunc(e.ctx(), huge, never, nil), bridge.ErrKindMismatch)
	require.Equal(e, "direct", string(e.receive(loop)))
}

// placeFails: without memory the transfer stays offered.
func placeFails(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	for _, n := range []int{0, 1, 70_000} {
		e.send(ports[0], words(uint64(n)|expectWrite))
		own := errors.New("no memory now")
		place := func() ([]byte, error) { return nil, own }
		require.ErrorIs(e, ports[1].ReceiveIndFunc(e.ctx(), uint64(n), place, nil), own)
		place = func() ([]byte, error) { return make([]byte, n+1), nil }
		require.ErrorIs(e, ports[1].ReceiveIndFunc(e.ctx(), uint64(n), place, nil), bridge.ErrInvalid)
		place = func() ([]byte, error) { panic(own) }
		require.PanicsWithValue(e, own, func() { _ = ports[1].ReceiveIndFunc(e.ctx(), uint64(n), place, nil) })
		e.offers(ports[1], bridge.Offer{Indirect: true, Size: uint64(n)})
		b := newBuffer(n, 3)
		require.NoError(e, ports[1].ReceiveInd(e.ctx(), b.data))
		require.Equal(e, abi.OK, e.status(ports[0]))
		e.check(b)
	}
}

// secondWhilePlacing: who looks for memory is still the channel's one receiver.
func secondWhilePlacing(e *env) {
	ports := e.run(e.device(""), "expect", 2)
	b := newBuffer(5000, 9)
	e.send(ports[0], words(5000|expectWrite))
	require.NoError(e, ports[1].ReceiveIndFunc(e.ctx(), 5000, func() ([]byte, error) {
		for _, op := range operations {
			switch op.name {
			case "Send", "SendInd":
			default:
				require.ErrorIs(e, op.do(e.ctx(), ports[1]), bridge.ErrBusy, op.name)
			}
		}
		return b.data, nil
	}, func([]byte) error { return nil }))
	require.Equal(e, abi.OK, e.status(ports[0]))
	e.check(b)
}
