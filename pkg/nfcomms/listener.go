package nfcomms

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

// ListenOptions says who may connect to a listener. The zero value is valid.
type ListenOptions = bridge.ListenOptions

// Listener makes this process a target: other hosts of the device subscribe to it, and get a
// channel to this process. Such a channel carries messages and transfers, with the promises of
// any other. Device programs connect to it, too, by channel_connect: that is a channel as to any
// device process. All methods are safe for concurrent use.
type Listener struct {
	dev   *Device
	epoch *epoch
	l     bridge.Listener
}

// Listen makes this process a target of the device, for hosts of the same user.
// ErrNotSupported where the device cannot, ErrNoMemory if there are too many listeners, or no
// context is free. A listener ends with the device's epoch.
func (d *Device) Listen(ctx context.Context) (*Listener, error) {
	return d.ListenWith(ctx, ListenOptions{})
}

// ListenWith is Listen with options.
func (d *Device) ListenWith(ctx context.Context, o ListenOptions) (*Listener, error) {
	l := &Listener{dev: d, epoch: d.epoch.Load()}
	can, ok := d.dev.(bridge.HostListener)
	if !ok {
		return nil, d.fail(OpListen, 0, fmt.Errorf("%w by this back end", ErrNotSupported))
	}
	err := l.epoch.call(ctx, func(ctx context.Context) (err error) {
		l.l, err = can.Listen(ctx, o)
		return err
	})
	if err != nil {
		return nil, d.fail(OpListen, 0, err)
	}
	return l, nil
}

// Target returns the id that others give to [Device.Subscribe], of a device opened in
// another process or in this one; hosts at other nodes of a fabric give it with this device's
// place before it ([At]).
func (l *Listener) Target() Target { return l.l.Target() }

// Accept waits for the next host that subscribes, or process that connects, and returns the channel to it. Up to 16
// channels wait, 8 of one host where no other waits, and may send meanwhile: one more is ErrBusy
// to who subscribes. When ctx ends first nobody is lost: the next call gets them.
func (l *Listener) Accept(ctx context.Context) (*Channel, error) {
	c := &Channel{dev: l.dev, epoch: l.epoch}
	err := l.epoch.call(ctx, func(ctx context.Context) (err error) {
		c.ch, err = l.l.Accept(ctx)
		return err
	})
	if err != nil {
		return nil, l.dev.fail(OpAccept, l.Target(), err)
	}
	l.dev.open.add(c)
	return c, nil
}

// Close ends the listener. Hosts that were not accepted find their channel closed; channels
// that were accepted stay. It is idempotent.
func (l *Listener) Close() error { return l.dev.fail(OpClose, l.Target(), l.l.Close()) }
