package mailbox

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestUsed: the slots of a ring show how full it is, wherever it stands, and a
// head that makes no sense gives a number that does.
func TestUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shift := rapid.IntRange(2, 8).Draw(t, "shift")
		slots := uint64(1) << shift
		b := &mailbox{mask: slots - 1, shift: shift}
		ring := make([]wire.Slot, slots)
		tail := rapid.Uint64Range(0, 4*slots).Draw(t, "tail")
		for i := range tail {
			ring[i&b.mask].Header = uint64(wire.Header(0).WithPhase(b.phase(i)))
		}
		used := rapid.Uint64Range(0, min(tail, slots)).Draw(t, "used")
		head := tail - used
		if got := b.used(ring, &head); got != int(used) {
			t.Fatalf("%d slots used, want %d", got, used)
		}
		head = rapid.Uint64().Draw(t, "nonsense")
		if got := b.used(ring, &head); got < 0 || got > len(ring) {
			t.Fatalf("%d slots used of %d", got, len(ring))
		}
	})
}

// TestMailboxStats: messages that a side did not take fill the ring to it, and
// a full ring is counted.
func TestMailboxStats(t *testing.T) {
	f := newFake(t)
	d := f.open()
	c := f.subscribe(d)
	used := func() bridge.Both[int] { return d.Stats().Mailboxes[fakeMailbox].Used }
	require.Equal(t, bridge.MailboxStats{Slots: fakeSlots}, d.Stats().Mailboxes[fakeMailbox])
	wait := f.async(func() error { return c.Send(background, []byte("not taken")) })
	f.until("the message is in the ring", func() bool { return used() == bridge.Both[int]{H2D: 1} })
	f.expect(fakeMailbox, wire.TypeDirect)
	require.Zero(t, used())
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateConsumed})
	require.NoError(t, wait())
	c.mailbox.drain()
	require.Zero(t, used())
	f.message(1, "nobody looks")
	require.Equal(t, bridge.Both[int]{D2H: 1}, used())
	c.mailbox.drain()
	require.Zero(t, used())
	require.Zero(t, d.Stats().Full)

	c.mailbox.tx.Lock()
	room := c.mailbox.tx.tail // pretend that senders filled the ring
	c.mailbox.tx.tail += fakeSlots
	c.mailbox.tx.Unlock()
	ok, err := c.TrySend(nil, nil)
	require.NoError(t, err)
	require.False(t, ok)
	require.EqualValues(t, 1, d.Stats().Full)
	c.mailbox.tx.Lock()
	c.mailbox.tx.tail = room
	c.mailbox.tx.Unlock()

	require.NoError(t, d.Close())
	require.Nil(t, d.Stats().Mailboxes)
}

// TestSpurious: a doorbell after which there is nothing to take is counted.
func TestSpurious(t *testing.T) {
	f := newFake(t)
	d := f.open()
	before := d.Stats()
	f.ringHost()
	f.until("the doorbell is served", func() bool { return d.Stats().Spurious == before.Spurious+1 })
	require.Equal(t, before.Wakeups+1, d.Stats().Wakeups)
}

// TestAge: the age of the last heartbeat grows when no more arrive, and asking
// for it does not make the device lost.
func TestAge(t *testing.T) {
	f := newFake(t)
	d := f.open()
	f.until("a heartbeat", func() bool { return f.beat.Load() > 0 && d.Stats().Age < time.Second })
	f.mute.Store(true)
	f.until("heartbeatTimeout", func() bool { return d.Stats().Age > 50*time.Millisecond })
	watch := &d.cur.Load().watch
	watch.mu.Lock()
	blank := watch.blank
	watch.mu.Unlock()
	for range 100 {
		d.Stats()
	}
	watch.mu.Lock()
	require.Equal(t, blank, watch.blank)
	watch.mu.Unlock()
	f.mute.Store(false)
	f.until("it beats again", func() bool { return d.Stats().Age < 50*time.Millisecond })
}

// TestInFlight: lists count as in flight from when they are sent until the
// device acks them.
func TestInFlight(t *testing.T) {
	f := newFake(t)
	d := f.open()
	c := f.subscribe(d)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	const size = 10 * wire.ListEntries * abi.PageSize
	wait := f.async(func() error { return c.SendInd(ctx, pages(size)) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.expect(fakeMailbox, wire.TypeIndList)
	require.Equal(t, bridge.Both[int]{H2D: 1}, c.Stats().Transfers)
	require.Equal(t, bridge.Both[int]{H2D: 1}, c.Stats().InFlight)
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateReady})
	f.until("the window is full", func() bool { return c.Stats().InFlight == (bridge.Both[int]{H2D: fakeWindow}) })
	for range fakeWindow - 1 {
		f.expect(fakeMailbox, wire.TypeIndList)
	}
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateMoving, Lists: 2})
	f.expect(fakeMailbox, wire.TypeIndList)
	f.expect(fakeMailbox, wire.TypeIndList)
	require.Equal(t, bridge.Both[int]{H2D: fakeWindow}, d.Stats().InFlight)
	cancel()
	f.expect(fakeMailbox, wire.TypeAbort)
	f.ack(wire.TypeAborted, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrAborted})
	require.ErrorIs(t, wait(), bridge.ErrWithdrawn)
	require.Zero(t, d.Stats().InFlight)
	require.Zero(t, d.Stats().Transfers)
}
