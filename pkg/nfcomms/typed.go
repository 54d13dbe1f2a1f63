package nfcomms

import (
	"context"
	"reflect"
	"sync"
)

// Chan is a channel of values of one type. It is a small value to pass around;
// the channel below it may be used directly at the same time.
type Chan[T any] struct {
	ch    *Channel
	size  int
	bytes bool // T is []byte, of any size
	err   error
}

// ChanOf gives a channel a type. T must hold no pointers, which is checked here
// once: with another type every call, and Err, returns a *TypeError that says
// what to use instead; a slice, say, is for SendInd and ReceiveInd. Both ends
// must agree on the layout; the bytes travel as they are in memory, padding
// included. Values of up to MessageSize bytes travel as messages, larger ones
// as transfers.
//
// A Chan[[]byte] is the exception: its values are of any size, up to 64 MiB, each of which
// travels as a message or a transfer by its own size. Its Receive takes either, in new memory.
func ChanOf[T any](ch *Channel) Chan[T] {
	t := reflect.TypeFor[T]()
	if t == reflect.TypeFor[[]byte]() {
		return Chan[T]{ch: ch, bytes: true}
	}
	size, err := valueLayout(t)
	return Chan[T]{ch: ch, size: size, err: err}
}

// Err returns an *OpError with the *TypeError of an unsuitable T, or nil.
func (c Chan[T]) Err() error {
	if c.ch == nil {
		return wrap(opChan, "", 0, c.err)
	}
	return c.ch.fail(opChan, c.err)
}

// Channel returns the channel below.
func (c Chan[T]) Channel() *Channel { return c.ch }

// direct reports whether values travel as messages.
func (c Chan[T]) direct() bool { return c.size <= MessageSize }

// Send gives one value and returns nil once the target took it; see
// Channel.Send and Channel.SendInd.
func (c Chan[T]) Send(ctx context.Context, v T) error {
	switch {
	case c.err != nil:
		return c.ch.fail(opSend, unlessEnded(ctx, c.err))
	case c.bytes:
		return c.ch.sendBytes(ctx, *sliceAt(&v))
	case c.direct():
		return c.ch.fail(opSend, c.sendDirect(ctx, &v))
	default:
		return c.ch.fail(opSendInd, c.sendInd(ctx, &v))
	}
}

func (c Chan[T]) sendDirect(ctx context.Context, v *T) error {
	s := slots.Get().(*slot)
	defer slots.Put(s)
	call := c.ch.traced(callSend)
	err := c.ch.ch.Send(call.in(ctx), s.buf[:copy(s.buf[:], valueBytes(v))])
	call.end(c.size, err)
	return err
}

func (c Chan[T]) sendInd(ctx context.Context, v *T) error {
	call := c.ch.traced(callSendInd)
	b, err := takeBuffer(c.size)
	if err != nil {
		return err
	}
	defer b.release()
	copy(b.mem, valueBytes(v))
	err = c.ch.ch.SendInd(call.in(ctx), b.mem)
	call.end(c.size, err)
	return err
}

// Receive takes one value. A message of another size than T's gives a
// *SizeError and stays offered, and a []byte of more than 64 MiB ErrTooLarge; for the rest see Channel.Receive and
// Channel.ReceiveInd.
func (c Chan[T]) Receive(ctx context.Context) (T, error) {
	var v T
	var err error
	op := opReceive
	switch {
	case c.err != nil:
		err = unlessEnded(ctx, c.err)
	case c.bytes:
		*sliceAt(&v), err = c.ch.receiveBytes(ctx)
		return v, err
	case c.direct():
		err = c.receiveDirect(ctx, &v)
	default:
		op = opReceiveInd
		err = c.receiveInd(ctx, &v)
	}
	return v, c.ch.fail(op, err)
}

func (c Chan[T]) receiveDirect(ctx context.Context, v *T) error {
	s := slots.Get().(*slot)
	defer slots.Put(s)
	s.want = c.size
	call := c.ch.traced(callReceive)
	err := c.ch.ch.ReceiveFunc(call.in(ctx), s.take)
	if err == nil {
		copy(valueBytes(v), s.buf[:])
	}
	call.end(c.size, err)
	return err
}

func (c Chan[T]) receiveInd(ctx context.Context, v *T) error {
	call := c.ch.traced(callReceiveInd)
	b, err := takeBuffer(c.size)
	if err != nil {
		return err
	}
	defer b.release()
	err = c.ch.ch.ReceiveInd(call.in(ctx), b.mem)
	if err == nil {
		copy(valueBytes(v), b.mem)
	}
	call.end(c.size, err)
	return err
}

// slot is memory for one message, off the caller's stack.
type slot struct {
	buf  [MessageSize]byte
	want int
	// take is the slot's own accept, bound once.
	take func(msg []byte) error
}

var slots = sync.Pool{New: func() any {
	s := new(slot)
	s.take = s.accept
	return s
}}

// accept copies a message of want bytes, and leaves any other offered.
func (s *slot) accept(msg []byte) error {
	if len(msg) != s.want {
		return &SizeError{Host: uint64(s.want), Device: uint64(len(msg))}
	}
	copy(s.buf[:], msg)
	return nil
}
