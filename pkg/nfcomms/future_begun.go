package nfcomms

import (
	"context"
	"sync"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// begun is a transfer that began in the call that made its future. A caller that waits
// for the future ends it, if its answer is there or arrives soon; else the future's goroutine does.
type begun struct {
	place *place // of the future in its queue

	mu   sync.Mutex // one ends it at a time
	over bool       // it has ended; guarded by mu
	end  func(wait bool) (ended bool, n int, err error)
}

// see ends a future that nobody waits for.
func (f *Future) see() {
	f.begun.mu.Lock()
	defer f.begun.mu.Unlock()
	f.finish(true)
}

// finish ends what was begun; without wait only if that takes no more than a moment. Must hold
// begun.mu.
func (f *Future) finish(wait bool) {
	b := f.begun
	if b.over {
		return
	}
	if b.over, f.n, f.err = b.end(wait); b.over {
		close(b.place.over) // first: a call made after the end of this one begins at once
		f.end()
		f.cancel()
	}
}

// transferOf is what a transfer was asked for with.
type transferOf struct {
	data any
	size []int
}

// begin begins a transfer without waiting for it. It returns nil where that cannot be, or the transfer
// is one to measure: then the call makes it, or returns the error.
func (t *transferOf) begin(ctx context.Context, c *Channel, half abi.Direction, op string) *begun {
	if t == nil || c.tracesNext(callSendInd+callKind(half)) {
		return nil
	}
	b, ok := c.ch.(bridge.Beginner)
	if !ok {
		return nil
	}
	objectFor := readableObject
	if half == abi.D2H {
		objectFor = writableObject
	}
	o, err := objectFor(t.data, t.size)
	if err != nil || o.moves {
		return nil
	}
	begin, end := b.BeginSendInd, b.EndSendInd
	if half == abi.D2H {
		begin, end = b.BeginReceiveInd, b.EndReceiveInd
	}
	if !begin(ctx, o.mem) {
		return nil
	}
	return &begun{end: func(wait bool) (bool, int, error) {
		ended, err := end(ctx, o.mem, wait)
		n, err := done(len(o.mem), c.fail(op, err))
		return ended, n, err
	}}
}
