package mailbox

import (
	"math/bits"
	"sync/atomic"
)

const (
	runsLeast = 64      // runs of calls before they may give way to the thread
	runsMost  = 1 << 16 // … the more, the more often it was late
	runsShare = 8       // one of so many runs must have met another call's
	flushAt   = 16      // answers of the thread that a half counts for itself
	trialAt   = 1 << 13 // answers of the thread before calls run the island again
	lateMost  = 32      // times in a row that the thread may be late: it wakes up, perhaps
)

// runs decides who serves the calls of an island: they themselves, or its thread.
// A single call is served fastest by itself: nothing moves between processors. Of
// several at once only one can run the island, and a thread with a processor of its
// own serves them all; but on a busy machine the thread waits for a processor, and
// takes it from those it serves. So calls run the island until they meet one another
// there, then wait for the thread, and go back when it is late.
type runs struct {
	_        [64]byte
	threaded atomic.Bool   // calls wait for the thread
	every    atomic.Uint32 // runs before the next chance of the thread
	count    atomic.Uint32 // of runs since the last
	met      atomic.Uint32 // … that found another call at it
	answers  atomic.Uint32 // of the thread since it serves
	late     atomic.Uint32 // times that it did not answer, since it last did
	_        [64]byte
}

// note takes note of a run, and whether it met another call's. It reports whether
// calls wait for the thread from now on.
func (r *runs) note(met bool) (threaded bool) {
	if met {
		r.met.Add(1)
	}
	every := max(r.every.Load(), runsLeast)
	if r.count.Add(1) < every {
		return false
	}
	r.count.Store(0)
	if r.met.Swap(0) < every/runsShare {
		return false
	}
	r.late.Store(0)
	r.threaded.Store(true)
	return true
}

// missed takes note that the thread did not answer in time.
func (r *runs) missed() {
	if r.late.Add(1) < lateMost {
		return
	}
	r.late.Store(0)
	r.count.Store(0)
	r.met.Store(0)
	r.answers.Store(0)
	r.every.Store(min(2*max(r.every.Load(), runsLeast), runsMost))
	r.threaded.Store(false)
}

// answered takes note that the thread answered so many calls in time.
func (r *runs) answered(calls uint32) {
	r.every.Store(runsLeast)
	r.late.Store(0)
	if r.answers.Add(calls) >= trialAt {
		r.answers.Store(0)
		r.threaded.Store(false)
	}
}

// run runs the island of the mailbox on this goroutine and takes what it answers,
// for everybody. ran is false if somebody else runs it, who looks once more for what
// was put meanwhile, or if the port cannot; met tells that it is another call. Must
// hold neither tx nor rx nor the lock of a transfer.
func (b *mailbox) run() (ran, met bool) {
	if b.runner == nil {
		return false, false
	}
	unheard, ran, met := b.runner.Run(b.island)
	first := b.island * int(b.ep.Hello.Mailboxes/b.ep.Hello.Islands)
	for ; unheard != 0; unheard &= unheard - 1 {
		b.ep.mailboxes[first+bits.TrailingZeros64(unheard)].drain()
	}
	return ran, met
}
