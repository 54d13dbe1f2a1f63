package nfcomms

import (
	"reflect"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Case is one alternative of Select. The zero Case is never ready.
type Case struct {
	// ch and half are set for a device channel.
	ch   *Channel
	half abi.Direction
	// try takes effect now or not at all; nil is never ready.
	try func() (bool, error)
	// native is how to wait for a Go channel; taken stores what came.
	native reflect.SelectCase
	taken  func(v reflect.Value, ok bool)
	// fallback marks Default.
	fallback bool
}

// SendCase gives msg to the target. Once chosen, nil from Select means the
// target took it and an error that it did not. A nil channel is never ready.
func SendCase(ch *Channel, msg []byte) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.H2D, try: func() (bool, error) { return ch.TrySend(msg) }}
}

// ReceiveCase takes a message into buf and stores its length in *n, which may
// be nil. A channel that is closed, or that offers what buf cannot take, makes
// the case ready: Select returns its index and the error. A nil channel is
// never ready.
func ReceiveCase(ch *Channel, buf []byte, n *int) Case {
	if ch == nil {
		return Case{}
	}
	return Case{ch: ch, half: abi.D2H, try: func() (bool, error) {
		got, ok, err := ch.TryReceive(buf)
		if ok && n != nil {
			*n = got
		}
		return ok, err
	}}
}

// GoSend sends v on a native Go channel. As in a select statement, a nil
// channel is never ready and a closed one panics.
func GoSend[T any](c chan<- T, v T) Case {
	return Case{
		try: func() (bool, error) {
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
		try: func() (bool, error) {
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
