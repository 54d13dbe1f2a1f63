package nfcomms

import (
	"context"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Future is a call that runs without its caller; [Case.Start] makes one. The buffer given to
// the call belongs to it until Done is closed. Its methods are safe for
// concurrent use.
//
// Futures of one half of a channel start in the order of the calls that made
// them, each when the one before has ended. Where none is before, and the back end
// can begin a transfer without waiting for it, it has begun when its call returns.
// They are goroutines that wait, so a pending one costs memory and no thread.
type Future struct {
	done   chan struct{}
	begun  *begun // nil: its goroutine makes the call
	cancel context.CancelFunc
	fail   func(op string, err error) error
	owner  atomic.Pointer[Completions] // nil: none; &ended: none, and it has ended
	n      int
	err    error
}

// end hands the future out, once n and err are there.
func (f *Future) end() {
	close(f.done)
	if !f.owner.CompareAndSwap(nil, &ended) {
		f.owner.Load().end(f)
	}
}

// Done is closed when the call has ended and the buffer is the caller's again.
func (f *Future) Done() <-chan struct{} { return f.done }

// Wait waits for the call and returns its bytes and error: of a send the bytes
// sent, of a receive the bytes received. If ctx ends first it returns ctx's
// error and the call continues.
func (f *Future) Wait(ctx context.Context) (int, error) {
	if b := f.begun; b != nil && b.mu.TryLock() {
		f.finish(false)
		b.mu.Unlock()
	}
	select {
	case <-f.done:
		return f.n, f.err
	default:
	}
	select {
	case <-f.done:
		return f.n, f.err
	case <-ctx.Done():
		return 0, f.fail(opWait, ctx.Err())
	}
}

// Cancel asks the call to end and returns at once. The outcome stays exact:
// Wait reports whether the message was delivered or withdrawn.
func (f *Future) Cancel() { f.cancel() }

// done is the result of a call that moves n bytes or none.
func done(n int, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	return n, nil
}

// startAlone is async of a call that no channel orders.
func startAlone(ctx context.Context, call func(context.Context) (int, error)) *Future {
	ctx, cancel := context.WithCancel(ctx)
	f := &Future{done: make(chan struct{}), cancel: cancel, fail: func(op string, err error) error { return wrap(op, "", 0, err) }}
	if ctx.Err() != nil { // call might succeed at once
		call = func(context.Context) (int, error) { return 0, f.fail(opSelect, &WithdrawnError{Cause: ctx.Err()}) }
	}
	go func() {
		defer cancel()
		f.n, f.err = call(ctx)
		f.end()
	}()
	return f
}

// queue orders the futures of one half of a channel.
type queue struct {
	last atomic.Pointer[place]
}

// place is the place of a future in the queue. It ends when that future and all
// before it have ended.
type place struct {
	over chan struct{}
}

// async starts call once the futures before it on that half have ended. If there is none, and t can
// begin, it has begun when async returns.
func (c *Channel) async(ctx context.Context, half abi.Direction, op string, t *transferOf,
	call func(context.Context) (int, error)) *Future {
	ctx, cancel := context.WithCancel(ctx)
	f := &Future{done: make(chan struct{}), cancel: cancel, fail: c.fail}
	mine := &place{over: make(chan struct{})}
	before := c.queue[half].last.Swap(mine)
	if before.ended() {
		f.begun = t.begin(ctx, c, half, op)
	}
	if f.begun != nil {
		f.begun.place = mine
		go f.see()
		return f
	}
	go func() {
		defer cancel()
		if before.wait(ctx) {
			f.n, f.err = call(ctx)
			close(mine.over) // first: a call made after the end of this one begins at once
			f.end()
			return
		}
		defer close(mine.over)
		f.err = c.fail(op, &WithdrawnError{Cause: ctx.Err()})
		f.end()
		// The next future still waits for those before this one.
		<-before.over
	}()
	return f
}

// ended reports whether the place has ended.
func (p *place) ended() bool {
	if p == nil {
		return true
	}
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// wait reports whether the place ended before ctx did.
func (p *place) wait(ctx context.Context) bool {
	if p == nil {
		return true
	}
	select {
	case <-p.over:
		return true
	case <-ctx.Done():
		return false
	}
}
