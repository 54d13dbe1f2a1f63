package proto

import (
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Stand is where a half stands, packed: {marks:4 | state:3}. It is the low part of a word that
// changes with one store.
type Stand uint8

const standMarks = 3 // the shift

// StandBits is how many bits a Stand needs.
const StandBits = 7

// State returns the state alone.
func (s Stand) State() State { return State(s & (1<<standMarks - 1)) }

// Marks returns the marks alone.
func (s Stand) Marks() Marks { return Marks(s >> standMarks) }

// With returns s with marks set.
func (s Stand) With(m Marks) Stand { return s | Stand(m)<<standMarks }

// Half is one direction of a channel. It is a value: transitions return the next one.
type Half struct {
	ID        uint64 // of the transaction under way, or of the last one
	Direction abi.Direction
	Stand     Stand
	Size      uint64 // bytes of the pages that the device has: of StateGiven and StatePosted
}

// current returns the transaction that a record is about: what is posted is for the next one.
func (h Half) current() uint64 {
	if h.Stand.State() == StatePosted {
		return h.ID + 1
	}
	return h.ID
}

// Step is a transition to follow, packed so that it fits in a register:
// {row:8 | event:8 | advance:1 | next:7 | keep:8}. The zero Step is none.
type Step uint32

const (
	stepKeep    = 1<<StandBits - 1 // of the stand before
	stepNext    = 8
	stepAdvance = 1 << 15
	stepEvent   = 16
	stepRow     = 24
)

// stay is the step that has an event and leads nowhere.
func stay(e Event) Step { return Step(e)<<stepEvent | stepKeep }

// OK reports whether there is anything to follow.
func (p Step) OK() bool { return p != 0 }

// Event returns what the step means.
func (p Step) Event() Event { return Event(p >> stepEvent) }

// Advances reports whether the step begins the next transaction.
func (p Step) Advances() bool { return p&stepAdvance != 0 }

// Row returns the index of the transition; -1 if none was needed.
func (p Step) Row() int { return int(p>>stepRow) - 1 }

// From returns where the step leads from s.
func (p Step) From(s Stand) Stand { return s&Stand(p&stepKeep) | Stand(p>>stepNext)&stepKeep }

// From returns the half that follows a step.
func (h Half) From(p Step) Half {
	h.Stand = p.From(h.Stand)
	if p.Advances() {
		h.ID++
	}
	return h
}

// Table is a compiled list of transitions.
type Table struct {
	rows  []Row
	steps [2][1 << StandBits][stepInputs]Step
}

// stepInputs is a power of two, so that an index needs no check.
const (
	stepInputs = 32
	_          = uint(stepInputs - inputCount)
)

// defaults is the protocol.
var defaults = sync.OnceValue(func() *Table {
	t, err := NewTable(Rows())
	if err != nil {
		panic(err) // a test makes sure that it does not come to this
	}
	return t
})

// Default returns the table of the protocol.
func Default() *Table { return defaults() }

// NewTable compiles rows, 255 at the most. Two rows for one input in one state are an error.
func NewTable(rows []Row) (*Table, error) {
	t := &Table{rows: rows}
	for i, r := range rows {
		for m := Marks(0); m <= markAll; m++ {
			if m&r.With != r.With || m&r.Without != 0 {
				continue
			}
			at := &t.steps[r.Direction][Stand(r.State).With(m)][r.Input]
			if at.OK() {
				return nil, fmt.Errorf("two transitions: %v and %v", rows[at.Row()], r)
			}
			*at = r.compile(i)
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

// compile packs a row.
func (r Row) compile(i int) Step {
	keep := markAll &^ r.Clear
	if r.Next == StateIdle {
		keep &^= MarkRecall | MarkHeld
	}
	p := Step(i+1)<<stepRow | Step(r.Event)<<stepEvent |
		Step(Stand(r.Next).With(r.Set))<<stepNext | Step(Stand(0).With(keep))
	if r.advances() {
		p |= stepAdvance
	}
	return p
}

// advances reports whether the transition uses the next id.
func (r Row) advances() bool {
	switch r.Input {
	case TakeOffer, TakeMatch:
		return r.Event != EventFault
	case TakeConsumed, TakeRefused:
		return r.State == StatePosted
	case PutMessage, PutTransfer, PutEager, PutCall:
		return r.Direction == abi.H2D
	}
	return false
}

// Step returns the transition of an input.
func (t *Table) Step(d abi.Direction, s Stand, in Input) Step {
	return t.steps[d&1][s%(stepKeep+1)][in%stepInputs]
}

// Act returns what the host may do: PutAbort marks the ledger. The zero Step means that it may not
// do that now.
func (t *Table) Act(h Half, in Input, l *Ledger) Step {
	p := t.Step(h.Direction, h.Stand.With(accepts(h, l)), in)
	if in == PutAbort && p.OK() {
		l.Aborting = true
	}
	return p
}

// accepts returns MarkAccepted if its target has the transfer under way, by its ledger.
func accepts(h Half, l *Ledger) Marks {
	if h.Stand.State() == StateMoving && h.Direction == abi.H2D && l != nil && l.Accepted() {
		return MarkAccepted
	}
	return 0
}
