package kdev

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/waiter"
)

// Channel is the host's end of one channel. It implements bridge.Channel.
type Channel struct {
	dev    *Device
	handle uint32
	target bridge.Target
	halves [2]half // by abi.Direction

	closing sync.Mutex // held across a close, which waits for calls
	closed  uint16     // halves whose CLOSE is done; guarded by closing
}

var _ bridge.Channel = (*Channel)(nil)

func newChannel(d *Device, handle uint32, target bridge.Target) *Channel {
	c := &Channel{dev: d, handle: handle, target: target}
	for i := range c.halves {
		h := &c.halves[i]
		h.dev, h.ch, h.dir, h.gate = d, c, abi.Direction(i), newGate()
		h.direct.Path, h.indirect.Path = &d.meters[i].direct, &d.meters[i].indirect
	}
	return c
}

func (c *Channel) half(d abi.Direction) *half { return &c.halves[d&1] }

// Target returns the id of the far end.
func (c *Channel) Target() bridge.Target { return c.target }

func tooLarge(n int, limit uint64) error {
	return fmt.Errorf("%d bytes, at most %d: %w", n, limit, bridge.ErrTooLarge)
}

// Send gives one message of at most abi.PayloadSize bytes and returns nil once
// the target took it. When ctx ends first the message is withdrawn and the
// error is a *bridge.WithdrawnError.
func (c *Channel) Send(ctx context.Context, msg []byte) error {
	if len(msg) > abi.PayloadSize && ctx.Err() == nil {
		return tooLarge(len(msg), abi.PayloadSize)
	}
	h, start := c.half(abi.H2D), meter.Now()
	o, err := h.begin(ctx, uapi.OpSend, 0)
	if err == nil {
		o.raw.Length = uint64(copy(o.raw.Payload[:], msg))
		err = h.run(ctx, o)
		h.end(o)
	}
	h.direct.Note(len(msg), err, start)
	return err
}

// TrySend gives msg only if the target is waiting for it now. wake is the waiter
// whose turn it uses, nil for none. False also while another call sends, or
// another waiter has its turn.
func (c *Channel) TrySend(msg []byte, wake chan<- struct{}) (bool, error) {
	if len(msg) > abi.PayloadSize {
		return false, tooLarge(len(msg), abi.PayloadSize)
	}
	h, start, taken := c.half(abi.H2D), meter.Now(), false
	o, err := h.begin(background, uapi.OpSend, uapi.Nowait)
	if err == nil {
		o.raw.Length = uint64(copy(o.raw.Payload[:], msg))
		if taken, err = h.try(background, o, wake); !taken && err == nil {
			return false, nil
		}
	}
	h.direct.Note(len(msg), err, start)
	return taken, err
}

// try runs an operation that does not wait for its target, and ends the call.
// False without an error if nothing happened.
func (h *half) try(ctx context.Context, o *op, wake chan<- struct{}) (bool, error) {
	return h.attempt(o, wake, func() error { return h.run(ctx, o) })
}

// attempt is try with the run of the operation.
func (h *half) attempt(o *op, wake chan<- struct{}, run func() error) (bool, error) {
	defer h.end(o)
	p := h.spend(wake)
	if p != nil {
		o.raw.Flags |= uapi.Hold
	}
	err := run()
	switch {
	case p == nil:
	case err != nil: // the module may not have come to use it
		h.release(p)
	case o.notNow():
		waiter.Token(wake) // it is used, and the waiter comes again
	}
	return err == nil && !o.notNow(), err
}

// Receive takes one message into buf and returns its length. With ErrTooLarge
// the message is longer than buf and stays offered.
func (c *Channel) Receive(ctx context.Context, buf []byte) (int, error) {
	h, start, n := c.half(abi.D2H), meter.Now(), 0
	o, err := h.begin(ctx, uapi.OpReceive, 0)
	if err == nil {
		o.raw.Length = uint64(min(len(buf), abi.PayloadSize))
		if err = h.run(ctx, o); err == nil {
			n = copy(buf, o.message())
		}
		h.end(o)
	}
	h.direct.Note(n, err, start)
	return n, err
}

// message returns the message in a completion.
func (o *op) message() []byte { return o.got.Payload[:min(o.got.Length, abi.PayloadSize)] }

// TryReceive takes a message only if one is offered now.
func (c *Channel) TryReceive(buf []byte) (n int, ok bool, err error) {
	h, start := c.half(abi.D2H), meter.Now()
	o, err := h.begin(background, uapi.OpReceive, uapi.Nowait)
	if err == nil {
		o.raw.Length = uint64(min(len(buf), abi.PayloadSize))
		err = h.run(background, o)
		late := o.notNow()
		if err == nil && !late {
			n = copy(buf, o.message())
		}
		h.end(o)
		if late {
			return 0, false, nil
		}
	}
	h.direct.Note(n, err, start)
	return n, err == nil, err
}

// TrySendInd gives data only if the target waits for it now; the transfer then
// runs to its end, as SendInd. For wake see TrySend.
func (c *Channel) TrySendInd(ctx context.Context, data []byte, wake chan<- struct{}) (bool, error) {
	if limit := c.dev.info.Load().MaxTransfer; uint64(len(data)) > limit {
		return false, tooLarge(len(data), limit)
	}
	return c.half(abi.H2D).tryInd(ctx, uapi.OpSendInd, data, wake)
}

// TryReceiveInd takes a transfer of exactly len(data) bytes only if one is
// offered now; it then runs to its end, as ReceiveInd.
func (c *Channel) TryReceiveInd(ctx context.Context, data []byte) (bool, error) {
	return c.half(abi.D2H).tryInd(ctx, uapi.OpReceiveInd, data, nil)
}

// tryInd is TrySendInd or TryReceiveInd.
func (h *half) tryInd(ctx context.Context, opcode uint16, data []byte, wake chan<- struct{}) (taken bool, err error) {
	start := meter.Now()
	o, err := h.begin(ctx, opcode, uapi.Nowait)
	if err == nil {
		h.memory(o, data)
		if taken, err = h.try(ctx, o, wake); !taken && err == nil {
			return false, nil
		}
	}
	h.indirect.Note(len(data), err, start)
	return taken, err
}

// TryNext returns what the device offers now without taking it; false if
// nothing is offered.
func (c *Channel) TryNext() (bridge.Offer, bool, error) {
	h := c.half(abi.D2H)
	o, err := h.begin(background, uapi.OpNext, uapi.Nowait)
	if err != nil {
		return bridge.Offer{}, false, err
	}
	defer h.end(o)
	if err := h.run(background, o); err != nil || o.notNow() {
		return bridge.Offer{}, false, err
	}
	return o.offer(), true, nil
}

// ReceiveFunc is an extended rendezvous: fn works on the message in place, and
// the device's process is released when fn returns nil. With an error from fn,
// or a panic in it, the message stays offered.
func (c *Channel) ReceiveFunc(ctx context.Context, fn func(msg []byte) error) error {
	h, start, n := c.half(abi.D2H), meter.Now(), 0
	o, err := h.begin(ctx, uapi.OpReceive, uapi.Hold)
	if err == nil {
		o.raw.Length = abi.PayloadSize
		err = h.hold(ctx, o, func() error {
			n = len(o.message())
			return fn(o.message())
		})
	}
	h.direct.Note(n, err, start)
	return err
}

// hold runs an operation that is held, lets fn decide about it, and ends the
// call.
func (h *half) hold(ctx context.Context, o *op, fn func() error) error {
	defer h.end(o)
	if err := h.run(ctx, o); err != nil {
		return err
	}
	agreed := false
	defer func() {
		if !agreed {
			_ = h.decide(uapi.OpRefuse) // fails only when the device is lost
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	agreed = true
	return h.decide(uapi.OpAccept)
}

// decide ends what is held. It is not cancelled: the module answers.
func (h *half) decide(opcode uint16) error {
	o := h.dev.ops.get(opcode, 0, h.ch.handle, nil)
	h.dev.sub.put(o)
	<-o.done
	err := h.outcome(background, o, nil)
	h.dev.ops.put(o)
	return err
}

// SendInd gives len(data) bytes and returns nil once the target holds them
// all. When ctx ends first the transfer is aborted; data is given back, on
// every path, only when the device cannot touch it any more.
func (c *Channel) SendInd(ctx context.Context, data []byte) error {
	if limit := c.dev.info.Load().MaxTransfer; uint64(len(data)) > limit && ctx.Err() == nil {
		return tooLarge(len(data), limit)
	}
	h, start := c.half(abi.H2D), meter.Now()
	o, err := h.begin(ctx, uapi.OpSendInd, 0)
	if err == nil {
		h.memory(o, data)
		o.raw.TimeoutNS = timeout(ctx)
		err = h.run(ctx, o)
		h.end(o)
	}
	h.indirect.Note(len(data), err, start)
	return err
}

// ReceiveInd takes a transfer of exactly len(data) bytes.
func (c *Channel) ReceiveInd(ctx context.Context, data []byte) error {
	h, start := c.half(abi.D2H), meter.Now()
	o, err := h.begin(ctx, uapi.OpReceiveInd, 0)
	if err == nil {
		h.memory(o, data)
		err = h.run(ctx, o)
		h.end(o)
	}
	h.indirect.Note(len(data), err, start)
	return err
}

// ReceiveIndFunc is ReceiveInd as an extended rendezvous, into memory that place
// finds once the transfer is offered: when the bytes have arrived fn works on
// them, and nil from fn commits the transfer. With an error from place, or a
// panic in it, the transfer stays offered; one from fn aborts it.
func (c *Channel) ReceiveIndFunc(ctx context.Context, size uint64, place func() ([]byte, error), fn func(data []byte) error) error {
	h, start := c.half(abi.D2H), meter.Now()
	err := h.reserve()
	if err == nil {
		defer h.unreserve()
		err = h.receivePlaced(ctx, size, place, fn)
	}
	h.indirect.Note(int(size), err, start)
	return err
}

// reserve keeps other receives off while this one finds memory between two
// operations, in which the module would let them in.
func (h *half) reserve() error {
	if !h.reserved.CompareAndSwap(false, true) {
		return bridge.ErrBusy
	}
	return nil
}

// unreserve ends reserve: who waits may look at what is left.
func (h *half) unreserve() {
	h.reserved.Store(false)
	h.pass()
}

// receivePlaced is ReceiveIndFunc. Must have reserved the half.
func (h *half) receivePlaced(ctx context.Context, size uint64, place func() ([]byte, error), fn func(data []byte) error) error {
	o, err := h.enter(ctx, uapi.OpNext, 0)
	if err != nil {
		return err
	}
	offer, err := h.next(ctx, o)
	switch {
	case err != nil:
		return err
	case !offer.Indirect:
		return bridge.ErrKindMismatch
	case offer.Size != size:
		return &bridge.SizeError{Host: size, Device: offer.Size}
	}
	data, err := place()
	if err == nil && uint64(len(data)) != size {
		err = fmt.Errorf("%d bytes of memory for a transfer of %d: %w", len(data), size, bridge.ErrInvalid)
	}
	if err != nil {
		return err
	}
	if o, err = h.enter(ctx, uapi.OpReceiveInd, uapi.Hold); err != nil {
		return err
	}
	h.memory(o, data)
	return h.hold(ctx, o, func() error { return fn(data) })
}

// Next waits for the device's next offer and returns it without taking it.
func (c *Channel) Next(ctx context.Context) (bridge.Offer, error) {
	h := c.half(abi.D2H)
	o, err := h.begin(ctx, uapi.OpNext, 0)
	if err != nil {
		return bridge.Offer{}, err
	}
	return h.next(ctx, o)
}

// next runs a NEXT and ends the call.
func (h *half) next(ctx context.Context, o *op) (bridge.Offer, error) {
	defer h.end(o)
	if err := h.run(ctx, o); err != nil {
		return bridge.Offer{}, err
	}
	return o.offer(), nil
}

// CloseSend closes the h2d half. Pending sends end with ErrClosed; it waits
// for them. Idempotent.
func (c *Channel) CloseSend() error { return c.close(uapi.H2D) }

// CloseReceive closes the d2h half. A pending receive ends with ErrClosed; it
// waits for it, so a function given to ReceiveFunc or ReceiveIndFunc must not
// call it. Idempotent.
func (c *Channel) CloseReceive() error { return c.close(uapi.D2H) }

// Close closes both halves and ends the subscription: when it returns, the
// target may be subscribed again. Idempotent; see CloseReceive.
func (c *Channel) Close() error { return c.close(uapi.H2D | uapi.D2H) }

// close ends the calls of some halves and waits for them, and for the device.
func (c *Channel) close(flags uint16) error {
	for i := range c.halves {
		if h := &c.halves[i]; flags&h.flag() != 0 {
			h.gate.shut(shutHost)
			h.fire()
		}
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	flags &^= c.closed
	if flags == 0 {
		return nil
	}
	err := c.sayClose(flags)
	for i := range c.halves {
		if h := &c.halves[i]; flags&h.flag() != 0 {
			_ = h.gate.wait(background)
		}
	}
	c.closed |= flags
	if c.closed == uapi.H2D|uapi.D2H {
		c.dev.retire(c)
	}
	return err
}

// sayClose makes the module close some halves, unless the device is lost: a
// lost device has no subscription either.
func (c *Channel) sayClose(flags uint16) error {
	if c.dev.gate.enter() != 0 {
		return nil
	}
	defer c.dev.gate.leave()
	h := &c.halves[0]
	if h.gate.why()&shutLost != 0 {
		return nil
	}
	o := c.dev.ops.get(uapi.OpClose, flags, c.handle, nil)
	defer c.dev.ops.put(o)
	c.dev.sub.put(o)
	<-o.done
	if err := h.outcome(background, o, nil); err != nil && !isGone(err) {
		return err
	}
	return nil
}

// Halves describes both halves as they are now: the operations in the module, and the waiters here.
func (c *Channel) Halves() (s bridge.Both[bridge.Half]) {
	now, _ := c.ask() // of a lost channel all is idle
	for d := range abi.Direction(2) {
		h, m := &c.halves[d], [...]uapi.HalfInfo{now.H2D, now.D2H}[d]
		h.mu.Lock()
		*s.Of(d) = bridge.Half{
			State: max(bridge.HalfState(m.State), bridge.HalfIdle), Transaction: m.Transaction,
			Closed: h.gate.why() != 0, Waiting: int(h.waiting.Load()), Queued: int(m.Queued),
			Armed: int(h.armed.Load()) + len(h.places), Slept: time.Duration(m.SleptNS),
		}
		h.mu.Unlock()
	}
	return s
}

// ask asks the module about the channel.
func (c *Channel) ask() (uapi.Channel, bool) {
	now := uapi.Channel{Channel: c.handle}
	now.Size = uint32(unsafe.Sizeof(now))
	ok := c.dev.ioctl(uapi.IOCChannel, unsafe.Pointer(&now)) == 0
	return now, ok
}

// Delivered returns the counter of a half's messages, or of its transfers.
func (c *Channel) Delivered(d abi.Direction, transfers bool) *atomic.Uint64 {
	h := &c.halves[d]
	if transfers {
		return h.indirect.Delivered()
	}
	return h.direct.Delivered()
}

// Stats returns counters since Subscribe.
func (c *Channel) Stats() bridge.ChannelStats {
	var s bridge.ChannelStats
	moving := false
	for d := range abi.Direction(2) {
		h := &c.halves[d]
		*s.Transfers.Of(d) = int(min(h.moving.Load(), 1))
		moving = moving || *s.Transfers.Of(d) > 0
		*s.Direct.Of(d), *s.Indirect.Of(d) = h.direct.Stats(), h.indirect.Stats()
		s.Lists += h.lists.Load()
		s.Repeated += h.repeated.Load()
		s.Registered += h.registered.Load()
		s.Unaligned += h.unaligned.Load()
		s.Sleeps += h.parked.Load()
		*s.Waiting.Of(d) = int(h.waiting.Load())
	}
	if moving {
		if now, ok := c.ask(); ok {
			s.Lists, s.Repeated = max(s.Lists, now.Lists), max(s.Repeated, now.Repeated)
		}
	}
	return s
}
