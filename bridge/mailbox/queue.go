package mailbox

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/internal/waiter"
)

// A queue's word: queueWaited exactly while somebody waits, so that a newcomer
// never overtakes.
const (
	queueFree = iota
	queueHeld
	queueWaited
)

// queue is a lock that is handed on in order of arrival and that a context can
// stop waiting for. The zero value is free.
//
// An armed waiter has a place in the same queue. When it is first, the lock is kept for that waiter:
// the device is asked whether the target waits, and the waiter gets its token when the device
// answers READY. The lock is then for the lease of that waiter, or continues when it is disarmed.
type queue struct {
	word        atomic.Uint32
	ask         func() // asks the device; set where waiters may be armed
	mu          sync.Mutex
	first, last *ticket

	arms map[chan<- struct{}]*ticket
	kept *ticket // the waiter that the lock is kept for
	// asking: ask runs. The lock stays where it is until then.
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

// free reports whether nobody has the lock now.
func (q *queue) free() bool { return q.word.Load() == queueFree }

// try takes the lock if it is free.
func (q *queue) try() bool { return q.word.CompareAndSwap(queueFree, queueHeld) }

// unlock hands the lock to the first in the queue.
func (q *queue) unlock() {
	if !q.word.CompareAndSwap(queueHeld, queueFree) {
		q.handOver()
	}
}

// lock waits for the lock. It returns the context's error if that ended before
// it had the lock.
func (q *queue) lock(ctx context.Context) error {
	if q.try() {
		return nil
	}
	k := tickets.Get().(*ticket)
	if q.enqueue(k) {
		tickets.Put(k)
		return nil
	}
	select {
	case <-k.wake:
	case <-ctx.Done():
		if q.leave(k) {
			tickets.Put(k)
			return ctx.Err()
		}
		<-k.wake // granted meanwhile
	}
	k.granted = false
	tickets.Put(k)
	err := ctx.Err()
	if err != nil {
		q.unlock()
	}
	return err
}

// enqueue adds k to the queue, or takes the lock and returns true if it has
// become free.
func (q *queue) enqueue(k *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.enqueueLocked(k)
}

// enqueueLocked is enqueue. Must hold mu.
func (q *queue) enqueueLocked(k *ticket) bool {
	for q.word.Load() != queueWaited {
		if q.try() {
			return true
		}
		q.word.CompareAndSwap(queueHeld, queueWaited)
	}
	k.prev = q.last
	if q.last != nil {
		q.last.next = k
	} else {
		q.first = k
	}
	q.last = k
	return false
}

// leave takes k out of the queue; false if it was granted the lock before.
func (q *queue) leave(k *ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k.granted {
		return false
	}
	q.removeLocked(k)
	return true
}

// handOver gives the lock to the first in the queue.
func (q *queue) handOver() {
	q.mu.Lock()
	k := q.nextLocked()
	q.mu.Unlock()
	q.grant(k)
}

// nextLocked makes the lock that of the first in the queue, if there is one.
// The caller grants it. Must hold mu.
func (q *queue) nextLocked() *ticket {
	k := q.first
	if k == nil { // the last one in the queue left
		q.word.Store(queueFree)
		return nil
	}
	q.removeLocked(k)
	if k.arm != nil {
		q.keepLocked(k)
	} else {
		k.granted = true
	}
	return k
}

// keepLocked keeps the lock for a waiter. Must hold mu.
func (q *queue) keepLocked(k *ticket) { q.kept, q.asking, q.ready = k, true, false }

// grant wakes k, which has the lock, or asks the device whether its target waits.
func (q *queue) grant(k *ticket) {
	for ; k != nil; k = q.asked() {
		if k.arm == nil {
			k.wake <- struct{}{}
			return
		}
		q.ask()
	}
}

// asked ends the asking of grant. It returns the next to grant the lock to if
// the waiter left meanwhile.
func (q *queue) asked() *ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking = false
	if q.kept == nil {
		return q.nextLocked()
	}
	if q.ready { // it could not use the lock before
		waiter.Token(q.kept.arm)
	}
	return nil
}

// join gives a waiter its place in the queue; false if it has one.
func (q *queue) join(wake chan<- struct{}) bool {
	k := &ticket{arm: wake}
	q.mu.Lock()
	if q.arms[wake] != nil {
		q.mu.Unlock()
		return false
	}
	if q.arms == nil {
		q.arms = make(map[chan<- struct{}]*ticket)
	}
	q.arms[wake] = k
	if !q.enqueueLocked(k) {
		q.mu.Unlock()
		return true
	}
	q.keepLocked(k)
	q.mu.Unlock()
	q.grant(k)
	return true
}

// part takes a waiter out of the queue, or the lock from it; false if it has no
// place.
func (q *queue) part(wake chan<- struct{}) bool {
	q.mu.Lock()
	k := q.arms[wake]
	if k == nil {
		q.mu.Unlock()
		return false
	}
	next := q.partLocked(k)
	q.mu.Unlock()
	q.grant(next)
	return true
}

// partLocked is part; the caller grants the lock to the ticket that it returns.
// Must hold mu.
func (q *queue) partLocked(k *ticket) *ticket {
	delete(q.arms, k.arm)
	switch {
	case q.kept != k:
		q.removeLocked(k)
		return nil
	case q.asking: // who asks hands it on
		q.kept = nil
		return nil
	default:
		q.kept = nil
		return q.nextLocked()
	}
}

// partAll gives every waiter its token and takes it out of the queue. It
// returns how many there were.
func (q *queue) partAll() (n int) {
	q.mu.Lock()
	var next *ticket
	for wake, k := range q.arms {
		waiter.Token(wake)
		if k != q.kept {
			q.removeLocked(k)
			delete(q.arms, wake)
			n++
		}
	}
	if q.kept != nil {
		next = q.partLocked(q.kept)
		n++
	}
	q.mu.Unlock()
	q.grant(next)
	return n
}

// signal gives its token to the waiter that the lock is kept for: the target waits.
func (q *queue) signal() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kept == nil {
		return
	}
	q.ready = true
	if !q.asking {
		waiter.Token(q.kept.arm)
	}
}

// unanswered reports whether the lock is kept for a waiter whose target is not known to
// wait.
func (q *queue) unanswered(wake chan<- struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.kept != nil && q.kept.arm == wake && !q.ready
}

// lease takes the lock that is kept for a waiter whose target waits; false if
// it is not. The waiter has no place any more.
func (q *queue) lease(wake chan<- struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.kept == nil || q.kept.arm != wake || q.asking || !q.ready {
		return false
	}
	delete(q.arms, q.kept.arm)
	q.kept = nil
	return true
}

// removeLocked unlinks k. The holder keeps the lock. Must hold mu.
func (q *queue) removeLocked(k *ticket) {
	if k.prev != nil {
		k.prev.next = k.next
	} else {
		q.first = k.next
	}
	if k.next != nil {
		k.next.prev = k.prev
	} else {
		q.last = k.prev
	}
	k.prev, k.next = nil, nil
	if q.first == nil {
		q.word.Store(queueHeld)
	}
}
