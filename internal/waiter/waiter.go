package waiter

import "container/list"

// Queue holds waiters in order of arrival. A waiter is the channel that its
// token goes to. The zero value is empty. Not safe for concurrent use.
type Queue struct {
	order list.List
	place map[chan<- struct{}]*list.Element
}

// Len returns the number of waiters.
func (q *Queue) Len() int { return q.order.Len() }

// Add puts a waiter at the end of the queue; false if it is in it already.
func (q *Queue) Add(wake chan<- struct{}) bool {
	if q.place[wake] != nil {
		return false
	}
	if q.place == nil {
		q.place = make(map[chan<- struct{}]*list.Element)
	}
	q.place[wake] = q.order.PushBack(wake)
	return true
}

// Remove takes a waiter out of the queue; false if it is not in it.
func (q *Queue) Remove(wake chan<- struct{}) bool {
	at := q.place[wake]
	if at == nil {
		return false
	}
	q.order.Remove(at)
	delete(q.place, wake)
	return true
}

// Wake gives the first waiter its token, takes it out of the queue and returns
// it; nil if there is none.
func (q *Queue) Wake() chan<- struct{} {
	at := q.order.Front()
	if at == nil {
		return nil
	}
	wake := at.Value.(chan<- struct{})
	q.Remove(wake)
	Token(wake)
	return wake
}

// Token leaves a token, unless there is one already: one is enough to look
// again.
func Token(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
