package scripted

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// headerRow alters the header of a Send's ack and keeps or drops the right one.
func headerRow(name string, want conclusion, keep bool, f func(h *header)) deviation {
	return deviation{name: name, call: "Send", match: ackOf(abi.StateConsumed, abi.H2D), want: want,
		alter: func(m abi.Slot) []abi.Slot {
			if bad := withHeader(m, f); keep {
				return only(bad, m)
			} else {
				return only(bad)
			}
		}}
}

// headerDeviations are garbage in the first word of a slot.
func headerDeviations() []deviation {
	rows := []deviation{
		headerRow("wrong epoch first", ignored, true, func(h *header) { h.epoch++ }),
		headerRow("wrong epoch", lost, false, func(h *header) { h.epoch-- }),
		headerRow("unsubscribed channel first", ignored, true, func(h *header) { h.channel = 77 }),
		headerRow("unsubscribed channel of another mailbox", ignored, true, func(h *header) { h.channel = 2 }),
		headerRow("unsubscribed channel through another mailbox", faulted, true, func(h *header) { h.channel = 2 }).strays(),
		headerRow("channel out of range", faulted, true, func(h *header) { h.channel = 256 }).strays(),
		headerRow("highest channel", faulted, true, func(h *header) { h.channel = abi.ChannelsMax - 1 }).strays(),
		headerRow("control channel", ignored, true, func(h *header) { h.channel = 0 }),
		headerRow("control channel through another mailbox", faulted, true, func(h *header) { h.channel = 0 }).strays(),
		headerRow("sequence of another transaction", faulted, false, func(h *header) { h.sequence += 9 }),
		headerRow("length 0", faulted, false, func(h *header) { h.length = 0 }),
		headerRow("length 57", faulted, false, func(h *header) { h.length = 57 }),
		headerRow("length 255", faulted, false, func(h *header) { h.length = 255 }),
		{name: "wrong phase", call: "Send", match: ackOf(abi.StateConsumed, abi.H2D), want: lost,
			alter: func(m abi.Slot) []abi.Slot { m.Header ^= 1 << 7; return only(m) }},
	}
	for _, t := range []struct {
		name string
		kind abi.Type
	}{
		{"NONE", abi.TypeNone}, {"IND_LIST", abi.TypeIndList}, {"FIN", abi.TypeFin}, {"ABORT", abi.TypeAbort},
		{"HELLO", abi.TypeHello}, {"HEARTBEAT", abi.TypeHeartbeat}, {"OFFER", abi.TypeOffer},
		{"unknown", abi.TypeCount}, {"garbage", 0x55}, {"highest", 0x7f},
	} {
		rows = append(rows, headerRow("type "+t.name, faulted, false, func(h *header) { h.kind = t.kind }))
	}
	return rows
}

// strays makes a row's messages go through the loopback's mailbox.
func (d deviation) strays() deviation {
	d.astray = true
	return d
}

// noteRow adds a note to a Send's ack.
func noteRow(name string, want conclusion, first bool, kind abi.Type, f func(n *abi.Note)) deviation {
	return deviation{name: name, call: "Send", match: ackOf(abi.StateConsumed, abi.H2D), want: want,
		alter: func(m abi.Slot) []abi.Slot {
			note := abi.Slot{Header: m.Header}
			*note.Note() = abi.Note{Transaction: m.Ack().Transaction}
			note = withHeader(withNote(note, f), func(h *header) { h.kind = kind })
			if first {
				return only(note, m)
			}
			return only(m, note)
		}}
}

// rowReserved sets the last word of a note or of a close.
func rowReserved(name string, kind abi.Type) deviation {
	d := noteRow(name, faulted, true, kind, func(*abi.Note) {})
	alter := d.alter
	d.alter = func(m abi.Slot) []abi.Slot {
		out := alter(m)
		out[0].Payload[6] = 1
		return out
	}
	return d
}

// noteDeviations are notes and closes that nothing asked for.
func noteDeviations() []deviation {
	rows := []deviation{
		noteRow("READY never asked", harmless, true, abi.TypeReady, func(n *abi.Note) { n.Transaction++ }),
		noteRow("READY for the past", ignored, true, abi.TypeReady, func(n *abi.Note) { n.Transaction -= 3 }),
		noteRow("READY from the future", faulted, true, abi.TypeReady, func(n *abi.Note) { n.Transaction += 1 << 20 }),
		noteRow("WITHDRAWN never asked", faulted, true, abi.TypeWithdrawn, func(*abi.Note) {}),
		noteRow("WITHDRAWN from the future", faulted, true, abi.TypeWithdrawn, func(n *abi.Note) { n.Transaction++ }),
		noteRow("WITHDRAWN for something accepted", ignored, false, abi.TypeWithdrawn, func(*abi.Note) {}),
		noteRow("WITHDRAWN for the past", ignored, true, abi.TypeWithdrawn, func(n *abi.Note) { n.Transaction-- }),
		noteRow("WITHDRAWN of d2h", faulted, true, abi.TypeWithdrawn, func(n *abi.Note) { n.Direction = uint32(abi.D2H) }),
		noteRow("WITHDRAW of nothing", faulted, true, abi.TypeWithdraw, func(n *abi.Note) { n.Direction = uint32(abi.D2H) }),
		noteRow("WITHDRAW of the host's message", faulted, true, abi.TypeWithdraw, func(*abi.Note) {}),
		noteRow("note of an unknown direction", faulted, true, abi.TypeWithdrawn, func(n *abi.Note) { n.Direction = 9 }),
		rowReserved("READY with a reserved field set", abi.TypeReady),
	}
	for _, c := range []struct {
		name  string
		want  conclusion
		close abi.Close
	}{
		{"CLOSE of no half", faulted, abi.Close{Generation: 1}},
		{"CLOSE of all bits", faulted, abi.Close{Halves: 1<<32 - 1, Generation: 1}},
		{"CLOSE of a later generation", faulted, abi.Close{Halves: 3, Generation: 99}},
		{"CLOSE of an earlier generation", ignored, abi.Close{Halves: 3, Generation: 0}},
		{"CLOSE with an unknown status", faulted, abi.Close{Halves: 3, Generation: 1, Status: 9999}},
		{"CLOSE before the ack", closed, abi.Close{Halves: 3, Generation: 1}},
	} {
		rows = append(rows, deviation{name: c.name, call: "Send", want: c.want,
			match: ackOf(abi.StateConsumed, abi.H2D), alter: func(m abi.Slot) []abi.Slot {
				bad := abi.Slot{Header: m.Header}
				*bad.Close() = c.close
				bad = withHeader(bad, func(h *header) {
					h.kind, h.sequence = abi.TypeClose, uint16(c.close.Generation)
				})
				return only(bad, m)
			}})
	}
	return rows
}

// directRow alters the message that comes back from the loopback.
func directRow(name string, want conclusion, alter func(m abi.Slot) []abi.Slot) deviation {
	return deviation{name: name, call: "Receive", match: of(abi.TypeDirect), want: want, alter: alter}
}

// beginRow alters the offer of the transfer that comes back.
func beginRow(name string, want conclusion, alter func(m abi.Slot) []abi.Slot) deviation {
	return deviation{name: name, call: "ReceiveInd", match: of(abi.TypeIndBegin), want: want, alter: alter}
}

// during makes a row deviate in another call.
func (d deviation) during(call string) deviation {
	d.call = call
	return d
}

// renumbered moves an offer to another transaction.
func renumbered(m abi.Slot, by int) abi.Slot {
	if kindOf(&m) == abi.TypeIndBegin {
		m.Begin().Transaction += uint64(by)
	}
	return withHeader(m, func(h *header) { h.sequence += uint16(by) })
}

// offerDeviations are offers that cannot be.
func offerDeviations() []deviation {
	length := func(n int) func(m abi.Slot) []abi.Slot {
		return func(m abi.Slot) []abi.Slot { return only(withHeader(m, func(h *header) { h.length = n })) }
	}
	begin := func(f func(b *abi.Begin)) func(m abi.Slot) []abi.Slot {
		return func(m abi.Slot) []abi.Slot { f(m.Begin()); return only(m) }
	}
	twice := func(m abi.Slot) []abi.Slot { return only(m, m) }
	second := func(m abi.Slot) []abi.Slot { return only(m, renumbered(m, 1)) }
	past := func(m abi.Slot) []abi.Slot { return only(renumbered(m, -1), m) }
	future := func(m abi.Slot) []abi.Slot { return only(renumbered(m, 5), m) }
	return []deviation{
		directRow("length 57", faulted, length(57)),
		directRow("length 64", faulted, length(64)),
		directRow("length 255", faulted, length(255)),
		directRow("offered twice", ignored, twice),
		directRow("second offer while one is pending", faulted, second).during("ReceiveLate"),
		directRow("offer of the past first", ignored, past),
		directRow("offer of the future first", faulted, future),
		directRow("never offered", waits, func(abi.Slot) []abi.Slot { return nil }),
		beginRow("offered twice", ignored, twice),
		beginRow("second offer while one is pending", faulted, second).during("ReceiveIndLate"),
		beginRow("offer of the past first", ignored, past),
		beginRow("offer of the future first", faulted, future),
		beginRow("sequence is not the transaction", faulted, begin(func(b *abi.Begin) { b.Transaction += 1 << 16 })),
		beginRow("transaction is not the sequence", faulted, begin(func(b *abi.Begin) { b.Transaction++ })),
		beginRow("reserved field set", faulted, func(m abi.Slot) []abi.Slot { m.Payload[6] = 1; return only(m) }),
		beginRow("size over every limit", faulted, begin(func(b *abi.Begin) { b.Size = 1<<64 - 1 })),
		beginRow("length 57", faulted, length(57)),
	}
}
