package pool

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// queue has the processes that are free, or the callers that wait for one, in order of arrival.
type queue struct {
	mu   sync.Mutex
	free []*lane
	busy int
	wait list.List // of chan *lane, each with room for one
}

// take waits for a process. The queue has always room for a caller that was in it before.
func (p *Pool) take(ctx context.Context, again bool) (*lane, error) {
	if ctx.Err() != nil {
		return nil, &nfcomms.WithdrawnError{Cause: ctx.Err()}
	}
	l, place, err := p.queue.enter(p.o.Queue, again)
	switch {
	case err != nil:
		p.refused.Add(1)
		return nil, err
	case l != nil:
		p.waitTime.add(0)
		return l, nil
	}
	began, mine := time.Now(), place.Value.(chan *lane)
	select {
	case l = <-mine:
		p.waitTime.add(time.Since(began))
		return l, nil
	case <-ctx.Done():
		err = &nfcomms.WithdrawnError{Cause: ctx.Err()}
	case <-p.ended:
		err = p.err
	}
	if p.queue.leave(place) {
		return nil, err
	}
	p.put(<-mine, whole) // it arrived at the same moment
	return nil, err
}

// enter returns a process that is free, or else a place in the queue.
func (q *queue) enter(places int, again bool) (*lane, *list.Element, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.free); n > 0 {
		l := q.free[n-1]
		q.free = q.free[:n-1]
		q.busy++
		return l, nil, nil
	}
	if n := q.wait.Len(); n >= places && !again {
		return nil, nil, fmt.Errorf("%d callers wait: %w", n, nfcomms.ErrBusy)
	}
	return nil, q.wait.PushBack(make(chan *lane, 1)), nil
}

// leave gives up a place; false if the caller has a process by now.
func (q *queue) leave(place *list.Element) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.wait.Remove(place)
	return len(place.Value.(chan *lane)) == 0
}

// put takes a process back from a caller.
func (p *Pool) put(l *lane, after state) {
	q := &p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.busy--
	if after == whole && !l.retired {
		l.worked = true
		q.offerLocked(l)
		return
	}
	l.back <- after
}

// offer gives a process to the caller that has waited longest, or makes it free.
func (q *queue) offer(l *lane) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.offerLocked(l)
}

// offerLocked is offer. Must hold mu.
func (q *queue) offerLocked(l *lane) {
	if first := q.wait.Front(); first != nil {
		q.wait.Remove(first).(chan *lane) <- l
		q.busy++
		return
	}
	q.free = append(q.free, l)
}

// retire takes a process out of use, and waits for the caller that has it.
func (q *queue) retire(l *lane) {
	q.mu.Lock()
	i := slices.Index(q.free, l)
	if i >= 0 {
		q.free = slices.Delete(q.free, i, i+1)
	}
	l.retired = true
	q.mu.Unlock()
	if i < 0 {
		<-l.back
	}
}

// now returns how many callers wait, and how many have a process.
func (q *queue) now() (waiting, busy int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.wait.Len(), q.busy
}
