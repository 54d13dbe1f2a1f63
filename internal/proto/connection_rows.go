package proto

import (
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// ConnectionRow is one transition of a half at an end of a channel between two hosts. Its h2d half has
// what its host offers, its d2h half what the other host does.
type ConnectionRow struct {
	Direction     abi.Direction
	State         DeviceState
	With, Without ConnectionMarks
	Input         DeviceInput
	Next          DeviceState
	Set, Clear    ConnectionMarks
	Put           Put
	Status        abi.Status // of ERROR, ABORTED and of an answer; OK there: the one that was found
	Notify        News
}

// EndRow is one transition of an end as a whole.
type EndRow struct {
	State  EndState
	Input  EndInput
	Next   EndState
	Put    Put
	Notify News
}

// EndRows returns the transitions of an end as a whole; any other input does nothing.
func EndRows() []EndRow {
	return []EndRow{
		{EndNone, EndConnects, EndBound, PutNothing, 0},
		{EndBound, EndRefuses, EndNone, PutNothing, NewsGone},
		{EndBound, EndSubscribes, EndOpen, PutNothing, 0}, // and then it handles the news
		{EndOpen, EndOver, EndNone, PutOver, NewsGone},
		{EndOpen, EndOtherGone, EndAlone, PutNothing, NewsGone}, // and CLOSE of what was open
		{EndAlone, EndOver, EndNone, PutOver, 0},
		{EndBound, EndHostDetaches, EndNone, PutNothing, NewsGone},
		{EndOpen, EndHostDetaches, EndNone, PutNothing, NewsGone},
		{EndAlone, EndHostDetaches, EndNone, PutNothing, 0},
	}
}

// ConnectionRows returns every transition of a half at an end. A message of the host that no row names
// is dropped and counted; any other input without a row does nothing.
func ConnectionRows() []ConnectionRow {
	return slices.Concat(endIdleRows(), endOfferedRows(), endBackRows(), endGivenRows(),
		endGivingRows(), endTakingRows(), endMovingRows(), endClosedRows())
}

// endIdleRows are those of an idle h2d half.
func endIdleRows() []ConnectionRow {
	const open = EndShut | EndClosed
	rows := []ConnectionRow{
		{h2d, atIdle, 0, open, HearMessage, atMessage, 0, EndReadyDue, PutNothing, 0, NewsOffered},
		{h2d, atIdle, 0, open, HearBegin, atOffered, 0, EndReadyDue, PutNothing, 0, NewsOffered},
		{h2d, atIdle, 0, open, HearPages, atOffered, EndPages, EndReadyDue, PutNothing, 0, NewsOffered},
		{h2d, atIdle, 0, 0, HearBadBegin, atIdle, 0, EndReadyDue, PutError, 0, 0},
		{h2d, atIdle, 0, open, HearOffer, atIdle, EndReadyDue, 0, PutNothing, 0, NewsAsked},
		{h2d, atIdle, EndReadyDue, 0, OtherReady, atIdle, 0, EndReadyDue, PutReady, 0, 0},
		{h2d, atIdle, EndReadyDue, EndClosed, OtherClosed, atIdle, EndClosed, EndReadyDue, PutReady, 0, 0}, // and then CLOSE
		{h2d, atIdle, EndReadyDue, 0, OtherGone, atIdle, EndClosed, EndReadyDue, PutReady, 0, 0},
		{h2d, atIdle, 0, EndReadyDue, OtherGone, atIdle, EndClosed, 0, PutNothing, 0, 0},
		{h2d, atIdle, 0, 0, HearClose, atIdle, EndShut, EndReadyDue, PutNothing, 0, NewsClosed},
	}
	for _, over := range [][2]ConnectionMarks{{EndShut, 0}, {EndClosed, EndShut}} {
		for _, in := range []DeviceInput{HearMessage, HearBegin, HearPages} {
			rows = append(rows, ConnectionRow{h2d, atIdle, over[0], over[1], in, atIdle, 0, 0, PutError, abi.ErrClosed, 0})
		}
		rows = append(rows, ConnectionRow{h2d, atIdle, over[0], over[1], HearOffer, atIdle, 0, 0, PutReady, 0, 0})
	}
	return rows
}

// endOfferedRows are those of an h2d half whose offer the other end has.
func endOfferedRows() []ConnectionRow {
	rows := []ConnectionRow{
		{h2d, atOffered, 0, EndListed | EndPages, HearList, atOffered, EndListed, 0, PutNothing, 0, 0},
		{h2d, atOffered, 0, EndAsked, HearAbort, atOffered, EndAsked | EndAborting, 0, PutNothing, 0, NewsWithdrawn},
		{h2d, atOffered, EndAsked, 0, HearAbort, atOffered, EndAborting, EndLate | EndBroken, PutNothing, 0, 0},
		{h2d, atOffered, 0, 0, OtherMoves, atMoving, 0, connectionBrief &^ EndPages, PutNothing, 0, 0}, // and then list 0, and what was asked
		{h2d, atOffered, 0, 0, OtherMovesPages, atMoving, 0, connectionBrief, PutNothing, 0, 0},        // likewise
	}
	for _, extra := range [][2]ConnectionMarks{{EndListed, 0}, {EndPages, EndListed}} {
		rows = append(rows,
			ConnectionRow{h2d, atOffered, extra[0], extra[1] | EndAsked, HearList, atOffered, EndAsked | EndBroken, 0, PutNothing, 0, NewsWithdrawn},
			ConnectionRow{h2d, atOffered, extra[0] | EndAsked, extra[1], HearList, atOffered, EndBroken, EndAborting | EndLate, PutNothing, 0, 0})
	}
	for _, s := range []DeviceState{atMessage, atOffered} {
		rows = append(rows, []ConnectionRow{
			{h2d, s, 0, EndAsked, HearWithdraw, s, EndAsked, 0, PutNothing, 0, NewsWithdrawn},
			{h2d, s, EndAsked, 0, HearWithdraw, s, 0, endWhy, PutNothing, 0, 0},
			{h2d, s, 0, EndAsked, Deadline, s, EndAsked | EndLate, 0, PutNothing, 0, NewsWithdrawn},
			{h2d, s, EndAsked, 0, Deadline, s, 0, 0, PutNothing, 0, NewsGiveUp}, // two seconds after it asked
			{h2d, s, 0, 0, HearClose, atIdle, EndShut, 0, PutNothing, 0, NewsWithdrawn | NewsClosed},
		}...)
	}
	return rows
}

// endBackRows are those of an h2d half whose offer ends.
func endBackRows() []ConnectionRow {
	rows := []ConnectionRow{
		{h2d, atOffered, EndAsked | EndAborting, EndLate | EndBroken, OtherGaveBack, atIdle, 0, 0, PutAborted, abi.ErrAborted, 0},
		{h2d, atOffered, EndAsked | EndBroken, EndAborting | EndLate, OtherGaveBack, atIdle, 0, 0, PutError, abi.ErrProto, 0},
	}
	for _, s := range []DeviceState{atMessage, atOffered} {
		rows = append(rows, []ConnectionRow{
			{h2d, s, 0, 0, OtherTook, atIdle, 0, 0, PutConsumed, 0, 0},
			{h2d, s, 0, 0, OtherRefused, atIdle, 0, 0, PutError, 0, 0},
			{h2d, s, 0, 0, OtherFailed, atIdle, 0, 0, PutError, abi.ErrAborted, 0},
			{h2d, s, EndAsked, endWhy, OtherGaveBack, atIdle, 0, 0, PutBack, 0, 0},
			{h2d, s, EndAsked | EndLate, EndAborting | EndBroken, OtherGaveBack, atIdle, 0, 0, PutError, abi.ErrTimeout, 0},
			{h2d, s, 0, EndAsked, OtherGaveBack, atIdle, 0, 0, PutError, abi.ErrAborted, 0}, // nobody asked
			{h2d, s, 0, 0, OtherGone, atIdle, EndClosed, 0, PutError, abi.ErrClosed, 0},
		}...)
	}
	return rows
}

// endGivenRows are those of a d2h half.
func endGivenRows() []ConnectionRow {
	const open, lain = EndShut | EndClosed, EndReadyDue | EndPosted
	rows := []ConnectionRow{
		{d2h, atIdle, 0, open, OtherMessage, atMessage, 0, lain, PutDirect, 0, 0},
		{d2h, atIdle, 0, open, OtherTransfer, atOffered, 0, lain, PutBegin, 0, 0},
		{d2h, atIdle, EndShut, 0, OtherMessage, atIdle, 0, 0, PutNothing, abi.ErrClosed, NewsAnswered}, // it crossed the close
		{d2h, atIdle, EndShut, 0, OtherTransfer, atIdle, 0, 0, PutNothing, abi.ErrClosed, NewsAnswered},
		{d2h, atIdle, EndPosted, open, OtherFits, atMoving, EndPages, lain, PutNothing, 0, NewsTakes},
		{d2h, atIdle, EndPosted, open, OtherFitsLate, atIdle, 0, lain, PutError, abi.ErrClosed, 0},
		{d2h, atIdle, 0, EndReadyDue | open, OtherAsks, atIdle, EndReadyDue, 0, PutAsk, 0, 0},
		{d2h, atIdle, EndReadyDue, 0, HearReady, atIdle, 0, EndReadyDue, PutNothing, 0, NewsReady},
		{d2h, atIdle, 0, 0, HearPost, atIdle, EndPosted, 0, PutNothing, 0, 0},
		{d2h, atIdle, EndPosted, 0, HearUnpost, atIdle, 0, EndPosted, PutBack, 0, 0},
		{d2h, atIdle, 0, 0, OtherGone, atIdle, EndClosed, 0, PutNothing, 0, 0},
		{d2h, atIdle, 0, 0, HearClose, atIdle, EndShut, EndPosted, PutNothing, 0, NewsClosed},

		{d2h, atMessage, 0, 0, HearAccept, atIdle, 0, 0, PutNothing, 0, NewsAnswered},
		{d2h, atOffered, 0, 0, HearFin, atIdle, 0, 0, PutNothing, 0, NewsAnswered}, // of no bytes
		{d2h, atOffered, 0, 0, HearList, atMoving, 0, 0, PutNothing, 0, NewsTakes}, // and then the list
		{d2h, atOffered, 0, 0, HearPages, atMoving, EndPages, 0, PutNothing, 0, NewsTakes},
		{d2h, atOffered, 0, 0, HearLate, atIdle, 0, 0, PutError, abi.ErrClosed, 0},
		{d2h, atOffered, 0, 0, HearBadPages, atIdle, 0, 0, PutError, 0, NewsAnswered},
		{d2h, atOffered, 0, 0, HearAbort, atIdle, 0, 0, PutAborted, abi.ErrAborted, NewsAnswered},
	}
	for _, s := range []DeviceState{atMessage, atOffered} {
		rows = append(rows, []ConnectionRow{
			{d2h, s, 0, 0, HearRefuse, atIdle, 0, 0, PutNothing, 0, NewsAnswered},
			{d2h, s, 0, 0, HearWithdrawn, atIdle, 0, 0, PutNothing, abi.ErrWithdrawn, NewsAnswered},
			{d2h, s, 0, 0, OtherWithdraws, s, 0, 0, PutTakeBack, 0, 0},
			{d2h, s, 0, 0, OtherGone, s, EndClosed, 0, PutTakeBack, 0, 0},
			{d2h, s, 0, 0, HearClose, atIdle, EndShut, 0, PutNothing, abi.ErrClosed, NewsAnswered | NewsClosed},
		}...)
	}
	return rows
}

// endClosedRows are those of a half that the other host closes, but for an OFFER that waits there.
func endClosedRows() (rows []ConnectionRow) {
	for _, d := range []abi.Direction{h2d, d2h} {
		for _, s := range []DeviceState{atIdle, atMessage, atOffered, atMoving, atCommit} {
			if d == h2d && s == atCommit {
				continue
			}
			without := EndClosed
			if d == h2d && s == atIdle {
				without |= EndReadyDue
			}
			rows = append(rows, ConnectionRow{d, s, 0, without, OtherClosed, s, EndClosed, 0, PutHalfClose, 0, 0})
		}
	}
	return rows
}

// endGivingRows are those of an h2d half whose transfer moves.
func endGivingRows() []ConnectionRow {
	const by = EndAborting | EndAsked
	return []ConnectionRow{
		{h2d, atMoving, 0, EndEnding, HearFirstList, atMoving, 0, 0, PutGo, 0, 0},
		{h2d, atMoving, EndPages, EndEnding, HearWithdraw, atMoving, EndEnding | EndAsked, 0, PutNothing, abi.ErrWithdrawn, NewsStops},
		{h2d, atMoving, 0, EndEnding, Deadline, atMoving, EndEnding, 0, PutNothing, abi.ErrAborted, NewsStops}, // lists, for pages that wait
		{h2d, atMoving, EndEnding, 0, Deadline, atMoving, 0, 0, PutNothing, 0, NewsGiveUp},                     // the other host does not decide
		{h2d, atMoving, 0, 0, OtherTook, atIdle, 0, 0, PutConsumed, 0, 0},
		{h2d, atMoving, EndEnding | EndAborting, 0, EngineQuiet, atIdle, 0, 0, PutAborted, 0, 0},
		{h2d, atMoving, EndEnding | EndAsked, EndAborting, EngineQuiet, atIdle, 0, 0, PutBack, 0, 0},
		{h2d, atMoving, EndEnding, by, EngineQuiet, atIdle, 0, 0, PutError, 0, 0},
	}
}

// endTakingRows are those of a d2h half whose transfer moves, or has moved.
func endTakingRows() []ConnectionRow {
	return []ConnectionRow{
		{d2h, atMoving, 0, EndEnding | EndPages, EngineDone, atCommit, 0, 0, PutDone, 0, 0},
		{d2h, atMoving, EndPages, EndEnding, EngineDone, atIdle, 0, 0, PutConsumed, 0, NewsTook},
		{d2h, atMoving, EndEnding | EndAborting, 0, EngineQuiet, atIdle, 0, 0, PutAborted, 0, 0},
		{d2h, atMoving, EndEnding, EndAborting, EngineQuiet, atIdle, 0, 0, PutError, 0, 0},
		{d2h, atMoving, 0, EndEnding, HostGone, atIdle, 0, 0, PutNothing, abi.ErrClosed, NewsStops},
		{d2h, atCommit, 0, 0, HearFin, atIdle, 0, 0, PutNothing, 0, NewsTook},
		{d2h, atCommit, 0, 0, HearAbort, atIdle, 0, 0, PutAborted, abi.ErrAborted, NewsStops},
		{d2h, atCommit, 0, 0, HearClose, atIdle, EndShut, 0, PutNothing, abi.ErrClosed, NewsStops | NewsClosed},
		{d2h, atCommit, 0, 0, OtherGone, atCommit, EndClosed, 0, PutNothing, abi.ErrClosed, NewsStops},
		{d2h, atCommit, 0, 0, HostGone, atIdle, 0, 0, PutNothing, abi.ErrClosed, NewsStops},
	}
}

// endMovingRows are those of a half of either direction whose transfer moves.
func endMovingRows() (rows []ConnectionRow) {
	for _, d := range []abi.Direction{h2d, d2h} {
		rows = append(rows, []ConnectionRow{
			{d, atMoving, 0, EndEnding, HearList, atMoving, 0, 0, PutNothing, 0, 0},
			{d, atMoving, 0, EndEnding, HearBadList, atMoving, EndEnding, 0, PutNothing, abi.ErrProto, NewsStops},
			{d, atMoving, 0, EndEnding, HearAbort, atMoving, EndEnding | EndAborting, 0, PutNothing, abi.ErrAborted, NewsStops},
			{d, atMoving, EndEnding, 0, HearAbort, atMoving, EndAborting, 0, PutNothing, 0, 0},
			{d, atMoving, EndEnding, 0, HearClose, atMoving, EndShut, 0, PutNothing, 0, NewsClosed},
			{d, atMoving, 0, EndEnding, HearClose, atMoving, EndEnding | EndShut, 0, PutNothing, abi.ErrAborted, NewsStops | NewsClosed},
			{d, atMoving, 0, EndEnding | EndPages, EngineMoved, atMoving, 0, 0, PutMoved, 0, 0},
			{d, atMoving, 0, EndEnding, EngineFailed, atMoving, EndEnding, 0, PutNothing, abi.ErrDMA, NewsStops},
			{d, atMoving, 0, EndEnding, OtherStops, atMoving, EndEnding, 0, PutNothing, 0, 0},
			{d, atMoving, 0, EndEnding, OtherGone, atMoving, EndEnding, 0, PutNothing, abi.ErrClosed, NewsStops}, // and again when it is quiet
		}...)
	}
	return rows
}
