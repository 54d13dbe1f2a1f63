package proto

import (
	"fmt"
	"slices"
	"strings"
)

// State is where the transaction of a half stands, as the host knows it.
type State uint8

// States of a half.
const (
	StateIdle      State = iota // no transaction is under way
	StateOffered                // h2d: a message is at the device; d2h: an offer waits here
	StateAnswering              // d2h: the answer to the offer is still to be put
	StateMoving                 // a transfer, according to its ledger; h2d: from its offer on
	StateComplete               // a transfer: every byte moved, FIN is still to be put
	StateGiven                  // an eager transfer: the device has the pages, and ends it
	StatePosted                 // d2h: the device has the pages for its next transfer
	StateCalled                 // h2d: a question is at the device
	stateCount
)

var stateNames = [stateCount]string{"idle", "offered", "answering", "moving", "complete", "given", "posted", "called"}

// String returns the state's name in conversations.
func (s State) String() string { return name(stateNames[:], "state", int(s)) }

// Event is what a message of the device means to the host.
type Event uint8

// Events.
const (
	EventNone             Event = iota // nothing is to be done
	EventStale                         // it is about something that is over: dropped and counted
	EventFault                         // the device broke the protocol
	EventDelivered                     // the message or eager transfer has arrived
	EventRefused                       // … or is not, see the record's status
	EventWithdrawn                     // the offer was returned; d2h: what was posted
	EventReady                         // h2d: the target waits to read
	EventOffer                         // d2h: something new is offered
	EventRecalled                      // d2h: the offer is withdrawn, WITHDRAWN is to be put
	EventProgress                      // lists may be sent
	EventRetriesExhausted              // one list was asked for too often: ABORT is to be put
	EventDone                          // every byte moved: FIN is to be put
	EventFailed                        // the device ended the transfer, see the record
	EventAborted                       // the transfer ended after ABORT, see the record
	EventClosed                        // the device's process closed halves
	EventOver                          // the subscription is over
	EventAsked                         // d2h: another host asks whether this one waits: READY, when it does
	EventAnswered                      // h2d: the slot has the answer
	EventUnanswered                    // h2d: a process took the question, and no answer follows, see the record's status
	eventCount
)

var eventNames = [eventCount]string{
	"none", "stale", "fault", "delivered", "refused", "withdrawn", "ready", "offer", "recalled",
	"progress", "retries-exhausted", "done", "failed", "aborted", "closed", "over", "asked",
	"answered", "unanswered",
}

// String returns the event's name in conversations.
func (e Event) String() string { return name(eventNames[:], "event", int(e)) }

// Marks are what a half remembers beside its state.
type Marks uint8

// Marks of a half.
const (
	MarkRecall Marks = 1 << iota // h2d, and of what is posted: WITHDRAW was put; d2h: the device wants the held offer back
	MarkHeld                     // d2h: a call looks at the offer
	MarkClosed                   // d2h: the host closed the half
	// MarkAccepted is set once the target has the transfer, which cannot be given back then.
	// [Table.Classify] finds it in the ledger; nobody stores it.
	MarkAccepted
	markAll = 1<<iota - 1
)

// String names the marks.
func (m Marks) String() string {
	var set []string
	for i, n := range []string{"recall", "held", "closed", "accepted"} {
		if m>>i&1 != 0 {
			set = append(set, n)
		}
	}
	return strings.Join(set, "+")
}

// Input is what happens to a half: a message of the device that is about its present
// transaction, or something that the host does.
type Input uint8

// Inputs. Those of a transfer's records are what its ledger makes of them.
const (
	TakeOffer            Input = iota // d2h: DIRECT or IND_BEGIN under the next id
	TakeWithdraw                      // d2h: WITHDRAW
	TakeWithdrawn                     // h2d: WITHDRAWN
	TakeReady                         // h2d: READY for the next id
	TakeAsk                           // d2h: OFFER of the next id
	TakeMatch                         // d2h: IND_BEGIN under the next id, of the size that was posted
	TakeRecord                        // a record where none is due
	TakeConsumed                      // a message or an eager transfer was consumed
	TakeRefused                       // … or was refused
	TakeNonsense                      // a record that cannot follow from what was put
	TakeProgress                      // READY, MOVING or REPEAT
	TakeRetriesExhausted              // REPEAT, once too often
	TakeCrossed                       // a record that crossed the ABORT
	TakeDone                          // DONE
	TakeFailed                        // ERROR
	TakeAborted                       // ABORTED
	TakeAnswer                        // h2d: ANSWER
	TakeUnanswered                    // h2d: a question was consumed, and will not be answered
	PutMessage                        // h2d: DIRECT
	PutTransfer                       // h2d: IND_BEGIN; d2h: the first IND_LIST
	PutEager                          // EAGER
	PutCall                           // h2d: CALL
	PutWithdraw                       // WITHDRAW
	PutWithdrawn                      // d2h: WITHDRAWN
	PutAccept                         // d2h: ACK of a message; FIN of an empty transfer
	PutRefuse                         // d2h: ERROR
	PutAbort                          // ABORT
	PutFin                            // FIN
	Hold                              // d2h: a call looks at the offer
	Release                           // d2h: it leaves the offer where it is
	PutClose                          // CLOSE, which the half is part of
	Shut                              // d2h: the host will close the half: offers are stale from now on
	inputCount
)

var inputNames = [inputCount]string{
	"offer", "WITHDRAW", "WITHDRAWN", "READY", "OFFER", "matching offer", "record", "consumed", "refused", "nonsense", "progress",
	"retries exhausted", "crossed the ABORT", "DONE", "ERROR", "ABORTED", "ANSWER", "unanswered", "put message", "put transfer", "put EAGER", "put CALL",
	"put WITHDRAW", "put WITHDRAWN", "put accept", "put refuse", "put ABORT", "put FIN", "hold", "release", "put CLOSE", "shut",
}

// String describes the input.
func (i Input) String() string { return name(inputNames[:], "input", int(i)) }

// ByDevice reports whether the input is a message of the device.
func (i Input) ByDevice() bool { return i < PutMessage }

func name(names []string, kind string, i int) string {
	if i >= len(names) {
		return fmt.Sprintf("%s %d", kind, i)
	}
	return names[i]
}

// ParseState returns the state of a name.
func ParseState(s string) (State, bool) {
	i := slices.Index(stateNames[:], s)
	return State(max(i, 0)), i >= 0
}

// ParseEvent returns the event of a name.
func ParseEvent(s string) (Event, bool) {
	i := slices.Index(eventNames[:], s)
	return Event(max(i, 0)), i >= 0
}
