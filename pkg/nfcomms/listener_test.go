//go:build cgo

package nfcomms

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestListener has this process talk to itself, as two of them do.
func TestListener(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx)
	require.NoError(t, err)
	near, err := dev.Subscribe(ctx, l.Target())
	require.NoError(t, err)
	sent := near.SendAsync(ctx, []byte("hello"))
	far, err := l.Accept(ctx)
	require.NoError(t, err)
	require.Equal(t, l.Target(), far.Target())
	require.ElementsMatch(t, []*Channel{near, far}, dev.Channels())

	buf := make([]byte, MessageSize)
	var n int
	chosen, err := Select(ctx, ReceiveCase(far, buf, &n))
	require.NoError(t, err)
	require.Zero(t, chosen)
	require.Equal(t, "hello", string(buf[:n]))
	_, err = sent.Wait(ctx)
	require.NoError(t, err)

	_, err = Select(ctx, SendCase(far, []byte("a host does not say that it waits")))
	require.ErrorIs(t, err, ErrNotSupported)
	_, err = Select(ctx, SendIndCase(far, buf))
	require.ErrorIs(t, err, ErrNotSupported)

	data, got := bytes.Repeat([]byte("0123456789abcdef!"), 20_000), make([]byte, 340_000)
	sent = near.SendIndAsync(ctx, data)
	n, err = far.ReceiveInd(ctx, got)
	require.NoError(t, err)
	require.Equal(t, data, got[:n])
	_, err = sent.Wait(ctx)
	require.NoError(t, err)

	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Accept(ctx)
	var op *OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, OpAccept, op.Op)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
}

// TestListenerEnds: a listener ends with the epoch of its device.
func TestListenerEnds(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx)
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		accepted <- err
	}()
	require.NoError(t, dev.Reset(ctx))
	require.ErrorIs(t, <-accepted, ErrDeviceLost)
	require.NoError(t, l.Close())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = dev.Listen(ended)
	require.ErrorIs(t, err, ErrWithdrawn)
	_, err = dev.Subscribe(ctx, l.Target())
	require.ErrorIs(t, err, ErrNotSubscribed)
}
