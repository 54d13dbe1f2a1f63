package proto

import (
	"fmt"
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// DialRow is one transition of an end. It holds for connections that have the properties of With, and
// none of Without.
type DialRow struct {
	End           DialEnd
	With, Without DialKind
	State         DialState
	Input         DialInput
	Next          DialState
	Does          DialDoes
	Status        abi.Status // of DialReturns
	Sends         DialNews
}

// DialRows returns every transition of an end of a connection that a process opens. Any other input does
// nothing.
func DialRows() []DialRow { return slices.Concat(callerRows(), portRows(), guestRows()) }

// callerRows are those of the process that connects.
func callerRows() []DialRow {
	const c = DialCaller
	rows := []DialRow{
		{c, 0, 0, DialNone, DialConnects, DialAsking, DialNothing, 0, DialAsks},
		{c, DialHost, 0, DialAsking, DialAdmitted, DialWaiting, DialReturns, abi.OK, DialSilent},
		{c, 0, DialHost, DialAsking, DialOpened, DialOpen, DialReturns, abi.OK, DialSilent},
		{c, 0, 0, DialAsking, DialRefused, DialNone, DialFails, 0, DialSilent},
		{c, DialFar, 0, DialAsking, DialLate, DialNone, DialReturns, abi.ErrTimeout, DialLeaves},
		{c, DialFar, 0, DialAsking, DialEnds, DialNone, DialReturns, abi.ErrStopped, DialLeaves},
		{c, DialHost, 0, DialWaiting, DialOpened, DialOpen, DialNothing, 0, DialSilent},
		{c, DialHost | DialFar, 0, DialWaiting, DialNodeLost, DialNone, DialReturns, abi.ErrClosed, DialSilent},
		{c, DialFar, DialHost, DialOpen, DialNodeLost, DialNone, DialReturns, abi.ErrClosed, DialSilent},
	}
	for _, s := range []DialState{DialWaiting, DialOpen} {
		rows = append(rows,
			DialRow{c, 0, 0, s, DialOtherGone, DialNone, DialReturns, abi.ErrClosed, DialSilent},
			DialRow{c, 0, 0, s, DialCloses, DialNone, DialNothing, 0, DialLeaves},
			DialRow{c, 0, 0, s, DialEnds, DialNone, DialNothing, 0, DialLeaves})
	}
	return rows
}

// portRows are those of a process that has a port.
func portRows() []DialRow {
	const t, at = DialTarget, DialHost
	return []DialRow{
		{t, 0, at, DialNone, DialAsked, DialOpen, DialNothing, 0, DialSubscribes},
		{t, 0, at, DialNone, DialInVain, DialNone, DialNothing, 0, DialRejects},
		{t, 0, at, DialOpen, DialOtherGone, DialNone, DialReturns, abi.ErrClosed, DialSilent}, // the port is free
		{t, DialFar, at, DialOpen, DialNodeLost, DialNone, DialReturns, abi.ErrClosed, DialSilent},
		{t, 0, at, DialOpen, DialCloses, DialNone, DialReturns, abi.ErrClosed, DialLeaves},
		{t, 0, at, DialOpen, DialEnds, DialNone, DialNothing, 0, DialLeaves},
	}
}

// guestRows are those of a host that listens, and of its listener.
func guestRows() []DialRow {
	const t, at = DialTarget, DialHost
	rows := []DialRow{
		{t, at, 0, DialNone, DialAsked, DialWaiting, DialNothing, 0, DialAdmits},
		{t, at, 0, DialNone, DialInVain, DialNone, DialNothing, 0, DialRejects},
		{t, at, 0, DialWaiting, DialNext, DialOffered, DialOffers, 0, DialSilent},
		{t, at, 0, DialWaiting, DialOtherGone, DialNone, DialNothing, 0, DialSilent}, // it leaves its place to others
		{t, at, 0, DialWaiting, DialStops, DialNone, DialNothing, 0, DialLeaves},
		{t, at, 0, DialOffered, DialTakes, DialTaken, DialNothing, 0, DialSilent},
		{t, at, 0, DialOffered, DialStops, DialNone, DialNothing, 0, DialLeaves},
		{t, at, DialFar, DialOffered, DialOtherGone, DialOfferedLeft, DialNothing, 0, DialSilent},
		{t, at, DialFar, DialOfferedLeft, DialTakes, DialTakenLeft, DialNothing, 0, DialSilent},
		{t, at, DialFar, DialOfferedLeft, DialStops, DialNone, DialNothing, 0, DialSilent},
		{t, at, 0, DialTaken, DialOpens, DialOpen, DialReturns, abi.OK, DialSubscribes},
		{t, at, DialFar, DialTaken, DialOtherGone, DialTakenLeft, DialNothing, 0, DialSilent},
		{t, at, DialFar, DialTakenLeft, DialOpens, DialAlone, DialOpensClosed, 0, DialSilent},
		{t, at | DialFar, 0, DialTaken, DialLate, DialNone, DialNothing, 0, DialLeaves},
		{t, at, 0, DialOpen, DialOtherGone, DialAlone, DialClose, 0, DialSilent},
		{t, at, 0, DialOpen, DialCloses, DialNone, DialClose, 0, DialLeaves},
		{t, at, 0, DialAlone, DialCloses, DialNone, DialClose, 0, DialSilent},
		{t, at, 0, DialNone, DialOpens, DialNone, DialReturns, abi.ErrNoTarget, DialSilent},
	}
	for _, s := range []DialState{DialOpen, DialAlone} {
		rows = append(rows, DialRow{t, at, 0, s, DialOpens, s, DialReturns, abi.ErrBusy, DialSilent})
	}
	for _, s := range []DialState{DialWaiting, DialOffered, DialTaken, DialOpen} {
		rows = append(rows, DialRow{t, at, 0, s, DialEnds, DialNone, DialNothing, 0, DialLeaves})
	}
	for _, s := range []DialState{DialOfferedLeft, DialTakenLeft, DialAlone} {
		rows = append(rows, DialRow{t, at, 0, s, DialEnds, DialNone, DialNothing, 0, DialSilent})
	}
	for _, s := range []DialState{DialOffered, DialTaken} { // no host can connect for it
		rows = append(rows, DialRow{t, at | DialFar, 0, s, DialOtherGone, DialNone, DialNothing, 0, DialSilent})
	}
	for _, s := range []DialState{DialWaiting, DialOffered, DialTaken} {
		rows = append(rows, DialRow{t, at | DialFar, 0, s, DialNodeLost, DialNone, DialNothing, 0, DialSilent})
	}
	return rows
}

// NewDial compiles rows. Two rows for one input in one state are an error.
func NewDial(rows []DialRow) (*Dial, error) {
	l := &Dial{rows: rows}
	for i, r := range rows {
		at := &l.at[r.End][r.State][r.Input]
		for _, j := range *at {
			if o := rows[j]; r.With&o.Without|o.With&r.Without == 0 {
				return nil, fmt.Errorf("two transitions: %v and %v", o, r)
			}
		}
		*at = append(*at, i)
	}
	return l, nil
}

// Dial is a list of the transitions of both ends of connections that processes open.
type Dial struct {
	rows []DialRow
	at   [2][dialStates][dialInputs][]int // indices of rows
}

// Rows returns the transitions that it was made of.
func (l *Dial) Rows() []DialRow { return l.rows }

// Step returns the transition of an input and its index; -1 if there is none.
func (l *Dial) Step(e DialEnd, k DialKind, s DialState, in DialInput) (DialRow, int) {
	for _, i := range l.at[e][s][in] {
		if r := l.rows[i]; k&r.With == r.With && k&r.Without == 0 {
			return r, i
		}
	}
	return DialRow{}, -1
}

// String describes the transition in a line.
func (r DialRow) String() string {
	s := fmt.Sprintf("%v %v", r.End, r.State)
	if r.With != 0 {
		s += fmt.Sprintf(" of %v", r.With)
	}
	if r.Without != 0 {
		s += fmt.Sprintf(" not of %v", r.Without)
	}
	s += fmt.Sprintf(": %v → %v", r.Input, r.Next)
	if r.Sends != DialSilent {
		s += fmt.Sprintf(", sends %v", r.Sends)
	}
	return s
}
