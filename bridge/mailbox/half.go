package mailbox

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/waiter"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Why a half cannot be used any more.
const (
	shutHost  = 1 << iota // closed here
	shutPeer              // closed by the device's process
	shutDown              // the device is lost, faulty or closed, and DMA is quiet
	shutMoved             // the end is another host's
	shutAny   = shutHost | shutPeer | shutDown | shutMoved
)

// burstCalls is how many calls of a half may end before others have the processor: goroutines that
// never sleep would keep it for a time slice of the scheduler each.
const burstCalls = 256

// half is one direction of a channel: what both directions have in common. The holder of its queue
// runs the calls; the goroutine that drains the mailbox delivers completions, under the mailbox's
// rx lock.
type half struct {
	parker
	queue queue
	burst uint32 // calls of the half; owned by the queue's holder
	ch    *channel

	waiters waiter.Queue // d2h: who is armed, guarded by mu; h2d: the queue has them
	arms    atomic.Int32 // waiters
	queued  atomic.Int32 // calls that wait in the queue
	// d2h: the waiter that was woken for an offer and has not run yet, guarded by mu, and
	// whether there is one.
	woken  chan<- struct{}
	coming atomic.Bool

	sampler          meter.Sampler // of direct calls; owned by the queue's holder
	direct, indirect meter.Counter
}

// sender is the h2d half, and what calls do that give something.
type sender struct {
	half
	asked    asked        // of the present call
	refusals atomic.Int32 // tries in a row that another host refused, although it waited
	waited   uint64       // the transaction that waited at the audit's last pass; the audit's own
	passes   uint32       // … which has seen it wait so often
}

// receiver is the d2h half, and what calls do that take something.
type receiver struct {
	half
	// voided: the pages of a receive that was begun were returned, and the call that waits for its
	// end takes the device's offer. Owned by the queue's holder.
	voided bool
	// Of a channel to another host: a call waits for what that offers, guarded by mu; and that asks
	// whether anybody does.
	expects bool
	asked   atomic.Bool
}

// shutFor marks the half as shut and wakes all callers that sleep or wait for it. See wakeAll for
// what it returns.
func (h *half) shutFor(why uint32) (recalled bool) {
	h.mu.Lock()
	h.shut.Or(why)
	h.mu.Unlock()
	if why == shutHost && h.dir == abi.D2H {
		h.act(proto.Shut)
	}
	if h.word.Load()&parkedFlag != 0 {
		h.wakeUp()
	}
	return h.wakeAll()
}

// errPeerClosed is what calls of a half get that the device's process closed.
var errPeerClosed = fmt.Errorf("%w by the device", bridge.ErrClosed)

// err returns the error that calls of a shut half get.
func (h *half) err() error {
	switch why := h.shut.Load(); {
	case why&shutMoved != 0:
		return bridge.ErrMoved
	case why&shutDown != 0:
		return h.mailbox.ep.err()
	case why&shutHost != 0:
		return bridge.ErrClosed
	default:
		return h.ch.ended()
	}
}

// ended returns the error of a channel that the device's process closed.
func (c *channel) ended() error {
	if p, ok := c.ep.dev.port.(Blamer); ok {
		return p.Crashed(c.id, c.generation, errPeerClosed)
	}
	return errPeerClosed
}

// header returns the header of a message about transaction id.
func (h *half) header(t wire.Type, length int, id uint64) wire.Header {
	return wire.MakeHeader(t, length, h.mailbox.ep.low, uint16(id), h.ch.id)
}

// unlock gives the half to the next caller, or the device's offer to a waiter.
func (h *half) unlock() {
	h.burst++
	over := h.burst%burstCalls == 0
	h.queue.unlock()
	h.pass()
	if over {
		runtime.Gosched()
	}
}
