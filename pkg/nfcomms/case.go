package nfcomms

import (
	"context"
	"errors"
	"reflect"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Case describes an operation: a send or a receive of a device channel or a Go channel. Select lets
// one of several take effect, Try lets this one take effect now or not at all, and Start makes a
// future of it. A case may be used again and again; what it points to belongs to each use until
// that has ended. The zero Case is never ready.
type Case struct {
	// ch and half are set for a device channel.
	ch   *Channel
	half abi.Direction
	// op names the operation in errors of Start.
	op string
	// call is the operation as it is without Select; nil is never ready. transfer is what it
	// moves, if that is a transfer.
	call     func(ctx context.Context) (int, error)
	transfer *transferOf
	// try takes effect now or not at all; nil is never ready. A transfer
	// that began runs to its end, or that of ctx. wake is the waiter that
	// is armed.
	try func(ctx context.Context, wake chan<- struct{}) (bool, error)
	// native is how to wait for a Go channel; taken stores the value.
	native reflect.SelectCase
	taken  func(v reflect.Value, ok bool)
	// fallback marks Default.
	fallback bool
}

// Try lets the case take effect now, if it is ready, and reports whether it did. It does not wait
// for the other end; a transfer that has begun it waits for. While another call receives, a case
// that receives is not ready. A case that sends asks the device, and where that does not answer
// waits until it is lost, see Channel.
func (c Case) Try() (bool, error) {
	if c.try == nil {
		return c.fallback, nil
	}
	return c.try(context.Background(), nil)
}

// Start begins the operation, and returns at once. An object that a transfer case was given by
// pointer moves to the heap.
func (c Case) Start(ctx context.Context) *Future {
	switch {
	case c.ch != nil:
		return c.ch.async(ctx, c.half, c.op, c.transfer, c.call)
	case c.call != nil:
		return startAlone(ctx, c.call)
	case c.fallback:
		return startAlone(ctx, func(context.Context) (int, error) { return 0, nil })
	}
	return startAlone(ctx, func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, wrap(opSelect, "", 0, &WithdrawnError{Cause: ctx.Err()})
	})
}

// SendCase gives msg to the target. Once chosen, nil from Select means the
// target took it and an error that it did not. A nil channel is never ready.
//
// A Select that waits has its place among the senders of the channel: a later
// one waits behind it, until the target was ready for it or it chose
// another case.
func SendCase(ch *Channel, msg []byte) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.H2D, op: opSend,
		try: func(_ context.Context, wake chan<- struct{}) (bool, error) { return ch.trySend(msg, wake) },
		call: func(ctx context.Context) (int, error) {
			err := ch.Send(ctx, msg)
			return done(len(msg), err)
		}}
}

// SendIndCase gives data, or its first size bytes, to the target, as SendInd
// does. It is ready when the target waits to read; what the target reads then
// decides, as with SendInd, so that one that reads a message makes the case fail
// with ErrKindMismatch; another host keeps that error to itself, and the case is
// not ready. A nil channel is never ready.
func SendIndCase(ch *Channel, data any, size ...int) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.H2D, op: opSendInd, transfer: &transferOf{data, size},
		try: func(ctx context.Context, wake chan<- struct{}) (bool, error) {
			return ch.trySendInd(ctx, wake, data, size)
		},
		call: func(ctx context.Context) (int, error) { return ch.sendInd(ctx, data, size) }}
}

// ReceiveIndCase takes a transfer that fills data, or its first size bytes, as
// ReceiveInd does. A channel that is closed, or that offers a message or a
// transfer of another size, makes the case ready: Select returns its index and
// the error, and the offer stays. A nil channel is never ready.
func ReceiveIndCase(ch *Channel, data any, size ...int) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.D2H, op: opReceiveInd, transfer: &transferOf{data, size},
		try:  func(ctx context.Context, _ chan<- struct{}) (bool, error) { return ch.tryReceiveInd(ctx, data, size) },
		call: func(ctx context.Context) (int, error) { return ch.ReceiveInd(ctx, data, size...) }}
}

// OfferCase is ready when the device offers something, whose kind and size it
// stores in *offer, which may be nil. It takes nothing, as Next; the receive that
// fits follows. A nil channel is never ready.
func OfferCase(ch *Channel, offer *Offer) Case {
	if ch == nil {
		return Case{}
	}
	store := func(o Offer, ok bool) {
		if ok && offer != nil {
			*offer = o
		}
	}
	return Case{ch: ch, half: abi.D2H, op: opNext,
		try: func(context.Context, chan<- struct{}) (bool, error) {
			o, ok, err := ch.ch.TryNext()
			store(o, ok)
			return ch.unlessBusy(ok, opNext, err)
		},
		call: func(ctx context.Context) (int, error) {
			o, err := ch.Next(ctx)
			store(o, err == nil)
			return 0, err
		}}
}

// unlessBusy returns what a case that receives found. While another call
// receives it is not ready: that one's end wakes who waits.
func (c *Channel) unlessBusy(ok bool, op string, err error) (bool, error) {
	if errors.Is(err, ErrBusy) {
		return false, nil
	}
	return ok, c.fail(op, err)
}

// ReceiveCase takes a message into buf and stores its length in *n, which may
// be nil. A channel that is closed, or that offers what buf cannot take, makes
// the case ready: Select returns its index and the error, and the offer stays.
// A nil channel is never ready.
func ReceiveCase(ch *Channel, buf []byte, n *int) Case {
	if ch == nil {
		return Case{}
	}
	store := func(got int, ok bool) {
		if ok && n != nil {
			*n = got
		}
	}
	return Case{ch: ch, half: abi.D2H, op: opReceive,
		try: func(context.Context, chan<- struct{}) (bool, error) {
			got, ok, err := ch.ch.TryReceive(buf)
			store(got, ok)
			return ch.unlessBusy(ok, opReceive, err)
		},
		call: func(ctx context.Context) (int, error) {
			got, err := ch.Receive(ctx, buf)
			store(got, err == nil)
			return got, err
		}}
}

// GoSend sends v on a native Go channel. As in a select statement, a nil
// channel is never ready and a closed one panics.
func GoSend[T any](c chan<- T, v T) Case {
	return Case{
		try: func(context.Context, chan<- struct{}) (bool, error) {
			select {
			case c <- v:
				return true, nil
			default:
				return false, nil
			}
		},
		call: func(ctx context.Context) (int, error) {
			select {
			case c <- v:
				return 0, nil
			case <-ctx.Done():
				return 0, wrap(opSend, "", 0, &WithdrawnError{Cause: ctx.Err()})
			}
		},
		native: reflect.SelectCase{Dir: reflect.SelectSend, Chan: reflect.ValueOf(c), Send: reflect.ValueOf(&v).Elem()},
	}
}

// GoReceive receives from a native Go channel into *v and stores in *ok whether
// there was a value; false means the channel is closed. Both may be nil. A nil
// channel is never ready.
func GoReceive[T any](c <-chan T, v *T, ok *bool) Case {
	store := func(got T, open bool) {
		if v != nil {
			*v = got
		}
		if ok != nil {
			*ok = open
		}
	}
	return Case{
		try: func(context.Context, chan<- struct{}) (bool, error) {
			select {
			case got, open := <-c:
				store(got, open)
				return true, nil
			default:
				return false, nil
			}
		},
		call: func(ctx context.Context) (int, error) {
			select {
			case got, open := <-c:
				store(got, open)
				return 0, nil
			case <-ctx.Done():
				return 0, wrap(opReceive, "", 0, &WithdrawnError{Cause: ctx.Err()})
			}
		},
		native: reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)},
		taken: func(r reflect.Value, open bool) {
			got, _ := r.Interface().(T) // a nil interface is the zero value
			store(got, open)
		},
	}
}

// Default is chosen when no other case is ready: Select then does not wait.
func Default() Case { return Case{fallback: true} }
