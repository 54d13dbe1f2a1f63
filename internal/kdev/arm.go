package kdev

import (
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/waiter"
)

// place is what a waiter has among the senders: an ARM in the module's queue,
// which the module holds from when the target waits until a try uses it, or it
// is given back.
type place struct {
	wake chan<- struct{}
	arm  uint64 // user data of the ARM
	held uint64 // its id, while the module keeps the turn; else 0
	gone bool   // nobody waits any more
}

// Arm asks for a token on wake, without blocking, when it is wake's turn and
// the device may be ready for the given half, or when the half is shut. See
// bridge.Channel.
func (c *Channel) Arm(direction abi.Direction, wake chan<- struct{}) error {
	h := c.half(direction)
	if why := h.gate.enter(); why != 0 {
		return h.shutErr(why)
	}
	defer h.gate.leave()
	if h.dir == abi.H2D {
		h.armSend(wake)
		return nil
	}
	h.mu.Lock()
	h.waiters.Add(wake)
	h.armed.Store(int32(h.waiters.Len()))
	h.mu.Unlock()
	h.pass()
	return nil
}

// armSend queues a waiter among the senders.
func (h *half) armSend(wake chan<- struct{}) {
	h.mu.Lock()
	if h.places[wake] != nil {
		h.mu.Unlock()
		return
	}
	o := h.dev.ops.get(uapi.OpArm, uapi.H2D|uapi.Hold, h.ch.handle, h)
	o.place = &place{wake: wake, arm: o.raw.UserData}
	if h.places == nil {
		h.places = make(map[chan<- struct{}]*place)
	}
	h.places[wake] = o.place
	h.mu.Unlock()
	h.dev.sub.put(o)
}

// Disarm takes an Arm back: the next waiter has its turn. The token may be on
// its way.
func (c *Channel) Disarm(direction abi.Direction, wake chan<- struct{}) {
	h := c.half(direction)
	h.mu.Lock()
	h.waiters.Remove(wake)
	h.armed.Store(int32(h.waiters.Len()))
	p := h.places[wake]
	held := p != nil && p.held != 0
	if p != nil {
		h.removeLocked(p)
	}
	h.mu.Unlock()
	if h.gate.enter() != 0 {
		return // the module released it all
	}
	defer h.gate.leave()
	switch {
	case held:
		h.release(p)
	case p != nil:
		cancel := uapi.Cancel{ID: h.dev.ops.id(p.arm)}
		cancel.Size = uint32(unsafe.Sizeof(cancel))
		_ = h.dev.k.ioctl(uapi.IOCCancel, unsafe.Pointer(&cancel)) // it may have ended meanwhile
	default:
		h.pass()
	}
}

// removeLocked forgets a place. Must hold mu.
func (h *half) removeLocked(p *place) {
	p.gone = true
	delete(h.places, p.wake)
}

// release gives back what the module holds for a place. Nobody waits for that.
func (h *half) release(p *place) {
	o := h.dev.ops.get(uapi.OpRefuse, uapi.H2D, h.ch.handle, h)
	o.raw.Operation = p.held
	h.dev.sub.put(o)
}

// spend takes the place that the module holds for a waiter, for the try that
// uses it; nil if it holds none.
func (h *half) spend(wake chan<- struct{}) *place {
	if wake == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.places[wake]
	if p == nil || p.held == 0 {
		return nil
	}
	h.removeLocked(p)
	return p
}

// pass asks for the first waiter for an offer, unless that is under way. It is called where an
// offer may have been left in place: by a waiter, at the end of a call, and by a waiter that was
// woken and leaves.
func (h *half) pass() {
	if h.armed.Load() == 0 || h.reserved.Load() {
		return
	}
	h.mu.Lock()
	ask := !h.asking && h.waiters.Len() > 0
	h.asking = h.asking || ask
	h.mu.Unlock()
	if ask {
		h.dev.sub.put(h.dev.ops.get(uapi.OpArm, uapi.D2H, h.ch.handle, h))
	}
}

// told takes note of the end of an operation that nobody waits for: of an ARM
// of the d2h half, of one with a place, or of a release. held is the id of an ARM whose turn is
// kept, else 0.
func (h *half) told(opcode uint16, p *place, held uint64) {
	h.mu.Lock()
	release := false
	switch {
	case p == nil && opcode == uapi.OpArm:
		h.asking = false
		h.waiters.Wake()
		h.armed.Store(int32(h.waiters.Len()))
	case p == nil:
	case p.gone:
		p.held = held
		release = held != 0
	case held != 0:
		p.held = held
		waiter.Token(p.wake)
	default: // the half is shut
		h.removeLocked(p)
		waiter.Token(p.wake)
	}
	h.mu.Unlock()
	if release {
		h.release(p)
	}
}

// fire wakes all waiters: the half is shut.
func (h *half) fire() {
	h.mu.Lock()
	for h.waiters.Wake() != nil {
	}
	h.armed.Store(0)
	for wake, p := range h.places {
		waiter.Token(wake)
		h.removeLocked(p)
	}
	h.mu.Unlock()
}
