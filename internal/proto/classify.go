package proto

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// About returns the half that a message of the device is about. why is not empty if it can be
// about none. The header must have passed [Layout.Header]; CLOSE is for [ClassifyClose].
func About(s *wire.Slot) (d abi.Direction, why string) {
	h := wire.Header(s.Header)
	switch h.Type() {
	case wire.TypeDirect, wire.TypeIndBegin:
		return abi.D2H, ""
	case wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted:
		a := s.Ack()
		if a.Direction > uint32(abi.D2H) || uint16(a.Transaction) != h.Sequence() {
			return 0, "record of no transaction"
		}
		return abi.Direction(a.Direction), ""
	case wire.TypeWithdraw, wire.TypeOffer:
		return abi.D2H, ""
	case wire.TypeWithdrawn:
		if d := abi.Direction(s.Note().Direction); d <= abi.D2H {
			return d, ""
		}
		return 0, "note of a wrong direction or status"
	case wire.TypeReady, wire.TypeAnswer:
		return abi.H2D, ""
	}
	return 0, "not a message of a device"
}

// Classify returns what a message of the device means for the half that it is About: a step to
// follow, or one with an event that leads nowhere. why is the reason of EventFault. l is the half's
// ledger, which a record of a transfer changes; limit is the largest transfer. s is the only copy
// that anybody looks at.
func (t *Table) Classify(h Half, l *Ledger, limit uint64, s *wire.Slot) (p Step, why string) {
	in, why := input(h, l, limit, s)
	if in >= inputCount {
		return stay(Event(in - inputCount)), why
	}
	stand := h.Stand
	if in == TakeWithdrawn {
		stand = stand.With(accepts(h, l))
	}
	p = t.Step(h.Direction, stand, in)
	if !p.OK() {
		return stay(EventFault), why
	}
	return p, why
}

// Messages that need no transition are inputs, too: an event of any state.
const (
	takeStale = inputCount + Input(EventStale)
	takeFault = inputCount + Input(EventFault)
)

// input reduces a message to what happens to the half. why is the reason if that is a fault.
func input(h Half, l *Ledger, limit uint64, s *wire.Slot) (in Input, why string) {
	switch wire.Header(s.Header).Type() {
	case wire.TypeDirect:
		return direct(h, s)
	case wire.TypeIndBegin:
		return begin(h, limit, s)
	case wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted:
		return record(h, l, s)
	case wire.TypeWithdraw, wire.TypeWithdrawn, wire.TypeReady, wire.TypeOffer:
		return note(h, s)
	case wire.TypeAnswer:
		return answerOf(h, s)
	}
	return takeFault, "not a message of a device"
}

// offer takes an offer that is ahead of the next one by so many transactions.
func offer(ahead int64) (Input, string) {
	switch {
	case ahead < 0:
		return takeStale, ""
	case ahead > 0:
		return takeFault, "offer from the future"
	}
	return TakeOffer, "a second offer"
}

func direct(h Half, s *wire.Slot) (Input, string) {
	hd := wire.Header(s.Header)
	if hd.Length() > abi.PayloadSize {
		return takeFault, "message over 56 bytes"
	}
	return offer(int64(int16(hd.Sequence() - uint16(h.ID+1))))
}

func begin(h Half, limit uint64, s *wire.Slot) (Input, string) {
	b := s.Begin()
	ahead := int64(b.Transaction - (h.ID + 1))
	switch {
	case uint16(b.Transaction) != wire.Header(s.Header).Sequence():
		return takeFault, "sequence is not the transaction's"
	case reserved(s, 3):
		return takeFault, "reserved bits"
	case ahead == 0 && b.Size > limit:
		return takeFault, "offer over the largest transfer"
	case ahead == 0 && h.Stand.State() == StatePosted && b.Size == h.Size:
		return TakeMatch, ""
	}
	return offer(ahead)
}

// reserved reports whether a word of the payload that must be zero is not.
func reserved(s *wire.Slot, from int) bool {
	var or uint64
	for _, w := range s.Payload[from:] {
		or |= w
	}
	return or != 0
}

// record takes ACK, DONE, ERROR and ABORTED.
func record(h Half, l *Ledger, s *wire.Slot) (Input, string) {
	a := s.Ack()
	t := wire.Header(s.Header).Type()
	switch ahead := int64(a.Transaction - h.current()); {
	case ahead > 0:
		return takeFault, "transaction from the future"
	case ahead < 0:
		return takeStale, ""
	}
	switch state := h.Stand.State(); {
	case state == StateMoving:
		return l.Record(t, a)
	case state == StateOffered && h.Direction == abi.H2D:
		return answer(t, a), "answer to a message makes no sense"
	case state == StateCalled:
		return questioned(t, a), "answer to a question makes no sense"
	case state == StateGiven || state == StatePosted:
		return moved(h.Size, t, a), "answer to an eager transfer makes no sense"
	}
	return TakeRecord, "record of an offer"
}

// answer returns what a record means for a message.
func answer(t wire.Type, a *wire.Ack) Input {
	switch {
	case t == wire.TypeAck && a.State == wire.StateConsumed && a.Status == abi.OK:
		return TakeConsumed
	case t == wire.TypeError && a.State == wire.StateFailed && a.Status > abi.OK && a.Status < abi.StatusCount:
		return TakeRefused
	}
	return TakeNonsense
}

// questioned returns what a record means for a question.
func questioned(t wire.Type, a *wire.Ack) Input {
	if t == wire.TypeAck && a.State == wire.StateConsumed && a.Status > abi.OK && a.Status < abi.StatusCount {
		return TakeUnanswered
	}
	return answer(t, a)
}

// answerOf takes ANSWER.
func answerOf(h Half, s *wire.Slot) (Input, string) {
	hd := wire.Header(s.Header)
	ahead := int16(hd.Sequence() - uint16(h.ID))
	switch state := h.Stand.State(); {
	case hd.Length() > abi.PayloadSize:
		return takeFault, "answer over 56 bytes"
	case ahead > 0:
		return takeFault, "answer from the future"
	case ahead < 0:
		return takeStale, ""
	case state == StateCalled:
		return TakeAnswer, ""
	case state == StateIdle || state == StateComplete:
		return TakeRecord, ""
	}
	return TakeNonsense, "answer to no question"
}

// moved returns what a record means for an eager transfer of so many bytes.
func moved(size uint64, t wire.Type, a *wire.Ack) Input {
	in := answer(t, a)
	if in == TakeConsumed && a.Processed != size || a.Processed > size || a.FaultIndex >= wire.EagerEntries {
		return TakeNonsense
	}
	return in
}

// note takes WITHDRAW, WITHDRAWN, READY and OFFER.
func note(h Half, s *wire.Slot) (Input, string) {
	n, hd := s.Note(), wire.Header(s.Header)
	ahead := int64(n.Transaction - h.current())
	switch {
	case n.Direction != uint32(h.Direction) || n.Status >= uint32(abi.StatusCount):
		return takeFault, "note of a wrong direction or status"
	case reserved(s, 2):
		return takeFault, "reserved bits"
	case uint16(n.Transaction) != hd.Sequence():
		return takeFault, "sequence is not the transaction's"
	case hd.Type() == wire.TypeOffer:
		return ask(int64(n.Transaction - h.ID - 1))
	case hd.Type() == wire.TypeReady && ahead == 1:
		return TakeReady, ""
	case ahead > 0:
		return takeFault, "transaction from the future"
	case ahead < 0 || hd.Type() == wire.TypeReady:
		return takeStale, ""
	case hd.Type() == wire.TypeWithdraw:
		return TakeWithdraw, "withdraw of nothing"
	}
	return TakeWithdrawn, "withdrawn, but nobody asked"
}

// ask takes an OFFER that is ahead of the next transaction by so many.
func ask(ahead int64) (Input, string) {
	switch {
	case ahead < 0:
		return takeStale, ""
	case ahead > 0:
		return takeFault, "question from the future"
	}
	return TakeAsk, "question while something is offered"
}

// ClassifyClose returns what a CLOSE of the device means for the subscription of a generation.
// last is true once the host put CLOSE for both halves.
func ClassifyClose(generation uint64, last bool, s *wire.Slot) (Event, string) {
	const both = 1<<abi.H2D | 1<<abi.D2H
	o := s.Close()
	switch {
	case uint16(o.Generation) != wire.Header(s.Header).Sequence(), o.Halves == 0 || o.Halves > both,
		o.Status >= uint32(abi.StatusCount), reserved(s, 2):
		return EventFault, "malformed close"
	case int64(o.Generation-generation) > 0:
		return EventFault, "close of a later subscription"
	case o.Generation != generation:
		return EventStale, ""
	case last && o.Halves == both:
		return EventOver, ""
	}
	return EventClosed, ""
}

// Stranger returns what a message means for a channel that is not open here: what crossed its close
// is stale, but it must arrive through the channel's mailbox and be of a type that a device may
// put.
func (l *Layout) Stranger(mailbox int, s *wire.Slot) (Event, string) {
	if l.Hello.Mailbox(wire.Header(s.Header).Channel()) != mailbox {
		return EventFault, "not a channel of this mailbox"
	}
	switch wire.Header(s.Header).Type() {
	case wire.TypeDirect, wire.TypeIndBegin, wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeWithdraw,
		wire.TypeWithdrawn, wire.TypeAborted, wire.TypeClose, wire.TypeReady, wire.TypeOffer, wire.TypeAnswer:
		return EventStale, ""
	}
	return EventFault, "not a message of a device"
}
