package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const (
	// stallTime is how long a transfer may stand still, without a Stall in
	// Options.
	stallTime = 10 * time.Second
	// stallSteps is how many steps of that a call must see pass: a machine that
	// stood still is no device that does.
	stallSteps = 4
)

// stallLimit returns how long a device that beats so often may let a transfer
// stand still.
func stallLimit(d *device, beat time.Duration) time.Duration {
	limit := d.stall
	if limit <= 0 {
		limit = stallTime
	}
	return max(limit, heartbeatMisses*beat)
}

// errAskedBack ends an offer that was withdrawn to see whether the device has it:
// it has, and gets it again.
var errAskedBack = errors.New("offer asked back")

// stallErr is why a transfer was aborted.
func (h *half) stallErr() error {
	return fmt.Errorf("%w: nothing moved for %v", bridge.ErrStalled, h.mailbox.ep.stall)
}

// stallClock counts the steps in which a transfer did not move on.
type stallClock struct {
	ticker *time.Ticker // made by the first wait
	runs   bool
	idle   int // steps since the last record of the device
}

// ticks starts the clock, unless it runs, and returns what ticks at each step.
func (c *stallClock) ticks(limit time.Duration) <-chan time.Time {
	switch step := limit / stallSteps; {
	case c.runs:
	case c.ticker == nil:
		c.ticker, c.runs, c.idle = time.NewTicker(step), true, 0
	default:
		c.ticker.Reset(step)
		c.runs, c.idle = true, 0
	}
	return c.ticker.C
}

// ticked reports whether a step has passed, without waiting for it.
func (c *stallClock) ticked() bool {
	if !c.runs {
		return false
	}
	select {
	case <-c.ticker.C:
		return true
	default:
		return false
	}
}

// overdue counts a step and reports whether there were too many.
func (c *stallClock) overdue() bool {
	c.idle++
	return c.idle > stallSteps
}

// stop ends the clock until the next wait.
func (c *stallClock) stop() {
	if c.runs {
		c.ticker.Stop()
		c.runs = false
	}
}

// due reports whether an answer of the device is pending: a transfer may wait for
// its target without an end, but not move without an end. Must hold queue.
func (x *transfer) due() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return standOf(x.h.word.Load()).Marks()&proto.MarkRecall != 0 || x.ledger.Ready || x.h.dir == abi.D2H
}

// roomWait is the wait of a call for room in a ring to the device.
type roomWait struct {
	consumed uint64 // by the device, when it was last looked at
	rounds   int    // since that changed
}

// stuck counts a round without room, and reports whether the device has consumed
// nothing for limit: its managers wait for nobody, so it never will.
func (w *roomWait) stuck(b *mailbox, limit time.Duration) bool {
	if n := b.consumed(); n != w.consumed {
		w.consumed, w.rounds = n, 0
	}
	w.rounds++
	return w.rounds > yields+int(limit/nap)
}

// bounded returns a context that also ends when the device has had a stall to do
// what it must not keep waiting with.
func (e *epoch) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(ctx)
	go func() {
		ticker := time.NewTicker(e.stall / stallSteps)
		defer ticker.Stop()
		for range stallSteps + 1 {
			select {
			case <-ticker.C:
			case <-late.Done():
				return
			}
		}
		cancel()
	}()
	return late, cancel
}

// askBack withdraws an offered transfer to see whether the device has it, and reports whether it
// did. If the target accepted it meanwhile the device has answered. Must hold queue.
func (x *transfer) askBack() (asked bool) {
	x.h.word.And(^uint64(askFlag))
	x.mu.Lock()
	_, ask := x.h.act(proto.PutWithdraw)
	x.mu.Unlock()
	if ask {
		_ = x.h.putNote(wire.TypeWithdraw, x.id) // fails only when the device is lost
	}
	return ask
}

// waitForTarget counts an offer whose call sleeps until the target takes it (1)
// or does so no more (-1).
func (h *half) waitForTarget(n int64) { h.mailbox.ep.offered.Add(n) }

// asked counts how often the present call was asked back; each time the next is
// twice as far away, so that the device's own time-outs end first.
type asked struct {
	n atomic.Uint32
}

const askedMost = 6 // doublings

// passes returns how many passes a call must have waited to be asked back.
func (a *asked) passes() uint32 { return 1 << min(a.n.Load(), askedMost) }

// again counts one time.
func (a *asked) again() { a.n.Add(1) }

// over forgets the count when the call ends.
func (a *asked) over() {
	if a.n.Load() != 0 {
		a.n.Store(0)
	}
}
