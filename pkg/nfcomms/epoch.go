package nfcomms

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Why a life ends.
var (
	errDeviceClosed = fmt.Errorf("device %w", ErrClosed)
	errReset        = fmt.Errorf("%w: reset", ErrDeviceLost)
)

// life is the time between two resets: Close and Reset wait for calls, so they
// first end the adapters that hold a message for somebody else.
//
// It ends before the back end leaves its epoch, and the next one begins after
// that. So what call makes in a life never reaches a later epoch.
type life struct {
	ctx context.Context
	end context.CancelCauseFunc
	// epoch counts the resets that succeeded: one that failed begins another
	// life of the same epoch.
	epoch uint64
	// over is closed when the next life has begun.
	over chan struct{}
}

func newLife(epoch uint64) *life {
	ctx, end := context.WithCancelCause(context.Background())
	return &life{ctx: ctx, end: end, epoch: epoch, over: make(chan struct{})}
}

// begin begins the next life. Must have the device's turn.
func (d *Device) begin(next *life) { close(d.life.Swap(next).over) }

// call makes a call with a context that ends with ctx and with the life. One that
// the end of the life ended fails for the reason of that.
func (l *life) call(ctx context.Context, f func(context.Context) error) error {
	both, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(l.ctx, end)()
	if l.ctx.Err() != nil {
		end() // the function above may not have run yet
	}
	err := f(both)
	if err != nil && ctx.Err() == nil && l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	return err
}

// channels are those that are open: the zero value has none.
type channels struct {
	mu   sync.Mutex // no message takes it
	open map[*Channel]struct{}
	over bool // the device is closed: none is open any more
}

// add notes an open channel.
func (s *channels) add(c *Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[*Channel]struct{})
	}
	if !s.over {
		s.open[c] = struct{}{}
	}
}

// remove forgets a channel.
func (s *channels) remove(c *Channel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// keep forgets the channels of other lives.
func (s *channels) keep(l *life) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.open, func(c *Channel, _ struct{}) bool { return c.life != l })
}

// end forgets all channels, and those to come.
func (s *channels) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.over = nil, true
}

// list returns the open channels.
func (s *channels) list() []*Channel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.open))
}
