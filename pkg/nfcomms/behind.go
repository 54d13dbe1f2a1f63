package nfcomms

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lateTime is how long a call waits for an answer of the device after its context has ended.
const lateTime = 50 * time.Millisecond

// leftovers are the calls that continue after their callers returned.
type leftovers struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0 again; nil: it is 0
}

// enter counts one more.
func (l *leftovers) enter() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.n == 1 {
		l.none = make(chan struct{})
	}
}

// leave counts one less.
func (l *leftovers) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 {
		close(l.none)
		l.none = nil
	}
}

// wait waits until there are none, so that no call meets what is about to be taken back.
func (l *leftovers) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		none := l.none
		l.mu.Unlock()
		if none == nil {
			return nil
		}
		select {
		case <-none:
		case <-ctx.Done():
			return &WithdrawnError{Cause: ctx.Err()}
		}
	}
}

// behind makes a call of a back end, which may not end with its context while the device does not
// answer. Then the caller returns soon after the end of the context, and the call continues after its
// return. If it succeeds after all, undo takes back what it did. undo may be nil.
func behind[T any](ctx context.Context, l *leftovers, do func() (T, error), undo func(T)) (v T, err error) {
	if ctx.Err() != nil {
		return do() // it does nothing
	}
	if err := l.wait(ctx); err != nil || ctx.Done() == nil {
		if err == nil {
			return do()
		}
		return v, err
	}
	type result struct {
		of  T
		err error
	}
	got, ended := within(ctx, l, func() result {
		of, err := do()
		return result{of, err}
	}, func(r result) {
		if r.err == nil && undo != nil {
			undo(r.of)
		}
	})
	if !ended {
		return v, &WithdrawnError{Cause: ctx.Err()}
	}
	return got.of, withdrawn(ctx, got.err)
}

// withdrawn returns err, or a WithdrawnError in place of one that a context has which ended: back ends
// that talk to a process return what their socket made of it. A socket may learn before the context does
// that its time is over.
func withdrawn(ctx context.Context, err error) error {
	end := ctx.Err()
	if t, has := ctx.Deadline(); end == nil && has && !time.Now().Before(t) {
		end = context.DeadlineExceeded
	}
	ended := end != nil && (errors.Is(err, end) || errors.Is(err, os.ErrDeadlineExceeded))
	if ended && !errors.Is(err, ErrWithdrawn) {
		return &WithdrawnError{Cause: end}
	}
	return err
}

// within calls do, and returns its result, or false soon after the end of ctx: then do continues after
// the caller's return, and over gets the result. over may be nil.
func within[T any](ctx context.Context, l *leftovers, do func() T, over func(T)) (v T, ended bool) {
	var taken atomic.Bool // set by the side that takes the result
	done := make(chan T, 1)
	go func() {
		of := do()
		if taken.CompareAndSwap(false, true) {
			done <- of
			return
		}
		if over != nil {
			over(of)
		}
		l.leave()
	}()
	select {
	case v = <-done:
		return v, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(lateTime)
	defer timer.Stop()
	select {
	case v = <-done:
		return v, true
	case <-timer.C:
	}
	l.enter()
	if taken.CompareAndSwap(false, true) {
		return v, false
	}
	l.leave()
	return <-done, true
}
