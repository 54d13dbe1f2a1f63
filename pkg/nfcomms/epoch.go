package nfcomms

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Why an epoch ends.
var (
	errDeviceClosed = fmt.Errorf("device %w", ErrClosed)
	errReset        = fmt.Errorf("%w: reset", ErrDeviceLost)
)

// epoch is the time between two resets. Close and Reset wait for calls, so they
// first end the adapters that hold a message for somebody else.
//
// It ends before the back end leaves its own epoch, and the next one begins after
// that. So a call that [epoch.call] makes never reaches a later epoch.
type epoch struct {
	ctx context.Context
	end context.CancelCauseFunc
	// number counts the resets that succeeded: after one that failed the next
	// epoch has the same number.
	number uint64
	// over is closed when the next epoch has begun.
	over chan struct{}
}

func newEpoch(number uint64) *epoch {
	ctx, end := context.WithCancelCause(context.Background())
	return &epoch{ctx: ctx, end: end, number: number, over: make(chan struct{})}
}

// begin begins the next epoch. The caller must hold the token of [Device.take].
func (d *Device) begin(next *epoch) { close(d.epoch.Swap(next).over) }

// call makes a call with a context that ends with ctx and with the epoch. If the
// end of the epoch ended the call, its error is the reason for that end.
func (e *epoch) call(ctx context.Context, f func(context.Context) error) error {
	both, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(e.ctx, end)()
	if e.ctx.Err() != nil {
		end() // the function above may not have run yet
	}
	err := f(both)
	if err != nil && ctx.Err() == nil && e.ctx.Err() != nil {
		return context.Cause(e.ctx)
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

// keep forgets the channels of other epochs.
func (s *channels) keep(e *epoch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.open, func(c *Channel, _ struct{}) bool { return c.epoch != e })
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
