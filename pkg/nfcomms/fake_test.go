package nfcomms

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/waiter"
)

// The fake is a device whose processes are the test itself: a rendezvous in
// plain Go, for unit tests of this package alone.

func init() {
	bridge.Register("fake", func(_ context.Context, a bridge.Address, _ *bridge.Options) (bridge.Device, error) {
		if err := a.Only("managers"); err != nil {
			return nil, err
		}
		return &fakeDevice{address: a.String(), open: make(map[Target]*fakeChannel)}, nil
	})
}

// fakeDevice holds targets 1 to 99 and the program "idle".
type fakeDevice struct {
	bridge.Device // nil: what the tests do not use
	address       string
	mu            sync.Mutex
	open          map[Target]*fakeChannel
	closed        bool
}

func (d *fakeDevice) Info() Info                  { return Info{Address: d.address, Driver: "fake"} }
func (d *fakeDevice) Stats() Stats                { return Stats{Resets: 7} }
func (d *fakeDevice) Health() (Health, error)     { return Health{}, bridge.ErrDeviceLost }
func (d *fakeDevice) Reset(context.Context) error { return bridge.ErrNotSupported }

func (d *fakeDevice) Subscribe(_ context.Context, t Target) (bridge.Channel, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, bridge.ErrClosed
	case t == 0 || t > 99:
		return nil, bridge.ErrNotSubscribed
	case d.open[t] != nil:
		return nil, bridge.ErrBusy
	}
	c := &fakeChannel{target: t, changed: make(chan struct{})}
	d.open[t] = c
	return c, nil
}

func (d *fakeDevice) Start(_ context.Context, p Program) (Process, error) {
	if p.Name != "idle" {
		return Process{}, bridge.ErrNoProgram
	}
	return Process{ID: 1, First: 16, Targets: p.Targets}, nil
}

func (d *fakeDevice) Stop(_ context.Context, id ProcessID) error {
	if id != 1 {
		return bridge.ErrInvalid
	}
	return nil
}

func (d *fakeDevice) Load(_ context.Context, image []byte) (string, error) {
	if string(image) != "idle" {
		return "", bridge.ErrABI
	}
	return "idle", nil
}

func (d *fakeDevice) Programs(context.Context) ([]string, error) { return []string{"idle"}, nil }

func (d *fakeDevice) Running(context.Context, ProcessID) (bool, error) { return false, nil }

func (d *fakeDevice) Memory(_ context.Context, kind int) (bridge.Memory, error) {
	if kind < abi.CLS || kind > abi.EMEM {
		return bridge.Memory{}, bridge.ErrInvalid
	}
	return bridge.Memory{Size: 4096}, nil
}

func (d *fakeDevice) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	for _, c := range d.open {
		_ = c.Close()
	}
	return nil
}

// fakeOffer is a message or transfer that one side holds ready.
type fakeOffer struct {
	data     []byte
	indirect bool
	taken    bool // the other side is at it: too late to withdraw
	done     bool
	err      error
}

// fakeHalf is one direction: at most one offer, at most one waiter for it.
type fakeHalf struct {
	offer   *fakeOffer
	closed  bool
	reading bool // somebody on the accepting side waits
	waiters waiter.Queue
}

type fakeChannel struct {
	target  Target
	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every change
	half    [2]fakeHalf
	disarms int
}

func (c *fakeChannel) Target() Target { return c.target }

// change runs f under the lock and wakes all waiters.
func (c *fakeChannel) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	close(c.changed)
	c.changed = make(chan struct{})
	for i := range c.half {
		h := &c.half[i]
		ready := h.closed || h.reading && i == int(abi.H2D) || h.offer != nil && i == int(abi.D2H)
		for ready && h.waiters.Wake() != nil {
		}
	}
}

// until waits until f, run under the lock, returns true.
func (c *fakeChannel) until(ctx context.Context, f func() bool) error {
	for {
		ok := false
		var changed chan struct{}
		c.change1(func() { ok, changed = f(), c.changed })
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change1 runs f under the lock and wakes nobody.
func (c *fakeChannel) change1(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// give offers data on a half and waits until it was taken.
func (c *fakeChannel) give(ctx context.Context, d abi.Direction, data []byte, indirect bool) error {
	h := &c.half[d]
	o := &fakeOffer{data: data, indirect: indirect}
	placed := false
	err := c.until(ctx, func() bool {
		placed = !h.closed && h.offer == nil
		if placed {
			h.offer = o
		}
		return placed || h.closed
	})
	if err == nil && !placed {
		return bridge.ErrClosed
	}
	if err == nil {
		c.change(func() {})
		err = c.until(ctx, func() bool { return o.done || h.closed && !o.taken })
	}
	c.settle(o)
	c.change(func() {
		switch {
		case o.done:
			err = o.err
		case err == nil:
			err = bridge.ErrClosed
		default:
			err = &WithdrawnError{Cause: err}
		}
		if h.offer == o {
			h.offer = nil
		}
	})
	return err
}

// settle waits until nobody is at an offer.
func (c *fakeChannel) settle(o *fakeOffer) {
	_ = c.until(context.Background(), func() bool { return o.done || !o.taken })
}

// take waits for an offer and ends it with what f returns; keep leaves it.
func (c *fakeChannel) take(ctx context.Context, d abi.Direction, f func(o *fakeOffer) (keep bool, err error)) error {
	h := &c.half[d]
	busy := false
	c.change(func() { busy, h.reading = h.reading, true })
	if busy {
		return bridge.ErrBusy
	}
	defer c.change1(func() { h.reading = false })
	var o *fakeOffer
	look := func() bool {
		o = h.offer
		if o != nil {
			o.taken = true
		}
		return o != nil || h.closed
	}
	err := c.until(ctx, look)
	// TrySend may have committed just before ctx ended.
	if err != nil {
		c.change1(func() { look() })
	}
	if err != nil && o == nil {
		return &WithdrawnError{Cause: err}
	}
	if o == nil {
		return bridge.ErrClosed
	}
	c.change(func() {}) // o.taken
	keep, err := f(o)
	c.change(func() {
		if o.taken = false; !keep {
			o.done, o.err, h.offer = true, err, nil
		}
	})
	return err
}

func (c *fakeChannel) Send(ctx context.Context, msg []byte) error {
	return c.give(ctx, abi.H2D, slices.Clone(msg), false)
}

func (c *fakeChannel) SendInd(ctx context.Context, data []byte) error {
	return c.give(ctx, abi.H2D, data, true)
}

func (c *fakeChannel) Receive(ctx context.Context, buf []byte) (n int, err error) {
	err = c.take(ctx, abi.D2H, func(o *fakeOffer) (bool, error) {
		n, err = o.into(buf)
		return err != nil, err
	})
	return n, err
}

// into copies a message.
func (o *fakeOffer) into(buf []byte) (int, error) {
	if o.indirect {
		return 0, bridge.ErrKindMismatch
	}
	if len(o.data) > len(buf) {
		return 0, bridge.ErrTooLarge
	}
	return copy(buf, o.data), nil
}

// fits returns what is wrong with a receive of size bytes.
func (o *fakeOffer) fits(size uint64) error {
	if !o.indirect {
		return bridge.ErrKindMismatch
	}
	if uint64(len(o.data)) != size {
		return &SizeError{Host: size, Device: uint64(len(o.data))}
	}
	return nil
}

func (c *fakeChannel) ReceiveFunc(ctx context.Context, fn func([]byte) error) error {
	return c.take(ctx, abi.D2H, func(o *fakeOffer) (bool, error) {
		err := fn(o.data)
		return err != nil, err
	})
}

func (c *fakeChannel) ReceiveInd(ctx context.Context, data []byte) error {
	place := func() ([]byte, error) { return data, nil }
	return c.ReceiveIndFunc(ctx, uint64(len(data)), place, func([]byte) error { return nil })
}

func (c *fakeChannel) ReceiveIndFunc(ctx context.Context, size uint64, place func() ([]byte, error), fn func([]byte) error) error {
	return c.take(ctx, abi.D2H, func(o *fakeOffer) (bool, error) {
		if err := o.fits(size); err != nil {
			return true, err
		}
		data, err := place()
		if err != nil {
			return true, err
		}
		copy(data, o.data)
		return false, fn(data)
	})
}

func (c *fakeChannel) Next(ctx context.Context) (next Offer, err error) {
	err = c.take(ctx, abi.D2H, func(o *fakeOffer) (bool, error) {
		next = Offer{Indirect: o.indirect, Size: uint64(len(o.data))}
		return true, nil
	})
	return next, err
}

func (c *fakeChannel) TrySend(msg []byte, _ chan<- struct{}) (ok bool, err error) {
	return c.tryGive(slices.Clone(msg), false)
}

func (c *fakeChannel) TrySendInd(_ context.Context, data []byte, _ chan<- struct{}) (bool, error) {
	return c.tryGive(slices.Clone(data), true)
}

// tryGive offers data if somebody reads now.
func (c *fakeChannel) tryGive(data []byte, indirect bool) (ok bool, err error) {
	c.change(func() {
		h := &c.half[abi.H2D]
		ok = h.reading && h.offer == nil && !h.closed
		if ok {
			h.offer = &fakeOffer{data: data, indirect: indirect}
			h.reading = false // it is taken: nobody else may have this turn
		}
		if h.closed {
			err = bridge.ErrClosed
		}
	})
	return ok, err
}

func (c *fakeChannel) TryReceive(buf []byte) (n int, ok bool, err error) {
	ok, err = c.tryTake(func(o *fakeOffer) (err error) { n, err = o.into(buf); return err })
	return n, ok, err
}

func (c *fakeChannel) TryReceiveInd(_ context.Context, data []byte) (bool, error) {
	return c.tryTake(func(o *fakeOffer) error {
		err := o.fits(uint64(len(data)))
		if err == nil {
			copy(data, o.data)
		}
		return err
	})
}

func (c *fakeChannel) TryNext() (offer Offer, ok bool, err error) {
	looked := errors.New("looked")
	_, err = c.tryTake(func(o *fakeOffer) error {
		offer = Offer{Indirect: o.indirect, Size: uint64(len(o.data))}
		return looked
	})
	if err == looked {
		return offer, true, nil
	}
	return offer, false, err
}

// tryTake takes what is offered now, unless f returns an error.
func (c *fakeChannel) tryTake(f func(o *fakeOffer) error) (ok bool, err error) {
	c.change(func() {
		h := &c.half[abi.D2H]
		o := h.offer
		if o == nil && h.closed {
			err = bridge.ErrClosed
		}
		if o == nil || o.taken {
			return
		}
		if err = f(o); err == nil {
			ok, o.done, h.offer = true, true, nil
		}
	})
	return ok, err
}

func (c *fakeChannel) Arm(d abi.Direction, wake chan<- struct{}) error {
	c.change(func() { c.half[d].waiters.Add(wake) })
	return nil
}

func (c *fakeChannel) Disarm(d abi.Direction, wake chan<- struct{}) {
	c.change1(func() { c.half[d].waiters.Remove(wake); c.disarms++ })
}

func (c *fakeChannel) CloseSend() error {
	c.change(func() { c.half[abi.H2D].closed = true })
	return nil
}

func (c *fakeChannel) CloseReceive() error {
	c.change(func() { c.half[abi.D2H].closed = true })
	return nil
}

func (c *fakeChannel) Close() error {
	_ = c.CloseSend()
	return c.CloseReceive()
}

func (c *fakeChannel) Stats() ChannelStats              { return ChannelStats{Lists: 3} }
func (c *fakeChannel) Halves() bridge.Both[bridge.Half] { return bridge.Both[bridge.Half]{} }

func (c *fakeChannel) Delivered(abi.Direction, bool) *atomic.Uint64 { return new(atomic.Uint64) }

// The device's side.

// read takes what the host sends, message or transfer.
func (c *fakeChannel) read(ctx context.Context) (data []byte, err error) {
	err = c.take(ctx, abi.H2D, func(o *fakeOffer) (bool, error) {
		data = slices.Clone(o.data)
		return false, nil
	})
	return data, err
}

// write gives a message.
func (c *fakeChannel) write(ctx context.Context, msg []byte) error {
	return c.give(ctx, abi.D2H, msg, false)
}

// writeInd gives a transfer.
func (c *fakeChannel) writeInd(ctx context.Context, data []byte) error {
	return c.give(ctx, abi.D2H, data, true)
}
