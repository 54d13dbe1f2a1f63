package mailbox

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// earlyMax is how many messages may come for a channel before the reply that
// opens it: an offer, its withdrawal and a close.
const earlyMax = 4

// faultLocked latches a fault about a message and stops reading the mailbox.
// Must hold rx.
func (b *box) faultLocked(s *abi.Slot, what string, args ...any) {
	h := abi.Header(s.Header)
	b.rx.dead = true
	b.ep.fail(fmt.Errorf("%w: channel %d, type %d, sequence %d: %s", bridge.ErrFault,
		h.Channel(), h.Type(), h.Sequence(), fmt.Sprintf(what, args...)))
}

// staleLocked drops a message about something that is over. Must hold rx.
func (b *box) staleLocked() { b.ep.dev.dropped.Add(1) }

// dispatchLocked hands one message to the half it is about. s is the only copy
// anybody looks at. Must hold rx.
func (b *box) dispatchLocked(s *abi.Slot) {
	h := abi.Header(s.Header)
	id := h.Channel()
	if h.Epoch() != b.ep.low {
		b.staleLocked()
		return
	}
	if id >= b.ep.Hello.Channels {
		b.faultLocked(s, "not below %d", b.ep.Hello.Channels)
		return
	}
	if t := h.Type(); t != abi.TypeDirect && h.Length() != abi.PayloadSize {
		b.faultLocked(s, "length %d", h.Length())
		return
	}
	c := b.ep.table.at(id)
	switch {
	case c == nil:
		b.strangerLocked(s)
	case c.box != b:
		b.faultLocked(s, "not a channel of mailbox %d", b.index)
	case c.opening:
		b.earlyLocked(c, s)
	default:
		b.routeLocked(c, s)
	}
}

// strangerLocked judges a message for a channel that is not open here: what
// crossed its close is stale, but its type must be one the device may send.
// Must hold rx.
func (b *box) strangerLocked(s *abi.Slot) {
	if b.ep.Hello.Mailbox(abi.Header(s.Header).Channel()) != b.index {
		b.faultLocked(s, "not a channel of mailbox %d", b.index)
		return
	}
	switch abi.Header(s.Header).Type() {
	case abi.TypeDirect, abi.TypeIndBegin, abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeWithdraw,
		abi.TypeWithdrawn, abi.TypeAborted, abi.TypeClose, abi.TypeReady:
		b.staleLocked()
	default:
		b.faultLocked(s, "not a message of a device")
	}
}

// earlyLocked keeps a message that came before the reply which opens its
// channel: the reply travels through another mailbox. Must hold rx.
func (b *box) earlyLocked(c *Channel, s *abi.Slot) {
	if len(c.early) == earlyMax {
		b.faultLocked(s, "more than %d messages before the channel is open", earlyMax)
		return
	}
	c.early = append(c.early, *s)
}

// openLocked gives a channel its ids and lets in what came early. Must hold rx.
func (b *box) openLocked(c *Channel, h2d, d2h, generation uint64) {
	c.send.base, c.recv.base, c.generation = h2d-1, d2h-1, generation
	c.opening = false
	for i := range c.early {
		if !b.rx.dead {
			b.routeLocked(c, &c.early[i])
		}
	}
	c.early = nil
}

// routeLocked hands a message to a half of its channel. Must hold rx.
func (b *box) routeLocked(c *Channel, s *abi.Slot) {
	switch abi.Header(s.Header).Type() {
	case abi.TypeDirect:
		b.directLocked(&c.recv, s)
	case abi.TypeIndBegin:
		b.beginLocked(&c.recv, s)
	case abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted:
		b.ackLocked(c, s)
	case abi.TypeWithdraw, abi.TypeWithdrawn, abi.TypeReady:
		b.noteLocked(c, s)
	case abi.TypeClose:
		b.closeLocked(c, s)
	default:
		b.faultLocked(s, "not a message of a device")
	}
}

// directLocked takes an offered message. Must hold rx.
func (b *box) directLocked(h *half, s *abi.Slot) {
	hd := abi.Header(s.Header)
	if hd.Length() > abi.PayloadSize {
		b.faultLocked(s, "message of %d bytes", hd.Length())
		return
	}
	next := h.id(h.state.Load()) + 1
	switch ahead := int16(hd.Sequence() - uint16(next)); {
	case ahead < 0:
		b.staleLocked()
	case ahead > 0:
		b.faultLocked(s, "offer from the future, next is %d", next)
	default:
		b.offerLocked(h, s)
	}
}

// beginLocked takes an offered transfer. Must hold rx.
func (b *box) beginLocked(h *half, s *abi.Slot) {
	o := s.Begin()
	next := h.id(h.state.Load()) + 1
	switch ahead := int64(o.Transaction - next); {
	case uint16(o.Transaction) != abi.Header(s.Header).Sequence():
		b.faultLocked(s, "sequence of transaction %d", o.Transaction)
	case s.Payload[3]|s.Payload[4]|s.Payload[5]|s.Payload[6] != 0:
		b.faultLocked(s, "reserved bits")
	case ahead < 0:
		b.staleLocked()
	case ahead > 0:
		b.faultLocked(s, "offer from the future, next is %d", next)
	case o.Size > b.ep.Hello.MaxTransfer:
		b.faultLocked(s, "transfer of %d bytes", o.Size)
	default:
		b.offerLocked(h, s)
	}
}

// offerLocked stores the device's next offer. Must hold rx.
func (b *box) offerLocked(h *half, s *abi.Slot) {
	state := h.state.Load()
	if state&(fOffer|fHeld|fOwed) != 0 || state&fActive != 0 && !h.xfer.over() {
		b.faultLocked(s, "a second offer")
		return
	}
	if h.shut.Load()&shutHost != 0 { // it crossed the close, which answers it
		h.state.Add(1 << flagBits) // the device may take it back before it hears of that
		b.staleLocked()
		return
	}
	h.slot = *s
	if h.state.Add(1<<flagBits+fOffer)&fParked != 0 { // the flag is clear: a carry is impossible
		h.wakeUp()
	}
	h.pass()
}

// ackLocked takes a completion record. Must hold rx.
func (b *box) ackLocked(c *Channel, s *abi.Slot) {
	a, t := s.Ack(), abi.Header(s.Header).Type()
	if a.Direction > uint32(abi.D2H) || uint16(a.Transaction) != abi.Header(s.Header).Sequence() {
		b.faultLocked(s, "record of transaction %d, direction %d", a.Transaction, a.Direction)
		return
	}
	h := c.half(a.Direction)
	state := h.state.Load()
	ahead := int64(a.Transaction - h.id(state))
	var err error
	switch {
	case ahead > 0:
		err = fmt.Errorf("%w: transaction %d from the future", bridge.ErrFault, a.Transaction)
	case ahead < 0 || state&fDone != 0:
		b.staleLocked()
	case state&fActive == 0 && h.dir == abi.D2H && state&fOffer != 0:
		err = fmt.Errorf("%w: record of an offer", bridge.ErrFault)
	case state&fActive == 0:
		b.staleLocked()
	case state&fIndirect != 0:
		err = h.recordLocked(t, a)
	default:
		err = h.endLocked(t, a, s)
	}
	if err != nil {
		b.faultLocked(s, "%v", err)
	}
}

// half returns the half of a direction.
func (c *Channel) half(direction uint32) *half {
	if abi.Direction(direction) == abi.H2D {
		return &c.send
	}
	return &c.recv
}

// endLocked ends a direct message. Must hold rx.
func (h *half) endLocked(t abi.Type, a *abi.Ack, s *abi.Slot) error {
	switch {
	case t == abi.TypeAck && a.State == abi.StateConsumed && a.Status == abi.OK:
		h.setLocked(fDone | fOK)
	case t == abi.TypeError && a.State == abi.StateFailed && a.Status > abi.OK && a.Status < abi.StatusCount:
		h.slot = *s
		h.setLocked(fDone)
	default:
		return fmt.Errorf("%w: message answered by state %d, status %d", bridge.ErrFault, a.State, a.Status)
	}
	return nil
}

// noteLocked takes WITHDRAW, WITHDRAWN and READY. Must hold rx.
func (b *box) noteLocked(c *Channel, s *abi.Slot) {
	n, t := s.Note(), abi.Header(s.Header).Type()
	want := abi.H2D
	if t == abi.TypeWithdraw {
		want = abi.D2H
	}
	switch {
	case n.Direction != uint32(want) || n.Status >= uint32(abi.StatusCount):
		b.faultLocked(s, "note with direction %d, status %d", n.Direction, n.Status)
	case s.Payload[2]|s.Payload[3]|s.Payload[4]|s.Payload[5]|s.Payload[6] != 0:
		b.faultLocked(s, "reserved bits")
	case uint16(n.Transaction) != abi.Header(s.Header).Sequence():
		b.faultLocked(s, "sequence of transaction %d", n.Transaction)
	case t == abi.TypeWithdraw:
		b.recallLocked(&c.recv, s)
	case t == abi.TypeWithdrawn:
		b.withdrawnLocked(&c.send, s)
	default:
		b.targetReadyLocked(&c.send, s)
	}
}

// withdrawnLocked takes the answer to WITHDRAW. Must hold rx.
func (b *box) withdrawnLocked(h *half, s *abi.Slot) {
	state := h.state.Load()
	switch ahead := int64(s.Note().Transaction - h.id(state)); {
	case ahead > 0:
		b.faultLocked(s, "transaction %d from the future", s.Note().Transaction)
	case ahead < 0 || state&fDone != 0 || state&fActive == 0:
		b.staleLocked()
	case state&fRecall == 0 || state&fIndirect != 0 && !h.xfer.withdrawn():
		b.faultLocked(s, "withdrawn, but nobody asked")
	default:
		h.setLocked(fDone | fBack)
	}
}

// recallLocked takes an offer of the device back. A call that looks at it
// decides; what was accepted has been answered. Must hold rx.
func (b *box) recallLocked(h *half, s *abi.Slot) {
	for {
		state := h.state.Load()
		ahead := int64(s.Note().Transaction - h.id(state))
		switch {
		case ahead > 0:
			b.faultLocked(s, "transaction %d from the future", s.Note().Transaction)
			return
		case ahead < 0 || state&fOffer == 0:
			b.staleLocked()
			return
		case state&fHeld != 0:
			if h.state.CompareAndSwap(state, state|fRecall) {
				return
			}
		case h.state.CompareAndSwap(state, state&^uint64(fOffer)|fOwed):
			b.rx.owed = append(b.rx.owed, h)
			if len(b.rx.owed) == 1 && !b.payLocked() {
				go b.pay()
			}
			return
		}
	}
}

// payLocked sends the WITHDRAWN that are owed; false if the ring is full. It
// must not wait: it runs inside a drain. The flag stays until the message is
// in the ring, so a device that offers before it was answered is caught, and
// one channel owes one answer at the most. Must hold rx.
func (b *box) payLocked() bool {
	for len(b.rx.owed) > 0 && !b.rx.dead {
		h := b.rx.owed[0]
		id := h.id(h.state.Load())
		note := h.note(id)
		switch b.put(h.header(abi.TypeWithdrawn, abi.PayloadSize, id), &note.Payload, b.urgentRoom()) {
		case putFull:
			return false
		case putDead:
			return true
		case putRing:
			b.ring()
		}
		h.state.And(^uint64(fOwed))
		b.rx.owed = b.rx.owed[1:]
	}
	b.rx.owed = nil
	return true
}

// pay sends what is owed when the ring has room again. It ends with the epoch.
func (b *box) pay() {
	for round := 0; ; round++ {
		b.rx.Lock()
		done := b.payLocked() || b.rx.dead
		b.rx.Unlock()
		if done {
			return
		}
		pause(round)
	}
}

// targetReadyLocked takes the answer to OFFER. Must hold rx.
func (b *box) targetReadyLocked(h *half, s *abi.Slot) {
	next := h.id(h.state.Load()) + 1
	switch ahead := int64(s.Note().Transaction - next); {
	case ahead > 0:
		b.faultLocked(s, "ready for transaction %d, next is %d", s.Note().Transaction, next)
	case ahead < 0:
		b.staleLocked()
	default:
		h.turn.signal()
	}
}

// closeLocked takes CLOSE: the device's process closed some halves, or the
// device answers the host's last close. Must hold rx.
func (b *box) closeLocked(c *Channel, s *abi.Slot) {
	o := s.Close()
	switch {
	case uint16(o.Generation) != abi.Header(s.Header).Sequence(),
		o.Halves == 0 || o.Halves > 1<<abi.H2D|1<<abi.D2H, o.Status >= uint32(abi.StatusCount),
		s.Payload[2]|s.Payload[3]|s.Payload[4]|s.Payload[5]|s.Payload[6] != 0:
		b.faultLocked(s, "close of halves %d, generation %d", o.Halves, o.Generation)
		return
	case int64(o.Generation-c.generation) > 0:
		b.faultLocked(s, "close of generation %d, present is %d", o.Generation, c.generation)
		return
	case o.Generation != c.generation:
		b.staleLocked()
		return
	}
	if c.last.Load() && o.Halves == 1<<abi.H2D|1<<abi.D2H {
		c.recv.setLocked(fOver)
		return
	}
	for _, d := range []abi.Direction{abi.H2D, abi.D2H} {
		if o.Halves>>d&1 != 0 {
			c.half(uint32(d)).tell(shutPeer)
		}
	}
}
