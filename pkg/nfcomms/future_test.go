package nfcomms

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFuturesKeepTheirOrder(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	const n = 50
	var sends, receives []*Future
	bufs := make([][1]byte, n)
	for i := range n {
		sends = append(sends, SendCase(ch, []byte{byte(i)}).Start(ctx))
		receives = append(receives, ReceiveCase(ch, bufs[i][:], nil).Start(ctx))
	}
	for i := range n {
		msg, err := far.read(ctx)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(i)}, msg)
		require.NoError(t, far.write(ctx, msg))
	}
	for i := range n {
		got, err := sends[i].Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, got)
		<-receives[i].Done()
		got, err = receives[i].Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, 1, got)
		require.Equal(t, byte(i), bufs[i][0])
	}
}

func TestTransferFutures(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	var back [4]uint16
	send := SendIndCase(ch, []uint16{1, 2, 3, 4}, 8).Start(ctx)
	receive := ReceiveIndCase(ch, &back, 8).Start(ctx)
	got, err := far.read(ctx)
	require.NoError(t, err)
	require.NoError(t, far.writeInd(ctx, got))
	n, err := send.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	n, err = receive.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	assert.Equal(t, [4]uint16{1, 2, 3, 4}, back)
}

func TestFutureWaitEndsWithItsContext(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	f := SendCase(ch, []byte("x")).Start(ctx)
	short, cancel := context.WithCancel(ctx)
	cancel()
	_, err := f.Wait(short)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrWithdrawn, "the call goes on")
	_, err = far.read(ctx)
	require.NoError(t, err)
	_, err = f.Wait(ctx)
	require.NoError(t, err)
	n, err := f.Wait(short)
	require.NoError(t, err, "an outcome wins over a context that ended")
	assert.Equal(t, 1, n)
	f.Cancel()
}

// TestCancelledFutures cancels some of a row of futures: every outcome is exact
// and the rest arrives in order.
func TestCancelledFutures(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cancelled := rapid.SliceOfN(rapid.Bool(), 1, 8).Draw(rt, "cancelled")
		ctx := context.Background()
		far := &fakeChannel{target: 16, changed: make(chan struct{})}
		ch := &Channel{dev: new(Device), ch: far}
		futures := make([]*Future, len(cancelled))
		for i := range futures {
			futures[i] = SendCase(ch, []byte{byte(i)}).Start(ctx)
		}
		for i, f := range futures {
			if !cancelled[i] {
				continue
			}
			f.Cancel()
			n, err := f.Wait(ctx)
			require.ErrorIs(rt, err, ErrWithdrawn)
			require.ErrorIs(rt, err, context.Canceled)
			require.Zero(rt, n)
		}
		for i, f := range futures {
			if cancelled[i] {
				continue
			}
			msg, err := far.read(ctx)
			require.NoError(rt, err)
			require.Equal(rt, []byte{byte(i)}, msg)
			_, err = f.Wait(ctx)
			require.NoError(rt, err)
		}
	})
}
