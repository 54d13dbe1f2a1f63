package proto

import "github.com/nfcomms/nfcomms/bridge/abi"

// About returns the half that a message of the device is about. why is not empty if it can be
// about none. The header must have passed [Layout.Header]; CLOSE is for [ClassifyClose].
func About(s *abi.Slot) (d abi.Direction, why string) {
	h := abi.Header(s.Header)
	switch h.Type() {
	case abi.TypeDirect, abi.TypeIndBegin:
		return abi.D2H, ""
	case abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted:
		a := s.Ack()
		if a.Direction > uint32(abi.D2H) || uint16(a.Transaction) != h.Sequence() {
			return 0, "record of no transaction"
		}
		return abi.Direction(a.Direction), ""
	case abi.TypeWithdraw:
		return abi.D2H, ""
	case abi.TypeWithdrawn, abi.TypeReady:
		return abi.H2D, ""
	}
	return 0, "not a message of a device"
}

// Classify returns what a message of the device means for the half that it is About, and where
// the half stands then. l is the half's ledger, which a record of a transfer changes; limit is
// the largest transfer. s is the only copy that anybody looks at.
func (t *Table) Classify(h Half, l *Ledger, limit uint64, s *abi.Slot) Outcome {
	switch abi.Header(s.Header).Type() {
	case abi.TypeDirect:
		return t.direct(h, s)
	case abi.TypeIndBegin:
		return t.begin(h, limit, s)
	case abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted:
		return t.record(h, l, s)
	case abi.TypeWithdraw, abi.TypeWithdrawn, abi.TypeReady:
		return t.note(h, l, s)
	}
	return fault(h, "not a message of a device")
}

func fault(h Half, why string) Outcome { return Outcome{Half: h, Event: EventFault, Why: why, Row: -1} }

func stale(h Half) Outcome { return Outcome{Half: h, Event: EventStale, Row: -1} }

// take follows an input that is about the present transaction. why is the reason if that is a
// fault.
func (t *Table) take(h Half, found Marks, in Input, why string) Outcome {
	o := t.step(h, in, found)
	if o.Row < 0 || o.Event == EventFault {
		o.Half, o.Event, o.Why = h, EventFault, why
	}
	return o
}

// offer takes an offer that is ahead of the next one by so many transactions.
func (t *Table) offer(h Half, ahead int64) Outcome {
	switch {
	case ahead < 0:
		return stale(h)
	case ahead > 0:
		return fault(h, "offer from the future")
	}
	o := t.take(h, 0, TakeOffer, "a second offer")
	if o.Event != EventFault {
		o.Half.ID++
	}
	return o
}

func (t *Table) direct(h Half, s *abi.Slot) Outcome {
	hd := abi.Header(s.Header)
	if hd.Length() > abi.PayloadSize {
		return fault(h, "message over 56 bytes")
	}
	return t.offer(h, int64(int16(hd.Sequence()-uint16(h.ID+1))))
}

func (t *Table) begin(h Half, limit uint64, s *abi.Slot) Outcome {
	b := s.Begin()
	ahead := int64(b.Transaction - (h.ID + 1))
	switch {
	case uint16(b.Transaction) != abi.Header(s.Header).Sequence():
		return fault(h, "sequence is not the transaction's")
	case reserved(s, 3):
		return fault(h, "reserved bits")
	case ahead == 0 && b.Size > limit:
		return fault(h, "offer over the largest transfer")
	}
	return t.offer(h, ahead)
}

// reserved reports whether a word of the payload that must be zero is not.
func reserved(s *abi.Slot, from int) bool {
	var or uint64
	for _, w := range s.Payload[from:] {
		or |= w
	}
	return or != 0
}

// record takes ACK, DONE, ERROR and ABORTED.
func (t *Table) record(h Half, l *Ledger, s *abi.Slot) Outcome {
	a := s.Ack()
	switch ahead := int64(a.Transaction - h.ID); {
	case ahead > 0:
		return fault(h, "transaction from the future")
	case ahead < 0:
		return stale(h)
	}
	switch {
	case h.State == StateMoving:
		in, why := l.Record(abi.Header(s.Header).Type(), a)
		return t.take(h, 0, in, why)
	case h.State == StateOffered && h.Direction == abi.H2D:
		return t.take(h, 0, answer(abi.Header(s.Header).Type(), a), "answer to a message makes no sense")
	}
	return t.take(h, 0, TakeRecord, "record of an offer")
}

// answer returns what a record says of a message.
func answer(t abi.Type, a *abi.Ack) Input {
	switch {
	case t == abi.TypeAck && a.State == abi.StateConsumed && a.Status == abi.OK:
		return TakeConsumed
	case t == abi.TypeError && a.State == abi.StateFailed && a.Status > abi.OK && a.Status < abi.StatusCount:
		return TakeRefused
	}
	return TakeNonsense
}

// note takes WITHDRAW, WITHDRAWN and READY.
func (t *Table) note(h Half, l *Ledger, s *abi.Slot) Outcome {
	n, hd := s.Note(), abi.Header(s.Header)
	ahead := int64(n.Transaction - h.ID)
	switch {
	case n.Direction != uint32(h.Direction) || n.Status >= uint32(abi.StatusCount):
		return fault(h, "note of a wrong direction or status")
	case reserved(s, 2):
		return fault(h, "reserved bits")
	case uint16(n.Transaction) != hd.Sequence():
		return fault(h, "sequence is not the transaction's")
	case hd.Type() == abi.TypeReady && ahead == 1:
		return t.take(h, 0, TakeReady, "")
	case ahead > 0:
		return fault(h, "transaction from the future")
	case ahead < 0 || hd.Type() == abi.TypeReady:
		return stale(h)
	case hd.Type() == abi.TypeWithdraw:
		return t.take(h, 0, TakeWithdraw, "withdraw of nothing")
	}
	return t.take(h, marksOf(h, l), TakeWithdrawn, "withdrawn, but nobody asked")
}

// ClassifyClose returns what a CLOSE of the device means for the subscription of a generation.
// last says that the host put CLOSE for both halves.
func ClassifyClose(generation uint64, last bool, s *abi.Slot) (Event, string) {
	const both = 1<<abi.H2D | 1<<abi.D2H
	o := s.Close()
	switch {
	case uint16(o.Generation) != abi.Header(s.Header).Sequence(), o.Halves == 0 || o.Halves > both,
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

// ClassifyStranger returns what a message means for a channel that is not open here: what crossed
// its close is stale, but its type must be one that a device may put.
func ClassifyStranger(s *abi.Slot) (Event, string) {
	switch abi.Header(s.Header).Type() {
	case abi.TypeDirect, abi.TypeIndBegin, abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeWithdraw,
		abi.TypeWithdrawn, abi.TypeAborted, abi.TypeClose, abi.TypeReady:
		return EventStale, ""
	}
	return EventFault, "not a message of a device"
}
