package nfcomms

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestStripesLaw(t *testing.T) {
	assert.Equal(t, []stripe{{0, 4096}, {4096, 4096}, {8192, 1808}, {10000, 0}}, stripesOf(10000, 4))
	assert.Equal(t, []stripe{{0, 0}, {0, 0}}, stripesOf(0, 2))
	assert.Equal(t, []stripe{{0, 4096}}, stripesOf(4096, 1))
	assert.Nil(t, stripesOf(1, 0))
	assert.Nil(t, stripesOf(-1, 1))
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(0, 1<<16), rapid.IntRange(0, math.MaxInt)).Draw(t, "size")
		n := rapid.IntRange(1, 100).Draw(t, "n")
		stripes := stripesOf(size, n)
		require.Len(t, stripes, n)
		end := 0
		for i, s := range stripes {
			require.Equal(t, end, s.offset, "no gap, no overlap")
			require.GreaterOrEqual(t, s.size, 0)
			end += s.size
			if end < size {
				require.Zero(t, s.size%pageSize)
				require.Equal(t, stripes[0].size, s.size, "stripe %d", i)
			}
			require.LessOrEqual(t, s.size, stripes[0].size)
		}
		require.Equal(t, size, end, "all of it")
	})
}

// stripedChannels are n channels of one device with the device's sides.
func stripedChannels(t *testing.T, n int) (chs []*Channel, fars []*fakeChannel) {
	dev := openFake(t)
	for i := range n {
		ch, far := subscribeFake(t, dev, Target(16+i))
		chs, fars = append(chs, ch), append(fars, far)
	}
	return chs, fars
}

func TestStriped(t *testing.T) {
	ctx := background(t)
	chs, fars := stripedChannels(t, 4)
	data := make([]byte, 10000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	parts := make([][]byte, len(fars))
	waits := make([]func(), len(fars))
	for i, far := range fars {
		waits[i] = running(t, func() (err error) {
			if parts[i], err = far.read(ctx); err != nil {
				return err
			}
			return far.writeInd(ctx, parts[i])
		})
	}
	require.NoError(t, SendStriped(ctx, data, len(data), chs...))
	back := new([10000]byte)
	n, err := ReceiveStriped(ctx, back, len(back), chs...)
	require.NoError(t, err)
	assert.Equal(t, len(data), n)
	for _, wait := range waits {
		wait()
	}
	assert.Equal(t, data, bytes.Join(parts, nil), "chunks in the order of the channels")
	assert.Equal(t, data, back[:])
}

func TestStripedNamesTheStripe(t *testing.T) {
	ctx := background(t)
	chs, fars := stripedChannels(t, 3)
	wait := running(t, func() error { _, err := fars[0].read(ctx); return err })
	failing := running(t, func() error {
		wait() // stripe 0 first
		err := fars[1].take(ctx, 0, func(*fakeOffer) (bool, error) { return false, ErrDMA })
		if !errors.Is(err, ErrDMA) {
			return err
		}
		return nil
	})
	err := SendStriped(ctx, make([]byte, 12288), 12288, chs...)
	failing()
	require.NoError(t, ctx.Err(), "the other transfers were ended, not waited for")
	var se *StripeError
	require.ErrorAs(t, err, &se)
	require.ErrorIs(t, err, ErrDMA)
	assert.Equal(t, 1, se.Index)
	assert.Equal(t, Target(17), se.Target)
	assert.Equal(t, stripe{4096, 4096}, stripe{se.Offset, se.Size})
	assert.Equal(t, []bool{true, false, false}, se.Delivered)
	var op *OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, opSendStriped, op.Op)
}

func TestStripedCancelled(t *testing.T) {
	chs, _ := stripedChannels(t, 2)
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	err := SendStriped(ctx, make([]byte, 8), 8, chs...)
	require.ErrorIs(t, err, ErrWithdrawn)
	require.ErrorIs(t, err, context.Canceled)
}

func TestStripedRefuses(t *testing.T) {
	chs, _ := stripedChannels(t, 2)
	ctx := background(t)
	buf := make([]byte, 8)
	send := func(data any, size int, chs ...*Channel) func(context.Context) error {
		return func(ctx context.Context) error { return SendStriped(ctx, data, size, chs...) }
	}
	for _, w := range []wants{
		{"no channels", opSendStriped, 0, send(buf, 8), ErrInvalid},
		{"twice the same", opSendStriped, 0, send(buf, 8, chs[0], chs[1], chs[0]), ErrInvalid},
		{"no channel", opSendStriped, 0, send(buf, 8, chs[0], nil), ErrInvalid},
		{"too large", opSendStriped, 0, send(buf, 9, chs...), ErrSize},
		{"negative", opSendStriped, 0, send(buf, -1, chs...), ErrSize},
		{"pointers", opSendStriped, 0, send(order{}, 1, chs...), ErrPointers},
	} {
		w.check(t, "")
	}
	n, err := ReceiveStriped(ctx, "text", 4, chs...)
	assert.ErrorIs(t, err, ErrInvalid)
	assert.Zero(t, n)
}
