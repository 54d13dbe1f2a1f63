package scripted

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// ackRow alters the ack of a Send.
func ackRow(name string, want Conclusion, f func(a *wire.Ack)) Wrong {
	return Wrong{Name: name, In: "Send", Match: ackOf(wire.StateConsumed, abi.H2D), Want: want,
		alter: func(m wire.Slot) []wire.Slot { return only(withAck(m, f)) }}
}

func wrongAnswers() []Wrong {
	consumed := ackOf(wire.StateConsumed, abi.H2D)
	row := func(name string, want Conclusion, alter func(m wire.Slot) []wire.Slot) Wrong {
		return Wrong{Name: name, In: "Send", Match: consumed, Want: want, alter: alter}
	}
	return []Wrong{
		ackRow("id/ack from the future", Faulted, func(a *wire.Ack) { a.Transaction++ }),
		ackRow("id/ack from far away", Faulted, func(a *wire.Ack) { a.Transaction += 1 << 40 }),
		ackRow("state/ack with state READY", Faulted, func(a *wire.Ack) { a.State = wire.StateReady }),
		ackRow("state/ack with state MOVING", Faulted, func(a *wire.Ack) { a.State = wire.StateMoving }),
		ackRow("state/ack with state REPEAT", Faulted, func(a *wire.Ack) { a.State = wire.StateRepeat }),
		ackRow("state/ack with an unknown state", Faulted, func(a *wire.Ack) { a.State = wire.StateCount }),
		ackRow("state/ack with state 65535", Faulted, func(a *wire.Ack) { a.State = 0xffff }),
		ackRow("state/ack with an unknown status", Faulted, func(a *wire.Ack) { a.Status = abi.StatusCount }),
		ackRow("state/ack with an error status", Faulted, func(a *wire.Ack) { a.Status = abi.ErrKind }),
		ackRow("direction/ack for an unknown direction", Faulted, func(a *wire.Ack) { a.Direction = 2 }),
		ackRow("direction/ack for the other direction", Faulted, func(a *wire.Ack) { a.Direction = uint32(abi.D2H) }),
		ackRow("count/ack with bytes processed", Harmless, func(a *wire.Ack) { a.Processed = 1 << 60 }),
		ackRow("count/ack with lists", Harmless, func(a *wire.Ack) { a.Lists = 7 }),
		row("id/replayed ack first", Dropped, func(m wire.Slot) []wire.Slot {
			return only(withAck(m, func(a *wire.Ack) { a.Transaction-- }), m)
		}),
		row("replay/ack twice", Dropped, func(m wire.Slot) []wire.Slot { return only(m, m) }),
		row("replay/ack a hundred times", Dropped, func(m wire.Slot) (all []wire.Slot) {
			for range 100 {
				all = append(all, m)
			}
			return all
		}),
		row("drop/no ack", Lost, func(wire.Slot) []wire.Slot { return nil }),
		row("state/DONE for a message", Faulted, func(m wire.Slot) []wire.Slot {
			m.Ack().State = wire.StateDone
			return only(withHeader(m, func(h *header) { h.kind = wire.TypeDone }))
		}),
		row("state/ABORTED for a message", Faulted, func(m wire.Slot) []wire.Slot {
			m.Ack().State, m.Ack().Status = wire.StateFailed, abi.ErrAborted
			return only(withHeader(m, func(h *header) { h.kind = wire.TypeAborted }))
		}),
		errorRow("Send", "refuse/kind", Refused, abi.ErrKind),
		errorRow("Send", "refuse/closed", Refused, abi.ErrClosed),
		errorRow("Send", "refuse/no target", Refused, abi.ErrNoTarget),
		errorRow("Send", "refuse/time-out", Refused, abi.ErrTimeout),
		errorRow("Send", "state/no status", Faulted, abi.OK),
		errorRow("Send", "state/unknown status", Faulted, abi.StatusCount),
		errorRow("Send", "state/status 65535", Faulted, 0xffff),
	}
}

// errorRow answers a message or a transfer with ERROR.
func errorRow(call, name string, want Conclusion, why abi.Status) Wrong {
	match := ackOf(wire.StateConsumed, abi.H2D)
	if call == "SendInd" {
		match = ackOf(wire.StateReady, abi.H2D)
	}
	return Wrong{Name: name, In: call, Match: match, Want: want, Status: why,
		alter: func(m wire.Slot) []wire.Slot {
			a := m.Ack()
			a.State, a.Status = wire.StateFailed, why
			return only(withHeader(m, func(h *header) { h.kind = wire.TypeError }))
		}}
}

// headerRow alters the header of a Send's ack and keeps or drops the right one.
func headerRow(name string, want Conclusion, keep bool, f func(h *header)) Wrong {
	return Wrong{Name: name, In: "Send", Match: ackOf(wire.StateConsumed, abi.H2D), Want: want,
		alter: func(m wire.Slot) []wire.Slot {
			if bad := withHeader(m, f); keep {
				return only(bad, m)
			} else {
				return only(bad)
			}
		}}
}

// wrongHeaders are garbage in the first word of a slot.
func wrongHeaders() []Wrong {
	rows := []Wrong{
		headerRow("epoch/wrong epoch first", Dropped, true, func(h *header) { h.epoch++ }),
		headerRow("epoch/wrong epoch", Lost, false, func(h *header) { h.epoch-- }),
		headerRow("channel/unsubscribed channel first", Dropped, true, func(h *header) { h.channel = 77 }),
		headerRow("channel/unsubscribed channel of another mailbox", Dropped, true, func(h *header) { h.channel = 2 }),
		headerRow("channel/unsubscribed channel through another mailbox", Faulted, true, func(h *header) { h.channel = 2 }).strays(),
		headerRow("channel/channel out of range", Faulted, true, func(h *header) { h.channel = 256 }).strays(),
		headerRow("channel/highest channel", Faulted, true, func(h *header) { h.channel = abi.ChannelsMax - 1 }).strays(),
		headerRow("channel/control channel", Dropped, true, func(h *header) { h.channel = 0 }),
		headerRow("channel/control channel through another mailbox", Faulted, true, func(h *header) { h.channel = 0 }).strays(),
		headerRow("id/sequence of another transaction", Faulted, false, func(h *header) { h.sequence += 9 }),
		headerRow("length/length 0", Faulted, false, func(h *header) { h.length = 0 }),
		headerRow("length/length 57", Faulted, false, func(h *header) { h.length = 57 }),
		headerRow("length/length 255", Faulted, false, func(h *header) { h.length = 255 }),
		{Name: "phase/wrong phase", In: "Send", Match: ackOf(wire.StateConsumed, abi.H2D), Want: Lost,
			alter: func(m wire.Slot) []wire.Slot { m.Header ^= 1 << 7; return only(m) }},
	}
	for _, t := range []struct {
		name string
		kind wire.Type
	}{
		{"NONE", wire.TypeNone}, {"IND_LIST", wire.TypeIndList}, {"FIN", wire.TypeFin}, {"ABORT", wire.TypeAbort},
		{"HELLO", wire.TypeHello}, {"HEARTBEAT", wire.TypeHeartbeat}, {"OFFER", wire.TypeOffer},
		{"unknown", wire.TypeCount}, {"garbage", 0x55}, {"highest", 0x7f},
	} {
		rows = append(rows, headerRow("type/"+t.name, Faulted, false, func(h *header) { h.kind = t.kind }))
	}
	return rows
}

// strays makes a row's messages go through the loopback's mailbox.
func (w Wrong) strays() Wrong {
	w.Astray = true
	return w
}

// noteRow adds a note to a Send's ack.
func noteRow(name string, want Conclusion, first bool, kind wire.Type, f func(n *wire.Note)) Wrong {
	return Wrong{Name: name, In: "Send", Match: ackOf(wire.StateConsumed, abi.H2D), Want: want,
		alter: func(m wire.Slot) []wire.Slot {
			note := wire.Slot{Header: m.Header}
			*note.Note() = wire.Note{Transaction: m.Ack().Transaction}
			note = withHeader(withNote(note, f), func(h *header) { h.kind = kind })
			if first {
				return only(note, m)
			}
			return only(m, note)
		}}
}

// rowReserved sets the last word of a note or of a close.
func rowReserved(name string, kind wire.Type) Wrong {
	d := noteRow(name, Faulted, true, kind, func(*wire.Note) {})
	alter := d.alter
	d.alter = func(m wire.Slot) []wire.Slot {
		out := alter(m)
		out[0].Payload[6] = 1
		return out
	}
	return d
}

// wrongNotes are notes and closes that nothing asked for.
func wrongNotes() []Wrong {
	rows := []Wrong{
		noteRow("note/READY never asked", Harmless, true, wire.TypeReady, func(n *wire.Note) { n.Transaction++ }),
		noteRow("note/READY for the past", Dropped, true, wire.TypeReady, func(n *wire.Note) { n.Transaction -= 3 }),
		noteRow("id/READY from the future", Faulted, true, wire.TypeReady, func(n *wire.Note) { n.Transaction += 1 << 20 }),
		noteRow("note/WITHDRAWN never asked", Faulted, true, wire.TypeWithdrawn, func(*wire.Note) {}),
		noteRow("note/WITHDRAWN from the future", Faulted, true, wire.TypeWithdrawn, func(n *wire.Note) { n.Transaction++ }),
		noteRow("note/WITHDRAWN for something accepted", Dropped, false, wire.TypeWithdrawn, func(*wire.Note) {}),
		noteRow("note/WITHDRAWN for the past", Dropped, true, wire.TypeWithdrawn, func(n *wire.Note) { n.Transaction-- }),
		noteRow("note/WITHDRAWN of d2h", Faulted, true, wire.TypeWithdrawn, func(n *wire.Note) { n.Direction = uint32(abi.D2H) }),
		noteRow("note/WITHDRAW of nothing", Faulted, true, wire.TypeWithdraw, func(n *wire.Note) { n.Direction = uint32(abi.D2H) }),
		noteRow("note/WITHDRAW of the host's message", Faulted, true, wire.TypeWithdraw, func(*wire.Note) {}),
		noteRow("note/note of an unknown direction", Faulted, true, wire.TypeWithdrawn, func(n *wire.Note) { n.Direction = 9 }),
		rowReserved("reserved/READY with a reserved field set", wire.TypeReady),
	}
	for _, c := range []struct {
		name  string
		want  Conclusion
		close wire.Close
	}{
		{"close/CLOSE of no half", Faulted, wire.Close{Generation: 1}},
		{"close/CLOSE of all bits", Faulted, wire.Close{Halves: 1<<32 - 1, Generation: 1}},
		{"close/CLOSE of a later generation", Faulted, wire.Close{Halves: 3, Generation: 99}},
		{"close/CLOSE of an earlier generation", Dropped, wire.Close{Halves: 3, Generation: 0}},
		{"close/CLOSE with an unknown status", Faulted, wire.Close{Halves: 3, Generation: 1, Status: 9999}},
		{"close/CLOSE before the ack", Closed, wire.Close{Halves: 3, Generation: 1}},
	} {
		rows = append(rows, Wrong{Name: c.name, In: "Send", Want: c.want,
			Match: ackOf(wire.StateConsumed, abi.H2D), alter: func(m wire.Slot) []wire.Slot {
				bad := wire.Slot{Header: m.Header}
				*bad.Close() = c.close
				bad = withHeader(bad, func(h *header) {
					h.kind, h.sequence = wire.TypeClose, uint16(c.close.Generation)
				})
				return only(bad, m)
			}})
	}
	return rows
}

// directRow alters the message that comes back from the loopback.
func directRow(name string, want Conclusion, alter func(m wire.Slot) []wire.Slot) Wrong {
	return Wrong{Name: name, In: "Receive", Match: of(wire.TypeDirect), Want: want, alter: alter}
}

// beginRow alters the offer of the transfer that comes back.
func beginRow(name string, want Conclusion, alter func(m wire.Slot) []wire.Slot) Wrong {
	return Wrong{Name: name, In: "ReceiveInd", Match: of(wire.TypeIndBegin), Want: want, alter: alter}
}

// during makes a row strike in another call.
func (w Wrong) during(call string) Wrong {
	w.In = call
	return w
}

// renumbered moves an offer to another transaction.
func renumbered(m wire.Slot, by int) wire.Slot {
	if kindOf(&m) == wire.TypeIndBegin {
		m.Begin().Transaction += uint64(by)
	}
	return withHeader(m, func(h *header) { h.sequence += uint16(by) })
}

// wrongOffers are offers that cannot be.
func wrongOffers() []Wrong {
	length := func(n int) func(m wire.Slot) []wire.Slot {
		return func(m wire.Slot) []wire.Slot { return only(withHeader(m, func(h *header) { h.length = n })) }
	}
	begin := func(f func(b *wire.Begin)) func(m wire.Slot) []wire.Slot {
		return func(m wire.Slot) []wire.Slot { f(m.Begin()); return only(m) }
	}
	twice := func(m wire.Slot) []wire.Slot { return only(m, m) }
	second := func(m wire.Slot) []wire.Slot { return only(m, renumbered(m, 1)) }
	past := func(m wire.Slot) []wire.Slot { return only(renumbered(m, -1), m) }
	future := func(m wire.Slot) []wire.Slot { return only(renumbered(m, 5), m) }
	return []Wrong{
		directRow("length/length 57", Faulted, length(57)),
		directRow("length/length 64", Faulted, length(64)),
		directRow("length/length 255", Faulted, length(255)),
		directRow("replay/offered twice", Dropped, twice),
		directRow("offer/second offer while one is pending", Faulted, second).during("ReceiveLate"),
		directRow("id/offer of the past first", Dropped, past),
		directRow("id/offer of the future first", Faulted, future),
		directRow("drop/never offered", Waits, func(wire.Slot) []wire.Slot { return nil }),
		beginRow("replay/offered twice", Dropped, twice),
		beginRow("offer/second offer while one is pending", Faulted, second).during("ReceiveIndLate"),
		beginRow("id/offer of the past first", Dropped, past),
		beginRow("id/offer of the future first", Faulted, future),
		beginRow("id/sequence is not the transaction", Faulted, begin(func(b *wire.Begin) { b.Transaction += 1 << 16 })),
		beginRow("id/transaction is not the sequence", Faulted, begin(func(b *wire.Begin) { b.Transaction++ })),
		beginRow("reserved/reserved field set", Faulted, func(m wire.Slot) []wire.Slot { m.Payload[6] = 1; return only(m) }),
		beginRow("length/size over every limit", Faulted, begin(func(b *wire.Begin) { b.Size = 1<<64 - 1 })),
		beginRow("length/length 57", Faulted, length(57)),
	}
}
