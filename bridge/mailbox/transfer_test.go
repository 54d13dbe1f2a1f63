package mailbox

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// lists takes the lists from..to of a transfer and copies what they name.
func (f *fake) lists(id uint64, from, to int, flag int) (got []byte) {
	f.t.Helper()
	for k := from; k < to; k++ {
		s := f.expect(fakeMailbox, wire.TypeIndList)
		h := wire.Header(s.Header)
		require.Equal(f.t, uint16(id), h.Sequence())
		require.Equal(f.t, flag, h.Length()&wire.ListD2H)
		require.Equal(f.t, uint16(k), s.Gather().Number())
		for _, e := range s.Gather().Entry[:h.Length()&wire.ListCountMask] {
			got = append(got, dma(e)...)
		}
	}
	return got
}

// fillLists is lists for a transfer to the host: it writes what they name.
func (f *fake) fillLists(from, to int, with byte) (n int) {
	for k := from; k < to; k++ {
		s := f.expect(fakeMailbox, wire.TypeIndList)
		h := wire.Header(s.Header)
		require.NotZero(f.t, h.Length()&wire.ListD2H)
		for _, e := range s.Gather().Entry[:h.Length()&wire.ListCountMask] {
			n += copy(dma(e), bytes.Repeat([]byte{with}, e.Length()))
		}
	}
	return n
}

func pattern(n int) []byte {
	b := pages(n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

func done(id uint64, d abi.Direction, size int) wire.Ack {
	return wire.Ack{Transaction: id, Direction: uint32(d), State: wire.StateDone, Processed: uint64(size)}
}

func moving(id uint64, d abi.Direction, lists int, cut proto.Split) wire.Ack {
	return wire.Ack{
		Transaction: id, Direction: uint32(d), State: wire.StateMoving, Lists: uint32(lists),
		Processed: cut.UpTo(uint64(lists)), Outstanding: cut.Size - cut.UpTo(uint64(lists)),
	}
}

func TestSendIndSmall(t *testing.T) {
	f, _, c := setup(t)
	for i, size := range []int{1, 56, 4000, 5 * 4096} {
		id := uint64(i + 1)
		data := pattern(size)
		wait := f.async(func() error { return c.SendInd(context.Background(), data) })
		b := f.expect(fakeMailbox, wire.TypeIndBegin)
		require.Equal(t, wire.Begin{Transaction: id, Size: uint64(size)}, *b.Begin())
		require.NotNil(t, f.peek(fakeMailbox), "list 0 comes with it")
		got := f.lists(id, 0, 1, 0)
		require.Equal(t, data, got)
		f.ack(wire.TypeDone, done(id, abi.H2D, size))
		n := f.expect(fakeMailbox, wire.TypeFin).Note()
		require.Equal(t, id, n.Transaction)
		require.EqualValues(t, abi.H2D, n.Direction)
		require.NoError(t, wait())
	}
	require.EqualValues(t, 4, c.Stats().Indirect.H2D.Messages)
	require.EqualValues(t, 4, c.Stats().Lists)
}

// peek looks at the host's next message without taking it.
func (f *fake) peek(mailbox int) *wire.Slot {
	head := f.h2dHead
	s := f.poll(mailbox)
	f.h2dHead = head
	return s
}

func TestSendIndEmpty(t *testing.T) {
	f, _, c := setup(t)
	wait := f.async(func() error { return c.SendInd(context.Background(), nil) })
	require.Zero(t, f.expect(fakeMailbox, wire.TypeIndBegin).Begin().Size)
	f.ack(wire.TypeDone, done(1, abi.H2D, 0))
	f.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
	require.Zero(t, c.Stats().Lists)
}

func TestSendIndWindow(t *testing.T) {
	f, _, c := setup(t)
	data := pattern(20*listBytes + 77)
	cut := proto.Split{Address: 123, Size: uint64(len(data))}
	wait := f.async(func() error { return c.SendInd(context.Background(), data) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	got := f.lists(1, 0, 1, 0)
	require.Nil(t, f.poll(fakeMailbox), "no more before READY")
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateReady})
	got = append(got, f.lists(1, 1, fakeWindow, 0)...)
	for at := fakeWindow; at < int(cut.Lists()); at += 2 {
		require.Nil(t, f.poll(fakeMailbox), "the window is full")
		f.ack(wire.TypeAck, moving(1, abi.H2D, at-fakeWindow+2, cut))
		got = append(got, f.lists(1, at, min(at+2, int(cut.Lists())), 0)...)
	}
	require.True(t, bytes.Equal(data, got))
	f.ack(wire.TypeDone, done(1, abi.H2D, len(data)))
	f.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
}

// The ring, full of others' messages, stops the lists before the window does.
// The device need not ack so few: the host continues when there is room.
func TestSendIndGoesOnWhenTheRingHasRoom(t *testing.T) {
	f, d, c := setup(t)
	data := pattern(3 * listBytes)
	wait := f.async(func() error { return c.SendInd(context.Background(), data) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	got := f.lists(1, 0, 1, 0)
	f.asleep(d, 1)
	note := c.recv.note(1)
	for range c.mailbox.room(proto.RoomList) {
		require.NotEqual(t, putFull, c.mailbox.put(c.recv.header(wire.TypeFin, abi.PayloadSize, 1), &note.Payload, c.mailbox.room(proto.RoomUrgent)))
	}
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateReady})
	f.until("full", func() bool {
		c.send.xfer.mu.Lock()
		defer c.send.xfer.mu.Unlock()
		return c.send.xfer.ledger.Ready
	})
	for range c.mailbox.room(proto.RoomList) {
		f.expect(fakeMailbox, wire.TypeFin)
	}
	got = append(got, f.lists(1, 1, 4, 0)...)
	require.True(t, bytes.Equal(data, got))
	f.ack(wire.TypeDone, done(1, abi.H2D, len(data)))
	f.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
}

func TestSendIndRepeat(t *testing.T) {
	f, _, c := setup(t)
	data := pattern(6 * listBytes)
	wait := f.async(func() error { return c.SendInd(context.Background(), data) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.lists(1, 0, 1, 0)
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateReady})
	f.lists(1, 1, 4, 0)
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateRepeat, Status: abi.ErrBusy, Lists: 2, Processed: 2 * listBytes / 2})
	f.lists(1, 2, 6, 0)
	f.ack(wire.TypeAck, moving(1, abi.H2D, 6, proto.Split{Address: 123, Size: uint64(len(data))}))
	f.lists(1, 6, 7, 0)
	f.ack(wire.TypeDone, done(1, abi.H2D, len(data)))
	f.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())
	require.EqualValues(t, 2, c.Stats().Repeated)
}

func TestSendIndGivesUpRepeating(t *testing.T) {
	f, _, c := setup(t)
	data := pattern(100)
	wait := f.async(func() error { return c.SendInd(context.Background(), data) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	for range wire.RepeatsMax + 1 {
		f.lists(1, 0, 1, 0)
		f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateRepeat})
	}
	f.expect(fakeMailbox, wire.TypeAbort)
	f.ack(wire.TypeAborted, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrAborted, Processed: 50})
	err := wait()
	require.ErrorIs(t, err, bridge.ErrDMA)
	var te *bridge.TransferError
	require.ErrorAs(t, err, &te)
	require.EqualValues(t, 50, te.Processed)
	require.EqualValues(t, 50, te.Outstanding)
}

func TestSendIndRefusals(t *testing.T) {
	f, _, c := setup(t)
	id := uint64(0)
	for status := abi.OK + 1; status < abi.StatusCount; status++ {
		wait := f.async(func() error { return c.SendInd(context.Background(), pages(10)) })
		f.expect(fakeMailbox, wire.TypeIndBegin)
		f.expect(fakeMailbox, wire.TypeIndList)
		id++
		f.ack(wire.TypeError, wire.Ack{Transaction: id, State: wire.StateFailed, Status: status, Outstanding: 44, Lists: 0, FaultIndex: 3})
		err := wait()
		require.ErrorIs(t, err, bridge.Error(status))
		var size *bridge.SizeError
		require.Equal(t, status == abi.ErrSize, errors.As(err, &size))
		if size != nil {
			require.Equal(t, bridge.SizeError{Host: 10, Device: 44}, *size)
		}
		var te *bridge.TransferError
		require.Equal(t, status == abi.ErrDMA, errors.As(err, &te))
		if te != nil {
			require.EqualValues(t, 3, te.Entry)
		}
	}
}

func TestSendIndTargetTimeout(t *testing.T) {
	f, _, c := setup(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	wait := f.async(func() error { return c.SendInd(ctx, pages(10)) })
	b := f.expect(fakeMailbox, wire.TypeIndBegin).Begin()
	require.Positive(t, b.TimeoutNS)
	require.LessOrEqual(t, b.TimeoutNS, uint64(time.Hour))
	f.expect(fakeMailbox, wire.TypeIndList)
	f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrTimeout})
	err := wait()
	require.ErrorIs(t, err, bridge.ErrTargetTimeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, bridge.ErrWithdrawn, "it was the device's own bound, long before the deadline")
}

func TestSendIndLimits(t *testing.T) {
	f, d, c := setup(t)
	d.cur.Load().Hello.MaxTransfer = 9
	require.ErrorIs(t, c.SendInd(context.Background(), pages(10)), bridge.ErrTooLarge)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, c.SendInd(ctx, pages(1)), bridge.ErrWithdrawn)
	require.ErrorIs(t, c.ReceiveInd(ctx, pages(1)), bridge.ErrWithdrawn)
	require.Nil(t, f.poll(fakeMailbox))
}

func TestSendIndCancelled(t *testing.T) {
	aborted := wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrAborted}
	for _, c := range []struct {
		name   string
		answer func(f *fake)
	}{
		{"aborted", func(f *fake) { f.ack(wire.TypeAborted, aborted) }},
		{"an error crosses", func(f *fake) { f.ack(wire.TypeError, aborted) }},
		{"done crosses", func(f *fake) {
			f.ack(wire.TypeDone, done(1, abi.H2D, 10))
			f.ack(wire.TypeAborted, aborted)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, d, ch := setup(t)
			ctx, cancel := context.WithCancel(context.Background())
			data := pages(10)
			wait := f.async(func() error { return ch.SendInd(ctx, data) })
			f.expect(fakeMailbox, wire.TypeIndBegin)
			f.expect(fakeMailbox, wire.TypeIndList)
			cancel()
			require.EqualValues(t, 1, f.expect(fakeMailbox, wire.TypeAbort).Note().Transaction)
			c.answer(f)
			err := wait()
			require.ErrorIs(t, err, bridge.ErrWithdrawn)
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, d.Stats().Faults)
			wait = f.async(func() error { return ch.SendInd(context.Background(), data) })
			require.EqualValues(t, 2, f.expect(fakeMailbox, wire.TypeIndBegin).Begin().Transaction, "the next one works")
			f.expect(fakeMailbox, wire.TypeIndList)
			f.ack(wire.TypeDone, done(2, abi.H2D, 10))
			f.expect(fakeMailbox, wire.TypeFin)
			require.NoError(t, wait())
		})
	}
}

func TestAbortUnansweredFencesBeforeTheBufferIsGivenBack(t *testing.T) {
	f, _, c := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	data := pages(10)
	returned := make(chan struct{})
	f.onFence = func() {
		select {
		case <-returned:
			t.Error("the buffer was given back before the fence")
		default:
		}
	}
	wait := f.async(func() error {
		err := c.SendInd(ctx, data)
		close(returned)
		return err
	})
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.expect(fakeMailbox, wire.TypeIndList)
	cancel()
	f.expect(fakeMailbox, wire.TypeAbort)
	require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
	require.EqualValues(t, 1, f.fences.Load())
}

// TestAbortThatCannotBePut: the ring is full because of a wrong cursor, so that the call cannot ask
// for the end of its transfer. It does not give the buffer back before the fence.
func TestAbortThatCannotBePut(t *testing.T) {
	f, _, c := setup(t)
	fence, returned := make(chan struct{}), make(chan struct{})
	f.onFence = func() { <-fence }
	release := sync.OnceFunc(func() { close(fence) })
	defer release()
	ctx, cancel := context.WithCancel(context.Background())
	wait := f.async(func() error {
		defer close(returned)
		return c.SendInd(ctx, pages(10))
	})
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.expect(fakeMailbox, wire.TypeIndList)
	fillRing(c, 9)
	atomic.StoreUint64(c.mailbox.h2dHead, 1<<40)
	cancel()
	back := func() bool {
		select {
		case <-returned:
			return true
		default:
			return false
		}
	}
	f.until("the call waits for the fence", func() bool {
		c.mailbox.tx.Lock()
		defer c.mailbox.tx.Unlock()
		return back() || c.mailbox.tx.dead && c.send.word.Load()&parkedFlag != 0
	})
	require.False(t, back(), "the buffer was given back before the fence")
	release()
	require.ErrorIs(t, wait(), bridge.ErrFault)
	require.EqualValues(t, 1, f.fences.Load())
}

func TestReceiveInd(t *testing.T) {
	f, _, c := setup(t)
	size := 9*listBytes + 5
	data := pages(size)
	f.begin(1, uint64(size))
	o, err := c.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, bridge.Offer{Indirect: true, Size: uint64(size)}, o)
	wait := f.async(func() error { return c.ReceiveInd(context.Background(), data) })
	n := f.fillLists(0, fakeWindow, 'x')
	f.ack(wire.TypeAck, moving(1, abi.D2H, fakeWindow, proto.Split{Address: 123, Size: uint64(size)}))
	n += f.fillLists(fakeWindow, 2*fakeWindow, 'x')
	f.ack(wire.TypeAck, moving(1, abi.D2H, 2*fakeWindow, proto.Split{Address: 123, Size: uint64(size)}))
	n += f.fillLists(2*fakeWindow, 10, 'x')
	require.Equal(t, size, n)
	f.ack(wire.TypeDone, done(1, abi.D2H, size))
	require.EqualValues(t, abi.D2H, f.expect(fakeMailbox, wire.TypeFin).Note().Direction)
	require.NoError(t, wait())
	require.Equal(t, size, bytes.Count(data, []byte{'x'}))

	f.begin(2, 0)
	require.NoError(t, c.ReceiveInd(context.Background(), nil))
	f.expect(fakeMailbox, wire.TypeFin)
}

func TestReceiveIndSizeMismatch(t *testing.T) {
	f, _, c := setup(t)
	f.begin(1, 0)
	err := c.ReceiveInd(context.Background(), pages(11))
	var size *bridge.SizeError
	require.ErrorAs(t, err, &size)
	require.Equal(t, bridge.SizeError{Host: 11, Device: 0}, *size)
	require.NoError(t, c.ReceiveInd(context.Background(), nil))
	f.expect(fakeMailbox, wire.TypeFin)
}

// in returns a place for ReceiveIndFunc.
func in(data []byte) func() ([]byte, error) { return func() ([]byte, error) { return data, nil } }

func TestReceiveIndFunc(t *testing.T) {
	f, _, c := setup(t)
	no := errors.New("no")
	data := pages(10)
	f.begin(1, 10)
	wait := f.async(func() error {
		return c.ReceiveIndFunc(context.Background(), 10, in(data), func(data []byte) error {
			require.Equal(t, "yyyyyyyyyy", string(data))
			return no
		})
	})
	f.fillLists(0, 1, 'y')
	f.ack(wire.TypeDone, done(1, abi.D2H, 10))
	require.EqualValues(t, abi.D2H, f.expect(fakeMailbox, wire.TypeAbort).Note().Direction)
	f.ack(wire.TypeAborted, wire.Ack{Transaction: 1, Direction: uint32(abi.D2H), State: wire.StateFailed, Status: abi.ErrAborted})
	require.ErrorIs(t, wait(), no)

	f.begin(2, 10)
	wait = f.async(func() error {
		return c.ReceiveIndFunc(context.Background(), 10, in(data), func([]byte) error { return nil })
	})
	f.fillLists(0, 1, 'z')
	f.ack(wire.TypeDone, done(2, abi.D2H, 10))
	f.expect(fakeMailbox, wire.TypeFin)
	require.NoError(t, wait())

	f.begin(3, 0)
	require.ErrorIs(t, c.ReceiveIndFunc(context.Background(), 0, in(nil), func([]byte) error { return no }), no)
	require.Equal(t, abi.ErrAborted, f.expect(fakeMailbox, wire.TypeError).Ack().Status)
	require.EqualValues(t, 1, c.Stats().Indirect.D2H.Messages)
	require.EqualValues(t, 2, c.Stats().Indirect.D2H.Errors)
}

func TestReceiveIndEnds(t *testing.T) {
	f, _, c := setup(t)
	data := pages(10)
	f.begin(1, 10)
	wait := f.async(func() error { return c.ReceiveInd(context.Background(), data) })
	f.fillLists(0, 1, 0)
	f.ack(wire.TypeError, wire.Ack{Transaction: 1, Direction: uint32(abi.D2H), State: wire.StateFailed, Status: abi.ErrDMA, Processed: 4, FaultIndex: 1})
	var te *bridge.TransferError
	require.ErrorAs(t, wait(), &te)
	require.EqualValues(t, 4, te.Processed)
	require.EqualValues(t, 6, te.Outstanding)

	ctx, cancel := context.WithCancel(context.Background())
	f.begin(2, 10)
	wait = f.async(func() error { return c.ReceiveInd(ctx, data) })
	f.fillLists(0, 1, 0)
	cancel()
	f.expect(fakeMailbox, wire.TypeAbort)
	f.ack(wire.TypeAborted, wire.Ack{Transaction: 2, Direction: uint32(abi.D2H), State: wire.StateFailed, Status: abi.ErrAborted})
	require.ErrorIs(t, wait(), context.Canceled)
	f.message(3, "next")
	_, err := c.Receive(context.Background(), make([]byte, 4))
	require.NoError(t, err)
}

// Both halves move at once; ids may be equal.
func TestBothHalvesAtOnce(t *testing.T) {
	f, _, c := setup(t)
	out, in := pattern(100), pages(200)
	send := f.async(func() error { return c.SendInd(context.Background(), out) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.lists(1, 0, 1, 0)
	f.begin(1, 200)
	receive := f.async(func() error { return c.ReceiveInd(context.Background(), in) })
	f.fillLists(0, 1, 'q')
	f.ack(wire.TypeDone, done(1, abi.D2H, 200))
	require.EqualValues(t, abi.D2H, f.expect(fakeMailbox, wire.TypeFin).Note().Direction)
	require.NoError(t, receive())
	f.ack(wire.TypeDone, done(1, abi.H2D, 100))
	require.EqualValues(t, abi.H2D, f.expect(fakeMailbox, wire.TypeFin).Note().Direction)
	require.NoError(t, send())
}

// TestADeadlineIsNoTry: the shortest time-out of a context is not that of an
// offer which is taken now or never.
func TestADeadlineIsNoTry(t *testing.T) {
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	require.Greater(t, timeout(ctx), uint64(notAtAll))
}
