package nfcomms

import (
	"context"
	"io"
	"iter"
	"sync"
)

// Completions collects futures and hands them out as they end: a completion queue. The zero value is ready to use. Its methods are safe for concurrent use.
//
//	var q nfcomms.Completions
//	for _, part := range parts {
//		q.Add(nfcomms.SendIndCase(ch, part).Start(ctx))
//	}
//	for f, err := range q.Each(ctx) {
//		…
//	}
//
// It holds what was added and not handed out; the loop over Each may add more.
type Completions struct {
	mu      sync.Mutex
	pending map[*Future]struct{}
	ended   []*Future     // in order, not handed out
	changed chan struct{} // closed when something ends; nil if nobody waits
}

// ended marks a future that has ended before it was added anywhere.
var ended Completions

// Add puts a future into the queue. ErrBusy if it is in one already, in this or
// another.
func (c *Completions) Add(f *Future) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case f.owner.CompareAndSwap(nil, c):
		if c.pending == nil {
			c.pending = make(map[*Future]struct{})
		}
		c.pending[f] = struct{}{}
	case f.owner.CompareAndSwap(&ended, c):
		c.ended = append(c.ended, f)
		c.wake()
	default:
		return f.fail(opWait, ErrBusy)
	}
	return nil
}

// end takes note that a future of the queue has ended.
func (c *Completions) end(f *Future) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, f)
	c.ended = append(c.ended, f)
	c.wake()
}

// wake lets all that wait look again. Must hold mu.
func (c *Completions) wake() {
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// take returns the future that ended first of those not handed out, and waits for one if there is
// none. io.EOF if the queue is empty.
func (c *Completions) take(ctx context.Context) (*Future, error) {
	for {
		f, changed, err := c.next()
		if f != nil || err != nil {
			return f, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, wrap(opWait, "", 0, context.Cause(ctx))
		}
	}
}

// next returns what has ended, or what to wait for.
func (c *Completions) next() (f *Future, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.ended) > 0:
		f, c.ended[0] = c.ended[0], nil
		c.ended = c.ended[1:]
		return f, nil, nil
	case len(c.pending) == 0:
		return nil, nil, io.EOF
	case c.changed == nil:
		c.changed = make(chan struct{})
	}
	return nil, c.changed, nil
}

// Each yields the futures as they end, each with the error of its call, until the
// queue is empty. If ctx ends first it yields an *OpError with ctx's error and no future; a loop
// that breaks off leaves the rest in the queue.
func (c *Completions) Each(ctx context.Context) iter.Seq2[*Future, error] {
	return func(yield func(*Future, error) bool) {
		for {
			f, err := c.take(ctx)
			switch {
			case err == io.EOF:
				return
			case err != nil:
				yield(nil, err)
				return
			case !yield(f, f.err):
				return
			}
		}
	}
}

// Wait takes all futures out as they end, and returns an *OpError with the errors of
// their calls, and with ctx's if it ends first.
func (c *Completions) Wait(ctx context.Context) error {
	var failed []error
	for _, err := range c.Each(ctx) {
		failed = append(failed, err)
	}
	return join(opWait, "", failed...)
}
