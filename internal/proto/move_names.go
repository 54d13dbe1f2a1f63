package proto

// MoveState is the state of a channel between hosts at one of them, whose end may go to another host.
type MoveState uint8

// States of a channel at a host.
const (
	MoveNone     MoveState = iota // it is not, or is over
	MoveOpen                      // the end is this host's, which is subscribed
	MoveTicketed                  // … and may go to another one
	MoveAlone                     // the host is subscribed, and there is no far end any more
	MoveMoved                     // … and the end is another host's
	MoveBound                     // the host has claimed the end, and has not subscribed
	MoveLeft                      // … and there is no far end any more
	moveStates
)

var moveStateNames = []string{"none", "open", "ticketed", "alone", "moved", "bound", "bound, alone"}

// String returns the state's name.
func (s MoveState) String() string { return name(moveStateNames, "state", int(s)) }

// MoveMarks are what an end has beside its state. They go along with it.
type MoveMarks uint8

// Marks of an end.
const (
	MoveOffered  MoveMarks = 1 << iota // the far host offers something
	MoveRecalled                       // … and has asked it back
	MoveSending                        // its host offers something
	MoveShut                           // the far host closed its half
	MoveDue                            // the far host asks whether this one waits
)

var moveMarkNames = []string{"offered", "asked back", "sending", "closed", "READY due"}

// String names the marks.
func (m MoveMarks) String() string { return joined(moveMarkNames, uint(m)) }

// MoveInput is an event of a channel at a host.
type MoveInput uint8

// Inputs of a channel at a host.
const (
	MoveTicket         MoveInput = iota // TICKET of its end, through another channel
	MoveTicketItself                    // … through the channel itself
	MoveClaim                           // CLAIM of its end, by the other end of that channel, under the last ticket
	MoveClaimFull                       // … of a host that may have no further end
	MoveVoid                            // VOID of the last ticket
	MoveVoidOther                       // … of another one
	MoveGets                            // the host has claimed the end
	MoveOpens                           // OPEN
	MoveSends                           // the host offers something
	MoveTakes                           // … takes what it is offered
	MoveGivesBack                       // … gives it back
	MoveWaits                           // … waits for something to take
	MoveCloses                          // … closes both halves
	MoveEnds                            // … detaches
	MoveOtherAsks                       // the far host asks whether this one waits
	MoveOtherOffers                     // … offers something
	MoveOtherWithdraws                  // … asks it back
	MoveOtherTakes                      // … takes what it is offered
	MoveOtherShuts                      // … closes its half
	MoveOtherGone                       // the far end is released
	moveInputs
)

var moveInputNames = []string{
	"ticket", "ticket itself", "claim", "claim full", "void", "void other", "gets", "opens", "sends", "takes", "gives back", "waits",
	"closes", "ends", "other asks", "other offers", "other withdraws", "other takes", "other shuts", "other gone",
}

// String describes the input.
func (i MoveInput) String() string { return name(moveInputNames, "input", int(i)) }

// MoveReply is the reply to a request.
type MoveReply uint8

// Replies to requests.
const (
	MoveSilent  MoveReply = iota // it was none
	MoveOK                       // 0
	MoveBusy                     // EBUSY
	MoveInvalid                  // EINVAL
	MoveKept                     // of VOID: the end has not moved
	MoveGone                     // … it has
)

var moveReplyNames = []string{"", "0", "EBUSY", "EINVAL", "not moved", "moved"}

// String returns the reply.
func (r MoveReply) String() string { return name(moveReplyNames, "reply", int(r)) }

// MovePuts are messages for the host, in this order.
type MovePuts uint8

// Messages for the host.
const (
	MovePutOffer    MovePuts = 1 << iota // what the far host offers
	MovePutTaken                         // ACK: the far host took what this one offers
	MovePutRefused                       // ERROR(ECLOSED), of that
	MovePutWithdraw                      // WITHDRAW
	MovePutAsk                           // OFFER: the far host asks
	MovePutShut                          // CLOSE of the half that the far host closed
	MovePutClose                         // CLOSE of both, or of what was open
)

var movePutNames = []string{"offer", "taken", "ECLOSED", "WITHDRAW", "asked", "shut", "CLOSE"}

// String names the messages.
func (p MovePuts) String() string { return joined(movePutNames, uint(p)) }

// MoveNews is an event for the far end, or for the next host.
type MoveNews uint8

// News of an end.
const (
	MoveNothing MoveNews = iota
	MoveGives            // the next host has the end
	MoveOffers           // to the far end: its host offers something
	MoveTook             // … took what the far host offers
	MoveBack             // … gave it back
	MoveLeaves           // … the end is released
	MoveReady            // … waits
)

var moveNewsNames = []string{"", "gives", "offers", "took it", "gave it back", "gone", "ready"}

// String returns the name of the news.
func (n MoveNews) String() string { return name(moveNewsNames, "news", int(n)) }
