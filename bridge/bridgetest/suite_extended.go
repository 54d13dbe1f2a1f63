package bridgetest

import (
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
			ok, err := ch.TrySend(nil)
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
		require.NoError(e, ports[1].ReceiveIndFunc(e.ctx(), b.data, func() error {
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
		err := ports[1].ReceiveIndFunc(e.ctx(), b.data, func() error { return errRefused })
		require.ErrorIs(e, err, errRefused, "%d bytes", n)
		require.Equal(e, abi.ErrAborted, e.status(ports[0]), "%d bytes", n)
		require.NotErrorIs(e, err, bridge.ErrFault)
		e.exchange(ports, n+1)
	}
}
