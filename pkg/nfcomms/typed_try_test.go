//go:build cgo

package nfcomms

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// wide travels as a transfer.
type wide [100]uint64

// eventually waits until a target that nobody waits for is ready.
func eventually(t *testing.T, try func() (bool, error)) {
	t.Helper()
	require.Eventually(t, func() bool {
		ok, err := try()
		return assert.NoError(t, err) && ok
	}, time.Minute, 100*time.Microsecond)
}

// typedForms checks all forms of a typed channel with one type.
func typedForms[T any](t *testing.T, a, b T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	c := ChanOf[T](startSim(t, dev, "loopback", 1)[0])
	held := ChanOf[T](startSim(t, dev, "hold", 1)[0])

	ok, err := held.SendCase(a).Try()
	require.NoError(t, err)
	require.False(t, ok, "it never reads")
	ok, err = held.ReceiveCase(nil).Try()
	require.NoError(t, err)
	require.False(t, ok, "nor does it offer anything")
	if i, err := Select(ctx, held.SendCase(a), held.ReceiveCase(nil), Default()); assert.NoError(t, err) {
		require.Equal(t, 2, i)
	}

	eventually(t, func() (bool, error) { return c.SendCase(a).Try() })
	eventually(t, func() (ok bool, err error) {
		var got T
		ok, err = c.ReceiveCase(&got).Try()
		if ok {
			require.Equal(t, a, got)
		}
		return ok, err
	})

	i, err := Select(ctx, held.SendCase(a), c.SendCase(b))
	require.NoError(t, err)
	require.Equal(t, 1, i)
	var got T
	i, err = Select(ctx, held.ReceiveCase(nil), c.ReceiveCase(&got))
	require.NoError(t, err)
	require.Equal(t, 1, i)
	require.Equal(t, b, got)

	first, second := c.SendCase(a).Start(ctx), c.SendCase(b).Start(ctx)
	var one, two T
	received := []*Future{c.ReceiveCase(&one).Start(ctx), c.ReceiveCase(&two).Start(ctx)}
	for i, f := range received {
		n, err := f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, c.sizeOf([]*T{&a, &b}[i]), n)
	}
	require.Equal(t, []T{a, b}, []T{one, two})
	for i, f := range []*Future{first, second} {
		n, err := f.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, c.sizeOf([]*T{&a, &b}[i]), n)
	}
	never := held.ReceiveCase(nil).Start(ctx)
	never.Cancel()
	_, err = never.Wait(ctx)
	require.ErrorIs(t, err, ErrWithdrawn)

	require.NoError(t, c.Channel().Close())
	_, err = c.SendCase(a).Try()
	require.ErrorIs(t, err, ErrClosed)
	_, err = c.ReceiveCase(nil).Try()
	require.ErrorIs(t, err, ErrClosed)
	i, err = Select(ctx, c.ReceiveCase(nil))
	require.ErrorIs(t, err, ErrClosed)
	require.Zero(t, i)
}

func TestTypedForms(t *testing.T) {
	t.Run("message", func(t *testing.T) { typedForms(t, point{1, 2}, point{3, 4}) })
	t.Run("transfer", func(t *testing.T) { typedForms(t, wide{1, 99: 2}, wide{3, 99: 4}) })
	t.Run("nothing", func(t *testing.T) { typedForms(t, struct{}{}, struct{}{}) })
	t.Run("bytes", func(t *testing.T) { typedForms(t, []byte("a message"), make([]byte, 1e5)) })
}

// TestBytesOfAnySize: each value travels the way of its own size, either is received, and what is too
// large stays where it is.
func TestBytesOfAnySize(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	c := ChanOf[[]byte](ch)
	for _, size := range []int{0, 1, MessageSize, MessageSize + 1, 4096, 1 << 16, 1<<16 + 1, 1 << 20} {
		sent := make([]byte, size)
		for i := range sent {
			sent[i] = byte(i + size)
		}
		require.NoError(t, c.Send(ctx, sent))
		offer, err := ch.Next(ctx)
		require.NoError(t, err)
		require.Equal(t, Offer{Indirect: size > MessageSize, Size: uint64(size)}, offer)
		got, err := c.Receive(ctx)
		require.NoError(t, err)
		require.Equal(t, sent, got)
	}
	require.NoError(t, ch.SendInd(ctx, "short"))
	got, err := c.Receive(ctx)
	require.NoError(t, err)
	require.Equal(t, "short", string(got), "a transfer that a message could carry")
	stats := ch.Stats()
	require.Zero(t, stats.Direct.D2H.Errors+stats.Indirect.D2H.Errors, "no receive was of the wrong kind")
}

// TestBytesTooMany: no peer makes the receiver find memory without a bound.
func TestBytesTooMany(t *testing.T) {
	ctx := background(t)
	ch, fake := channel(t)
	c := ChanOf[[]byte](ch)
	fake.change(func() { // memory that is not touched costs nothing
		fake.half[abi.D2H].offer = &fakeOffer{data: make([]byte, bytesMost+1), indirect: true}
	})
	_, err := c.Receive(ctx)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = c.ReceiveCase(nil).Try()
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = ch.Next(ctx)
	require.NoError(t, err, "it stays offered")
}

// TestTypedTriesTakeNothingElse: what is offered in another size, or another way,
// stays offered, however often a typed form looks at it.
func TestTypedTriesTakeNothingElse(t *testing.T) {
	ctx := background(t)
	ch := startSim(t, openSim(t, "sim:"), "loopback", 1)[0]
	number, large := ChanOf[uint64](ch), ChanOf[wide](ch)
	buf := make([]byte, MessageSize)
	for _, msg := range []string{"", "short", "longer than eight"} {
		require.NoError(t, ch.Send(ctx, []byte(msg)))
		_, err := ch.Next(ctx)
		require.NoError(t, err)
		for range 3 {
			ok, err := number.ReceiveCase(nil).Try()
			require.False(t, ok)
			var size *SizeError
			require.ErrorAs(t, err, &size)
			require.Equal(t, SizeError{Host: 8, Device: uint64(len(msg))}, *size)
			_, err = Select(ctx, number.ReceiveCase(nil))
			require.ErrorIs(t, err, ErrSizeMismatch)
			_, err = large.ReceiveCase(nil).Try()
			require.ErrorIs(t, err, ErrKindMismatch)
		}
		n, err := ch.Receive(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, msg, string(buf[:n]))
	}
	require.NoError(t, ch.SendInd(ctx, buf))
	_, err := ch.Next(ctx)
	require.NoError(t, err)
	for range 3 {
		_, err = number.ReceiveCase(nil).Try()
		require.ErrorIs(t, err, ErrKindMismatch)
		_, err = large.ReceiveCase(nil).Try()
		require.ErrorIs(t, err, ErrSizeMismatch)
	}
	_, err = ch.ReceiveInd(ctx, buf)
	require.NoError(t, err)
}

func TestTypedFormsRefuseTypes(t *testing.T) {
	ctx := background(t)
	ch, _ := channel(t)
	c := ChanOf[order](ch)
	_, err := c.SendCase(order{}).Try()
	require.ErrorIs(t, err, ErrPointers)
	_, err = c.ReceiveCase(nil).Try()
	require.ErrorIs(t, err, ErrPointers)
	_, err = Select(ctx, c.SendCase(order{}))
	require.ErrorIs(t, err, ErrPointers)
	_, err = Select(ctx, c.ReceiveCase(nil))
	require.ErrorIs(t, err, ErrPointers)
	_, err = c.SendCase(order{}).Start(ctx).Wait(ctx)
	require.ErrorIs(t, err, ErrPointers)
	_, err = c.ReceiveCase(nil).Start(ctx).Wait(ctx)
	require.ErrorIs(t, err, ErrPointers)
	none := ChanOf[int](nil)
	i, err := Select(context.Background(), none.SendCase(1), none.ReceiveCase(nil), Default())
	require.NoError(t, err)
	require.Equal(t, 2, i, "a nil channel is never ready")
}
