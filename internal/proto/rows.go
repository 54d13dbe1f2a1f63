package proto

import (
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Row is one transition of a half. It holds where With are set and Without are not.
type Row struct {
	Direction     abi.Direction
	State         State
	With, Without Marks
	Input         Input
	Next          State
	Set, Clear    Marks // of Next; a half that turns idle forgets MarkRecall and MarkHeld by itself
	Event         Event
}

// Short forms, so that a transition is a line.
const (
	h2d, d2h = abi.H2D, abi.D2H

	idle, offered, answering, moving, complete = StateIdle, StateOffered, StateAnswering, StateMoving, StateComplete

	given, posted, called = StateGiven, StatePosted, StateCalled

	recall, held, closed, accepted = MarkRecall, MarkHeld, MarkClosed, MarkAccepted
)

// Rows returns every transition: the messages of the device and their meaning, and the operations
// of the host. An input that no row names is a fault of the device, or a defect of the host.
func Rows() []Row {
	return slices.Concat(messageRows(), callRows(), transferRows(), eagerRows(), offerRows())
}

// messageRows are those of the h2d half outside of a transfer.
func messageRows() []Row {
	return []Row{
		{h2d, idle, 0, 0, PutMessage, offered, 0, 0, EventNone},
		{h2d, idle, 0, 0, PutTransfer, moving, 0, 0, EventNone},
		{h2d, idle, 0, 0, TakeRecord, idle, 0, 0, EventStale},
		{h2d, idle, 0, 0, TakeWithdrawn, idle, 0, 0, EventStale},
		{h2d, idle, 0, 0, TakeReady, idle, 0, 0, EventReady},

		{h2d, offered, 0, recall, PutWithdraw, offered, recall, 0, EventNone},
		{h2d, offered, 0, 0, TakeConsumed, idle, 0, 0, EventDelivered},
		{h2d, offered, 0, 0, TakeRefused, idle, 0, 0, EventRefused},
		{h2d, offered, 0, 0, TakeNonsense, offered, 0, 0, EventFault},
		{h2d, offered, recall, 0, TakeWithdrawn, idle, 0, 0, EventWithdrawn},
		{h2d, offered, 0, recall, TakeWithdrawn, offered, 0, 0, EventFault}, // nobody asked
		{h2d, offered, 0, 0, TakeReady, offered, 0, 0, EventReady},
	}
}

// callRows are those of a question: it ends with its answer, or as a message does.
func callRows() []Row {
	return []Row{
		{h2d, idle, 0, 0, PutCall, called, 0, 0, EventNone},
		{h2d, called, 0, recall, PutWithdraw, called, recall, 0, EventNone},
		{h2d, called, 0, 0, TakeAnswer, idle, 0, 0, EventAnswered},
		{h2d, called, 0, 0, TakeUnanswered, idle, 0, 0, EventUnanswered},
		{h2d, called, 0, 0, TakeConsumed, idle, 0, 0, EventDelivered}, // by a plain read: the answer is a message
		{h2d, called, 0, 0, TakeRefused, idle, 0, 0, EventRefused},
		{h2d, called, 0, 0, TakeNonsense, called, 0, 0, EventFault},
		{h2d, called, recall, 0, TakeWithdrawn, idle, 0, 0, EventWithdrawn},
		{h2d, called, 0, recall, TakeWithdrawn, called, 0, 0, EventFault}, // nobody asked
		{h2d, called, 0, 0, TakeReady, called, 0, 0, EventReady},
	}
}

// transferRows are those of a transfer under way, in either direction.
func transferRows() []Row {
	rows := []Row{
		{h2d, moving, 0, recall | accepted, PutWithdraw, moving, recall, 0, EventNone},
		{h2d, moving, recall, accepted, TakeWithdrawn, idle, 0, 0, EventWithdrawn},
		{h2d, moving, 0, recall | accepted, TakeWithdrawn, moving, 0, 0, EventFault}, // nobody asked
		{h2d, moving, accepted, 0, TakeWithdrawn, moving, 0, 0, EventFault},          // the target has it
		{h2d, moving, 0, 0, TakeReady, moving, 0, 0, EventReady},
		{h2d, moving, 0, 0, TakeConsumed, idle, 0, 0, EventDelivered}, // by another host
		{h2d, complete, 0, 0, TakeWithdrawn, complete, 0, 0, EventStale},
		{h2d, complete, 0, 0, TakeReady, complete, 0, 0, EventReady},

		{d2h, moving, 0, 0, TakeOffer, moving, 0, 0, EventFault}, // a second one
		{d2h, moving, 0, 0, TakeWithdraw, moving, 0, 0, EventStale},
		{d2h, complete, 0, 0, TakeOffer, complete, 0, 0, EventFault},
		{d2h, complete, 0, 0, TakeWithdraw, complete, 0, 0, EventStale},
	}
	for _, d := range []abi.Direction{h2d, d2h} {
		rows = append(rows, []Row{
			{d, moving, 0, 0, PutAbort, moving, 0, 0, EventNone},
			{d, moving, 0, 0, TakeProgress, moving, 0, 0, EventProgress},
			{d, moving, 0, 0, TakeRetriesExhausted, moving, 0, 0, EventRetriesExhausted},
			{d, moving, 0, 0, TakeCrossed, moving, 0, 0, EventNone},
			{d, moving, 0, 0, TakeDone, complete, 0, 0, EventDone},
			{d, moving, 0, 0, TakeFailed, idle, 0, 0, EventFailed},
			{d, moving, 0, 0, TakeAborted, idle, 0, 0, EventAborted},
			{d, moving, 0, 0, TakeNonsense, moving, 0, 0, EventFault},
			{d, complete, 0, 0, PutFin, idle, 0, 0, EventNone},
			{d, complete, 0, 0, PutAbort, moving, 0, 0, EventNone},
			{d, complete, 0, 0, TakeRecord, complete, 0, 0, EventStale},
		}...)
	}
	return rows
}

// eagerRows are those of a transfer whose pages the device has: it ends like a message.
func eagerRows() []Row {
	rows := []Row{
		{h2d, idle, 0, 0, PutEager, given, 0, 0, EventNone},
		{h2d, given, 0, recall, PutWithdraw, given, recall, 0, EventNone},
		{h2d, given, recall, 0, TakeWithdrawn, idle, 0, 0, EventWithdrawn},
		{h2d, given, 0, recall, TakeWithdrawn, given, 0, 0, EventFault}, // nobody asked
		{h2d, given, 0, 0, TakeReady, given, 0, 0, EventReady},

		{d2h, offered, held, 0, PutEager, given, 0, held | recall, EventNone},
		{d2h, given, 0, 0, TakeOffer, given, 0, 0, EventFault}, // a second one
		{d2h, given, 0, 0, TakeWithdraw, given, 0, 0, EventStale},

		{d2h, idle, 0, closed, PutEager, posted, 0, 0, EventNone},
		{d2h, posted, 0, 0, TakeMatch, given, 0, recall, EventProgress}, // the two crossed: it is the answer
		{d2h, posted, 0, 0, TakeOffer, offered, 0, recall, EventOffer},
		{d2h, posted, 0, 0, TakeWithdraw, posted, 0, 0, EventFault}, // nothing is offered
		{d2h, posted, 0, recall, PutWithdraw, posted, recall, 0, EventNone},
		{d2h, posted, recall, 0, TakeWithdrawn, idle, 0, 0, EventWithdrawn},
		{d2h, posted, 0, recall, TakeWithdrawn, posted, 0, 0, EventFault}, // nobody asked
	}
	for _, r := range []Row{{Direction: h2d, State: given}, {Direction: d2h, State: given}, {Direction: d2h, State: posted}} {
		d, s := r.Direction, r.State
		rows = append(rows, []Row{
			{d, s, 0, 0, TakeConsumed, idle, 0, 0, EventDelivered},
			{d, s, 0, 0, TakeRefused, idle, 0, 0, EventRefused},
			{d, s, 0, 0, TakeNonsense, s, 0, 0, EventFault},
		}...)
	}
	return rows
}

// offerRows are those of the d2h half outside of a transfer.
func offerRows() []Row {
	rows := []Row{
		{d2h, idle, 0, closed, TakeOffer, offered, 0, 0, EventOffer},
		{d2h, idle, closed, 0, TakeOffer, idle, 0, 0, EventStale}, // it crossed the close, which answers it
		{d2h, idle, 0, closed, TakeAsk, idle, 0, 0, EventAsked},
		{d2h, idle, closed, 0, TakeAsk, idle, 0, 0, EventStale}, // it crossed the close
		{d2h, posted, 0, 0, TakeAsk, posted, 0, 0, EventAsked},
		{d2h, idle, 0, 0, TakeWithdraw, idle, 0, 0, EventStale},
		{d2h, idle, 0, 0, TakeRecord, idle, 0, 0, EventStale},

		{d2h, offered, 0, held, Hold, offered, held, 0, EventNone},
		{d2h, offered, held, recall, Release, offered, 0, held, EventNone},
		{d2h, offered, held | recall, 0, Release, answering, 0, held | recall, EventRecalled},
		{d2h, offered, held, 0, PutAccept, idle, 0, 0, EventNone},
		{d2h, offered, held, 0, PutRefuse, idle, 0, 0, EventNone},
		{d2h, offered, held, 0, PutTransfer, moving, 0, held | recall, EventNone},
		{d2h, offered, 0, held, PutClose, idle, closed, 0, EventNone}, // it answers what lies here
		{d2h, offered, 0, held, TakeWithdraw, answering, 0, 0, EventRecalled},
		{d2h, offered, held, 0, TakeWithdraw, offered, recall, 0, EventNone}, // who holds it decides
		{d2h, offered, 0, 0, TakeOffer, offered, 0, 0, EventFault},           // a second one
		{d2h, offered, 0, 0, TakeRecord, offered, 0, 0, EventFault},

		{d2h, answering, 0, 0, PutWithdrawn, idle, 0, 0, EventNone},
		{d2h, answering, 0, 0, TakeOffer, answering, 0, 0, EventFault},
		{d2h, answering, 0, 0, TakeWithdraw, answering, 0, 0, EventStale},
		{d2h, answering, 0, 0, TakeRecord, answering, 0, 0, EventStale},

		{h2d, idle, 0, 0, PutClose, idle, 0, 0, EventNone},
		{d2h, idle, 0, 0, PutClose, idle, closed, 0, EventNone},
	}
	for s := StateIdle; s <= StatePosted; s++ {
		rows = append(rows, Row{d2h, s, 0, closed, Shut, s, closed, 0, EventNone})
	}
	return rows
}
