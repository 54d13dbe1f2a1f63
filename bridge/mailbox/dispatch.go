package mailbox

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// earlyMax is how many messages may arrive for a channel before the reply that
// opens it: an offer, its withdrawal and a close.
const earlyMax = 4

// faultLocked latches a fault about a message and stops reading the mailbox.
// Must hold rx.
func (b *mailbox) faultLocked(s *wire.Slot, what string, args ...any) {
	h := wire.Header(s.Header)
	b.rx.dead = true
	b.ep.fail(fmt.Errorf("%w: channel %d, type %d, sequence %d: %s", bridge.ErrFault,
		h.Channel(), h.Type(), h.Sequence(), fmt.Sprintf(what, args...)))
}

// staleLocked drops a message about something that is over. Must hold rx.
func (b *mailbox) staleLocked() { b.ep.dev.dropped.Add(1) }

// dropLocked does what a classification asks for that concerns no half: it drops the message, or
// latches a fault. Must hold rx.
func (b *mailbox) dropLocked(s *wire.Slot, e proto.Event, why string) {
	if e == proto.EventFault {
		b.faultLocked(s, "%s", why)
	} else {
		b.staleLocked()
	}
}

// dispatchLocked hands one message to the half it is about. s is the only copy
// anybody looks at. Must hold rx.
func (b *mailbox) dispatchLocked(s *wire.Slot) {
	h := wire.Header(s.Header)
	e, why := b.ep.Header(h)
	if e != proto.EventNone {
		b.dropLocked(s, e, why)
		return
	}
	c := b.ep.table.at(h.Channel())
	switch {
	case c == nil:
		e, why = b.ep.Stranger(b.index, s)
		b.dropLocked(s, e, why)
	case c.mailbox != b:
		b.faultLocked(s, "not a channel of mailbox %d", b.index)
	case c.opening:
		b.earlyLocked(c, s)
	default:
		b.routeLocked(c, s)
	}
}

// earlyLocked keeps a message that arrived before the reply which opens its
// channel: the reply travels through another mailbox. Must hold rx.
func (b *mailbox) earlyLocked(c *channel, s *wire.Slot) {
	if len(c.early) == earlyMax {
		b.faultLocked(s, "more than %d messages before the channel is open", earlyMax)
		return
	}
	c.early = append(c.early, *s)
}

// openLocked gives a channel its ids and lets in what arrived early. Must hold rx.
func (b *mailbox) openLocked(c *channel, h2d, d2h, generation uint64) {
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
func (b *mailbox) routeLocked(c *channel, s *wire.Slot) {
	if wire.Header(s.Header).Type() == wire.TypeClose {
		b.closeLocked(c, s)
		return
	}
	d, why := proto.About(s)
	if why != "" {
		b.faultLocked(s, "%s", why)
		return
	}
	h := c.half(uint32(d))
	e, why := h.classifyLocked(b.ep.Hello.MaxTransfer, s)
	switch e {
	case proto.EventStale, proto.EventFault:
		b.dropLocked(s, e, why)
	case proto.EventOffer:
		if c.relay {
			c.recv.arrivedLocked()
		}
		h.pass()
	case proto.EventReady:
		c.send.signal()
	case proto.EventRecalled:
		b.replyLocked(h, wire.TypeWithdrawn)
	case proto.EventAsked:
		c.recv.askedLocked()
	case proto.EventNone:
		if c.relay && wire.Header(s.Header).Type() == wire.TypeWithdraw {
			c.recv.recalledLocked()
		}
	}
}

// half returns the half of a direction.
func (c *channel) half(direction uint32) *half {
	if abi.Direction(direction) == abi.H2D {
		return &c.send.half
	}
	return &c.recv.half
}

// reply is a note of a half that the device waits for: WITHDRAWN, or READY to another host.
type reply struct {
	h *half
	t wire.Type
}

// id returns the transaction that the reply is about.
func (r reply) id() uint64 {
	if r.t == wire.TypeReady {
		return r.h.id() + 1
	}
	return r.h.id()
}

// replyLocked puts a reply, when there is room. Must hold rx.
func (b *mailbox) replyLocked(h *half, t wire.Type) {
	b.rx.pendingReplies = append(b.rx.pendingReplies, reply{h, t})
	if len(b.rx.pendingReplies) == 1 && !b.flushRepliesLocked() {
		go b.flushReplies()
	}
}

// flushRepliesLocked sends the replies that are pending; false if the ring is full. It must not
// wait: it runs inside a drain. The half is answering until a WITHDRAWN is in the ring, so a device
// that offers before it was answered is caught. One channel has one such reply pending at the most,
// and one READY. Must hold rx.
func (b *mailbox) flushRepliesLocked() bool {
	for len(b.rx.pendingReplies) > 0 && !b.rx.dead {
		r := b.rx.pendingReplies[0]
		h, id := r.h, r.id()
		note := h.note(id)
		switch b.put(h.header(r.t, abi.PayloadSize, id), &note.Payload, b.room(proto.RoomUrgent)) {
		case putFull:
			return false
		case putDead:
			return true
		case putRing:
			b.ring()
		}
		if r.t == wire.TypeWithdrawn {
			h.act(proto.PutWithdrawn)
		}
		b.rx.pendingReplies = b.rx.pendingReplies[1:]
	}
	b.rx.pendingReplies = nil
	return true
}

// flushReplies sends what is pending when the ring has room again. It ends with the epoch.
func (b *mailbox) flushReplies() {
	for round := 0; ; round++ {
		b.rx.Lock()
		done := b.flushRepliesLocked() || b.rx.dead
		b.rx.Unlock()
		if done {
			return
		}
		pause(round)
	}
}

// closeLocked takes CLOSE: the device's process closed some halves, or the
// device answers the host's last close. Must hold rx.
func (b *mailbox) closeLocked(c *channel, s *wire.Slot) {
	e, why := proto.ClassifyClose(c.generation, c.last.Load(), s)
	switch e {
	case proto.EventStale, proto.EventFault:
		b.dropLocked(s, e, why)
		return
	case proto.EventOver:
		c.recv.overLocked()
		return
	}
	for _, d := range []abi.Direction{abi.H2D, abi.D2H} {
		h := c.half(uint32(d))
		if s.Close().Halves>>d&1 != 0 && h.shutFor(shutPeer) {
			b.replyLocked(h, wire.TypeWithdrawn)
		}
	}
}
