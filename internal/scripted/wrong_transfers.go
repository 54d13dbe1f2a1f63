package scripted

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// recordRow alters the n-th completion record of a transfer in a state.
func recordRow(d abi.Direction, name string, s wire.State, want Conclusion, f func(a *wire.Ack)) Wrong {
	return rawRow(d, name, s, want, func(m wire.Slot) []wire.Slot { return only(withAck(m, f)) })
}

func rawRow(d abi.Direction, name string, s wire.State, want Conclusion, f func(m wire.Slot) []wire.Slot) Wrong {
	row := Wrong{Name: name, In: "SendInd", Match: ackOf(s, d), Want: want, alter: f}
	if d == abi.D2H {
		row.In = "ReceiveInd"
	}
	if s == wire.StateDone {
		row.Match = func(m *wire.Slot) bool { return of(wire.TypeDone)(m) && m.Ack().Direction == uint32(d) }
	}
	return row
}

// as turns a completion record into another message.
func as(t wire.Type, s wire.State, why abi.Status) func(m wire.Slot) []wire.Slot {
	return func(m wire.Slot) []wire.Slot {
		m.Ack().State, m.Ack().Status = s, why
		return only(withHeader(m, func(h *header) { h.kind = t }))
	}
}

// wrongMoves are records that cannot be true while a transfer moves.
func wrongMoves(d abi.Direction) []Wrong {
	moved := wire.StateMoving
	return []Wrong{
		recordRow(d, "count/lists acked that were not sent", moved, Faulted, func(a *wire.Ack) { a.Lists += 1000 }),
		recordRow(d, "count/all lists acked", moved, Faulted, func(a *wire.Ack) { a.Lists = 1<<32 - 1 }),
		recordRow(d, "count/lists taken back", moved, Faulted, func(a *wire.Ack) { a.Lists = 0 }).at(1),
		recordRow(d, "count/MOVING that acks no list", moved, Harmless, func(a *wire.Ack) { a.Lists = 0 }),
		recordRow(d, "count/bytes taken back", moved, Faulted, func(a *wire.Ack) { a.Processed = 0 }).at(1),
		recordRow(d, "count/processed over size", moved, Faulted, func(a *wire.Ack) { a.Processed += a.Outstanding + 1 }),
		recordRow(d, "count/processed without end", moved, Faulted, func(a *wire.Ack) { a.Processed = 1<<64 - 1 }),
		recordRow(d, "count/outstanding over size", moved, Harmless, func(a *wire.Ack) { a.Outstanding = 1 << 50 }),
		recordRow(d, "id/MOVING from the future", moved, Faulted, func(a *wire.Ack) { a.Transaction += 2 }),
		recordRow(d, "state/MOVING with an unknown status", moved, Faulted, func(a *wire.Ack) { a.Status = 999 }),
		recordRow(d, "state/MOVING becomes CONSUMED", moved, Faulted, func(a *wire.Ack) { a.State = wire.StateConsumed }),
		recordRow(d, "state/MOVING becomes FAILED", moved, Faulted, func(a *wire.Ack) { a.State = wire.StateFailed }),
		recordRow(d, "count/REPEAT of a list that was not sent", moved, Faulted, func(a *wire.Ack) {
			a.State, a.Lists = wire.StateRepeat, a.Lists+1000
		}),
		recordRow(d, "count/REPEAT of a list that was acked", moved, Faulted, func(a *wire.Ack) {
			a.State, a.Lists = wire.StateRepeat, 0
		}).at(1),
		recordRow(d, "count/REPEAT of a list that the device has", moved, Refused, func(a *wire.Ack) {
			a.State, a.Lists = wire.StateRepeat, 0
		}).with(abi.ErrProto).quietly(),
		rawRow(d, "replay/replayed MOVING", moved, Harmless, func(m wire.Slot) []wire.Slot { return only(m, m, m) }),
		rawRow(d, "id/MOVING of the past", moved, Dropped, func(m wire.Slot) []wire.Slot {
			return only(withAck(m, func(a *wire.Ack) { a.Transaction-- }), m)
		}),
		rawRow(d, "early/DONE too early", moved, Faulted, as(wire.TypeDone, wire.StateDone, abi.OK)),
		rawRow(d, "early/DONE too early that claims all", moved, Faulted, func(m wire.Slot) []wire.Slot {
			a := m.Ack()
			a.Processed, a.Outstanding = a.Processed+a.Outstanding, 0
			return as(wire.TypeDone, wire.StateDone, abi.OK)(m)
		}),
		rawRow(d, "note/ABORTED never asked", moved, Faulted, as(wire.TypeAborted, wire.StateFailed, abi.ErrAborted)),
		rawRow(d, "state/ERROR without status", moved, Faulted, as(wire.TypeError, wire.StateFailed, abi.OK)),
		rawRow(d, "state/ERROR with another state", moved, Faulted, as(wire.TypeError, wire.StateMoving, abi.ErrDMA)),
		rawRow(d, "state/ERROR in an entry that no list has", moved, Faulted, func(m wire.Slot) []wire.Slot {
			m.Ack().FaultIndex = wire.ListEntries
			return as(wire.TypeError, wire.StateFailed, abi.ErrDMA)(m)
		}),
		rawRow(d, "refuse/ERROR of DMA", moved, Refused, as(wire.TypeError, wire.StateFailed, abi.ErrDMA)).with(abi.ErrDMA),
		rawRow(d, "drop/no MOVING", moved, Harmless, func(wire.Slot) []wire.Slot { return nil }),
	}
}

// wrongEnds are records that cannot be the end of a transfer.
func wrongEnds(d abi.Direction) []Wrong {
	done := wire.StateDone
	return []Wrong{
		recordRow(d, "count/DONE with less processed", done, Faulted, func(a *wire.Ack) { a.Processed-- }),
		recordRow(d, "count/DONE with more processed", done, Faulted, func(a *wire.Ack) { a.Processed++ }),
		recordRow(d, "count/DONE with bytes outstanding", done, Faulted, func(a *wire.Ack) { a.Outstanding = 1 }),
		recordRow(d, "state/DONE with another state", done, Faulted, func(a *wire.Ack) { a.State = wire.StateMoving }),
		recordRow(d, "id/DONE from the future", done, Faulted, func(a *wire.Ack) { a.Transaction++ }),
		recordRow(d, "state/DONE with an error", done, Faulted, func(a *wire.Ack) { a.Status = abi.ErrDMA }),
		rawRow(d, "replay/DONE twice", done, Dropped, func(m wire.Slot) []wire.Slot { return only(m, m) }),
		rawRow(d, "drop/no DONE", done, Lost, func(wire.Slot) []wire.Slot { return nil }).silent(),
	}
}

// at makes a row alter the n-th message that matches, from 0.
func (w Wrong) at(n int) Wrong {
	w.Nth = n
	return w
}

// moving matches the record of lists that moved.
func moving(m *wire.Slot) bool {
	return of(wire.TypeAck)(m) && m.Ack().State == wire.StateMoving
}

// with names the status of a refused row.
func (w Wrong) with(err abi.Status) Wrong {
	w.Status = err
	return w
}

// quietly keeps the records of lists back that were moving when it strikes.
func (w Wrong) quietly() Wrong {
	w.Still = true
	return w
}

// silent makes a row's device give nothing any more afterwards.
func (w Wrong) silent() Wrong {
	w.Mute = true
	return w
}

// wrongSends are answers to an offer that cannot be, or need not.
func wrongSends() []Wrong {
	ready := wire.StateReady
	return []Wrong{
		rawRow(abi.H2D, "replay/READY twice", ready, Faulted, func(m wire.Slot) []wire.Slot { return only(m, m) }),
		recordRow(abi.H2D, "count/READY with lists", ready, Faulted, func(a *wire.Ack) { a.Lists = 5 }),
		recordRow(abi.H2D, "state/READY becomes CONSUMED", ready, Faulted, func(a *wire.Ack) { a.State = wire.StateConsumed }),
		recordRow(abi.H2D, "id/READY from the future", ready, Faulted, func(a *wire.Ack) { a.Transaction++ }),
		rawRow(abi.H2D, "drop/no READY", ready, Lost, func(wire.Slot) []wire.Slot { return nil }).silent(),
		rawRow(abi.H2D, "early/DONE instead of READY", ready, Faulted, as(wire.TypeDone, wire.StateDone, abi.OK)),
		errorRow("SendInd", "refuse/kind", Refused, abi.ErrKind),
		errorRow("SendInd", "refuse/range", Refused, abi.ErrRange),
		errorRow("SendInd", "refuse/memory", Refused, abi.ErrNoMemory),
		errorRow("SendInd", "refuse/time-out", Refused, abi.ErrTimeout),
		errorRow("SendInd", "refuse/protocol", Refused, abi.ErrProto),
		errorRow("SendInd", "state/unknown status", Faulted, 777),
		errorRow("SendInd", "state/no status", Faulted, abi.OK),
		errorRow("SendInd", "refuse/size", Refused, abi.ErrSize),
	}
}
