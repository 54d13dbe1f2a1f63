package mailbox

import (
	"math/bits"
	"sync/atomic"
)

const (
	runsLeast = 64      // runs of calls before the thread is rung again
	runsMost  = 1 << 16 // … the more, the more often it was late
	meetings  = 4       // times that calls find the thread at work: it answers sooner than they run
	flushAt   = 16      // answers of the thread that a half counts for itself
	lateMost  = 32      // times that the thread may be late
	lateCosts = 8       // answers in time that make up for one that was late
)

// runs decides whether the thread of an island serves calls, or the calls run the island. A thread
// with a processor of its own answers soonest, and serves many calls at once. On a busy machine the
// thread waits for a processor, and takes it from its callers. Calls then run the island, and ring
// the thread now and then: the more rarely, the less it answered. No call waits for the thread until
// some calls found it at work.
type runs struct {
	_     [64]byte
	alone atomic.Bool   // calls run the island and do not wait for the thread; never without a Runner
	every atomic.Uint32 // runs before the thread is rung again
	count atomic.Uint32 // of runs since the last
	met   atomic.Uint32 // times since then that calls found the thread at work
	late  atomic.Uint32 // times that the thread did not answer, by lateCosts, less what it did

	measured atomic.Int32 // calls whose layers somebody wants: the times of their records count
	_        [64]byte
}

// chance counts a run of the island and reports whether the thread is to be rung.
func (r *runs) chance() bool {
	if r.count.Add(1) < max(r.every.Load(), runsLeast) {
		return false
	}
	r.count.Store(0)
	r.met.Store(0)
	return true
}

// meet takes note that a call found the thread at work.
func (r *runs) meet() {
	if r.alone.Load() && r.met.Add(1) >= meetings {
		r.late.Store(0)
		r.alone.Store(false)
	}
}

// missed takes note that the thread did not answer in time.
func (r *runs) missed() {
	if r.late.Add(lateCosts) < lateCosts*lateMost {
		return
	}
	r.late.Store(0)
	r.count.Store(0)
	r.met.Store(0)
	r.every.Store(min(2*max(r.every.Load(), runsLeast), runsMost))
	r.alone.Store(true)
}

// answered takes note that the thread answered flushAt calls in time. Earlier late answers still
// count: a thread that is late one time in eight is not worth waiting for.
func (r *runs) answered() {
	r.every.Store(runsLeast)
	r.late.Store(r.late.Load() - min(r.late.Load(), flushAt))
}

// run runs the island of the mailbox on this goroutine and takes what it answers,
// for everybody. False if somebody else runs it, who looks once more for what was put
// meanwhile, or if the port cannot. Must hold neither tx nor rx nor the lock of a
// transfer.
func (b *mailbox) run() bool {
	if b.runner == nil {
		return false
	}
	undrained, ran, thread := b.runner.Run(b.island, b.runs.measured.Load() > 0)
	if thread {
		b.runs.meet()
	}
	first := b.island * int(b.ep.Hello.Mailboxes/b.ep.Hello.Islands)
	for ; undrained != 0; undrained &= undrained - 1 {
		b.ep.mailboxes[first+bits.TrailingZeros64(undrained)].drain()
	}
	return ran
}
