package nfcomms

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nfcomms/nfcomms/bridge"
)

var errDeviceClosed = fmt.Errorf("device %w", ErrClosed)

// epoch is the time between two resets of the device, by any caller.
type epoch struct {
	// number is that of Info. Calls carry it, see bridge.InEpoch: what one step of a
	// method finds is then never given to a step in a later epoch.
	number uint32
	// ctx ends before a Reset or Close of this Device begins, and with it the contexts of a
	// Supervisor's functions.
	ctx context.Context
	end context.CancelCauseFunc
}

func newEpoch(number uint32) *epoch {
	ctx, end := context.WithCancelCause(context.Background())
	return &epoch{number: number, ctx: ctx, end: end}
}

// in returns the context of a call that takes effect in this epoch or not at all.
func (e *epoch) in(ctx context.Context) context.Context { return bridge.InEpoch(ctx, e.number) }

// epochs is the present epoch and its open channels.
type epochs struct {
	mu      sync.Mutex // guards what follows; no message takes it
	present *epoch
	open    map[*Channel]struct{}
	// listeners are those that are not closed, where the device is shared.
	listeners map[*Listener]struct{}
	closed    bool
	reset     context.CancelFunc // ends the last reset
}

// now returns the present epoch of the device. Another file of the same card, or the fabric
// that a node belongs to, may have reset the device.
func (d *Device) now() *epoch {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.nowLocked()
}

// nowLocked is now. Must hold the mutex of the epochs.
func (d *Device) nowLocked() *epoch {
	s := &d.epochs
	if n := d.dev.Info().Epoch; !s.closed && n != s.present.number {
		s.present.end(bridge.ErrReset)
		s.present = newEpoch(n)
		s.open = make(map[*Channel]struct{})
	}
	return s.present
}

// begin begins the next epoch after a reset; after one that failed the epoch of the back end
// may be the same, and then its channels are still listed.
func (d *Device) begin() {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := d.nowLocked(); e.ctx.Err() != nil && !s.closed {
		s.present = newEpoch(e.number)
	}
}

// resetting has cancel called when the device closes during a reset.
func (d *Device) resetting(cancel context.CancelFunc) {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset = cancel
	if s.closed {
		cancel()
	}
}

// closing ends the last epoch, and a reset under way.
func (d *Device) closing() {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.reset != nil {
		s.reset()
	}
	s.present.end(errDeviceClosed)
}

// entered lists a channel of an epoch; of one that is over it is not open any more.
// One of a shared device that opened while the device closed is closed.
func (d *Device) entered(c *Channel) {
	s := &d.epochs
	s.mu.Lock()
	closed := s.closed
	if !closed && d.nowLocked().number == c.epoch {
		s.open[c] = struct{}{}
	}
	s.mu.Unlock()
	if closed && d.shared {
		_ = c.Close()
	}
}

// listening lists a listener of a shared device; one that began while the device closed is closed.
func (d *Device) listening(l *Listener) {
	if !d.shared {
		return
	}
	s := &d.epochs
	s.mu.Lock()
	closed := s.closed
	if s.listeners == nil {
		s.listeners = make(map[*Listener]struct{})
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	if closed {
		_ = l.Close()
	}
}

// unlisted forgets a listener.
func (d *Device) unlisted(l *Listener) {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// closeAll closes the channels and the listeners of a shared device, which last as long as the device
// of the back end otherwise.
func (d *Device) closeAll() {
	s := &d.epochs
	s.mu.Lock()
	s.closed = true // no more are listed
	channels, listeners := slices.Collect(maps.Keys(s.open)), slices.Collect(maps.Keys(s.listeners))
	s.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range channels {
		_ = c.Close()
	}
}

// left forgets a channel.
func (d *Device) left(c *Channel) {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// channels is admin.Channels.
func (d *Device) channels() []*Channel {
	s := &d.epochs
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	d.nowLocked()
	return slices.Collect(maps.Keys(s.open))
}
