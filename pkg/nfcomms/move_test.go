//go:build cgo

package nfcomms

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// connected returns both ends of a new channel of a device to itself.
func connected(t *testing.T, dev *Device, l *Listener) (near, far *Channel) {
	t.Helper()
	near, err := dev.Subscribe(background(t), l.Target())
	require.NoError(t, err)
	far, err = l.Accept(background(t))
	require.NoError(t, err)
	return near, far
}

// TestSendChannel has this process send an end to itself, as two of them do.
func TestSendChannel(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx, "")
	require.NoError(t, err)
	near, end := connected(t, dev, l)
	a, b := connected(t, dev, l)
	sent := SendCase(near, []byte("a question")).Start(ctx)
	moved := make(chan error, 1)
	go func() { moved <- a.SendChannel(ctx, end) }()
	got, err := b.ReceiveChannel(ctx)
	require.NoError(t, err)
	require.NoError(t, <-moved)
	require.ElementsMatch(t, []*Channel{near, a, b, got}, dev.channels())
	buf := make([]byte, MessageSize)
	n, err := got.Receive(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "a question", string(buf[:n]))
	_, err = sent.Wait(ctx)
	require.NoError(t, err)

	requireOp := func(err error, op string, is error) {
		var o *OpError
		require.ErrorAs(t, err, &o)
		require.Equal(t, op, o.Op)
		require.ErrorIs(t, err, is)
	}
	requireOp(end.Send(ctx, nil), opSend, ErrMoved)
	requireOp(a.SendChannel(ctx, end), opSendChannel, ErrMoved)
	requireOp(a.SendChannel(ctx, nil), opSendChannel, ErrInvalid)
	requireOp(end.SendChannel(ctx, got), opSendChannel, ErrMoved)
	requireOp(a.SendChannel(ctx, a), opSendChannel, ErrInvalid)
	loop, err := dev.Subscribe(ctx, Loopback)
	require.NoError(t, err)
	requireOp(a.SendChannel(ctx, loop), opSendChannel, ErrNotSupported)
	_, err = loop.ReceiveChannel(ctx)
	requireOp(err, opReceiveChannel, ErrNotSupported)
	requireOp((&Channel{dev: dev, ch: brokenChannel{}}).SendChannel(ctx, got), opSendChannel, ErrNotSupported)
	require.NoError(t, end.Close())
}

// TestSendRegion has this process give memory to itself, as two of them do.
func TestSendRegion(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx, "")
	require.NoError(t, err)
	near, far := connected(t, dev, l)
	r, err := dev.Alloc(10_000)
	require.NoError(t, err)
	copy(r.Bytes(), "a frame")
	sent := make(chan error, 1)
	go func() { sent <- near.SendRegion(ctx, r) }()
	got, err := far.ReceiveRegion(ctx)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, "a frame", string(got.Bytes()[:7]))
	require.Len(t, got.Bytes(), 10_000)
	require.Nil(t, r.Bytes())
	require.NoError(t, r.Close())

	requireOp := func(err error, op string, is error) {
		var o *OpError
		require.ErrorAs(t, err, &o)
		require.Equal(t, op, o.Op)
		require.ErrorIs(t, err, is)
	}
	requireOp(near.SendRegion(ctx, r), opSendRegion, ErrMoved)
	requireOp(near.SendRegion(ctx, nil), opSendRegion, ErrInvalid)
	other, err := openSim(t, "sim:").Alloc(100)
	require.NoError(t, err)
	requireOp(near.SendRegion(ctx, other), opSendRegion, ErrInvalid)
	require.Len(t, other.Bytes(), 100)
	requireOp((&Channel{dev: dev, ch: brokenChannel{}}).SendRegion(ctx, got), opSendRegion, ErrNotSupported)
	_, err = (&Channel{dev: dev, ch: brokenChannel{}}).ReceiveRegion(ctx)
	requireOp(err, opReceiveRegion, ErrNotSupported)
	loop, err := dev.Subscribe(ctx, Loopback)
	require.NoError(t, err)
	requireOp(loop.SendRegion(ctx, got), opSendRegion, ErrNotSupported)
	_, err = loop.ReceiveRegion(ctx)
	requireOp(err, opReceiveRegion, ErrNotSupported)
	require.NoError(t, got.Close())
	requireOp(near.SendRegion(ctx, got), opSendRegion, ErrClosed)
	require.EqualValues(t, 0, dev.Stats().Regions)
}
