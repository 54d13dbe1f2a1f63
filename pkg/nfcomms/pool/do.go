package pool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Do gives in to a process and its answer to out, and returns the length of the answer. The
// answer may be a message or a transfer. An answer longer than out is dropped: ErrTooLarge.
//
// ErrBusy if the queue is full. With ErrWithdrawn ctx ended. With ErrClosed the pool was closed.
// With [nfcomms.ErrUnanswered] a process took in, or may have, and the caller has no answer.
func (p *Pool) Do(ctx context.Context, in, out []byte) (n int, err error) {
	x := exchange{
		send: func(ctx context.Context, ch *nfcomms.Channel) error { return ch.SendInd(ctx, in) },
		receive: func(ctx context.Context, ch *nfcomms.Channel, answer nfcomms.Offer) (err error) {
			switch {
			case answer.Size > uint64(len(out)):
				return fmt.Errorf("answer of %d bytes, room for %d: %w", answer.Size, len(out), nfcomms.ErrTooLarge)
			case answer.Indirect:
				n, err = ch.ReceiveInd(ctx, out[:answer.Size])
			default:
				n, err = ch.Receive(ctx, out)
			}
			return err
		},
	}
	if !p.o.Transfers && len(in) <= nfcomms.MessageSize {
		x.ask = func(ctx context.Context, ch *nfcomms.Channel) (err error) {
			n, err = ch.Call(ctx, in, out)
			return err
		}
	}
	err = p.do(ctx, x)
	return n, err
}

// Call gives a value to a process and returns its answer, as [nfcomms.ChanOf] sends and receives
// them: values of up to nfcomms.MessageSize bytes as messages, larger ones as transfers. The errors
// are those of Do, and a *TypeError for types with pointers.
func Call[In, Out any](ctx context.Context, p *Pool, in In) (out Out, err error) {
	for _, err := range []error{nfcomms.ChanOf[In](nil).Err(), nfcomms.ChanOf[Out](nil).Err()} {
		if err != nil {
			return out, err
		}
	}
	x := exchange{
		send: func(ctx context.Context, ch *nfcomms.Channel) error {
			return nfcomms.ChanOf[In](ch).Send(ctx, in)
		},
		receive: func(ctx context.Context, ch *nfcomms.Channel, _ nfcomms.Offer) (err error) {
			out, err = nfcomms.ChanOf[Out](ch).Receive(ctx)
			return err
		},
	}
	if isMessage[In]() && isMessage[Out]() {
		x.ask = func(ctx context.Context, ch *nfcomms.Channel) (err error) {
			out, err = nfcomms.CallOf[In, Out](ctx, ch, in)
			return err
		}
	}
	err = p.do(ctx, x)
	return out, err
}

// isMessage reports whether values of a type are messages, all of one size.
func isMessage[T any]() bool {
	t := reflect.TypeFor[T]()
	return t != reflect.TypeFor[[]byte]() && t.Size() <= nfcomms.MessageSize
}

// exchange is the two steps of one, or both in one: ask is nil where the input is a transfer.
type exchange struct {
	ask     func(context.Context, *nfcomms.Channel) error
	send    func(context.Context, *nfcomms.Channel) error
	receive func(context.Context, *nfcomms.Channel, nfcomms.Offer) error
}

// do has a process do an exchange, and another one where the first did not take the input.
func (p *Pool) do(ctx context.Context, x exchange) error {
	for attempt, again := 1, false; ; {
		l, err := p.take(ctx, again)
		if err == nil {
			began := time.Now()
			if again, err = p.once(ctx, l, x); err == nil {
				p.exchangeTime.add(time.Since(began))
				return nil
			}
		} else {
			again = false
		}
		if !errors.Is(err, errOver) {
			attempt++
		}
		if !again || attempt > p.o.Attempts || ctx.Err() != nil {
			p.failed.Add(1)
			return wrap(opExchange, err)
		}
		p.retries.Add(1)
	}
}

// once does an exchange with a process, and hands the process back with the state that it is in.
// again reports whether another process may do the exchange.
func (p *Pool) once(ctx context.Context, l *lane, x exchange) (again bool, err error) {
	after := broken
	defer func() { p.put(l, after) }()
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.o.Timeout)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)()
	within, leave := context.WithCancel(bound)
	defer leave()
	defer context.AfterFunc(ctx, leave)()
	if ctx.Err() != nil {
		after = whole
		return false, &nfcomms.WithdrawnError{Cause: ctx.Err()}
	}
	if err := l.quiet(); err != nil {
		return true, err
	}
	if x.ask != nil {
		err := x.ask(within, l.ch)
		if !isMisfit(err) || !l.offers() {
			after = afterCall(ctx, err)
			return p.called(ctx, l, err)
		} // else the answer, which does not fit there, is still to be taken
	} else if err := x.send(within, l.ch); err != nil {
		after = afterSend(ctx, err)
		return p.mayRepeat(err), p.reason(ctx, err, isLoss(err))
	}
	answer, err := l.ch.Next(within)
	if err == nil {
		err = x.receive(bound, l.ch, answer) // the process is about to answer: no caller cancels that
	}
	switch {
	case err == nil:
		after = whole
		return false, nil
	case ctx.Err() != nil || isMisfit(err):
		after = owing
	}
	return p.o.Idempotent && !isMisfit(err), p.reason(ctx, l.because(err), true)
}

// called returns how a question ended, whose answer is not offered.
func (p *Pool) called(ctx context.Context, l *lane, err error) (again bool, _ error) {
	var unanswered *nfcomms.UnansweredError
	switch {
	case err == nil:
		return false, nil
	case errors.As(err, &unanswered):
		cause := l.because(unanswered.Cause)
		if errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) {
			cause = &nfcomms.WithdrawnError{Cause: cause}
		}
		return p.o.Idempotent, p.reason(ctx, cause, true)
	case isDropped(err):
		return false, p.reason(ctx, err, true)
	}
	return p.mayRepeat(err), p.reason(ctx, err, isLoss(err))
}

// reason is the error of an exchange that failed. taken: a process may have taken the input.
func (p *Pool) reason(ctx context.Context, err error, taken bool) error {
	var withdrawn *nfcomms.WithdrawnError
	switch {
	case !errors.As(err, &withdrawn):
	case p.closing.Err() != nil:
		err = errClosed
	case ctx.Err() != nil && taken:
		err = ctx.Err() // ErrWithdrawn would promise that nothing was delivered
	case ctx.Err() != nil:
		err = &nfcomms.WithdrawnError{Cause: ctx.Err()}
	default:
		err = fmt.Errorf("process did not answer in %v: %w", p.o.Timeout, nfcomms.ErrTargetTimeout)
	}
	if taken {
		return fmt.Errorf("%w: %w", nfcomms.ErrUnanswered, err)
	}
	return err
}

// mayRepeat reports whether another process may get an input that was not sent. Where the input is the reason,
// that would fail as well.
func (p *Pool) mayRepeat(err error) bool {
	if isLoss(err) {
		return p.o.Idempotent
	}
	return errors.Is(err, nfcomms.ErrClosed) || errors.Is(err, nfcomms.ErrWithdrawn) ||
		errors.Is(err, nfcomms.ErrStalled) || errors.Is(err, nfcomms.ErrTargetTimeout)
}
