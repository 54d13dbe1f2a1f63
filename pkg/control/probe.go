package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// resetTimeout bounds a reset, which continues without its caller: a device must
// not stay half reset because a client disconnected.
const resetTimeout = 30 * time.Second

// flight is a round trip to the firmware that several callers wait for.
type flight struct {
	done chan struct{}
	err  error
}

// probe makes a round trip to the firmware that begins after the call, and
// updates the state. Callers that arrive while one is under way share the next, so
// that however many ask, the device is asked one question at a time.
func (d *device) probe(ctx context.Context) error {
	d.mu.Lock()
	before := d.flight
	d.mu.Unlock()
	if before != nil {
		if err := before.wait(ctx); ctx.Err() != nil {
			return err
		}
	}
	f, err := d.join()
	if err != nil {
		return err
	}
	return f.wait(ctx)
}

// wait waits for the outcome, or for the end of ctx.
func (f *flight) wait(ctx context.Context) error {
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join returns the round trip under way, or begins one.
func (d *device) join() (*flight, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dev, err := d.useLocked()
	if err != nil || d.flight != nil {
		return d.flight, err
	}
	f, resets := &flight{done: make(chan struct{})}, d.resets
	if !d.s.background.spawn(func() { d.fly(f, dev, resets) }) {
		return nil, ErrShutdown
	}
	d.flight = f
	return f, nil
}

// fly is the round trip of a flight: a request to the firmware's control
// process, which needs no free channel.
func (d *device) fly(f *flight, dev *nfcomms.Device, resets int) {
	ctx, cancel := context.WithTimeout(d.ctx, d.s.opt.ProbeTimeout)
	defer cancel()
	h, err := ask(ctx, dev)
	if err == nil {
		d.ended(ctx)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flight = nil
	f.err = err
	defer close(f.done) // the result is reported before a waiter sees the end
	if d.resetting || d.resets != resets {
		return // it met the device before
	}
	if err == nil {
		d.diagnoseLocked(h.Diagnostic)
	}
	d.failure = err
	d.publishLocked()
}

// ask asks the firmware, which shows that it answers, and returns its health. If a reset ends the
// epoch that was asked, the next one is asked.
func ask(ctx context.Context, dev *nfcomms.Device) (nfcomms.Health, error) {
	for {
		epoch := dev.Info().Epoch
		_, err := admin.MemoryOf(ctx, dev, admin.CLS)
		var h nfcomms.Health
		if err == nil {
			h, err = dev.Health()
		}
		if err == nil || dev.Info().Epoch == epoch {
			return h, err
		}
	}
}

// diagnoseLocked takes a diagnostic word, and reports one that is not as the
// one before. A word that begins well is no news. Must hold mu.
func (d *device) diagnoseLocked(word abi.Diagnostic) {
	before := d.word
	d.word = word
	switch {
	case word == before, !unwell(word) && !unwell(before):
		return
	case unwell(word):
		d.s.event(d.id, happening{
			t: nfcommsv1.Event_TYPE_DIAGNOSTIC_CHANGED, severity: nfcommsv1.Event_SEVERITY_WARNING, resource: d.name(), message: wordText(word),
		})
	default:
		d.event(nfcommsv1.Event_TYPE_DIAGNOSTIC_CHANGED, d.name(), wordText(word), nil)
	}
}

// unwell reports whether a part in a word is not normal.
func unwell(word abi.Diagnostic) bool { return word.Valid() && word.Worst() != abi.Normal }

// triedOnce lets Open return.
func (d *device) triedOnce() {
	select {
	case <-d.tried:
	default:
		close(d.tried)
	}
}

// gone reports whether the device was closed.
func gone(err error) bool { return errors.Is(err, nfcomms.ErrClosed) }

// reset fences the device and starts it anew.
func (d *device) reset(ctx context.Context) error {
	d.mu.Lock()
	dev, err := d.useLocked()
	if err == nil && d.resetting {
		err = fmt.Errorf("%q is being reset: %w", d.name(), nfcomms.ErrBusy)
	}
	if err == nil {
		d.resetting, d.resetBy = true, d.s.callerOf(ctx)
		d.publishLocked()
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resetTimeout)
	defer cancel()
	err = dev.Reset(ctx)
	var left []*remote
	d.update(func() {
		if err != nil { // its channels are lost, and listed
			left = d.takeRemoteLocked()
		}
		d.resetting = false
		d.resets++
		d.failure = err
		d.syncLocked()
		d.settleLocked()
	})
	for _, r := range left {
		_ = r.ch.Close()
	}
	if err == nil {
		err = d.probe(ctx)
	}
	return err
}

// drainLook is the time between two checks of what only the application closes.
const drainLook = 20 * time.Millisecond

// drain refuses new remote work and waits until none is left or ctx ends. It
// returns the remote calls that run and the channels that are open.
func (d *device) drain(ctx context.Context) (calls, channels int, err error) {
	caller := d.s.callerOf(ctx)
	d.mu.Lock()
	if _, err = d.useLocked(); err == nil && !d.draining {
		d.draining = true
		d.eventBy(caller, nfcommsv1.Event_TYPE_DRAIN_STARTED, d.name(), "drain began", nil)
		d.publishLocked()
	}
	d.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	again := time.NewTicker(drainLook)
	defer again.Stop()
	for {
		d.closeRemote(caller, nfcommsv1.Event_TYPE_CHANNEL_CLOSED, quiet)
		calls, channels, settled, err := d.left()
		switch {
		case err != nil:
			return calls, channels, err
		case calls == 0 && channels == 0:
			d.eventBy(caller, nfcommsv1.Event_TYPE_DRAINED, d.name(), "drained", nil)
			return 0, 0, nil
		}
		select {
		case <-settled:
		case <-again.C:
		case <-ctx.Done():
			d.eventBy(caller, nfcommsv1.Event_TYPE_DRAIN_TIMEOUT, d.name(),
				fmt.Sprintf("not drained: %d calls run, %d channels are open", calls, channels), nil)
			return calls, channels, nil
		}
	}
}

// left returns what a drain waits for, and a bell for the next change.
func (d *device) left() (calls, channels int, settled <-chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dev, err := d.useLocked()
	switch {
	case err != nil:
		return 0, 0, nil, err
	case !d.draining:
		return 0, 0, nil, fmt.Errorf("%q was resumed: %w", d.name(), nfcomms.ErrAborted)
	}
	d.syncLocked()
	d.publishLocked()
	return d.calls, len(admin.Channels(dev)), d.settled, nil
}

// resume ends a drain.
func (d *device) resume(ctx context.Context) {
	d.update(func() {
		if d.draining {
			d.draining = false
			d.settleLocked()
			d.eventBy(d.s.callerOf(ctx), nfcommsv1.Event_TYPE_RESUMED, d.name(), "takes new work again", nil)
		}
	})
}
