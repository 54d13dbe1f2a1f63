package mailbox

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// queued returns how many wait for the lock.
func (q *queue) queued() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for k := q.first; k != nil; k = k.next {
		n++
	}
	return n
}

func TestQueueFreeAndHeld(t *testing.T) {
	var u queue
	require.True(t, u.try())
	require.False(t, u.try())
	u.unlock()
	require.NoError(t, u.lock(background))
	u.unlock()
	require.True(t, u.try())
}

func TestQueueIsHandedOnInOrderOfArrival(t *testing.T) {
	f := &fake{t: t}
	var u queue
	var order []int
	var wg sync.WaitGroup
	require.True(t, u.try())
	const n = 50
	for i := range n {
		wg.Go(func() {
			if u.lock(background) == nil {
				order = append(order, i) // the lock guards it
				u.unlock()
			}
		})
		f.until("in the queue", func() bool { return u.queued() == i+1 })
	}
	require.False(t, u.try(), "nobody overtakes the queue")
	u.unlock()
	wg.Wait()
	require.Len(t, order, n)
	require.IsIncreasing(t, order)
	require.True(t, u.try(), "free after the last")
}

func TestQueueQueueCanBeLeft(t *testing.T) {
	f := &fake{t: t}
	var u queue
	require.True(t, u.try())
	ctx, cancel := context.WithCancel(background)
	first := f.async(func() error { return u.lock(ctx) })
	f.until("in the queue", func() bool { return u.queued() == 1 })
	second := f.async(func() error { return u.lock(background) })
	f.until("in the queue", func() bool { return u.queued() == 2 })
	cancel()
	require.ErrorIs(t, first(), context.Canceled)
	require.Equal(t, 1, u.queued())
	u.unlock()
	require.NoError(t, second())
	u.unlock()
	require.True(t, u.try())
}

func TestQueueLastInTheQueueLeaves(t *testing.T) {
	f := &fake{t: t}
	var u queue
	require.True(t, u.try())
	ctx, cancel := context.WithCancel(background)
	wait := f.async(func() error { return u.lock(ctx) })
	f.until("in the queue", func() bool { return u.queued() == 1 })
	cancel()
	require.ErrorIs(t, wait(), context.Canceled)
	u.unlock()
	require.True(t, u.try())
}

// A cancelled context races the grant: the lock is never lost.
func TestQueueCancelRacesGrant(t *testing.T) {
	var u queue
	var guarded, served int
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 300 {
				ctx, cancel := context.WithCancel(background)
				go cancel()
				if u.lock(ctx) == nil {
					guarded++
					served++
					guarded--
					u.unlock()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	require.Zero(t, guarded)
	require.Zero(t, u.queued())
	require.True(t, u.try())
}

func TestQueueDoesNotAllocate(t *testing.T) {
	var u queue
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if u.lock(background) == nil {
			u.unlock()
		}
	}))
}
