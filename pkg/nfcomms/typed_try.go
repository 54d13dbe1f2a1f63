package nfcomms

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// sendOp and receiveOp are how errors name what a value travels by.
func (c Chan[T]) sendOp() string {
	if c.err != nil || c.direct() {
		return opSend
	}
	return opSendInd
}

func (c Chan[T]) receiveOp() string {
	if c.err != nil || c.direct() {
		return opReceive
	}
	return opReceiveInd
}

// TrySend gives v if the target waits for it now, and reports whether it took it.
// It does not wait for the target; a value that travels as a transfer, once it is
// on its way, is waited for.
func (c Chan[T]) TrySend(v T) (bool, error) { return c.trySend(context.Background(), nil, &v) }

// trySend is TrySend; waiter is the one whose place in the queue it uses.
func (c Chan[T]) trySend(ctx context.Context, waiter chan<- struct{}, v *T) (ok bool, err error) {
	switch {
	case c.err != nil:
		err = c.err
	case c.direct():
		s := slots.Get().(*slot)
		defer slots.Put(s)
		ok, err = c.ch.ch.TrySend(s.buf[:copy(s.buf[:], valueBytes(v))], waiter)
	default:
		var b *buffer
		if b, err = takeBuffer(c.size); err == nil {
			defer b.release()
			copy(b.mem, valueBytes(v))
			ok, err = c.ch.ch.TrySendInd(ctx, b.mem, waiter)
		}
	}
	return ok, c.ch.fail(c.sendOp(), err)
}

// TryReceive takes a value if one is offered now, and reports whether there was
// one. What is offered in another size, or another way, is an error and stays
// offered. It finds that out before it takes anything, so one goroutine at a time
// should receive. It waits as TrySend does.
func (c Chan[T]) TryReceive() (v T, ok bool, err error) {
	ok, err = c.tryReceive(context.Background(), &v)
	return v, ok, c.ch.fail(c.receiveOp(), err)
}

// tryReceive is TryReceive into *v.
func (c Chan[T]) tryReceive(ctx context.Context, v *T) (ok bool, err error) {
	switch {
	case c.err != nil:
		return false, c.err
	case c.direct():
		return c.tryReceiveDirect(v)
	}
	b, err := takeBuffer(c.size)
	if err != nil {
		return false, err
	}
	defer b.release()
	if ok, err = c.ch.ch.TryReceiveInd(ctx, b.mem); ok {
		copy(valueBytes(v), b.mem)
	}
	return ok, err
}

func (c Chan[T]) tryReceiveDirect(v *T) (bool, error) {
	offer, ok, err := c.ch.ch.TryNext()
	size := uint64(c.size)
	switch {
	case !ok || err != nil:
		return false, err
	case !offer.Indirect && offer.Size != size:
		return false, &SizeError{Host: size, Device: offer.Size}
	}
	s := slots.Get().(*slot)
	defer slots.Put(s)
	n, ok, err := c.ch.ch.TryReceive(s.buf[:c.size])
	switch {
	case ok && n == c.size:
		copy(valueBytes(v), s.buf[:])
	case ok:
		return false, &SizeError{Host: size, Device: uint64(n)}
	}
	return ok, err
}

// SendCase gives v to the target, as package function SendCase a message: ready
// when the target waits to read. A nil channel below is never ready.
func (c Chan[T]) SendCase(v T) Case {
	if c.ch == nil {
		return Case{}
	}
	return Case{ch: c.ch, half: abi.H2D, try: func(ctx context.Context, waiter chan<- struct{}) (bool, error) {
		return c.trySend(ctx, waiter, &v)
	}}
}

// ReceiveCase takes a value into *v, which may be nil. What is offered in another
// size, or another way, makes the case ready with the error, and stays offered; see
// TryReceive. A nil channel below is never ready.
func (c Chan[T]) ReceiveCase(v *T) Case {
	if c.ch == nil {
		return Case{}
	}
	if v == nil {
		v = new(T)
	}
	return Case{ch: c.ch, half: abi.D2H, try: func(ctx context.Context, _ chan<- struct{}) (bool, error) {
		ok, err := c.tryReceive(ctx, v)
		return c.ch.unlessBusy(ok, c.receiveOp(), err)
	}}
}

// SendAsync is Send as a future; the value is copied at once.
func (c Chan[T]) SendAsync(ctx context.Context, v T) *Future {
	return c.ch.async(ctx, abi.H2D, c.sendOp(), nil, func(ctx context.Context) (int, error) {
		return done(c.size, c.Send(ctx, v))
	})
}

// FutureOf is a Future that has a value: that of Chan.ReceiveAsync.
type FutureOf[T any] struct {
	*Future
	value *T
}

// Wait waits for the value and returns it, or the error of the call. If ctx ends
// first it returns ctx's error and the call goes on.
func (f *FutureOf[T]) Wait(ctx context.Context) (T, error) {
	var none T
	if _, err := f.Future.Wait(ctx); err != nil {
		return none, err
	}
	return *f.value, nil
}

// ReceiveAsync is Receive as a future.
func (c Chan[T]) ReceiveAsync(ctx context.Context) *FutureOf[T] {
	v := new(T)
	return &FutureOf[T]{value: v, Future: c.ch.async(ctx, abi.D2H, c.receiveOp(), nil, func(ctx context.Context) (n int, err error) {
		*v, err = c.Receive(ctx)
		return done(c.size, err)
	})}
}
