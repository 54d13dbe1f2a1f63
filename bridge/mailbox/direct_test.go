package mailbox

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var consumed = wire.Ack{Transaction: 1, State: wire.StateConsumed}

func setup(t *testing.T) (*fake, *device, *channel) {
	f := newFake(t)
	d := f.open()
	return f, d, f.subscribe(d)
}

func TestSendReachesTheDevice(t *testing.T) {
	f, d, c := setup(t)
	for i := range uint64(3 * fakeSlots) { // several laps
		wait := f.async(func() error { return c.Send(context.Background(), []byte("hello")) })
		s := f.expect(fakeMailbox, wire.TypeDirect)
		h := wire.Header(s.Header)
		require.Equal(t, 5, h.Length())
		require.EqualValues(t, fakeTarget, h.Channel())
		require.EqualValues(t, 1, h.Epoch())
		require.Equal(t, uint16(i+1), h.Sequence())
		require.Equal(t, "hello\x00\x00\x00", string(s.Bytes()[:8]))
		f.ack(wire.TypeAck, wire.Ack{Transaction: i + 1, State: wire.StateConsumed})
		require.NoError(t, wait())
	}
	require.EqualValues(t, 3*fakeSlots, c.Stats().Direct.H2D.Messages)
	require.EqualValues(t, 15*fakeSlots, d.Stats().Direct.H2D.Bytes)
}

func TestSendEveryRefusal(t *testing.T) {
	f, _, c := setup(t)
	id := uint64(0)
	for status := abi.OK + 1; status < abi.StatusCount; status++ {
		wait := f.async(func() error { return c.Send(context.Background(), nil) })
		f.expect(fakeMailbox, wire.TypeDirect)
		id++
		f.ack(wire.TypeError, wire.Ack{Transaction: id, State: wire.StateFailed, Status: status})
		require.ErrorIs(t, wait(), bridge.Error(status))
	}
	require.EqualValues(t, abi.StatusCount-1, c.Stats().Direct.H2D.Errors)
}

func TestSendLimits(t *testing.T) {
	f, _, c := setup(t)
	require.ErrorIs(t, c.Send(context.Background(), make([]byte, 57)), bridge.ErrTooLarge)
	_, err := c.TrySend(make([]byte, 57), nil)
	require.ErrorIs(t, err, bridge.ErrTooLarge)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = c.Send(ctx, nil)
	require.ErrorIs(t, err, bridge.ErrWithdrawn)
	require.ErrorIs(t, err, context.Canceled)
	require.Nil(t, f.poll(fakeMailbox), "nothing was sent")
}

func TestSendCancelled(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(f *fake)
		want   error
	}{
		{"withdrawn", func(f *fake) { f.note(wire.TypeWithdrawn, 1, abi.H2D) }, bridge.ErrWithdrawn},
		{"delivered", func(f *fake) { f.ack(wire.TypeAck, consumed) }, nil},
		{"refused", func(f *fake) {
			f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrKind})
		}, bridge.ErrKindMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, _, ch := setup(t)
			ctx, cancel := context.WithCancel(context.Background())
			wait := f.async(func() error { return ch.Send(ctx, []byte("x")) })
			f.expect(fakeMailbox, wire.TypeDirect)
			cancel()
			n := f.expect(fakeMailbox, wire.TypeWithdraw).Note()
			require.EqualValues(t, 1, n.Transaction)
			require.EqualValues(t, abi.H2D, n.Direction)
			c.answer(f)
			require.ErrorIs(t, wait(), c.want)
		})
	}
}

// passing is a context whose deadline passes when the test says so.
type passing struct{ context.Context }

func (c passing) Err() error { return context.Cause(c.Context) }

func TestSendDeadline(t *testing.T) {
	f, _, c := setup(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	wait := f.async(func() error { return c.Send(passing{ctx}, []byte("x")) })
	f.expect(fakeMailbox, wire.TypeDirect)
	cancel(context.DeadlineExceeded)
	f.expect(fakeMailbox, wire.TypeWithdraw)
	f.note(wire.TypeWithdrawn, 1, abi.H2D)
	err := wait()
	require.ErrorIs(t, err, context.DeadlineExceeded)
	var w *bridge.WithdrawnError
	require.ErrorAs(t, err, &w)
	require.True(t, w.Timeout())
}

func TestWithdrawUnansweredMeansLost(t *testing.T) {
	f, d, c := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	wait := f.async(func() error { return c.Send(ctx, []byte("x")) })
	f.expect(fakeMailbox, wire.TypeDirect)
	cancel()
	f.expect(fakeMailbox, wire.TypeWithdraw)
	require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
	require.EqualValues(t, 1, f.fences.Load())
	require.Zero(t, d.Stats().Faults)
}

func TestSendersAreServedInOrder(t *testing.T) {
	f, _, c := setup(t)
	const n = 2 * fakeSlots
	var waits []func() error
	first := f.async(func() error { return c.Send(context.Background(), []byte{0}) })
	f.expect(fakeMailbox, wire.TypeDirect)
	for i := 1; i < n; i++ {
		waits = append(waits, f.async(func() error { return c.Send(context.Background(), []byte{byte(i)}) }))
		f.until("in the queue", func() bool { return c.send.queue.queued() == i })
	}
	f.ack(wire.TypeAck, consumed)
	require.NoError(t, first())
	for i, wait := range waits {
		require.EqualValues(t, i+1, f.expect(fakeMailbox, wire.TypeDirect).Bytes()[0])
		f.ack(wire.TypeAck, wire.Ack{Transaction: uint64(i + 2), State: wire.StateConsumed})
		require.NoError(t, wait())
	}
}

func TestCancelInTheQueueSendsNothing(t *testing.T) {
	f, _, c := setup(t)
	first := f.async(func() error { return c.Send(context.Background(), nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	ctx, cancel := context.WithCancel(context.Background())
	second := f.async(func() error { return c.Send(ctx, nil) })
	f.until("in the queue", func() bool { return c.send.queue.queued() == 1 })
	cancel()
	require.ErrorIs(t, second(), bridge.ErrWithdrawn)
	f.ack(wire.TypeAck, consumed)
	require.NoError(t, first())
	require.Nil(t, f.poll(fakeMailbox))
}

func TestRingFull(t *testing.T) {
	f, d, _ := setup(t)
	// Senders on many channels of one mailbox fill the ring; the device sleeps.
	const senders = 20
	var waits []func() error
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var returned atomic.Int64
	e := d.cur.Load()
	for i := range senders {
		c := e.newChannel(uint32(fakeTarget + 2 + 2*i))
		require.True(t, e.table.add(c))
		waits = append(waits, f.async(func() error { defer returned.Add(1); return c.Send(ctx, nil) }))
	}
	b := e.mailboxes[fakeMailbox]
	f.until("the ring is full", func() bool {
		b.tx.Lock()
		defer b.tx.Unlock()
		return b.tx.tail-b.tx.head == b.room(proto.RoomNormal) && int(d.blocked.Load()) == senders
	})
	cancel() // those in the ring withdraw through the headroom, the others sent nothing
	f.until("the others are back", func() bool { return returned.Load() == int64(senders-b.room(proto.RoomNormal)) })
	sent := map[uint32]bool{}
	for range int(b.room(proto.RoomNormal)) {
		sent[wire.Header(f.expect(fakeMailbox, wire.TypeDirect).Header).Channel()] = true
	}
	for range len(sent) {
		h := wire.Header(f.expect(fakeMailbox, wire.TypeWithdraw).Header)
		require.True(t, sent[h.Channel()])
		var s wire.Slot
		*s.Note() = wire.Note{Transaction: 1}
		f.put(fakeMailbox, wire.MakeHeader(wire.TypeWithdrawn, abi.PayloadSize, 1, 1, h.Channel()), s)
	}
	for _, wait := range waits {
		require.ErrorIs(t, wait(), bridge.ErrWithdrawn)
	}
	require.Nil(t, f.poll(fakeMailbox))
}

func TestCounterThatMakesNoSense(t *testing.T) {
	f, _, c := setup(t)
	b := c.mailbox
	b.tx.Lock()
	b.tx.tail, b.tx.head = b.tx.tail+fakeSlots, b.tx.tail // as if full
	b.tx.Unlock()
	*b.h2dHead = 1 << 40
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrFault)
	f.until("fenced", func() bool { return f.fences.Load() == 1 })
}

func TestTrySend(t *testing.T) {
	f, _, c := setup(t)
	for id, answer := range []func(){
		func() { f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateConsumed}) },
		func() { f.note(wire.TypeWithdrawn, 2, abi.H2D) },
	} {
		var ok bool
		wait := f.async(func() (err error) { ok, err = c.TrySend([]byte("x"), nil); return err })
		f.expect(fakeMailbox, wire.TypeDirect)
		f.expect(fakeMailbox, wire.TypeWithdraw)
		answer()
		require.NoError(t, wait())
		require.Equal(t, id == 0, ok)
	}
	require.EqualValues(t, 1, c.Stats().Direct.H2D.Messages)
	require.Zero(t, c.Stats().Direct.H2D.Errors)
	wait := f.async(func() error { return c.Send(context.Background(), nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	ok, err := c.TrySend(nil, nil)
	require.NoError(t, err)
	require.False(t, ok, "another call sends")
	f.ack(wire.TypeAck, wire.Ack{Transaction: 3, State: wire.StateConsumed})
	require.NoError(t, wait())
}

func TestReceive(t *testing.T) {
	f, _, c := setup(t)
	buf := make([]byte, 56)
	for id := range uint64(2 * fakeSlots) {
		var n int
		wait := f.async(func() (err error) { n, err = c.Receive(context.Background(), buf); return err })
		f.message(id+1, "world")
		a := f.expect(fakeMailbox, wire.TypeAck).Ack()
		require.NoError(t, wait())
		require.Equal(t, "world", string(buf[:n]))
		require.Equal(t, id+1, a.Transaction)
		require.Equal(t, wire.StateConsumed, a.State)
		require.EqualValues(t, abi.D2H, a.Direction)
	}
}

func TestReceiveTooLargeStaysOffered(t *testing.T) {
	f, _, c := setup(t)
	f.message(1, "longer")
	_, err := c.Receive(context.Background(), make([]byte, 3))
	require.ErrorIs(t, err, bridge.ErrTooLarge)
	o, err := c.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, bridge.Offer{Size: 6}, o)
	buf := make([]byte, 6)
	n, err := c.Receive(context.Background(), buf)
	require.NoError(t, err)
	require.Equal(t, "longer", string(buf[:n]))
	f.expect(fakeMailbox, wire.TypeAck)
}

// TestWrongReceivesTakeNothing: the offer stays for the right one, and the
// device receives nothing.
func TestWrongReceivesTakeNothing(t *testing.T) {
	f, _, c := setup(t)
	ctx := context.Background()
	f.begin(1, 0)
	_, err := c.Receive(ctx, make([]byte, 56))
	require.ErrorIs(t, err, bridge.ErrKindMismatch)
	_, _, err = c.TryReceive(make([]byte, 56))
	require.ErrorIs(t, err, bridge.ErrKindMismatch)
	require.ErrorIs(t, c.ReceiveInd(ctx, make([]byte, 1)), bridge.ErrSizeMismatch)
	require.NoError(t, c.ReceiveInd(ctx, nil))
	require.EqualValues(t, 1, f.expect(fakeMailbox, wire.TypeFin).Note().Transaction, "the first the device hears")
	f.message(2, "m")
	require.ErrorIs(t, c.ReceiveInd(ctx, nil), bridge.ErrKindMismatch)
	n, err := c.Receive(ctx, make([]byte, 1))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.EqualValues(t, 2, f.expect(fakeMailbox, wire.TypeAck).Ack().Transaction, "the first the device hears")
}

func TestOneReceiverOnly(t *testing.T) {
	f, d, c := setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	wait := f.async(func() error { _, err := c.Receive(ctx, nil); return err })
	f.asleep(d, 1)
	_, err := c.Receive(context.Background(), nil)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorIs(t, c.ReceiveInd(context.Background(), nil), bridge.ErrBusy)
	require.ErrorIs(t, c.ReceiveFunc(context.Background(), nil), bridge.ErrBusy)
	_, err = c.Next(context.Background())
	require.ErrorIs(t, err, bridge.ErrBusy)
	_, _, err = c.TryReceive(nil)
	require.ErrorIs(t, err, bridge.ErrBusy)
	cancel()
	err = wait()
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, bridge.ErrWithdrawn)
}

func TestTryReceive(t *testing.T) {
	f, _, c := setup(t)
	buf := make([]byte, 56)
	_, ok, err := c.TryReceive(buf)
	require.NoError(t, err)
	require.False(t, ok)
	f.message(1, "now")
	n, ok, err := c.TryReceive(buf)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "now", string(buf[:n]))
	f.expect(fakeMailbox, wire.TypeAck)
	f.close(1<<abi.D2H, fakeGeneration)
	f.until("closed", func() bool { _, _, err = c.TryReceive(buf); return err != nil })
	require.ErrorIs(t, err, bridge.ErrClosed)
}

func TestReceiveFunc(t *testing.T) {
	f, _, c := setup(t)
	f.message(1, "work")
	no := errors.New("not yet")
	require.ErrorIs(t, c.ReceiveFunc(context.Background(), func([]byte) error { return no }), no)
	require.Panics(t, func() {
		_ = c.ReceiveFunc(context.Background(), func([]byte) error { panic("fn") })
	})
	require.Nil(t, f.poll(fakeMailbox), "not released")
	require.NoError(t, c.ReceiveFunc(context.Background(), func(msg []byte) error {
		require.Equal(t, "work", string(msg))
		require.Nil(t, f.poll(fakeMailbox))
		return nil
	}))
	f.expect(fakeMailbox, wire.TypeAck)
}

func TestDeviceWithdraws(t *testing.T) {
	f, _, c := setup(t)
	f.message(1, "a")
	f.note(wire.TypeWithdraw, 1, abi.D2H)
	_, ok, err := c.TryReceive(nil) // looks at the ring
	require.NoError(t, err)
	require.False(t, ok)
	n := f.expect(fakeMailbox, wire.TypeWithdrawn).Note()
	require.EqualValues(t, 1, n.Transaction)
	require.EqualValues(t, abi.D2H, n.Direction)
	f.message(2, "b")
	no := errors.New("no")
	require.ErrorIs(t, c.ReceiveFunc(context.Background(), func([]byte) error {
		f.note(wire.TypeWithdraw, 2, abi.D2H)
		c.mailbox.poll()
		require.Nil(t, f.poll(fakeMailbox), "held")
		return no
	}), no)
	f.expect(fakeMailbox, wire.TypeWithdrawn)
	f.message(3, "c")
	require.NoError(t, c.ReceiveFunc(context.Background(), func([]byte) error {
		f.note(wire.TypeWithdraw, 3, abi.D2H)
		c.mailbox.poll()
		return nil
	}))
	f.expect(fakeMailbox, wire.TypeAck) // accepted: the withdrawal was too late
}

// fillRing puts notes about a transaction until the ring to the device has no room, even for an urgent one.
func fillRing(c *channel, id uint64) {
	note := c.send.note(id)
	for c.mailbox.put(c.send.header(wire.TypeOffer, abi.PayloadSize, id), &note.Payload, c.mailbox.room(proto.RoomUrgent)) != putFull {
		continue
	}
}

func TestWithdrawnIsPendingWhileTheRingIsFull(t *testing.T) {
	f, d, c := setup(t)
	fillRing(c, 1)
	f.message(1, "a")
	f.note(wire.TypeWithdraw, 1, abi.D2H)
	c.mailbox.drain()
	for range fakeSlots {
		f.expect(fakeMailbox, wire.TypeOffer)
	}
	f.expect(fakeMailbox, wire.TypeWithdrawn)
	f.message(2, "b")
	_, err := c.Receive(context.Background(), make([]byte, 1))
	require.NoError(t, err)
	require.Zero(t, d.Stats().Faults)
}

// TestWithdrawnPrecedesClose: a close waits for the WITHDRAWN that is not in the ring yet.
func TestWithdrawnPrecedesClose(t *testing.T) {
	f, _, c := setup(t)
	fillRing(c, 1)
	f.message(1, "a")
	f.note(wire.TypeWithdraw, 1, abi.D2H)
	c.mailbox.drain()
	c.mailbox.rx.Lock() // nobody puts the answer meanwhile
	for range fakeSlots {
		f.expect(fakeMailbox, wire.TypeOffer)
	}
	placed := c.mailbox.placed()
	wait := f.async(c.CloseReceive)
	for n := 0; n < 1000 && c.mailbox.placed() == placed; n++ { // until it puts CLOSE, if it does
		runtime.Gosched()
	}
	c.mailbox.rx.Unlock()
	f.expect(fakeMailbox, wire.TypeWithdrawn)
	f.expect(fakeMailbox, wire.TypeClose)
	require.NoError(t, wait())
}

// An offer of another host is kept for the waiter that was woken for it; that host withdraws the
// offer, and closes, before the waiter runs.
func TestOfferOfAHostThatGoes(t *testing.T) {
	f, d, c := setup(t)
	c.relay = true
	wake := make(chan struct{}, 1)
	require.NoError(t, c.Arm(abi.D2H, wake))
	f.message(1, "x")
	f.until("a token", func() bool { return len(wake) == 1 })
	f.note(wire.TypeWithdraw, 1, abi.D2H)
	f.close(3, fakeGeneration)
	c.mailbox.drain() // no doorbell for them: one drain takes both
	f.expect(fakeMailbox, wire.TypeWithdrawn)
	_, ok, err := c.TryReceive(make([]byte, 1))
	require.False(t, ok)
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.Zero(t, d.Stats().Faults)
}

// A receive that found another host's offer, and lost it before it could hold it, waits for the
// next: a question is answered so, and the next offer is kept.
func TestOfferOfAHostThatIsGone(t *testing.T) {
	f, d, c := setup(t)
	c.relay = true
	require.True(t, c.recv.queue.try())
	require.False(t, c.recv.hold())
	c.recv.unlock()
	f.note(wire.TypeOffer, 1, abi.D2H)
	c.mailbox.drain()
	ready := f.poll(fakeMailbox)
	require.NotNil(t, ready)
	require.Equal(t, wire.TypeReady, wire.Header(ready.Header).Type())
	f.message(1, "x")
	f.note(wire.TypeWithdraw, 1, abi.D2H)
	c.mailbox.drain()
	require.Nil(t, f.poll(fakeMailbox), "kept")
	_, ok, err := c.TryReceive(make([]byte, 1))
	require.NoError(t, err)
	require.True(t, ok)
	f.expect(fakeMailbox, wire.TypeAck)
	require.Zero(t, d.Stats().Faults)
}

func TestArm(t *testing.T) {
	f, d, c := setup(t)
	wake := make(chan struct{}, 1)
	token := func() { f.t.Helper(); f.until("a token", func() bool { return len(wake) == 1 }); <-wake }

	require.NoError(t, c.Arm(abi.D2H, wake))
	require.NotZero(t, atomic.LoadUint32(c.send.parkWord), "the device is to ring")
	f.message(1, "x")
	token()
	f.until("nobody to ring for", func() bool { return atomic.LoadUint32(c.send.parkWord) == 0 })
	require.NoError(t, c.Arm(abi.D2H, wake))
	token() // offered already
	_, ok, _ := c.TryReceive(make([]byte, 1))
	require.True(t, ok)
	f.expect(fakeMailbox, wire.TypeAck)

	require.NoError(t, c.Arm(abi.H2D, wake))
	require.EqualValues(t, 1, f.expect(fakeMailbox, wire.TypeOffer).Note().Transaction)
	f.note(wire.TypeReady, 1, abi.H2D)
	token()

	// The place is the next try's; the target is absent again.
	wait := f.async(func() error { _, err := c.TrySend(nil, wake); return err })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.expect(fakeMailbox, wire.TypeWithdraw)
	f.note(wire.TypeWithdrawn, 1, abi.H2D)
	require.NoError(t, wait())
	token() // the place is used, and the target was not asked again

	// A sender that arrives later waits, and one that only tries does not.
	require.NoError(t, c.Arm(abi.H2D, wake))
	require.NoError(t, c.Arm(abi.H2D, wake))
	require.EqualValues(t, 2, f.expect(fakeMailbox, wire.TypeOffer).Note().Transaction)
	wait = f.async(func() error { return c.Send(context.Background(), nil) })
	f.until("in the queue", func() bool { return c.send.queue.queued() == 1 })
	ok, err := c.TrySend(nil, nil)
	require.NoError(t, err)
	require.False(t, ok)
	c.Disarm(abi.H2D, wake)
	f.expect(fakeMailbox, wire.TypeDirect)
	f.ack(wire.TypeAck, wire.Ack{Transaction: 2, State: wire.StateConsumed})
	require.NoError(t, wait())

	c.Disarm(abi.H2D, wake)
	c.Disarm(abi.H2D, wake)
	f.note(wire.TypeReady, 3, abi.H2D)
	c.mailbox.drain()
	require.Empty(t, wake)
	require.Zero(t, atomic.LoadUint32(c.send.parkWord))

	require.NoError(t, c.Arm(abi.H2D, wake))
	f.expect(fakeMailbox, wire.TypeOffer)
	require.NoError(t, d.Close())
	token()
	require.ErrorIs(t, c.Arm(abi.H2D, wake), bridge.ErrClosed)
}

// TestArmedWaitersNoticeADeadDevice: the only waiters are armed ones, and the heartbeat stops.
func TestArmedWaitersNoticeADeadDevice(t *testing.T) {
	for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
		f, d, c := setup(t)
		wake := make(chan struct{}, 1)
		require.NoError(t, c.Arm(half, wake))
		f.mute.Store(true)
		<-wake
		require.ErrorIs(t, c.Arm(half, wake), bridge.ErrDeviceLost)
		f.until("nobody is armed", func() bool { return d.armed.Load() == 0 }) // the token is first
	}
}

// TestCallsCountMarshalling: the time until a measured call reaches the back end is its own layer.
func TestCallsCountMarshalling(t *testing.T) {
	f, _, c := setup(t)
	marshalled := func(d abi.Direction, call func(context.Context) error, device func()) {
		var measured stamp.Context
		ctx := measured.Of(t.Context())
		measured.Begin()
		for start := meter.Now(); meter.Now() == start; { // a clock may be coarse
		}
		wait := f.async(func() error { return call(ctx) })
		device()
		require.NoError(t, wait())
		laps, _ := measured.Record.Split(stamp.Clock{}, d, false)
		require.Positive(t, laps[stamp.Marshal], d)
	}
	marshalled(abi.H2D, func(ctx context.Context) error { return c.Send(ctx, nil) }, func() {
		f.expect(fakeMailbox, wire.TypeDirect)
		f.ack(wire.TypeAck, consumed)
	})
	marshalled(abi.D2H, func(ctx context.Context) error { _, err := c.Receive(ctx, nil); return err }, func() { f.message(1, "") })
}
