package nfcomms

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
)

// Listener makes this process a target: other hosts of the device dial its name, or subscribe to
// its target, and get a channel to this process. Such a channel carries messages and transfers,
// with the promises of any other. Device programs connect to it, too, by channel_connect: that is
// a channel as to any device process. All methods are safe for concurrent use.
type Listener struct {
	dev   *Device
	epoch uint32
	l     bridge.Listener
	name  string
}

// Listen makes this process a target of the device, by a name that others dial: an ASCII letter,
// and up to 22 letters, digits, dots, underscores and hyphens. An empty name is none: others subscribe to
// [Listener.Target]. The name belongs to this listener until it closes, or until this process
// ends. A listener ends with the device's epoch.
//
// ErrBusy if another listener of the same user has the name, or with [AnyUser] any that has
// AnyUser, too. ErrInvalid for another form of name, ErrNotSupported where the device cannot,
// ErrNoMemory if there are too many listeners, or no context is free.
func (d *Device) Listen(ctx context.Context, name string, options ...Option) (*Listener, error) {
	o, err := optionsOf(ctx, opListen, options)
	if err != nil {
		return nil, d.failNamed(opListen, name, err)
	}
	can, err := d.hosts()
	if err != nil {
		return nil, d.failNamed(opListen, name, err)
	}
	e := d.now()
	do := func() (bridge.Listener, error) {
		return can.Listen(e.in(ctx), bridge.ListenOptions{Name: name, Anyone: o.anyUser})
	}
	l, err := behind(ctx, &d.late, do, func(l bridge.Listener) { _ = l.Close() })
	if err != nil {
		return nil, d.failNamed(opListen, name, err)
	}
	listener := &Listener{d, e.number, l, name}
	d.listening(listener)
	return listener, nil
}

// Dial opens the channel to the listener of a name, in another process that has the same device
// open or in this one. It waits until somebody listens by that name.
// At another node of the fabric the name stands behind the node: "2.0.1/thumbnails".
//
// ErrBusy if as many channels as may wait for that listener, or be open to that process, are there
// already; ErrInvalid for a text that is no name, or a node that is not of the fabric;
// ErrNotSupported where the device keeps no names. If ctx ends while nobody listens, the error is
// ErrNotSubscribed as well as ErrWithdrawn.
func (d *Device) Dial(ctx context.Context, name string, options ...Option) (*Channel, error) {
	o, err := optionsOf(ctx, opDial, options)
	if err != nil {
		return nil, d.failNamed(opDial, name, err)
	}
	can, err := d.hosts()
	if err != nil {
		return nil, d.failNamed(opDial, name, err)
	}
	e := d.now()
	do := func() (bridge.Channel, error) { return dial(e.in(ctx), can, name, o) }
	ch, err := behind(ctx, &d.late, do, closeChannel)
	if err != nil {
		return nil, d.failNamed(opDial, name, err)
	}
	c := &Channel{dev: d, epoch: e.number, ch: ch, name: name}
	d.entered(c)
	return c, nil
}

// dial asks the device for a name, again and again while nobody listens: the device keeps no list
// of hosts that wait.
func dial(ctx context.Context, can bridge.HostListener, name string, o options) (bridge.Channel, error) {
	const first, most = time.Millisecond, 50 * time.Millisecond
	for wait := first; ; wait = min(2*wait, most) {
		ch, err := can.Dial(ctx, name, bridge.DialOptions{Anyone: o.anyUser})
		if !errors.Is(err, ErrNotSubscribed) {
			return ch, err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w", err, &WithdrawnError{Cause: ctx.Err()})
		}
	}
}

// hosts returns the back end, if it has listeners.
func (d *Device) hosts() (bridge.HostListener, error) {
	can, ok := d.dev.(bridge.HostListener)
	if !ok {
		return nil, fmt.Errorf("%w by this back end", ErrNotSupported)
	}
	return can, nil
}

// Name returns the name that was given to Listen.
func (l *Listener) Name() string { return l.name }

// Target returns the id that others give to [Device.Subscribe], of a device opened in
// another process or in this one; hosts at other nodes of a fabric give it with this device's
// place before it ([At]).
func (l *Listener) Target() Target { return l.l.Target() }

// Accept waits for the next host that dials or subscribes, or process that connects, and returns
// the channel to it. Up to 16 channels wait, 8 of one host where no other waits, and may send
// meanwhile: one more is ErrBusy to the caller of Dial or Subscribe. When ctx ends first nobody is
// lost: the next call gets them.
func (l *Listener) Accept(ctx context.Context) (*Channel, error) {
	ch, err := l.l.Accept(ctx)
	if err != nil {
		return nil, l.fail(opAccept, err)
	}
	c := &Channel{dev: l.dev, epoch: l.epoch, ch: ch, name: l.name}
	l.dev.entered(c)
	return c, nil
}

func (l *Listener) fail(op string, err error) error {
	return l.dev.failAt(op, l.Target(), l.name, err)
}

// Close ends the listener, and its name is free. Hosts that were not accepted find their channel
// closed; channels that were accepted stay. It is idempotent.
func (l *Listener) Close() error {
	defer l.dev.unlisted(l)
	return l.fail(opClose, l.l.Close())
}
