package mailbox

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// raw puts a slot with any header.
func (f *fake) raw(h wire.Header, words ...uint64) {
	var s wire.Slot
	copy(s.Payload[:], words)
	f.put(fakeMailbox, h, s)
	f.ringHost()
}

const full = abi.PayloadSize

// While a message is under way on h2d (id 1), a receiver sleeps and nothing is
// offered, each of these cannot follow from what the host said.
func TestViolationsLatchAFault(t *testing.T) {
	for _, c := range []struct {
		name string
		say  func(f *fake)
	}{
		{"unknown type", func(f *fake) { f.raw(f.header(wire.TypeCount, full, 1)) }},
		{"type of an empty slot", func(f *fake) { f.raw(f.header(wire.TypeNone, full, 1)) }},
		{"host's type", func(f *fake) { f.raw(f.header(wire.TypeFin, full, 1)) }},
		{"list from the device", func(f *fake) { f.raw(f.header(wire.TypeIndList, full, 1)) }},
		{"hello in a ring", func(f *fake) { f.raw(f.header(wire.TypeHello, full, 1)) }},
		{"channel over the limit", func(f *fake) { f.raw(wire.MakeHeader(wire.TypeAck, full, 1, 1, fakeChannels+1)) }},
		{"channel of another mailbox", func(f *fake) { f.raw(wire.MakeHeader(wire.TypeAck, full, 1, 1, fakeTarget+1)) }},
		{"unknown type for a stranger", func(f *fake) { f.raw(wire.MakeHeader(77, full, 1, 1, fakeTarget+2)) }},
		{"long message", func(f *fake) { f.raw(f.header(wire.TypeDirect, full+1, 1)) }},
		{"message from the future", func(f *fake) { f.message(2, "") }},
		{"transfer from the future", func(f *fake) { f.begin(2, 1) }},
		{"transfer with another sequence", func(f *fake) { f.raw(f.header(wire.TypeIndBegin, full, 1), 1<<16+2, 1) }},
		{"transfer of the past with its sequence", func(f *fake) { f.raw(f.header(wire.TypeIndBegin, full, 1), 1<<16+1, 1) }},
		{"transfer with reserved bits", func(f *fake) { f.raw(f.header(wire.TypeIndBegin, full, 1), 1, 1, 0, 1) }},
		{"transfer over the limit", func(f *fake) { f.begin(1, 1<<40+1) }},
		{"short ack", func(f *fake) { f.raw(f.header(wire.TypeAck, 0, 1), 1) }},
		{"ack from the future", func(f *fake) { f.ack(wire.TypeAck, wire.Ack{Transaction: 2}) }},
		{"ack of an unknown direction", func(f *fake) { f.ack(wire.TypeAck, wire.Ack{Transaction: 1, Direction: 2}) }},
		{"ack with another sequence", func(f *fake) { f.raw(f.header(wire.TypeAck, full, 2), 1) }},
		{"ack of a d2h message", func(f *fake) { f.ack(wire.TypeAck, wire.Ack{Transaction: 1, Direction: uint32(abi.D2H)}) }},
		{"message answered by ready", func(f *fake) { f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateReady}) }},
		{"message answered by done", func(f *fake) { f.ack(wire.TypeDone, wire.Ack{Transaction: 1, State: wire.StateDone}) }},
		{"message answered by aborted", func(f *fake) { f.ack(wire.TypeAborted, wire.Ack{Transaction: 1, State: wire.StateFailed}) }},
		{"consumed with a status", func(f *fake) { f.ack(wire.TypeAck, wire.Ack{Transaction: 1, Status: abi.ErrKind}) }},
		{"error without a status", func(f *fake) { f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: wire.StateFailed}) }},
		{"error of unknown status", func(f *fake) {
			f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.StatusCount})
		}},
		{"error of unknown state", func(f *fake) { f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: 99, Status: abi.ErrKind}) }},
		{"withdrawn unasked", func(f *fake) { f.note(wire.TypeWithdrawn, 1, abi.H2D) }},
		{"withdrawn from the future", func(f *fake) { f.note(wire.TypeWithdrawn, 2, abi.H2D) }},
		{"withdrawn d2h", func(f *fake) { f.note(wire.TypeWithdrawn, 1, abi.D2H) }},
		{"withdraw h2d", func(f *fake) { f.note(wire.TypeWithdraw, 1, abi.H2D) }},
		{"withdraw from the future", func(f *fake) { f.note(wire.TypeWithdraw, 1, abi.D2H) }},
		{"withdraw with a sequence", func(f *fake) { f.raw(f.header(wire.TypeWithdraw, full, 3), 0, uint64(abi.D2H)) }},
		{"ready from the future", func(f *fake) { f.note(wire.TypeReady, 3, abi.H2D) }},
		{"note of unknown status", func(f *fake) { f.raw(f.header(wire.TypeReady, full, 2), 2, uint64(abi.StatusCount)<<32) }},
		{"note with reserved bits", func(f *fake) { f.raw(f.header(wire.TypeReady, full, 2), 2, 0, 0, 0, 0, 0, 1) }},
		{"close of nothing", func(f *fake) { f.close(0, fakeGeneration) }},
		{"close of a third half", func(f *fake) { f.close(4, fakeGeneration) }},
		{"close of the future", func(f *fake) { f.close(3, fakeGeneration+1) }},
		{"close with reserved bits", func(f *fake) { f.raw(f.header(wire.TypeClose, full, fakeGeneration), 3, fakeGeneration, 1) }},
		{"close with another sequence", func(f *fake) { f.raw(f.header(wire.TypeClose, full, 1), 3, fakeGeneration) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, d, ch := setup(t)
			calls := []func() error{
				f.async(func() error { return ch.Send(context.Background(), []byte("x")) }),
				f.async(func() error { return ch.ReceiveInd(context.Background(), nil) }),
			}
			f.expect(fakeMailbox, wire.TypeDirect)
			f.asleep(d, 2)
			c.say(f)
			for _, wait := range calls {
				require.ErrorIs(t, wait(), bridge.ErrFault)
			}
			require.EqualValues(t, 1, f.fences.Load())
			require.EqualValues(t, 1, d.Stats().Faults)
			_, err := d.Subscribe(context.Background(), fakeTarget+2)
			require.ErrorIs(t, err, bridge.ErrFault)
			_, err = d.Health()
			require.ErrorIs(t, err, bridge.ErrFault)
			require.ErrorIs(t, ch.Send(context.Background(), nil), bridge.ErrFault)

			require.NoError(t, d.Reset(context.Background()))
			require.ErrorIs(t, ch.Send(context.Background(), nil), bridge.ErrDeviceLost)
			ch = f.subscribe(d)
			wait := f.async(func() error { return ch.Send(context.Background(), nil) })
			f.expect(fakeMailbox, wire.TypeDirect)
			f.ack(wire.TypeAck, consumed)
			require.NoError(t, wait())
		})
	}
}

func TestSecondOfferLatchesAFault(t *testing.T) {
	f, d, c := setup(t)
	f.message(1, "a")
	f.message(2, "b")
	c.mailbox.drain()
	<-d.cur.Load().fenced
	_, err := c.Receive(context.Background(), nil)
	require.ErrorIs(t, err, bridge.ErrFault)
	require.ErrorContains(t, err, "second offer")
	require.EqualValues(t, 1, d.Stats().Faults)
}

// A message that crossed the end of its transaction, channel or epoch is dropped and counted, and
// changes nothing.
func TestStaleMessagesAreDropped(t *testing.T) {
	f, d, c := setup(t)
	send := func(id uint64) {
		wait := f.async(func() error { return c.Send(context.Background(), nil) })
		f.expect(fakeMailbox, wire.TypeDirect)
		f.ack(wire.TypeAck, wire.Ack{Transaction: id, State: wire.StateConsumed})
		require.NoError(t, wait())
	}
	send(1)
	f.message(1, "a")
	_, err := c.Receive(context.Background(), make([]byte, 1))
	require.NoError(t, err)
	f.expect(fakeMailbox, wire.TypeAck)
	for _, say := range []func(){
		func() { f.ack(wire.TypeAck, consumed) },
		func() { f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrDMA}) },
		func() { f.note(wire.TypeWithdrawn, 1, abi.H2D) },
		func() { f.note(wire.TypeWithdraw, 1, abi.D2H) },
		func() { f.note(wire.TypeReady, 1, abi.H2D) },
		func() { f.message(1, "again") },
		func() { f.begin(1, 10) },
		func() { f.close(3, fakeGeneration-1) },
		func() { f.ack(wire.TypeDone, wire.Ack{Transaction: 1, Direction: uint32(abi.D2H)}) },
		func() { f.raw(wire.MakeHeader(wire.TypeDirect, full, 0, 2, fakeTarget)) },     // epoch 0
		func() { f.raw(wire.MakeHeader(wire.TypeCount, full, 2, 2, fakeTarget)) },      // epoch 2
		func() { f.raw(wire.MakeHeader(wire.TypeDirect, full, 1, 2, fakeTarget+2)) },   // not open
		func() { f.raw(wire.MakeHeader(wire.TypeIndBegin, full, 1, 2, fakeTarget+4)) }, // not open
	} {
		before := d.Stats().Dropped
		say()
		c.mailbox.drain()
		require.Equal(t, before+1, d.Stats().Dropped)
	}
	send(2)
	require.Zero(t, d.Stats().Faults)
}

// The device may offer again as soon as it ended a transfer, before the call
// has noticed; and take that offer back as well.
func TestOfferRightAfterAFailedTransfer(t *testing.T) {
	f, d, c := setup(t)
	data := pages(10)
	for id := uint64(1); id < 200; id += 2 {
		f.begin(id, 10)
		wait := f.async(func() error { return c.ReceiveInd(context.Background(), data) })
		f.fillLists(0, 1, 0)
		f.ack(wire.TypeError, wire.Ack{Transaction: id, Direction: uint32(abi.D2H), State: wire.StateFailed, Status: abi.ErrDMA})
		f.message(id+1, "next")
		if id%4 == 1 {
			f.note(wire.TypeWithdraw, id+1, abi.D2H)
			require.ErrorIs(t, wait(), bridge.ErrDMA)
			c.mailbox.drain()
			require.Equal(t, id+1, f.expect(fakeMailbox, wire.TypeWithdrawn).Note().Transaction)
			continue
		}
		require.ErrorIs(t, wait(), bridge.ErrDMA)
		_, err := c.Receive(context.Background(), make([]byte, 4))
		require.NoError(t, err)
		require.Equal(t, id+1, f.expect(fakeMailbox, wire.TypeAck).Ack().Transaction)
	}
	require.Zero(t, d.Stats().Faults)
}

// An offer may cross the close, and the process behind it take it back before it
// is notified of the close.
func TestOfferCrossesTheClose(t *testing.T) {
	f, d, c := setup(t)
	closing := f.async(c.Close)
	f.expect(fakeMailbox, wire.TypeClose)
	f.message(1, "late")
	f.note(wire.TypeWithdraw, 1, abi.D2H)
	f.close(3, fakeGeneration)
	require.NoError(t, closing())
	require.Zero(t, d.Stats().Faults)
	require.EqualValues(t, 2, d.Stats().Dropped)
}

func TestCloseOfAChannel(t *testing.T) {
	f, d, c := setup(t)
	send := f.async(func() error { return c.Send(context.Background(), nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	receive := f.async(func() error { _, err := c.Receive(context.Background(), nil); return err })
	f.asleep(d, 2)
	closing := f.async(c.Close)
	f.expect(fakeMailbox, wire.TypeWithdraw)
	f.note(wire.TypeWithdrawn, 1, abi.H2D)
	require.ErrorIs(t, send(), bridge.ErrClosed)
	require.ErrorIs(t, receive(), bridge.ErrClosed)
	o := *f.expect(fakeMailbox, wire.TypeClose).Close()
	require.EqualValues(t, 3, o.Halves)
	require.EqualValues(t, fakeGeneration, o.Generation)
	_, err := d.Subscribe(context.Background(), fakeTarget)
	require.ErrorIs(t, err, bridge.ErrBusy, "the device has not agreed yet")
	f.close(3, fakeGeneration)
	require.NoError(t, closing())
	require.NoError(t, c.Close())
	require.NoError(t, c.CloseSend())
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrClosed)
	_, err = c.Receive(context.Background(), nil)
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.ErrorIs(t, c.SendInd(context.Background(), nil), bridge.ErrClosed)
	require.ErrorIs(t, c.ReceiveInd(context.Background(), nil), bridge.ErrClosed)
	_, err = c.TrySend(nil, nil)
	require.ErrorIs(t, err, bridge.ErrClosed)
	_, _, err = c.TryReceive(nil)
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.ErrorIs(t, c.Arm(abi.H2D, nil), bridge.ErrClosed)
	require.Zero(t, d.Stats().Channels)
	require.EqualValues(t, 1, d.Stats().Direct.H2D.Errors, "a channel counts until it is closed")
}

// TestTargetIsNamedBeforeItsCloseIsAgreed: the device gave the target to a new process, and said so in
// one mailbox before its CLOSE was seen in another.
func TestTargetIsNamedBeforeItsCloseIsAgreed(t *testing.T) {
	f, d, c := setup(t)
	closing := f.async(c.Close)
	f.expect(fakeMailbox, wire.TypeClose)
	start := f.async(func() error {
		_, err := d.Start(context.Background(), bridge.Program{Name: "new", Targets: 1})
		return err
	})
	f.serve(func(r *wire.Control) { r.A, r.B = 7, fakeTarget })
	f.until("who started it waits", func() bool { return strings.Contains(stacks(), "(*epoch).settle(") })
	f.close(3, fakeGeneration)
	require.NoError(t, closing())
	require.NoError(t, start())
	f.subscribe(d)
}

func TestHalvesCloseOneByOne(t *testing.T) {
	f, _, c := setup(t)
	require.NoError(t, c.CloseSend())
	require.EqualValues(t, 1, f.expect(fakeMailbox, wire.TypeClose).Close().Halves)
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrClosed)
	f.message(1, "x")
	_, err := c.Receive(context.Background(), make([]byte, 1))
	require.NoError(t, err)
	f.expect(fakeMailbox, wire.TypeAck)
	f.message(2, "never taken")
	closing := f.async(c.Close)
	require.EqualValues(t, 2, f.expect(fakeMailbox, wire.TypeClose).Close().Halves)
	f.close(3, fakeGeneration)
	require.NoError(t, closing())
}

func TestCloseEndsTransfersAfterTheDeviceIsQuiet(t *testing.T) {
	f, _, c := setup(t)
	data := pages(100)
	send := f.async(func() error { return c.SendInd(context.Background(), data) })
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.expect(fakeMailbox, wire.TypeIndList)
	closing := f.async(c.CloseSend)
	f.expect(fakeMailbox, wire.TypeAbort)
	require.Nil(t, f.poll(fakeMailbox), "no CLOSE before ABORTED")
	f.ack(wire.TypeAborted, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrAborted})
	require.ErrorIs(t, send(), bridge.ErrClosed)
	f.expect(fakeMailbox, wire.TypeClose)
	require.NoError(t, closing())
}

func TestDeviceCloses(t *testing.T) {
	f, d, c := setup(t)
	f.message(1, "last words")
	f.close(1<<abi.D2H, fakeGeneration)
	buf := make([]byte, 56)
	n, err := c.Receive(context.Background(), buf)
	require.NoError(t, err)
	require.Equal(t, "last words", string(buf[:n]))
	f.expect(fakeMailbox, wire.TypeAck)
	_, err = c.Receive(context.Background(), buf)
	require.ErrorIs(t, err, bridge.ErrClosed)

	send := f.async(func() error { return c.Send(context.Background(), nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.asleep(d, 1)
	f.ack(wire.TypeError, wire.Ack{Transaction: 1, State: wire.StateFailed, Status: abi.ErrClosed})
	f.close(3, fakeGeneration)
	require.ErrorIs(t, send(), bridge.ErrClosed)
	f.until("the host saw the close", func() bool { c.mailbox.drain(); return c.send.shut.Load() != 0 })
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrClosed)

	closing := f.async(c.Close)
	f.expect(fakeMailbox, wire.TypeClose)
	f.close(3, fakeGeneration)
	require.NoError(t, closing())
}

func TestDeviceClosesWithoutAnAnswer(t *testing.T) {
	f, d, c := setup(t)
	send := f.async(func() error { return c.Send(context.Background(), nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.asleep(d, 1)
	f.close(3, fakeGeneration)
	f.expect(fakeMailbox, wire.TypeWithdraw)
	f.note(wire.TypeWithdrawn, 1, abi.H2D)
	require.ErrorIs(t, send(), bridge.ErrClosed)
}

// TestNothingIsTakenAfterAFault: what a device offered before it broke a rule is not taken once that
// is known, though the fence has not reached the channel.
func TestNothingIsTakenAfterAFault(t *testing.T) {
	for name, offer := range map[string]func(*fake){
		"message":  func(f *fake) { f.message(1, "early") },
		"transfer": func(f *fake) { f.begin(1, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			f, d, c := setup(t)
			fence := make(chan struct{})
			defer close(fence)
			f.onFence = func() { <-fence }
			offer(f)
			f.until("the host has the offer", func() bool { c.mailbox.drain(); return c.recv.offered() })
			d.cur.Load().fail(fmt.Errorf("%w: it lies", bridge.ErrFault))
			n, err := c.Receive(t.Context(), make([]byte, 56))
			require.ErrorIs(t, err, bridge.ErrFault)
			require.Zero(t, n)
			require.ErrorIs(t, c.ReceiveInd(t.Context(), make([]byte, 8)), bridge.ErrFault)
		})
	}
}

func TestDoorbellThatBreaksMeansLost(t *testing.T) {
	f, d, c := setup(t)
	wait := f.async(func() error { return c.Send(context.Background(), nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.asleep(d, 1)
	require.NoError(t, f.rope.Close()) // end of file
	require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
}
