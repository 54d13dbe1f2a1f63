package proto

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Half is where one direction of a channel stands. It is a value: transitions return the next one.
type Half struct {
	ID        uint64 // of the transaction under way, or of the last one
	Direction abi.Direction
	State     State
	Marks     Marks
}

// Outcome is what came of a message, or of what the host did.
type Outcome struct {
	Half  Half
	Event Event
	Why   string // of EventFault
	Row   int    // the transition, an index of the table's rows; -1 if none was needed
}

// Table is a compiled list of transitions.
type Table struct {
	rows  []Row
	index [2][stateCount][markAll + 1][inputCount]int16 // 1 + index of rows, or 0
}

// defaults is the protocol.
var defaults = func() *Table {
	t, err := NewTable(Rows())
	if err != nil {
		panic(err) // a test makes sure that it does not come to this
	}
	return t
}()

// Default returns the table of the protocol.
func Default() *Table { return defaults }

// NewTable compiles rows. Two rows for one input in one state are an error.
func NewTable(rows []Row) (*Table, error) {
	t := &Table{rows: rows}
	for i, r := range rows {
		for m := Marks(0); m <= markAll; m++ {
			if m&r.With != r.With || m&r.Without != 0 {
				continue
			}
			at := &t.index[r.Direction][r.State][m][r.Input]
			if *at != 0 {
				return nil, fmt.Errorf("two transitions: %v and %v", rows[*at-1], r)
			}
			*at = int16(i + 1)
		}
	}
	return t, nil
}

// Rows returns the transitions that the table was made of.
func (t *Table) Rows() []Row { return t.rows }

// String describes the transition in a line.
func (r Row) String() string {
	s := fmt.Sprintf("%v %v", r.Direction, r.State)
	if r.With != 0 {
		s += fmt.Sprintf(" with %v", r.With)
	}
	if r.Without != 0 {
		s += fmt.Sprintf(" without %v", r.Without)
	}
	return fmt.Sprintf("%s: %v → %v, %v", s, r.Input, r.Next, r.Event)
}

// step follows the transition of an input; an outcome with Row -1 if there is none.
// found are the marks that nobody stores.
func (t *Table) step(h Half, in Input, found Marks) Outcome {
	i := int(t.index[h.Direction&1][h.State][(h.Marks|found)&markAll][in]) - 1
	if i < 0 {
		return Outcome{Half: h, Row: -1}
	}
	r := &t.rows[i]
	h.State = r.Next
	h.Marks = h.Marks&^r.Clear | r.Set
	if r.Next == StateIdle {
		h.Marks &^= MarkRecall | MarkHeld
	}
	return Outcome{Half: h, Event: r.Event, Row: i}
}

// Act follows what the host does. PutMessage and PutTransfer of an idle h2d half begin the next
// transaction; PutAbort tells the ledger. False if the host may not do that now.
func (t *Table) Act(h Half, in Input, l *Ledger) (Outcome, bool) {
	begins := h.Direction == abi.H2D && h.State == StateIdle && (in == PutMessage || in == PutTransfer)
	o := t.step(h, in, marksOf(h, l))
	switch {
	case o.Row < 0:
		return o, false
	case begins:
		o.Half.ID++
	case in == PutAbort:
		l.Aborting = true
	}
	return o, true
}

// marksOf returns MarkAccepted if the ledger of a transfer under way says so.
func marksOf(h Half, l *Ledger) Marks {
	if h.State == StateMoving && h.Direction == abi.H2D && l != nil && l.Accepted() {
		return MarkAccepted
	}
	return 0
}
