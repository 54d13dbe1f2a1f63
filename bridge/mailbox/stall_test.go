package mailbox

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestMailboxThatIsNotEmptied: a device that beats but takes nothing out of a full
// mailbox is lost, although no context ends the calls that wait for room.
func TestMailboxThatIsNotEmptied(t *testing.T) {
	for name, call := range map[string]func(c *channel) error{
		"Send":    func(c *channel) error { return c.Send(context.Background(), nil) },
		"SendInd": func(c *channel) error { return c.SendInd(context.Background(), pages(10)) },
		"empty":   func(c *channel) error { return c.SendInd(context.Background(), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			dev, err := Open(context.Background(), f, bridge.Info{}, &Options{Stall: time.Millisecond})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, dev.Close()) })
			c := f.subscribe(dev.(*device))
			c.mailbox.tx.Lock()
			c.mailbox.tx.tail += c.mailbox.room(proto.RoomNormal)
			c.mailbox.tx.Unlock()
			wait := f.async(func() error { return call(c) })
			require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
			require.ErrorContains(t, dev.(*device).cur.Load().err(), "full for")
		})
	}
}

// TestControlWithoutAnAnswer: a device that took a request and beats, but does not
// answer, is lost.
func TestControlWithoutAnAnswer(t *testing.T) {
	f := newFake(t)
	dev, err := Open(context.Background(), f, bridge.Info{}, &Options{Stall: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	wait := f.async(func() error { _, err := dev.Programs(context.Background()); return err })
	h := wire.Header(f.expect(0, wire.TypeDirect).Header)
	var a wire.Slot
	*a.Ack() = wire.Ack{Transaction: uint64(h.Sequence()), State: wire.StateConsumed}
	f.put(0, wire.MakeHeader(wire.TypeAck, abi.PayloadSize, h.Epoch(), h.Sequence(), 0), a)
	require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
}

// TestStallClock: a clock counts steps that were seen to pass, from the last record
// on; one look after a long pause is one step.
func TestStallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c stallClock
		require.False(t, c.ticked())
		c.stop()
		for range 3 {
			c.ticks(8 * time.Second)
			time.Sleep(time.Hour)
			require.True(t, c.ticked(), "one step")
			require.False(t, c.overdue())
			require.False(t, c.ticked())
			start, steps := time.Now(), 1
			for c.ticks(8 * time.Second); !c.overdue(); steps++ {
				<-c.ticker.C
			}
			require.Equal(t, stallSteps, steps)
			require.LessOrEqual(t, time.Since(start), 8*time.Second)
			c.stop()
			time.Sleep(time.Hour)
		}
	})
}

// sleepsInSend makes a half look as if the next call sleeps in it.
func sleepsInSend(h *sender) {
	h.word.Store((countOf(h.word.Load())+1)<<countShift | parkedFlag | uint64(proto.StateOffered))
}

// TestAuditIsSpread: whatever number of calls waits, a check visits and asks back no more than its
// share. A device that knows of all offers costs nothing, and an offer that was asked back is left
// alone twice as long each time.
func TestAuditIsSpread(t *testing.T) {
	const channels = 3*auditAsks + 10
	e := &epoch{dev: &device{port: noPort{}}, stall: time.Second}
	e.Hello.Channels = 1 << 20
	e.table.init(int(e.Hello.Channels))
	b := &mailbox{ep: e}
	for i := range channels {
		c := &channel{ep: e, mailbox: b, id: uint32(i * 1000)}
		c.send.mailbox, c.send.ch, c.send.wake = b, c, make(chan struct{}, 1)
		sleepsInSend(&c.send)
		require.True(t, e.table.add(c))
	}
	e.offered.Store(channels)
	asked := func() (n int) {
		for _, c := range e.table.list() {
			if c.send.word.Load()&askFlag != 0 {
				n++
			}
		}
		return n
	}
	var a audit
	a.init(e, 250*time.Millisecond)
	require.Equal(t, 4, a.every)
	pass := func(parked uint64) (most int) {
		for range a.every {
			a.look(parked)
		}
		for before := asked(); ; before = asked() {
			if most = max(most, asked()-before); !a.walks {
				return most
			}
			a.look(parked)
		}
	}
	pass(channels)
	require.Zero(t, e.table.at(0).send.waited, "nothing was visited")
	pass(channels - 1)
	require.Zero(t, asked(), "a first pass only notes who waits")
	require.LessOrEqual(t, pass(channels-1), auditAsks)
	require.Equal(t, channels, asked())

	again := &e.table.at(0).send
	for n := range uint32(3) {
		again.asked.again()
		sleepsInSend(again)
		passes := 0
		for ; again.word.Load()&askFlag == 0; passes++ {
			pass(0)
		}
		require.EqualValues(t, 1+2<<n, passes)
	}
	again.asked.over()
	require.EqualValues(t, 1, again.asked.passes())
}

// TestTryOfATransferAsksAtOnce: a try whose transfer is not answered soon takes it back as a try of a
// message does. The island of the target may have no time, while another one beats.
func TestTryOfATransferAsksAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		hello func(h *wire.Hello)
		offer []wire.Type
	}{
		"eager": {func(h *wire.Hello) { h.Capabilities |= wire.CapEager; h.Eager = wire.EagerEntries }, []wire.Type{wire.TypeEager}},
		"lists": {func(*wire.Hello) {}, []wire.Type{wire.TypeIndBegin, wire.TypeIndList}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c.hello(f.area.DeviceHello.Hello())
			ch := f.subscribe(f.open())
			var taken bool
			try := func() (wait func() error) {
				wait = f.async(func() (err error) { taken, err = ch.TrySendInd(context.Background(), pages(100), nil); return err })
				for _, offer := range append(c.offer, wire.TypeWithdraw) {
					f.expect(fakeMailbox, offer)
				}
				return wait
			}
			wait := try()
			f.note(wire.TypeWithdrawn, 1, abi.H2D)
			require.NoError(t, wait())
			require.False(t, taken)
			wait = f.async(func() error { _, err := ch.TrySendInd(context.Background(), pages(100), nil); return err })
			require.ErrorIs(t, wait(), bridge.ErrDeviceLost, "the island does not look")
		})
	}
}
