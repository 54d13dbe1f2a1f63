package nfcomms

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Supervisor keeps programs running on a device, across resets, losses, faults
// and processes that end. The zero value of each field but Programs is valid.
type Supervisor struct {
	// Images are loaded before the programs start, in this order and in every
	// generation. One that is there already is replaced by itself.
	Images [][]byte
	// Programs are started in this order, and all of their ports subscribed, as
	// Device.Run does.
	Programs []Program
	// MinWait is how long to wait after a failure. It doubles with each that
	// follows, up to MaxWait, and begins anew once a generation lasted longer than
	// MaxWait. Zero means 10 ms and 5 s.
	MinWait, MaxWait time.Duration
	// Logger receives why a generation ended or did not begin. Nil discards it.
	Logger *slog.Logger
}

// Generation is what runs on the device from one failure to the next.
type Generation struct {
	// Number counts the generations of a Run from 1.
	Number int
	// Instances are the programs, as in Supervisor.Programs, with their channels.
	Instances []*Instance

	dev   *Device
	epoch *epoch
}

// Run is [Device.Run] in this generation: it returns ErrDeviceLost once the device was reset, and never
// starts a process beside those of a later generation. work closes the instance before it returns.
func (g *Generation) Run(ctx context.Context, p Program) (*Instance, error) {
	return g.dev.run(ctx, g.epoch, p)
}

// Run loads the images, runs the programs and calls work with them, again and
// again: work is called with each new generation of channels, one at a time.
//
// The context of work ends with its generation: when the device is reset by
// anybody, lost, or faulty. Its cause reports which. Work should return then; a
// generation is over when it has, and nothing of it is left before the next
// begins. A device that is lost or faulty is reset, once, however many supervise
// it. Before it begins again Run waits, longer after each failure.
//
// The result of work decides what follows. After an error of a generation that
// had ended, or one that is ErrDeviceLost, ErrFault or ErrClosed, as when a process
// ended, the next generation begins. Nil, and any other error, ends Run, which
// returns it. Run also ends when ctx does, with a *WithdrawnError, or with nil or an error of
// its own that work returns, but never with the bare error of ctx; when the device is closed, with ErrClosed; and when the images
// or programs can never run: ErrNoProgram, ErrABI, ErrInvalid, ErrNotSupported.
func (s Supervisor) Run(ctx context.Context, d *Device, work func(context.Context, *Generation) error) error {
	if s.MinWait <= 0 {
		s.MinWait = 10 * time.Millisecond
	}
	if s.MaxWait <= 0 {
		s.MaxWait = 5 * time.Second
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if ctx.Err() != nil {
		return d.fail(opSupervise, 0, &WithdrawnError{Cause: ctx.Err()})
	}
	v := &supervision{Supervisor: s, dev: d, work: work}
	for wait := s.MinWait; ; wait = min(2*wait, s.MaxWait) {
		began := time.Now()
		again, err := v.generation(ctx)
		if !again {
			return err
		}
		if time.Since(began) > s.MaxWait {
			wait = s.MinWait
		}
		s.Logger.Warn("generation over", "address", d.address, "number", v.number, "err", err, "wait", wait)
		if !pause(ctx, wait) {
			return d.fail(opSupervise, 0, &WithdrawnError{Cause: ctx.Err()})
		}
	}
}

// pause waits; false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// supervision is one Run of a Supervisor.
type supervision struct {
	Supervisor
	dev    *Device
	work   func(context.Context, *Generation) error
	number int // of the last generation
}

// generation makes one and reports whether the next may begin after it.
func (v *supervision) generation(ctx context.Context) (again bool, err error) {
	if err := v.dev.revive(ctx); err != nil {
		return v.mayRetry(ctx, err)
	}
	within, end := context.WithCancelCause(ctx)
	e := v.dev.now()
	watch := v.dev.watch(within, e, end)
	g := &Generation{Number: v.number + 1, dev: v.dev, epoch: e}
	defer func() {
		end(nil)
		<-watch
		v.unwind(g)
	}()
	if err := v.prepare(within, e, g); err != nil {
		if within.Err() != nil {
			err = context.Cause(within)
		}
		return v.mayRetry(ctx, err)
	}
	v.number++
	err = v.work(within, g)
	ended := isLoss(err) || errors.Is(err, ErrClosed)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() == nil:
		return ended || within.Err() != nil, err
	case ended, errors.Is(err, ErrWithdrawn), // the end of ctx does that to calls
		errors.Is(err, ctx.Err()), errors.Is(err, context.Cause(ctx)):
		err = v.dev.fail(opSupervise, 0, &WithdrawnError{Cause: ctx.Err()})
	}
	return false, err
}

// prepare loads the images and runs the programs, all in one epoch.
func (v *supervision) prepare(ctx context.Context, e *epoch, g *Generation) error {
	for _, image := range v.Images {
		if _, err := v.dev.load(ctx, e, image); err != nil {
			return err
		}
	}
	for _, p := range v.Programs {
		i, err := v.dev.run(ctx, e, p)
		if err != nil {
			return err
		}
		g.Instances = append(g.Instances, i)
	}
	return nil
}

// unwind waits until nothing of a generation is left. Its context has ended.
func (v *supervision) unwind(g *Generation) {
	for _, i := range g.Instances {
		if err := i.Wait(); err != nil {
			v.Logger.Warn("process left behind", "address", v.dev.address, "process", i.Process.ID, "err", err)
		}
	}
}

// mayRetry reports whether a generation that did not begin may the next
// time, and returns the error.
func (v *supervision) mayRetry(ctx context.Context, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, v.dev.fail(opSupervise, 0, &WithdrawnError{Cause: ctx.Err()})
	}
	for _, never := range []error{ErrNoProgram, ErrABI, ErrInvalid, ErrNotSupported, ErrClosed} {
		if errors.Is(err, never) {
			return false, err
		}
	}
	return true, err
}

// isLoss reports whether only a reset makes the device work again.
func isLoss(err error) bool { return errors.Is(err, ErrDeviceLost) || errors.Is(err, ErrFault) }

// revive resets a device that is lost or faulty. Of many who find it so, one does.
func (d *Device) revive(ctx context.Context) error {
	e := d.now()
	if _, err := d.Health(); !isLoss(err) {
		return err
	}
	if err := d.take(ctx); err != nil {
		return d.fail(opReset, 0, err)
	}
	defer d.pass()
	if _, err := d.Health(); !isLoss(err) {
		return err
	}
	return d.fail(opReset, 0, d.reset(ctx, e))
}

// watch calls end with the reason when an epoch is over, or the device lost, faulty or
// closed. The channel it returns is closed when it has ended, at the latest with ctx.
func (d *Device) watch(ctx context.Context, e *epoch, end context.CancelCauseFunc) <-chan struct{} {
	const fastest, usual = 10 * time.Millisecond, 100 * time.Millisecond
	over := make(chan struct{})
	beat := usual
	if promised := d.Info().Beat; promised > 0 {
		beat = max(promised, fastest)
	}
	go func() {
		defer close(over)
		ticks := time.NewTicker(beat)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-e.ctx.Done():
				end(d.fail(opSupervise, 0, context.Cause(e.ctx)))
				return
			case <-ticks.C:
			}
			_, err := d.Health()
			if d.now() != e {
				continue // it was reset, by whomever: its context has ended
			}
			if err != nil {
				end(err)
				return
			}
		}
	}()
	return over
}
