package nfcomms

import (
	"context"
	"errors"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Call gives msg, of at most MessageSize bytes, to the target as a question, takes its answer into
// buf, and returns the length of that. The target answers by channel_reply, which is one slot of the
// device for both; a target that reads by another call answers by a message, which Call receives.
//
// The outcome is exact also where ctx ends. With ErrWithdrawn the target never saw the question. With
// ErrUnanswered it took the question and nobody waits for its answer any more: the error is an
// *UnansweredError, whose Late says that the answer may still arrive as a message. With ErrTooLarge the
// answer is longer than buf: it is dropped, but for a message, which stays offered. Where the device
// does not answer Call may return later than ctx ends, see Channel.
//
// Callers are served in order of arrival, as senders, and with them.
func (c *Channel) Call(ctx context.Context, msg, buf []byte) (int, error) {
	if err := unlessEnded(ctx, fits(msg)); err != nil {
		return 0, c.fail(opCall, err)
	}
	n, err := c.call(ctx, msg, buf)
	return n, c.fail(opCall, err)
}

func (c *Channel) call(ctx context.Context, msg, buf []byte) (int, error) {
	a := bridge.Answer{Message: true}
	var err error
	if caller, ok := c.ch.(bridge.Caller); ok {
		a, err = caller.Call(ctx, msg, buf)
	} else {
		err = c.ch.Send(ctx, msg)
	}
	if err == nil && a.Message {
		return c.answer(ctx, buf)
	}
	return a.Size, err
}

// tryCall is Call if the target waits for a question now.
func (c *Channel) tryCall(ctx context.Context, msg, buf []byte, waiter chan<- struct{}) (n int, ok bool, err error) {
	a := bridge.Answer{Message: true}
	if err = fits(msg); err != nil {
		return 0, false, c.fail(opCall, err)
	}
	if caller, is := c.ch.(bridge.Caller); is {
		a, ok, err = caller.TryCall(ctx, msg, buf, waiter)
	} else {
		ok, err = c.ch.TrySend(msg, waiter)
	}
	if n = a.Size; ok && a.Message {
		n, err = c.answer(ctx, buf)
		ok = err == nil
	}
	return n, ok, c.fail(opCall, err)
}

// answer receives the answer to a question that was taken as a message. Callers wait for each other:
// the target answers one after the other.
func (c *Channel) answer(ctx context.Context, buf []byte) (int, error) {
	place := c.answers.Load()
	if place == nil {
		fresh := make(chan struct{}, 1) // a token for the one that receives
		c.answers.CompareAndSwap(nil, &fresh)
		place = c.answers.Load()
	}
	select {
	case *place <- struct{}{}:
	case <-ctx.Done():
		return 0, &bridge.UnansweredError{Cause: ctx.Err(), Late: true}
	}
	n, err := c.ch.Receive(ctx, buf)
	<-*place
	if err != nil && !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrKindMismatch) {
		return 0, &bridge.UnansweredError{Cause: err, Late: !errors.Is(err, ErrClosed)}
	}
	return n, err
}

// CallCase gives msg as a question, and takes its answer into buf and the length of that into *n, which
// may be nil, as Call does. It is ready when the target waits to read; Select then waits for the answer.
// A nil channel is never ready.
func CallCase(ch *Channel, msg, buf []byte, n *int) Case {
	if ch == nil {
		return Case{}
	}
	store := func(got int, ok bool) {
		if ok && n != nil {
			*n = got
		}
	}
	return Case{ch: ch, half: abi.H2D, op: opCall,
		try: func(ctx context.Context, wake chan<- struct{}) (bool, error) {
			got, ok, err := ch.tryCall(ctx, msg, buf, wake)
			store(got, ok)
			return ok, err
		},
		call: func(ctx context.Context) (int, error) {
			got, err := ch.Call(ctx, msg, buf)
			store(got, err == nil)
			return got, err
		}}
}

// CallOf gives v as a question and returns its answer. Both travel as [ChanOf] describes, and are of at
// most MessageSize bytes; for the outcome see [Channel.Call]. An answer of another size than Out's is
// a *SizeError.
func CallOf[In, Out any](ctx context.Context, ch *Channel, v In) (out Out, err error) {
	in, back := ChanOf[In](ch), ChanOf[Out](ch)
	for _, err := range []error{in.err, back.err} {
		if err != nil {
			return out, ch.fail(opCall, unlessEnded(ctx, err))
		}
	}
	if in.bytes || back.bytes || !in.direct() || !back.direct() {
		return out, ch.fail(opCall, unlessEnded(ctx, ErrTooLarge))
	}
	s := slots.Get().(*slot)
	defer slots.Put(s)
	n, err := ch.call(ctx, s.buf[:copy(s.buf[:], valueBytes(&v))], s.buf[:])
	if err == nil && n != back.size {
		err = &SizeError{Host: uint64(back.size), Device: uint64(n)}
	}
	if err == nil {
		copy(valueBytes(&out), s.buf[:])
	}
	return out, ch.fail(opCall, err)
}
