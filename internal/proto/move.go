package proto

import "fmt"

// MoveRow is one transition of a channel at a host. It holds for ends that have the marks of With, and
// none of Without.
type MoveRow struct {
	State         MoveState
	With, Without MoveMarks
	Input         MoveInput
	Next          MoveState
	Set, Clear    MoveMarks
	Reply         MoveReply
	Puts          MovePuts
	Sends         MoveNews
}

// MoveRows returns every transition of a channel whose end moves. A request that no row names is
// ENOTARGET; any other input without a row does nothing.
func MoveRows() []MoveRow {
	rows := []MoveRow{
		{MoveTicketed, 0, moveUnquiet, MoveClaim, MoveMoved, 0, 0, MoveOK, 0, MoveGives}, // the commit
		{MoveTicketed, MoveRecalled, 0, MoveClaim, MoveTicketed, 0, 0, MoveBusy, 0, 0},
		{MoveTicketed, MoveSending, MoveRecalled, MoveClaim, MoveTicketed, 0, 0, MoveBusy, 0, 0},
		{MoveTicketed, 0, 0, MoveClaimFull, MoveTicketed, 0, 0, MoveBusy, 0, 0},
		{MoveTicketed, 0, 0, MoveVoid, MoveOpen, 0, 0, MoveKept, 0, 0},
		{MoveTicketed, 0, 0, MoveVoidOther, MoveTicketed, 0, 0, MoveKept, 0, 0},
		{MoveNone, 0, 0, MoveGets, MoveBound, 0, 0, 0, 0, 0},
	}
	for _, in := range []MoveInput{MoveVoid, MoveVoidOther} {
		rows = append(rows,
			MoveRow{MoveOpen, 0, 0, in, MoveOpen, 0, 0, MoveKept, 0, 0},
			MoveRow{MoveAlone, 0, 0, in, MoveAlone, 0, 0, MoveKept, 0, 0},
			MoveRow{MoveMoved, 0, 0, in, MoveMoved, 0, 0, MoveGone, 0, 0})
	}
	for _, s := range []MoveState{MoveAlone, MoveMoved} {
		rows = append(rows,
			MoveRow{s, 0, 0, MoveCloses, MoveNone, 0, 0, 0, MovePutClose, 0},
			MoveRow{s, 0, 0, MoveEnds, MoveNone, 0, 0, 0, 0, 0})
	}
	for _, s := range []MoveState{MoveOpen, MoveTicketed} {
		rows = append(rows, heldRows(s)...)
	}
	return append(rows, boundRows()...)
}

// moveUnquiet keeps an end from moving.
const moveUnquiet = MoveRecalled | MoveSending

// heldRows are those of an end of a host that is subscribed, with a ticket or without.
func heldRows(s MoveState) []MoveRow {
	const lies = MoveOffered | MoveRecalled
	rows := []MoveRow{
		{s, 0, moveUnquiet, MoveTicket, MoveTicketed, 0, 0, MoveOK, 0, 0},
		{s, 0, moveUnquiet, MoveTicketItself, MoveOpen, 0, 0, MoveInvalid, 0, 0},
		{s, 0, 0, MoveOpens, s, 0, 0, MoveBusy, 0, 0},
		{s, 0, MoveSending, MoveSends, s, MoveSending, 0, 0, 0, MoveOffers},
		{s, MoveSending, 0, MoveOtherTakes, s, 0, MoveSending, 0, MovePutTaken, 0},
		{s, 0, MoveOffered | MoveShut | MoveDue, MoveOtherAsks, s, MoveDue, 0, 0, MovePutAsk, 0},
		{s, MoveDue, 0, MoveWaits, s, 0, MoveDue, 0, 0, MoveReady},
		{s, 0, MoveOffered | MoveShut, MoveOtherOffers, s, MoveOffered, MoveDue, 0, MovePutOffer, 0},
		{s, MoveOffered, MoveRecalled, MoveOtherWithdraws, s, MoveRecalled, 0, 0, MovePutWithdraw, 0},
		{s, MoveOffered, 0, MoveTakes, s, 0, lies, 0, 0, MoveTook},
		{s, lies, 0, MoveGivesBack, s, 0, lies, 0, 0, MoveBack},
		{s, 0, MoveOffered | MoveShut, MoveOtherShuts, s, MoveShut, 0, 0, MovePutShut, 0},
		{s, 0, 0, MoveCloses, MoveNone, 0, 0, 0, MovePutClose, MoveLeaves},
		{s, 0, 0, MoveEnds, MoveNone, 0, 0, 0, 0, MoveLeaves},
		{s, 0, lies | MoveSending, MoveOtherGone, MoveAlone, 0, 0, 0, MovePutClose, 0},
		{s, MoveSending, lies, MoveOtherGone, MoveAlone, 0, 0, 0, MovePutRefused | MovePutClose, 0},
		{s, MoveOffered, MoveSending, MoveOtherGone, MoveAlone, 0, 0, 0, MovePutWithdraw | MovePutClose, 0},
		{s, lies&^MoveRecalled | MoveSending, 0, MoveOtherGone, MoveAlone, 0, 0, 0, MovePutRefused | MovePutWithdraw | MovePutClose, 0},
	}
	for _, in := range []MoveInput{MoveTicket, MoveTicketItself} {
		rows = append(rows,
			MoveRow{s, MoveRecalled, 0, in, s, 0, 0, MoveBusy, 0, 0},
			MoveRow{s, MoveSending, MoveRecalled, in, s, 0, 0, MoveBusy, 0, 0})
	}
	return rows
}

// boundRows are those of an end that its host has claimed and not opened: what comes meanwhile waits.
func boundRows() []MoveRow {
	const b, lies = MoveBound, MoveOffered | MoveRecalled
	return []MoveRow{
		{b, 0, MoveOffered | MoveShut | MoveDue, MoveOtherAsks, b, MoveDue, 0, 0, 0, 0},
		{b, 0, MoveOffered | MoveShut, MoveOtherOffers, b, MoveOffered, MoveDue, 0, 0, 0},
		{b, MoveOffered, MoveRecalled, MoveOtherWithdraws, b, MoveRecalled, 0, 0, 0, 0},
		{b, 0, MoveOffered | MoveShut, MoveOtherShuts, b, MoveShut, 0, 0, 0, 0},
		{b, 0, 0, MoveOtherGone, MoveLeft, 0, 0, 0, 0, 0},
		{b, 0, 0, MoveEnds, MoveNone, 0, 0, 0, 0, MoveLeaves},
		{MoveLeft, 0, 0, MoveEnds, MoveNone, 0, 0, 0, 0, 0},
		{b, 0, MoveOffered | MoveShut | MoveDue, MoveOpens, MoveOpen, 0, 0, MoveOK, 0, 0},
		{b, MoveDue, MoveOffered | MoveShut, MoveOpens, MoveOpen, 0, 0, MoveOK, MovePutAsk, 0},
		{b, MoveShut, MoveOffered | MoveDue, MoveOpens, MoveOpen, 0, 0, MoveOK, MovePutShut, 0},
		{b, MoveShut | MoveDue, MoveOffered, MoveOpens, MoveOpen, 0, 0, MoveOK, MovePutAsk | MovePutShut, 0},
		{b, MoveOffered, MoveRecalled, MoveOpens, MoveOpen, 0, 0, MoveOK, MovePutOffer, 0},
		{b, lies, 0, MoveOpens, MoveOpen, 0, 0, MoveOK, MovePutOffer | MovePutWithdraw, 0},
		{MoveLeft, 0, MoveOffered | MoveDue, MoveOpens, MoveAlone, 0, 0, MoveOK, MovePutClose, 0},
		{MoveLeft, MoveDue, MoveOffered, MoveOpens, MoveAlone, 0, 0, MoveOK, MovePutAsk | MovePutClose, 0},
		{MoveLeft, MoveOffered, 0, MoveOpens, MoveAlone, 0, 0, MoveOK, MovePutOffer | MovePutWithdraw | MovePutClose, 0},
	}
}

// Moves is a list of the transitions of channels whose ends move.
type Moves struct {
	rows []MoveRow
	at   [moveStates][moveInputs][]int // indices of rows
}

// NewMoves compiles rows. Two rows for one input in one state are an error.
func NewMoves(rows []MoveRow) (*Moves, error) {
	l := &Moves{rows: rows}
	for i, r := range rows {
		at := &l.at[r.State][r.Input]
		for _, j := range *at {
			if o := rows[j]; r.With&o.Without|o.With&r.Without == 0 {
				return nil, fmt.Errorf("two transitions: %v and %v", o, r)
			}
		}
		*at = append(*at, i)
	}
	return l, nil
}

// Rows returns the transitions that it was made of.
func (l *Moves) Rows() []MoveRow { return l.rows }

// Step returns the transition of an input and its index; -1 if there is none.
func (l *Moves) Step(s MoveState, m MoveMarks, in MoveInput) (MoveRow, int) {
	for _, i := range l.at[s][in] {
		if r := l.rows[i]; m&r.With == r.With && m&r.Without == 0 {
			return r, i
		}
	}
	return MoveRow{}, -1
}

// String describes the transition in a line.
func (r MoveRow) String() string {
	s := r.State.String()
	if r.With != 0 {
		s += fmt.Sprintf(", %v", r.With)
	}
	if r.Without != 0 {
		s += fmt.Sprintf(", not %v", r.Without)
	}
	return s + fmt.Sprintf(": %v → %v, replies %q, puts %q, sends %q", r.Input, r.Next, r.Reply, r.Puts, r.Sends)
}
