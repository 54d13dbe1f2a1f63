package nfcomms

import (
	"context"
	"errors"
	"fmt"
)

// Instance is a program that Device.Run started, with the channels to all of its
// ports.
type Instance struct {
	// Process is the device process that runs the program.
	Process Process
	// Channels lead to its ports, in order. They belong to the instance, which
	// closes them.
	Channels []*Channel

	dev   *Device
	epoch *epoch
	end   context.CancelFunc
	done  chan struct{}
	err   error // set before done is closed
}

// Run starts a program, subscribes all of its ports and returns it with the
// channels in the order of the ports. No ports given means one.
//
// The instance lasts until ctx ends or Close is called, whichever comes first:
// then its process is asked to return and its channels are closed. After an
// error nothing is left of it. Errors are those of Start and Subscribe, and
// ErrDeviceLost if the device was reset between them.
func (d *Device) Run(ctx context.Context, p Program) (*Instance, error) {
	return d.run(ctx, d.now(), p)
}

// run is Run in the given epoch, and in no other.
func (d *Device) run(ctx context.Context, e *epoch, p Program) (*Instance, error) {
	if p.Targets == 0 {
		p.Targets = 1
	}
	proc, err := d.start(ctx, e, p)
	if err != nil {
		return nil, err
	}
	i := &Instance{Process: proc, dev: d, epoch: e, done: make(chan struct{})}
	for port := range p.Targets {
		ch, err := d.subscribe(ctx, e, proc.First+Target(port))
		if err != nil {
			return nil, join(opStart, d.address, i.ended(err), i.unwindWithin(ctx))
		}
		i.Channels = append(i.Channels, ch)
	}
	ctx, i.end = context.WithCancel(ctx)
	context.AfterFunc(ctx, func() {
		i.err = i.unwind()
		close(i.done)
	})
	return i, nil
}

// Close asks the process to return, waits until it did and closes the channels.
// It is idempotent; all calls return the same. nil if nothing is left, also where
// the process had returned by itself or the device was lost; the error is that
// of Stop if the process does not return. As Channel.CloseReceive it waits for
// functions that work in an extended rendezvous.
func (i *Instance) Close() error {
	i.end()
	return i.Wait()
}

// Wait waits until the instance has ended, because its context has or by Close,
// and returns what Close returns.
func (i *Instance) Wait() error {
	<-i.done
	return i.err
}

// Done is closed when the instance has ended and nothing is left of it.
func (i *Instance) Done() <-chan struct{} { return i.done }

// ended returns err, with what it means where the process is gone before its ports were subscribed.
func (i *Instance) ended(err error) error {
	if !errors.Is(err, ErrNotSubscribed) {
		return err
	}
	return fmt.Errorf("process %d has ended, or does not serve its ports: %w", i.Process.ID, err)
}

// unwind stops the process and closes the channels there are.
func (i *Instance) unwind() error {
	err := i.dev.fail(opStop, 0, i.dev.dev.Stop(i.epoch.in(context.Background()), i.Process.ID))
	if isGone(err) {
		err = nil
	}
	errs := []error{err}
	for _, ch := range i.Channels {
		errs = append(errs, ch.Close())
	}
	return join(opClose, i.dev.address, errs...)
}

// unwindWithin is unwind, which continues after the caller's return soon after ctx has ended.
func (i *Instance) unwindWithin(ctx context.Context) error {
	err, _ := within(ctx, &i.dev.late, i.unwind, nil)
	return err
}

// isGone reports whether an error means that there is nothing left to stop.
func isGone(err error) bool {
	for _, gone := range []error{ErrInvalid, ErrDeviceLost, ErrFault, ErrClosed} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
