package mailbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// A channel to another host has no process that waits. In place of one, a call that waits to
// receive sends READY to a host that asks. It keeps an offer until the call has run, although the
// sender withdraws it. Record 0086.

const (
	comeTime    = 5 * time.Millisecond  // for a woken waiter to take an offer that is being withdrawn
	backoffStep = 20 * time.Microsecond // at most, after the first refused try …
	backoffMost = 6                     // … doubled after each further one, so many times
)

// refusesTries reports whether a send to this channel cannot be tried: the device does not report
// whether the other host waits.
func (c *channel) refusesTries() bool {
	return c.relay && c.ep.Hello.Capabilities&wire.CapReady == 0
}

// enterTry takes the queue for a try; false if it is another's. A waiter that tries to send to a
// host does not wait to receive on the channel: the other host may try, too, and neither would be
// answered.
func (h *sender) enterTry(wake chan<- struct{}) bool {
	if h.queue.try() {
		return true
	}
	leased := h.lease(wake)
	if leased && h.ch.relay {
		h.ch.Disarm(abi.D2H, wake)
	}
	return leased
}

// signal wakes the waiter that the queue is kept for: the target waits. A host that waited, and
// then refused the try, may itself try to send to this one: a random delay separates the two.
func (h *sender) signal() {
	if n := h.refusals.Load(); n > 0 {
		time.AfterFunc(rand.N(backoffStep<<min(n-1, backoffMost)), h.queue.signal)
	} else {
		h.queue.signal()
	}
}

// expect keeps the next offer of another host for the call. Must hold queue.
func (h *receiver) expect() {
	if !h.ch.relay {
		return
	}
	h.mu.Lock()
	h.expects = true
	h.mu.Unlock()
	h.sayReady()
}

// unexpect ends expect. The call takes or releases an offer that arrived. Must hold queue.
func (h *receiver) unexpect() {
	if h.ch.relay {
		h.mu.Lock()
		h.cameLocked()
		h.mu.Unlock()
	}
}

// cameLocked records that a call handles the offer. Must hold mu.
func (h *receiver) cameLocked() {
	h.expects, h.woken = false, nil
	h.coming.Store(false)
}

// claimOfHost is claim where another host offers. Must hold queue.
func (h *receiver) claimOfHost(ctx context.Context) error {
	if !h.offered() {
		h.expect()
	}
	err := h.claimOffer(ctx)
	if err != nil {
		h.unexpect()
		h.release()
	}
	return err
}

// hold holds the offer for the call, or finds it held; false if it was withdrawn. Must hold queue.
func (h *receiver) hold() bool {
	if _, ok := h.act(proto.Hold); ok && !h.ch.relay {
		return true
	}
	return h.ch.relay && h.adopt()
}

// adopt takes the offer that was kept for this call, or for a later one; false if it was withdrawn.
// Must hold queue.
func (h *receiver) adopt() bool {
	h.mu.Lock()
	h.cameLocked()
	h.mu.Unlock()
	h.seen(proto.EventOffer)
	held := standOf(h.word.Load()).Marks()&proto.MarkHeld != 0
	if !held { // the call waits on
		h.expect()
	}
	return held
}

// arrivedLocked keeps what another host offers for the call that expects it. Must hold rx.
func (h *receiver) arrivedLocked() {
	h.asked.Store(false)
	h.mu.Lock()
	if h.expects {
		h.keep()
	}
	h.mu.Unlock()
}

// recalledLocked bounds how long what is wanted back is kept for a waiter. Must hold rx.
func (h *receiver) recalledLocked() {
	h.mu.Lock()
	wake := h.woken
	h.mu.Unlock()
	if wake != nil {
		time.AfterFunc(comeTime, func() { h.part(wake) })
	}
}

// part records that a woken waiter will not run. It must hold no lock.
func (h *half) part(wake chan<- struct{}) {
	h.mu.Lock()
	recalled := h.leaveLocked(wake)
	h.mu.Unlock()
	h.giveBack(recalled)
	h.pass()
}

// giveBack answers the device that wants its offer back. It must hold no lock.
func (h *half) giveBack(recalled bool) {
	if recalled {
		h.reply(wire.TypeWithdrawn)
	}
}

// askedLocked takes note of a host that asks whether this one waits. Must hold rx.
func (h *receiver) askedLocked() {
	h.asked.Store(true)
	h.mu.Lock()
	waits := h.expects || h.waiters.Len() > 0 || stateOf(h.word.Load()) == proto.StatePosted
	h.mu.Unlock()
	if waits && h.asked.CompareAndSwap(true, false) {
		h.mailbox.replyLocked(&h.half, wire.TypeReady)
	}
}

// sayReady says READY to a host that asked: somebody waits here. It must hold no lock.
func (h *receiver) sayReady() {
	if h.asked.Load() && h.asked.CompareAndSwap(true, false) {
		h.reply(wire.TypeReady)
	}
}

// reply puts a note that the device waits for, when there is room. It must hold no lock.
func (h *half) reply(t wire.Type) {
	h.mailbox.rx.Lock()
	h.mailbox.replyLocked(h, t)
	h.mailbox.rx.Unlock()
}
