package mailbox

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// offered is a send that its caller may cancel, of a message that the device was offered.
func offered(t *testing.T) (f *fake, d *device, c *channel, cancel func(), wait func() error) {
	f, d, c = setup(t)
	ctx, cancel := context.WithCancel(context.Background())
	wait = f.async(func() error { return c.Send(ctx, nil) })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.asleep(d, 1)
	return f, d, c, cancel, wait
}

// takenBack wants that the send was withdrawn from a device that is there.
func takenBack(t *testing.T, d *device, wait func() error) {
	require.ErrorIs(t, wait(), bridge.ErrWithdrawn)
	_, err := d.Health()
	require.NoError(t, err)
}

// TestAnswersInTheRingAreAnswers: the device answered, and beats, but no call
// has drained the ring when the wait for the answer is over.
func TestAnswersInTheRingAreAnswers(t *testing.T) {
	f, d, _, cancel, wait := offered(t)
	cancel()
	f.expect(fakeMailbox, wire.TypeWithdraw)
	f.asleep(d, 1)
	f.place(fakeMailbox, f.header(wire.TypeWithdrawn, abi.PayloadSize, 1), noteSlot(1, abi.H2D)) // no doorbell
	takenBack(t, d, wait)
}

// TestHeartbeatsBehindTheAnswer: the device answered, and beat as often as it may without an
// answer, after the ring was read and before the heartbeat was.
func TestHeartbeatsBehindTheAnswer(t *testing.T) {
	f, d, c, cancel, wait := offered(t)
	f.mute.Store(true)
	cancel()
	f.expect(fakeMailbox, wire.TypeWithdraw)
	f.until("a call asleep", func() bool { return c.send.asleep.Load() != 0 })
	w := &c.mailbox.ep.watch
	w.mu.Lock()
	f.until("a look at the heartbeat", func() bool { return strings.Contains(stacks(), "(*watch).count(") })
	f.place(fakeMailbox, f.header(wire.TypeWithdrawn, abi.PayloadSize, 1), noteSlot(1, abi.H2D)) // no doorbell
	f.pulse.Lock()
	for range cancelHeartbeats {
		f.writeBeat()
	}
	f.pulse.Unlock()
	w.mu.Unlock()
	takenBack(t, d, wait)
}

// TestIslandThatHasNotLooked: the device beats on while the island of the mailbox waits for a
// processor, longer than an answer may take. The time for the answer begins when it looks, however
// many heartbeats arrived just before.
func TestIslandThatHasNotLooked(t *testing.T) {
	f, d, _, cancel, wait := offered(t)
	cancel()
	f.until("a question", func() bool { return f.pending(fakeMailbox) })
	time.Sleep(2 * cancelTimeout)
	f.mute.Store(true)
	f.pulse.Lock()
	for range cancelHeartbeats {
		f.writeBeat()
	}
	f.pulse.Unlock()
	f.expect(fakeMailbox, wire.TypeWithdraw)
	time.Sleep(2 * cancelStep)
	f.note(wire.TypeWithdrawn, 1, abi.H2D)
	takenBack(t, d, wait)
}

// stacks returns what all goroutines do.
func stacks() string {
	b := make([]byte, 1<<20)
	return string(b[:runtime.Stack(b, true)])
}

// noteSlot is the payload of a note about a transaction.
func noteSlot(id uint64, d abi.Direction) (s wire.Slot) {
	*s.Note() = wire.Note{Transaction: id, Direction: uint32(d)}
	return s
}

// TestWaiterLooksAfterWhoPolls: an offer arrived before there was a waiter, so that it rang no
// bell. The caller that polls the ring when the waiter is armed stops before that offer.
func TestWaiterLooksAfterWhoPolls(t *testing.T) {
	f, _, c := setup(t)
	c.mailbox.rx.Lock()
	f.message(1, "a")
	wake := make(chan struct{}, 1)
	wait := f.async(func() error { return c.Arm(abi.D2H, wake) })
	f.until("a waiter", func() bool { return c.recv.arms.Load() == 1 })
	for range 1_000 { // it has looked by then, or waits
		runtime.Gosched()
	}
	c.mailbox.rx.Unlock()
	require.NoError(t, wait())
	select {
	case <-wake:
	case <-time.After(patience):
		t.Fatal("nobody wakes the waiter")
	}
	c.Disarm(abi.D2H, wake)
}
