package nfcomms

import (
	"context"
	"errors"
	"reflect"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Case is one alternative of Select. The zero Case is never ready.
type Case struct {
	// ch and half are set for a device channel.
	ch   *Channel
	half abi.Direction
	// try takes effect now or not at all; nil is never ready. A transfer
	// that began runs to its end, or that of ctx. wake is who is armed.
	try func(ctx context.Context, wake chan<- struct{}) (bool, error)
	// native is how to wait for a Go channel; taken stores what came.
	native reflect.SelectCase
	taken  func(v reflect.Value, ok bool)
	// fallback marks Default.
	fallback bool
}

// SendCase gives msg to the target. Once chosen, nil from Select means the
// target took it and an error that it did not. A nil channel is never ready.
//
// A Select that waits has its place among those who send on the channel: who
// comes later waits behind it, until the target was ready for it or it chose
// another case.
func SendCase(ch *Channel, msg []byte) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.H2D, try: func(_ context.Context, wake chan<- struct{}) (bool, error) {
		return ch.trySend(msg, wake)
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
	return Case{ch: ch, half: abi.H2D, try: func(ctx context.Context, wake chan<- struct{}) (bool, error) {
		return ch.trySendInd(ctx, wake, data, size)
	}}
}

// ReceiveIndCase takes a transfer that fills data, or its first size bytes, as
// ReceiveInd does. A channel that is closed, or that offers a message or a
// transfer of another size, makes the case ready: Select returns its index and
// the error, and the offer stays. A nil channel is never ready.
func ReceiveIndCase(ch *Channel, data any, size ...int) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.D2H, try: func(ctx context.Context, _ chan<- struct{}) (bool, error) {
		return ch.tryReceiveInd(ctx, data, size)
	}}
}

// OfferCase is ready when the device offers something, whose kind and size it
// stores in *offer, which may be nil. It takes nothing, as Next; the receive that
// fits comes afterwards. A nil channel is never ready.
func OfferCase(ch *Channel, offer *Offer) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.D2H, try: func(context.Context, chan<- struct{}) (bool, error) {
		o, ok, err := ch.ch.TryNext()
		if ok && offer != nil {
			*offer = o
		}
		return ch.unlessBusy(ok, opNext, err)
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
	return Case{ch: ch, half: abi.D2H, try: func(context.Context, chan<- struct{}) (bool, error) {
		got, ok, err := ch.ch.TryReceive(buf)
		if ok && n != nil {
			*n = got
		}
		return ch.unlessBusy(ok, opReceive, err)
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
		native: reflect.SelectCase{Dir: reflect.SelectSend, Chan: reflect.ValueOf(c), Send: reflect.ValueOf(&v).Elem()},
	}
}

// GoReceive receives from a native Go channel into *v and stores in *ok whether
// a value came; false means the channel is closed. Both may be nil. A nil
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
		native: reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)},
		taken: func(r reflect.Value, open bool) {
			got, _ := r.Interface().(T) // a nil interface is the zero value
			store(got, open)
		},
	}
}

// Default is chosen when no other case is ready: Select then does not wait.
func Default() Case { return Case{fallback: true} }
