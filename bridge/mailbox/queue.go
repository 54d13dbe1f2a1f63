package mailbox

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge/waiter"
)

// A turn's word: word 2 exactly while somebody queues, so that a newcomer
// never overtakes.
const (
	turnFree = iota
	turnHeld
	turnQueued
)

// turn is a lock that is handed on in order of arrival and that a context can
// stop waiting for. The zero value is free.
//
// Who is armed has a place in the same queue. When it comes, the turn is kept
// for that waiter: the device is asked whether the target waits, and the waiter
// gets its token when the device says so. The turn is then for the lease of that
// waiter, or goes on when it is disarmed.
type turn struct {
	word        atomic.Uint32
	ask         func() // asks the device; set where waiters may be armed
	mu          sync.Mutex
	first, last *ticket

	arms map[chan<- struct{}]*ticket
	kept *ticket // the waiter whose turn it is
	// asking: ask runs. The turn stays where it is until then.
	asking bool
	ready  bool // the device answered kept
}

// ticket is one place in a queue. wake has room for the one token it gets.
type ticket struct {
	wake       chan struct{}
	arm        chan<- struct{} // not nil: a waiter that is armed
	prev, next *ticket
	granted    bool
}

// tickets recycles places: a contended lock does not allocate.
var tickets = sync.Pool{New: func() any { return &ticket{wake: make(chan struct{}, 1)} }}

// free reports whether nobody has the turn now.
func (t *turn) free() bool { return t.word.Load() == turnFree }

// try takes the turn if it is free.
func (t *turn) try() bool { return t.word.CompareAndSwap(turnFree, turnHeld) }

// unlock hands the turn to the first in the queue.
func (t *turn) unlock() {
	if !t.word.CompareAndSwap(turnHeld, turnFree) {
		t.handOver()
	}
}

// lock waits for the turn. It returns the context's error if that ended before
// the turn came.
func (t *turn) lock(ctx context.Context) error {
	if t.try() {
		return nil
	}
	k := tickets.Get().(*ticket)
	if t.enqueue(k) {
		tickets.Put(k)
		return nil
	}
	select {
	case <-k.wake:
	case <-ctx.Done():
		if t.leave(k) {
			tickets.Put(k)
			return ctx.Err()
		}
		<-k.wake // granted meanwhile
	}
	k.granted = false
	tickets.Put(k)
	err := ctx.Err()
	if err != nil {
		t.unlock()
	}
	return err
}

// enqueue adds k to the queue, or takes the turn and returns true if it has
// become free.
func (t *turn) enqueue(k *ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.enqueueLocked(k)
}

// enqueueLocked is enqueue. Must hold mu.
func (t *turn) enqueueLocked(k *ticket) bool {
	for t.word.Load() != turnQueued {
		if t.try() {
			return true
		}
		t.word.CompareAndSwap(turnHeld, turnQueued)
	}
	k.prev = t.last
	if t.last != nil {
		t.last.next = k
	} else {
		t.first = k
	}
	t.last = k
	return false
}

// leave takes k out of the queue; false if it was granted the turn before.
func (t *turn) leave(k *ticket) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if k.granted {
		return false
	}
	t.removeLocked(k)
	return true
}

// handOver gives the turn to the first in the queue.
func (t *turn) handOver() {
	t.mu.Lock()
	k := t.nextLocked()
	t.mu.Unlock()
	t.grant(k)
}

// nextLocked makes the turn that of the first in the queue, if there is one.
// The caller grants it. Must hold mu.
func (t *turn) nextLocked() *ticket {
	k := t.first
	if k == nil { // the last one in the queue left
		t.word.Store(turnFree)
		return nil
	}
	t.removeLocked(k)
	if k.arm != nil {
		t.keepLocked(k)
	} else {
		k.granted = true
	}
	return k
}

// keepLocked keeps the turn for a waiter. Must hold mu.
func (t *turn) keepLocked(k *ticket) { t.kept, t.asking, t.ready = k, true, false }

// grant tells k that it has the turn, or asks the device for it.
func (t *turn) grant(k *ticket) {
	for ; k != nil; k = t.asked() {
		if k.arm == nil {
			k.wake <- struct{}{}
			return
		}
		t.ask()
	}
}

// asked ends the asking of grant. It returns the next to grant the turn to if
// the waiter left meanwhile.
func (t *turn) asked() *ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking = false
	if t.kept == nil {
		return t.nextLocked()
	}
	if t.ready { // it could not use the turn before
		waiter.Token(t.kept.arm)
	}
	return nil
}

// join gives a waiter its place in the queue; false if it has one.
func (t *turn) join(wake chan<- struct{}) bool {
	k := &ticket{arm: wake}
	t.mu.Lock()
	if t.arms[wake] != nil {
		t.mu.Unlock()
		return false
	}
	if t.arms == nil {
		t.arms = make(map[chan<- struct{}]*ticket)
	}
	t.arms[wake] = k
	if !t.enqueueLocked(k) {
		t.mu.Unlock()
		return true
	}
	t.keepLocked(k)
	t.mu.Unlock()
	t.grant(k)
	return true
}

// part takes a waiter out of the queue, or its turn from it; false if it has no
// place.
func (t *turn) part(wake chan<- struct{}) bool {
	t.mu.Lock()
	k := t.arms[wake]
	if k == nil {
		t.mu.Unlock()
		return false
	}
	next := t.partLocked(k)
	t.mu.Unlock()
	t.grant(next)
	return true
}

// partLocked is part; the caller grants the turn to the ticket that it returns.
// Must hold mu.
func (t *turn) partLocked(k *ticket) *ticket {
	delete(t.arms, k.arm)
	switch {
	case t.kept != k:
		t.removeLocked(k)
		return nil
	case t.asking: // who asks hands it on
		t.kept = nil
		return nil
	default:
		t.kept = nil
		return t.nextLocked()
	}
}

// partAll gives every waiter its token and takes it out of the queue. It
// returns how many there were.
func (t *turn) partAll() (n int) {
	t.mu.Lock()
	var next *ticket
	for wake, k := range t.arms {
		waiter.Token(wake)
		if k != t.kept {
			t.removeLocked(k)
			delete(t.arms, wake)
			n++
		}
	}
	if t.kept != nil {
		next = t.partLocked(t.kept)
		n++
	}
	t.mu.Unlock()
	t.grant(next)
	return n
}

// signal gives its token to the waiter whose turn it is: the target waits.
func (t *turn) signal() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		return
	}
	t.ready = true
	if !t.asking {
		waiter.Token(t.kept.arm)
	}
}

// unanswered reports whether the turn is a waiter's whose target is not known to
// wait.
func (t *turn) unanswered(wake chan<- struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept != nil && t.kept.arm == wake && !t.ready
}

// lease takes the turn that is kept for a waiter whose target waits; false if
// it is not. The waiter has no place any more.
func (t *turn) lease(wake chan<- struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil || t.kept.arm != wake || t.asking || !t.ready {
		return false
	}
	delete(t.arms, t.kept.arm)
	t.kept = nil
	return true
}

// removeLocked unlinks k. The holder keeps the turn. Must hold mu.
func (t *turn) removeLocked(k *ticket) {
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		t.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		t.last = k.prev
	}
	k.prev, k.next = nil, nil
	if t.first == nil {
		t.word.Store(turnHeld)
	}
}
