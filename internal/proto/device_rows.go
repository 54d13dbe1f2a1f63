package proto

import (
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// DeviceRow is one transition of a half at the device. It holds where With are set and Without are not.
type DeviceRow struct {
	Direction     abi.Direction
	State         DeviceState
	With, Without DeviceMarks
	Input         DeviceInput
	Next          DeviceState
	Set, Clear    DeviceMarks // of Next; a half that turns idle forgets the marks of its transaction by itself
	Put           Put
	Status        abi.Status // of ERROR and ABORTED; OK there: the one that the input's check found
	Return        Return
}

// Return is the effect of a transition on the process's call.
type Return uint8

// Effects on the call of the process.
const (
	Stays    Return = iota // the call continues, or there is none
	Succeeds               // it returns 0, or the bytes of a message
	Fails                  // it returns the status
)

const (
	atIdle, atMessage, atOffered = DeviceIdle, DeviceMessage, DeviceOffered
	atMoving, atEager, atCommit  = DeviceMoving, DeviceEager, DeviceCommit
	atQuestion, atTaken          = DeviceQuestion, DeviceTaken

	listed, pages, ending, aborted = DeviceListed, DevicePages, DeviceEnding, DeviceAborted
	laid, due, shut, notice, ended = DevicePosted, DeviceReadyDue, DeviceShut, DeviceNotice, DeviceClosed
)

// DeviceRows returns every transition of the device. A message of the host that no row names is
// dropped and counted; any other input without a row does nothing.
func DeviceRows() []DeviceRow {
	return slices.Concat(deviceOfferedRows(), deviceParkedRows(), deviceCalledRows(), deviceGivenRows(), deviceMovingRows())
}

// deviceOfferedRows are those of an idle h2d half.
func deviceOfferedRows() []DeviceRow {
	rows := []DeviceRow{
		{h2d, atIdle, 0, ended | shut, HearMessage, atMessage, 0, due, PutNothing, 0, Stays},
		{h2d, atIdle, 0, ended | shut, HearCall, atQuestion, 0, due, PutNothing, 0, Stays},
		{h2d, atIdle, 0, ended | shut, HearBegin, atOffered, 0, due, PutNothing, 0, Stays},
		{h2d, atIdle, 0, ended | shut, HearPages, atOffered, pages, due, PutNothing, 0, Stays},
		{h2d, atIdle, 0, 0, HearBadBegin, atIdle, 0, due, PutError, 0, Stays},
		{h2d, atIdle, 0, ended | shut, HearOffer, atIdle, due, 0, PutNothing, 0, Stays},
		{h2d, atIdle, due, 0, Wait, atIdle, 0, due, PutReady, 0, Stays},
		{h2d, atIdle, 0, ended | notice, Read, atIdle, 0, 0, PutNothing, 0, Stays},
		{h2d, atIdle, ended, 0, Read, atIdle, 0, notice, PutNothing, abi.ErrClosed, Fails},
		{h2d, atIdle, notice, ended, Read, atIdle, 0, notice, PutNothing, abi.ErrClosed, Fails},
		{h2d, atIdle, due, 0, CloseHalf, atIdle, ended, due, PutReady, 0, Stays}, // and then CLOSE
		{h2d, atIdle, 0, due, CloseHalf, atIdle, ended, 0, PutNothing, 0, Stays},
		{h2d, atIdle, 0, 0, HearClose, atIdle, shut | notice, due, PutNothing, 0, Stays},
	}
	for _, over := range [][2]DeviceMarks{{ended, 0}, {shut, ended}} {
		for _, in := range []DeviceInput{HearMessage, HearCall, HearBegin, HearPages} {
			rows = append(rows, DeviceRow{h2d, atIdle, over[0], over[1], in, atIdle, 0, 0, PutError, abi.ErrClosed, Stays})
		}
		rows = append(rows, DeviceRow{h2d, atIdle, over[0], over[1], HearOffer, atIdle, 0, 0, PutReady, 0, Stays})
	}
	return rows
}

// deviceParkedRows are those of an h2d half on which the host offers something.
func deviceParkedRows() []DeviceRow {
	rows := []DeviceRow{
		{h2d, atMessage, 0, 0, Take, atIdle, 0, 0, PutConsumed, 0, Succeeds},
		{h2d, atMessage, 0, 0, TakeShort, atMessage, 0, 0, PutNothing, abi.ErrTooLarge, Fails},

		{h2d, atOffered, 0, listed | pages, HearList, atOffered, listed, 0, PutNothing, 0, Stays},
		{h2d, atOffered, listed, 0, HearList, atIdle, 0, 0, PutError, abi.ErrProto, Stays}, // before READY
		{h2d, atOffered, pages, listed, HearList, atIdle, 0, 0, PutError, abi.ErrProto, Stays},
		{h2d, atOffered, 0, pages, Take, atMoving, 0, listed, PutNothing, 0, Stays}, // and then list 0
		{h2d, atOffered, pages, 0, Take, atEager, 0, pages, PutNothing, 0, Stays},
		{h2d, atOffered, 0, pages, TakeEmpty, atCommit, 0, 0, PutDone, 0, Stays},
		{h2d, atOffered, 0, 0, TakeShort, atOffered, 0, 0, PutNothing, abi.ErrTooLarge, Fails},
		{h2d, atOffered, 0, 0, TakeSize, atIdle, 0, 0, PutError, abi.ErrSize, Fails},
		{h2d, atOffered, 0, 0, TakeRange, atIdle, 0, 0, PutError, abi.ErrRange, Fails},
		{h2d, atOffered, 0, 0, HearAbort, atIdle, 0, 0, PutAborted, abi.ErrAborted, Stays},
	}
	for _, s := range []DeviceState{atMessage, atQuestion, atOffered} {
		rows = append(rows, []DeviceRow{
			{h2d, s, 0, 0, TakeOther, atIdle, 0, 0, PutError, abi.ErrKind, Fails},
			{h2d, s, 0, 0, HearWithdraw, atIdle, 0, 0, PutBack, 0, Stays}, // once a process that was woken ran
			{h2d, s, 0, 0, Deadline, atIdle, 0, 0, PutError, abi.ErrTimeout, Stays},
			{h2d, s, 0, 0, CloseHalf, atIdle, ended, 0, PutError, abi.ErrClosed, Stays}, // and then CLOSE
			{h2d, s, 0, 0, HearClose, atIdle, shut | notice, 0, PutNothing, 0, Stays},
		}...)
	}
	return rows
}

// deviceCalledRows are those of a question.
func deviceCalledRows() []DeviceRow {
	return []DeviceRow{
		{h2d, atQuestion, 0, 0, Take, atIdle, 0, 0, PutConsumed, 0, Succeeds}, // the answer is a message
		{h2d, atQuestion, 0, 0, TakeQuestion, atTaken, 0, 0, PutNothing, 0, Succeeds},
		{h2d, atQuestion, 0, 0, TakeShort, atQuestion, 0, 0, PutNothing, abi.ErrTooLarge, Fails},

		{h2d, atTaken, 0, 0, Reply, atIdle, 0, 0, PutAnswer, 0, Succeeds},
		{h2d, atTaken, 0, 0, Read, atIdle, 0, 0, PutConsumed, 0, Stays},                        // as if it had read it plainly
		{h2d, atTaken, 0, 0, HearWithdraw, atIdle, 0, 0, PutConsumed, abi.ErrWithdrawn, Stays}, // once a process that was woken ran
		{h2d, atTaken, 0, 0, CloseHalf, atIdle, ended, 0, PutConsumed, abi.ErrClosed, Stays},   // and then CLOSE
		{h2d, atTaken, 0, 0, HearClose, atIdle, shut | notice, 0, PutNothing, 0, Stays},
	}
}

// deviceGivenRows are those of a d2h half outside of a transfer.
func deviceGivenRows() []DeviceRow {
	rows := []DeviceRow{
		{d2h, atIdle, 0, ended | shut, GiveMessage, atMessage, 0, laid, PutDirect, 0, Stays},
		{d2h, atIdle, 0, ended | shut, GiveTransfer, atOffered, 0, laid, PutBegin, 0, Stays},
		{d2h, atIdle, laid, ended | shut, GivePosted, atEager, 0, laid, PutNothing, 0, Stays},
		{d2h, atIdle, 0, 0, HearPost, atIdle, laid, 0, PutNothing, 0, Stays},
		{d2h, atIdle, laid, 0, HearUnpost, atIdle, 0, laid, PutBack, 0, Stays},
		{d2h, atIdle, 0, 0, HearClose, atIdle, shut, laid, PutNothing, 0, Stays},
		{d2h, atIdle, 0, 0, CloseHalf, atIdle, ended, 0, PutNothing, 0, Stays}, // and then CLOSE

		{d2h, atMessage, 0, 0, HearAccept, atIdle, 0, 0, PutNothing, 0, Succeeds},
		{d2h, atOffered, 0, 0, HearFin, atIdle, 0, 0, PutNothing, 0, Succeeds}, // of no bytes
		{d2h, atOffered, 0, 0, HearList, atMoving, 0, 0, PutNothing, 0, Stays}, // and then the list
		{d2h, atOffered, 0, 0, HearPages, atEager, 0, 0, PutNothing, 0, Stays},
		{d2h, atOffered, 0, 0, HearBadPages, atIdle, 0, 0, PutError, 0, Fails},
		{d2h, atOffered, 0, 0, HearAbort, atIdle, 0, 0, PutAborted, abi.ErrAborted, Fails},
	}
	for _, in := range []DeviceInput{GiveMessage, GiveTransfer, GivePosted} {
		rows = append(rows,
			DeviceRow{d2h, atIdle, ended, 0, in, atIdle, 0, 0, PutNothing, abi.ErrClosed, Fails},
			DeviceRow{d2h, atIdle, shut, ended, in, atIdle, 0, 0, PutNothing, abi.ErrClosed, Fails})
	}
	for _, s := range []DeviceState{atMessage, atOffered} {
		rows = append(rows, []DeviceRow{
			{d2h, s, 0, 0, HearRefuse, atIdle, 0, 0, PutNothing, 0, Fails},
			{d2h, s, 0, 0, Stop, s, 0, 0, PutTakeBack, 0, Stays},
			{d2h, s, 0, 0, HearWithdrawn, atIdle, 0, 0, PutNothing, abi.ErrStopped, Fails},
			{d2h, s, 0, 0, HearClose, atIdle, shut, 0, PutNothing, abi.ErrClosed, Fails},
		}...)
	}
	return rows
}

// deviceMovingRows are those of a transfer under way, in either direction.
func deviceMovingRows() []DeviceRow {
	rows := []DeviceRow{{h2d, atMoving, 0, ending, HearFirstList, atMoving, 0, 0, PutGo, 0, Stays}}
	for _, d := range []abi.Direction{h2d, d2h} {
		told := DeviceMarks(shut)
		if d == h2d {
			told |= notice
		}
		rows = append(rows, []DeviceRow{
			{d, atMoving, 0, ending, HearList, atMoving, 0, 0, PutNothing, 0, Stays},
			{d, atMoving, 0, ending, EngineMoved, atMoving, 0, 0, PutMoved, 0, Stays},
			{d, atMoving, 0, ending, EngineBusy, atMoving, 0, 0, PutRepeat, abi.ErrBusy, Stays},
			{d, atMoving, 0, ending, EngineDone, atCommit, 0, 0, PutDone, 0, Stays},
			{d, atEager, 0, ending, EngineBusy, atEager, 0, 0, PutNothing, 0, Stays}, // it tries again by itself
			{d, atEager, 0, ending, EngineDone, atIdle, 0, 0, PutConsumed, 0, Succeeds},
			{d, atCommit, 0, 0, HearFin, atIdle, 0, 0, PutNothing, 0, Succeeds},
			{d, atCommit, 0, 0, HearAbort, atIdle, 0, 0, PutAborted, abi.ErrAborted, Fails},
			{d, atCommit, 0, 0, HearClose, atIdle, told, 0, PutNothing, abi.ErrClosed, Fails},
		}...)
		for _, s := range []DeviceState{atMoving, atEager} {
			rows = append(rows, []DeviceRow{
				{d, s, 0, ending, HearBadList, s, ending, 0, PutNothing, abi.ErrProto, Stays},
				{d, s, 0, ending, EngineFailed, s, ending, 0, PutNothing, abi.ErrDMA, Stays},
				{d, s, 0, 0, HearAbort, s, ending | aborted, 0, PutNothing, abi.ErrAborted, Stays},
				{d, s, 0, 0, HearClose, s, ending | told, 0, PutNothing, abi.ErrAborted, Stays},
				{d, s, ending, aborted, EngineQuiet, atIdle, 0, 0, PutError, 0, Fails},
				{d, s, ending | aborted, 0, EngineQuiet, atIdle, 0, 0, PutAborted, 0, Fails},
			}...)
		}
	}
	return rows
}
