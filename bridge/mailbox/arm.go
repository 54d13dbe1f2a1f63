package mailbox

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/waiter"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Arm asks for a token on wake, without blocking, when the given half is shut. A wake that is first
// in the queue also gets one when the device may be ready for the half. See bridge.Channel.
func (c *channel) Arm(direction abi.Direction, wake chan<- struct{}) error {
	h := c.half(uint32(direction))
	if h.shut.Load()&shutHere != 0 {
		return h.err()
	}
	if h.dir == abi.H2D && c.refusesTries() {
		return errTryHost
	}
	if h.dir == abi.H2D {
		c.send.armSend(wake)
	} else {
		c.recv.armReceive(wake)
	}
	h.mailbox.ep.watch.wakeUp()
	// An offer that arrived before the waiter rang no bell, and a call that polls now stops at
	// its own event. So this waits for that call, and then polls itself.
	if _, dry := h.mailbox.drain(); !dry {
		waiter.Token(wake)
	}
	h.pass()
	if h.shut.Load() != 0 {
		h.giveBack(h.wakeAll())
	}
	return nil
}

// armSend queues a waiter among the senders.
func (h *sender) armSend(wake chan<- struct{}) {
	h.armed(1) // first: READY may arrive at once
	if !h.queue.join(wake) {
		h.armed(-1)
		return
	}
	h.spinReady(wake)
}

// spinReady polls the mailbox, for everybody, while the device may answer the question of a new
// waiter. A target that waits answers at once, and parking for that costs far more.
func (h *sender) spinReady(wake chan<- struct{}) {
	for round := shareSpins; round > 0 && h.queue.unanswered(wake); round-- {
		if h.pollFor(0, h.spin.full); h.shut.Load() != 0 {
			return
		}
		h.mailbox.ep.dev.port.Yield()
	}
}

// armReceive queues a waiter for what the device offers. One that was woken for another host's offer,
// and has not looked, has that kept.
func (h *receiver) armReceive(wake chan<- struct{}) {
	h.mu.Lock()
	if !h.ch.relay {
		h.leaveLocked(wake)
	} else if h.woken == wake {
		waiter.Token(wake)
	}
	added := h.waiters.Add(wake)
	h.mu.Unlock()
	if added {
		h.armed(1)
	}
	h.sayReady()
}

// armed counts a waiter that arms (1) or disarms (-1). They need a doorbell, and
// somebody who notices when the device dies.
func (h *half) armed(n int) {
	h.arms.Add(int32(n))
	h.mailbox.ep.dev.armed.Add(int64(n))
	if n > 0 {
		h.park()
		return
	}
	for ; n < 0; n++ {
		h.unpark()
	}
}

// Disarm takes an Arm back: the next waiter is the first then. The token may be on
// its way.
func (c *channel) Disarm(direction abi.Direction, wake chan<- struct{}) {
	h := c.half(uint32(direction))
	if h.dir == abi.H2D {
		if h.queue.part(wake) {
			h.armed(-1)
		}
		return
	}
	h.mu.Lock()
	removed := h.waiters.Remove(wake)
	h.mu.Unlock()
	if removed {
		h.armed(-1)
	}
	h.part(wake)
}

// pass wakes the first waiter for an offer, if there is an offer and no call has the half. Every
// event that can make that true calls pass: an offer, the end of a call, a new waiter, and a woken
// waiter that leaves without the offer.
func (h *half) pass() {
	if h.dir == abi.D2H && h.arms.Load() > 0 && h.offered() && h.queue.free() {
		h.wakeOne()
	}
}

// wakeOne wakes the first waiter for an offer, unless a woken one has not run yet: of two, one
// would find the other in the half.
func (h *half) wakeOne() {
	h.mu.Lock()
	coming := h.woken != nil || !h.keepLocked()
	if !coming {
		h.woken = h.waiters.Wake()
		h.coming.Store(h.woken != nil)
	}
	woken := !coming && h.woken != nil
	h.mu.Unlock()
	if woken {
		h.armed(-1)
	}
}

// keepLocked keeps another host's offer for the waiter that is to be woken; false if a call has it,
// or there is no waiter. A process can withdraw its offer at any time. Must hold mu. Must hold mu.
func (h *half) keepLocked() bool {
	if !h.ch.relay {
		return true
	}
	return h.waiters.Len() > 0 && h.keep()
}

// came records that the woken waiter, or another call, has the half. It
// costs nothing where nobody waits. Of another host's offer see hold.
func (h *half) came() {
	if h.coming.Load() && !h.ch.relay {
		h.mu.Lock()
		h.woken = nil
		h.coming.Store(false)
		h.mu.Unlock()
	}
}

// leaveLocked records that a waiter gives up, if it was woken. An offer that was kept for it is
// free again; true if the offer is to be released. Must hold mu.
func (h *half) leaveLocked(wake chan<- struct{}) (recalled bool) {
	if h.woken != wake || wake == nil {
		return false
	}
	h.woken = nil
	h.coming.Store(false)
	if !h.ch.relay {
		return false
	}
	e, _ := h.act(proto.Release)
	return e == proto.EventRecalled
}

// wakeAll wakes all waiters: the half is shut. An offer that was kept for one of them is to be
// released if the result is true.
func (h *half) wakeAll() (recalled bool) {
	h.mu.Lock()
	n := h.waiters.Len()
	for h.waiters.Wake() != nil {
	}
	recalled = h.leaveLocked(h.woken)
	h.mu.Unlock()
	n += h.queue.partAll()
	if n > 0 {
		h.armed(-n)
	}
	return recalled
}

// ask sends OFFER: the device answers READY when the target waits to read. The
// queue is kept meanwhile, which orders OFFER with the ids.
func (h *sender) ask() {
	if h.shut.Load() == 0 {
		_ = h.putNote(wire.TypeOffer, h.id()+1) // fails only when the device is lost
	}
}

// tried takes note of what became of a try. A waiter has used its place, and arms again if it was
// refused. Must hold queue.
func (h *sender) tried(refused bool, wake chan<- struct{}) {
	if refused && wake != nil {
		waiter.Token(wake)
	}
	switch {
	case !h.ch.relay:
	case refused:
		h.refusals.Add(1)
	default:
		h.refusals.Store(0)
	}
}

// lease takes the lock that is kept for a waiter, whose target waits.
func (h *sender) lease(wake chan<- struct{}) bool {
	leased := wake != nil && h.queue.lease(wake)
	if leased {
		h.armed(-1)
	}
	return leased
}
