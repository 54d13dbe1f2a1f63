package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// How long the pool waits before it starts a process anew that did nothing, from the first time up.
const minWait, maxWait = 10 * time.Millisecond, time.Second

// maxDropped is the size, in bytes, of the largest late answer that is taken and dropped. A process
// with a larger one is replaced.
const maxDropped = 1 << 20

// state is the state of a process after an exchange.
type state int

const (
	whole  state = iota // it waits for the next input
	owing               // it has taken an input, and its answer is still to be taken
	broken              // it has to be replaced
)

// lane is a process of the pool.
type lane struct {
	ch      *nfcomms.Channel
	epoch   context.Context // ends with the epoch, before the pool closes ch
	back    chan state      // from the caller, where the process is not whole, or retired
	retired bool            // guarded by the queue's mutex, as worked
	worked  bool            // an exchange succeeded
}

// errOver means that the process ended with its device before the exchange: that is no attempt.
var errOver = errors.New("before the exchange")

// quiet returns an error if the process offers something although nothing was asked.
func (l *lane) quiet() error {
	var unasked [nfcomms.MessageSize]byte
	var n int
	offers, err := nfcomms.ReceiveCase(l.ch, unasked[:], &n).Try()
	switch {
	case offers || errors.Is(err, nfcomms.ErrKindMismatch):
		return fmt.Errorf("process answered twice: %w", nfcomms.ErrProtocol)
	case isLoss(err):
		return fmt.Errorf("%w: %w", errOver, err)
	default:
		return err
	}
}

// because returns the end of the epoch in place of the end of the channel that followed from it.
func (l *lane) because(err error) error {
	if end := context.Cause(l.epoch); errors.Is(err, nfcomms.ErrClosed) && isLoss(end) {
		return end
	}
	return err
}

// afterSend is the state of a process that an input was not sent to.
func afterSend(ctx context.Context, err error) state {
	var begun *nfcomms.TransferError
	var pointers *nfcomms.TypeError
	switch {
	case errors.As(err, &pointers), errors.Is(err, nfcomms.ErrSize), errors.Is(err, nfcomms.ErrTooLarge):
		return whole // nothing reached it
	case ctx.Err() != nil && errors.Is(err, nfcomms.ErrWithdrawn) && !errors.As(err, &begun):
		return whole
	default:
		return broken
	}
}

// afterCall is the state of a process that was asked, and offers no answer.
func afterCall(ctx context.Context, err error) state {
	var unanswered *nfcomms.UnansweredError
	switch {
	case err == nil || isDropped(err):
		return whole
	case !errors.As(err, &unanswered):
		return afterSend(ctx, err)
	case ctx.Err() == nil:
		return broken // it is late, or has ended
	case unanswered.Late:
		return owing
	default:
		return whole // it learns at its reply that nobody waits
	}
}

// isDropped reports whether an error says that an answer which is taken did not suit the caller.
func isDropped(err error) bool {
	return errors.Is(err, nfcomms.ErrTooLarge) || errors.Is(err, nfcomms.ErrSizeMismatch)
}

// offers reports whether the process offers something now.
func (l *lane) offers() bool {
	ok, err := nfcomms.OfferCase(l.ch, nil).Try()
	return ok && err == nil
}

// isLoss reports whether the outcome of a message is unknown after an error.
func isLoss(err error) bool {
	return errors.Is(err, nfcomms.ErrDeviceLost) || errors.Is(err, nfcomms.ErrFault)
}

// isMisfit reports whether an error says that the caller's memory does not suit the answer, which stays offered.
func isMisfit(err error) bool {
	return slices.ContainsFunc([]error{nfcomms.ErrTooLarge, nfcomms.ErrSizeMismatch, nfcomms.ErrKindMismatch, nfcomms.ErrNoMemory},
		func(misfit error) bool { return errors.Is(err, misfit) })
}

// generation keeps as many processes as the pool has size, until ctx ends or one can never run.
func (p *Pool) generation(ctx context.Context, g *nfcomms.Generation) error {
	ctx, fail := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer fail(nil)
	var quits []chan struct{}
	for {
		for int64(len(quits)) < p.size.Load() {
			quit := make(chan struct{})
			quits = append(quits, quit)
			all.Go(func() {
				if err := p.keep(ctx, quit, g); err != nil {
					fail(err)
				}
			})
		}
		for last := len(quits) - 1; int64(last) >= p.size.Load(); last-- {
			close(quits[last])
			quits = quits[:last]
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.resized:
		}
	}
}

// keep keeps one process running. It returns an error if the program can never run.
func (p *Pool) keep(ctx context.Context, quit <-chan struct{}, g *nfcomms.Generation) error {
	for wait := minWait; ; wait = min(max(2*wait, minWait), maxWait) {
		i, err := g.Run(ctx, p.o.Program)
		switch {
		case err == nil:
			if p.serve(ctx, quit, i.Channels[0]) {
				wait = 0
			}
			if err := i.Close(); err != nil {
				p.o.Logger.Warn("process left behind", "process", i.Process.ID, "err", err)
			}
		case ctx.Err() != nil:
			return nil
		case isNever(err):
			return err
		default:
			p.o.Logger.Warn("process did not start", "err", err)
		}
		if !pause(ctx, quit, wait) {
			return nil
		}
		if err == nil {
			p.replaced.Add(1)
		}
	}
}

// serve offers a process to callers until it is broken. It reports whether an exchange succeeded.
func (p *Pool) serve(ctx context.Context, quit <-chan struct{}, ch *nfcomms.Channel) (worked bool) {
	p.running.Add(1)
	defer p.running.Add(-1)
	l := &lane{ch: ch, epoch: ctx, back: make(chan state, 1)}
	p.queue.offer(l)
	p.start.Do(func() { close(p.started) })
	for {
		select {
		case after := <-l.back:
			if after != owing || !p.drop(ctx, l) {
				return l.worked
			}
			p.queue.offer(l)
		case <-ctx.Done():
			p.queue.retire(l)
			return l.worked
		case <-quit:
			p.queue.retire(l)
			return l.worked
		}
	}
}

// drop takes a late answer. It reports whether the process is whole again.
func (p *Pool) drop(ctx context.Context, l *lane) bool {
	ctx, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	answer, err := l.ch.Next(ctx)
	switch {
	case err != nil || answer.Size > maxDropped:
		return false
	case answer.Indirect:
		err = l.ch.ReceiveIndFunc(ctx, int(answer.Size), func([]byte) error { return nil })
	default:
		_, err = l.ch.Receive(ctx, make([]byte, nfcomms.MessageSize))
	}
	return err == nil
}

// isNever reports whether a program that did not start never will.
func isNever(err error) bool {
	return slices.ContainsFunc([]error{nfcomms.ErrNoProgram, nfcomms.ErrABI, nfcomms.ErrInvalid, nfcomms.ErrNotSupported},
		func(never error) bool { return errors.Is(err, never) })
}

// pause waits; false if the process is not wanted any more.
func pause(ctx context.Context, quit <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-quit:
		return false
	case <-ctx.Done():
		return false
	case <-t.C:
	}
	select {
	case <-quit:
		return false
	default:
		return ctx.Err() == nil
	}
}
