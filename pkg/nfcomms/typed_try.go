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

// trySend gives *v if the target waits for it now, and reports whether it took it. waiter is the
// one whose place in the queue it uses.
func (c Chan[T]) trySend(ctx context.Context, waiter chan<- struct{}, v *T) (ok bool, err error) {
	switch {
	case c.err != nil:
		err = c.err
	case c.bytes:
		return c.ch.trySendBytes(ctx, waiter, *sliceAt(v))
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

// tryReceive takes a value into *v if one is offered now, and reports whether there was one. It looks
// at an offer before it takes it, so one goroutine at a time should receive.
func (c Chan[T]) tryReceive(ctx context.Context, v *T) (ok bool, err error) {
	switch {
	case c.err != nil:
		return false, c.err
	case c.bytes:
		var data []byte
		if data, ok, err = c.ch.tryReceiveBytes(ctx); ok && err == nil {
			*sliceAt(v) = data
		}
		return ok, err
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
// when the target waits to read. The value is copied. A nil channel below is never ready.
func (c Chan[T]) SendCase(v T) Case {
	if c.ch == nil {
		return Case{}
	}
	return Case{ch: c.ch, half: abi.H2D, op: c.sendOp(),
		try:  func(ctx context.Context, waiter chan<- struct{}) (bool, error) { return c.trySend(ctx, waiter, &v) },
		call: func(ctx context.Context) (int, error) { return done(c.sizeOf(&v), c.Send(ctx, v)) }}
}

// ReceiveCase takes a value into *v, which may be nil. An offer of another
// size, or another kind, makes the case ready with the error, and stays offered: the offer is
// looked at before it is taken, so one goroutine at a time should receive. A nil channel below is
// never ready.
func (c Chan[T]) ReceiveCase(v *T) Case {
	if c.ch == nil {
		return Case{}
	}
	if v == nil {
		v = new(T)
	}
	return Case{ch: c.ch, half: abi.D2H, op: c.receiveOp(),
		try: func(ctx context.Context, _ chan<- struct{}) (bool, error) {
			ok, err := c.tryReceive(ctx, v)
			return c.ch.unlessBusy(ok, c.receiveOp(), err)
		},
		call: func(ctx context.Context) (int, error) {
			got, err := c.Receive(ctx)
			if err == nil {
				*v = got
			}
			return done(c.sizeOf(v), err)
		}}
}
