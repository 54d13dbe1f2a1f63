package mailbox

import (
	"context"
	"sync"
	"sync/atomic"
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
type turn struct {
	word        atomic.Uint32
	mu          sync.Mutex
	first, last *ticket
}

// ticket is one place in a queue. wake has room for the one token it gets.
type ticket struct {
	wake       chan struct{}
	prev, next *ticket
	granted    bool
}

// tickets recycles places: a contended lock does not allocate.
var tickets = sync.Pool{New: func() any { return &ticket{wake: make(chan struct{}, 1)} }}

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
	k := t.first
	if k == nil { // the last one in the queue left
		t.word.Store(turnFree)
		t.mu.Unlock()
		return
	}
	t.removeLocked(k)
	k.granted = true
	t.mu.Unlock()
	k.wake <- struct{}{}
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
