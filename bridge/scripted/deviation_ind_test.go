package scripted

import (
	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// recordRow alters the n-th completion record of a transfer in a state.
func recordRow(d abi.Direction, name string, s abi.State, want conclusion, f func(a *abi.Ack)) deviation {
	return rawRow(d, name, s, want, func(m abi.Slot) []abi.Slot { return only(withAck(m, f)) })
}

func rawRow(d abi.Direction, name string, s abi.State, want conclusion, f func(m abi.Slot) []abi.Slot) deviation {
	row := deviation{name: name, call: "SendInd", match: ackOf(s, d), want: want, alter: f}
	if d == abi.D2H {
		row.call = "ReceiveInd"
	}
	if s == abi.StateDone {
		row.match = func(m *abi.Slot) bool { return of(abi.TypeDone)(m) && m.Ack().Direction == uint32(d) }
	}
	return row
}

// as turns a completion record into another message.
func as(t abi.Type, s abi.State, why abi.Status) func(m abi.Slot) []abi.Slot {
	return func(m abi.Slot) []abi.Slot {
		m.Ack().State, m.Ack().Status = s, why
		return only(withHeader(m, func(h *header) { h.kind = t }))
	}
}

// movingDeviations are records that cannot be true while a transfer moves.
func movingDeviations(d abi.Direction) []deviation {
	moved, done := abi.StateMoving, abi.StateDone
	return []deviation{
		recordRow(d, "lists acked that were not sent", moved, faulted, func(a *abi.Ack) { a.Lists += 1000 }),
		recordRow(d, "all lists acked", moved, faulted, func(a *abi.Ack) { a.Lists = 1<<32 - 1 }),
		recordRow(d, "lists taken back", moved, faulted, func(a *abi.Ack) { a.Lists = 0 }).at(1),
		recordRow(d, "MOVING that acks no list", moved, harmless, func(a *abi.Ack) { a.Lists = 0 }),
		recordRow(d, "bytes taken back", moved, faulted, func(a *abi.Ack) { a.Processed = 0 }).at(1),
		recordRow(d, "processed over size", moved, faulted, func(a *abi.Ack) { a.Processed = deviationSize + 1 }),
		recordRow(d, "processed without end", moved, faulted, func(a *abi.Ack) { a.Processed = 1<<64 - 1 }),
		recordRow(d, "outstanding over size", moved, harmless, func(a *abi.Ack) { a.Outstanding = 1 << 50 }),
		recordRow(d, "MOVING from the future", moved, faulted, func(a *abi.Ack) { a.Transaction += 2 }),
		recordRow(d, "MOVING with an unknown status", moved, faulted, func(a *abi.Ack) { a.Status = 999 }),
		recordRow(d, "MOVING becomes CONSUMED", moved, faulted, func(a *abi.Ack) { a.State = abi.StateConsumed }),
		recordRow(d, "MOVING becomes FAILED", moved, faulted, func(a *abi.Ack) { a.State = abi.StateFailed }),
		recordRow(d, "REPEAT of a list that was not sent", moved, faulted, func(a *abi.Ack) {
			a.State, a.Lists = abi.StateRepeat, a.Lists+1000
		}),
		recordRow(d, "REPEAT of a list that was acked", moved, faulted, func(a *abi.Ack) {
			a.State, a.Lists = abi.StateRepeat, 0
		}).at(1),
		recordRow(d, "REPEAT of a list that the device has", moved, refused, func(a *abi.Ack) {
			a.State, a.Lists = abi.StateRepeat, 0
		}).with(bridge.ErrProtocol).quietly(),
		rawRow(d, "replayed MOVING", moved, harmless, func(m abi.Slot) []abi.Slot { return only(m, m, m) }),
		rawRow(d, "MOVING of the past", moved, ignored, func(m abi.Slot) []abi.Slot {
			return only(withAck(m, func(a *abi.Ack) { a.Transaction-- }), m)
		}),
		rawRow(d, "DONE too early", moved, faulted, as(abi.TypeDone, done, abi.OK)),
		rawRow(d, "DONE too early that claims all", moved, faulted, func(m abi.Slot) []abi.Slot {
			m.Ack().Processed, m.Ack().Outstanding = deviationSize, 0
			return as(abi.TypeDone, done, abi.OK)(m)
		}),
		rawRow(d, "ABORTED never asked", moved, faulted, as(abi.TypeAborted, abi.StateFailed, abi.ErrAborted)),
		rawRow(d, "ERROR without status", moved, faulted, as(abi.TypeError, abi.StateFailed, abi.OK)),
		rawRow(d, "ERROR with another state", moved, faulted, as(abi.TypeError, abi.StateMoving, abi.ErrDMA)),
		rawRow(d, "ERROR in an entry that no list has", moved, faulted, func(m abi.Slot) []abi.Slot {
			m.Ack().FaultIndex = abi.ListEntries
			return as(abi.TypeError, abi.StateFailed, abi.ErrDMA)(m)
		}),
		rawRow(d, "ERROR of DMA", moved, refused, as(abi.TypeError, abi.StateFailed, abi.ErrDMA)).with(bridge.ErrDMA),
		recordRow(d, "DONE with less processed", done, faulted, func(a *abi.Ack) { a.Processed-- }),
		recordRow(d, "DONE with more processed", done, faulted, func(a *abi.Ack) { a.Processed++ }),
		recordRow(d, "DONE with bytes outstanding", done, faulted, func(a *abi.Ack) { a.Outstanding = 1 }),
		recordRow(d, "DONE with another state", done, faulted, func(a *abi.Ack) { a.State = abi.StateMoving }),
		recordRow(d, "DONE from the future", done, faulted, func(a *abi.Ack) { a.Transaction++ }),
		recordRow(d, "DONE with an error", done, faulted, func(a *abi.Ack) { a.Status = abi.ErrDMA }),
		rawRow(d, "DONE twice", done, ignored, func(m abi.Slot) []abi.Slot { return only(m, m) }),
		rawRow(d, "no DONE", done, lost, func(abi.Slot) []abi.Slot { return nil }).silent(),
		rawRow(d, "no MOVING", moved, harmless, func(abi.Slot) []abi.Slot { return nil }),
	}
}

// at makes a row alter the n-th message that matches, from 0.
func (d deviation) at(n int) deviation {
	d.nth = n
	return d
}

// moving matches the record of lists that moved.
func moving(m *abi.Slot) bool {
	return of(abi.TypeAck)(m) && m.Ack().State == abi.StateMoving
}

// with names the error of a refused row.
func (d deviation) with(err error) deviation {
	d.err = err
	return d
}

// quietly keeps the records of lists back that were moving at the deviation.
func (d deviation) quietly() deviation {
	d.still = true
	return d
}

// silent makes a row's device give nothing any more after the deviation.
func (d deviation) silent() deviation {
	d.mute = true
	return d
}

func sendIndDeviations() []deviation {
	ready := abi.StateReady
	rows := append(movingDeviations(abi.H2D),
		rawRow(abi.H2D, "READY twice", ready, faulted, func(m abi.Slot) []abi.Slot { return only(m, m) }),
		recordRow(abi.H2D, "READY with lists", ready, faulted, func(a *abi.Ack) { a.Lists = 5 }),
		recordRow(abi.H2D, "READY becomes CONSUMED", ready, faulted, func(a *abi.Ack) { a.State = abi.StateConsumed }),
		recordRow(abi.H2D, "READY from the future", ready, faulted, func(a *abi.Ack) { a.Transaction++ }),
		rawRow(abi.H2D, "no READY", ready, lost, func(abi.Slot) []abi.Slot { return nil }).silent(),
		rawRow(abi.H2D, "DONE instead of READY", ready, faulted, as(abi.TypeDone, abi.StateDone, abi.OK)),
		errorRow("SendInd", "kind", refused, abi.ErrKind, bridge.ErrKindMismatch),
		errorRow("SendInd", "range", refused, abi.ErrRange, bridge.ErrRange),
		errorRow("SendInd", "memory", refused, abi.ErrNoMemory, bridge.ErrNoMemory),
		errorRow("SendInd", "time-out", refused, abi.ErrTimeout, bridge.ErrTargetTimeout),
		errorRow("SendInd", "protocol", refused, abi.ErrProto, bridge.ErrProtocol),
		errorRow("SendInd", "unknown status", faulted, 777, nil),
		errorRow("SendInd", "no status", faulted, abi.OK, nil),
	)
	size := errorRow("SendInd", "size", refused, abi.ErrSize, bridge.ErrSizeMismatch)
	return append(rows, size)
}

func receiveIndDeviations() []deviation { return movingDeviations(abi.D2H) }
