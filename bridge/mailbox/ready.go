package mailbox

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
)

// What a channel to another host does in place of a process that waits: who waits to receive says
// READY to a host that asks, and keeps what comes until it has looked, although it is wanted back.
// Record 0086.

const (
	comeTime    = 5 * time.Millisecond  // for a waiter that was woken, to look at what is wanted back
	backoffStep = 20 * time.Microsecond // at most, after the first try that was refused …
	backoffMost = 6                     // … and twice as long after each, so many times
)

// refusesTries reports whether a send to this channel cannot be tried: nobody says whether the other
// host waits.
func (c *Channel) refusesTries() bool {
	return c.relay && c.ep.Hello.Capabilities&abi.CapReady == 0
}

// enterTry takes the queue for a try; false if it is another's. Who tries to send to a host does not
// wait to receive on the channel: that one may try, too, and neither would be answered.
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

// signal wakes the waiter that the queue is kept for: the target waits. A host that waited, and refused
// the try after all, may try to send to this one in turn: they come at different times then.
func (h *sender) signal() {
	if n := h.refusals.Load(); n > 0 {
		time.AfterFunc(rand.N(backoffStep<<min(n-1, backoffMost)), h.queue.signal)
	} else {
		h.queue.signal()
	}
}

// expect has what another host offers kept for the call from when it comes. Must hold queue.
func (h *receiver) expect() {
	if !h.ch.relay {
		return
	}
	h.mu.Lock()
	h.expects = true
	h.mu.Unlock()
	h.sayReady()
}

// unexpect ends expect. What came is the call's to take or release. Must hold queue.
func (h *receiver) unexpect() {
	if h.ch.relay {
		h.mu.Lock()
		h.cameLocked()
		h.mu.Unlock()
	}
}

// cameLocked takes note that a call has come for what is offered. Must hold mu.
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

// hold holds what is offered for the call, or has it already; false if it is gone. Must hold queue.
func (h *receiver) hold() bool {
	if _, ok := h.act(proto.Hold); ok && !h.ch.relay {
		return true
	}
	return h.ch.relay && h.adopt()
}

// adopt takes what was kept for this call, or for who comes later; false if it is gone. Must hold queue.
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

// part takes note that a waiter does not come, if it was woken. It must hold no lock.
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
		h.reply(abi.TypeWithdrawn)
	}
}

// askedLocked takes note of a host that asks whether this one waits. Must hold rx.
func (h *receiver) askedLocked() {
	h.asked.Store(true)
	h.mu.Lock()
	waits := h.expects || h.waiters.Len() > 0 || stateOf(h.word.Load()) == proto.StatePosted
	h.mu.Unlock()
	if waits && h.asked.CompareAndSwap(true, false) {
		h.mailbox.replyLocked(&h.half, abi.TypeReady)
	}
}

// sayReady says READY to a host that asked: somebody waits here. It must hold no lock.
func (h *receiver) sayReady() {
	if h.asked.Load() && h.asked.CompareAndSwap(true, false) {
		h.reply(abi.TypeReady)
	}
}

// reply puts a note that the device waits for, when there is room. It must hold no lock.
func (h *half) reply(t abi.Type) {
	h.mailbox.rx.Lock()
	h.mailbox.replyLocked(h, t)
	h.mailbox.rx.Unlock()
}
