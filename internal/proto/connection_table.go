package proto

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// ConnectionHalf is one direction of a channel at an end between hosts. It is a value, as [Half].
type ConnectionHalf struct {
	Direction abi.Direction
	State     DeviceState
	Marks     ConnectionMarks
	Next      uint64 // id of the next transaction
}

// Present returns the id of the transaction under way, or of the last one.
func (h ConnectionHalf) Present() uint64 { return h.Next - 1 }

// ConnectionTable is a list of the transitions of ends, without two for one input in one state.
type ConnectionTable struct {
	rows []ConnectionRow
	at   [2][deviceStates][connectionInputs][]int // indices of rows
}

// NewConnectionTable compiles rows. Two rows for one input in one state are an error.
func NewConnectionTable(rows []ConnectionRow) (*ConnectionTable, error) {
	t := &ConnectionTable{rows: rows}
	for i, r := range rows {
		at := &t.at[r.Direction][r.State][r.Input]
		for _, j := range *at {
			if o := rows[j]; r.With&o.Without|o.With&r.Without == 0 {
				return nil, fmt.Errorf("two transitions: %v and %v", o, r)
			}
		}
		*at = append(*at, i)
	}
	return t, nil
}

// Rows returns the transitions that the table was made of.
func (t *ConnectionTable) Rows() []ConnectionRow { return t.rows }

// Step returns the transition of an input and its index; -1 if there is none.
func (t *ConnectionTable) Step(h ConnectionHalf, in DeviceInput) (ConnectionRow, int) {
	for _, i := range t.at[h.Direction][h.State][in] {
		if r := t.rows[i]; h.Marks&r.With == r.With && h.Marks&r.Without == 0 {
			return r, i
		}
	}
	return ConnectionRow{}, -1
}

// From returns the half that follows a transition.
func (h ConnectionHalf) From(r ConnectionRow) ConnectionHalf {
	h.State = r.Next
	h.Marks = h.Marks&^r.Clear | r.Set
	if r.Next == DeviceIdle {
		h.Marks &^= connectionBrief
	}
	switch r.Input {
	case HearMessage, HearBegin, HearPages, HearBadBegin:
		if r.Direction == abi.H2D {
			h.Next++
		}
	case OtherMessage, OtherTransfer, OtherFits, OtherFitsLate:
		if r.Notify&NewsAnswered == 0 {
			h.Next++
		}
	}
	return h
}

// String describes the transition in a line.
func (r ConnectionRow) String() string {
	s := transition("end's", r.Direction, r.State, r.With, r.Without, r.Input, r.Next, r.Put)
	if r.Notify != 0 {
		s += fmt.Sprintf(", sends %v", r.Notify)
	}
	return s
}

// Step returns the transition of an end as a whole among rows, and its index; -1 if there is none.
func (s EndState) Step(rows []EndRow, in EndInput) (EndRow, int) {
	for i, r := range rows {
		if r.State == s && r.Input == in {
			return r, i
		}
	}
	return EndRow{}, -1
}

// CheckEnds returns an error for two rows of one input in one state.
func CheckEnds(rows []EndRow) error {
	for i, r := range rows {
		if o, first := r.State.Step(rows, r.Input); first < i {
			return fmt.Errorf("two transitions: %v and %v", o, r)
		}
	}
	return nil
}

// String describes the transition in a line.
func (r EndRow) String() string {
	s := fmt.Sprintf("end %v: %v → %v", r.State, r.Input, r.Next)
	if r.Put != PutNothing {
		s += fmt.Sprintf(", puts %v", r.Put)
	}
	if r.Notify != 0 {
		s += fmt.Sprintf(", sends %v", r.Notify)
	}
	return s
}
