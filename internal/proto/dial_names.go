package proto

// DialEnd is an end of a connection that a process opens.
type DialEnd uint8

// Ends of a connection.
const (
	DialCaller DialEnd = iota // of the process that connects
	DialTarget                // of the process that has the port, or of the host that listens
)

var dialEndNames = []string{"caller", "target"}

// String returns the end's name.
func (e DialEnd) String() string { return name(dialEndNames, "end", int(e)) }

// DialKind is the kind of a connection.
type DialKind uint8

// Properties of a connection.
const (
	DialHost DialKind = 1 << iota // the target is a host that listens; else a port of a process
	DialFar                       // the target is at another node
)

var dialKindNames = []string{"host", "far"}

// String names what is set.
func (k DialKind) String() string { return joined(dialKindNames, uint(k)) }

// DialState is the state of an end.
type DialState uint8

// States of an end.
const (
	DialNone        DialState = iota // it is not, or is over
	DialAsking                       // caller: the process waits in channel_connect
	DialWaiting                      // the host has not accepted it; target: in the listener's queue
	DialOffered                      // target: the host has not answered the listener's message
	DialOfferedLeft                  // … and there is no caller any more
	DialTaken                        // target: the host has not opened its channel
	DialTakenLeft                    // … and there is no caller any more
	DialOpen                         // both ends are subscribed
	DialAlone                        // target: the host is subscribed, and there is no caller any more
	dialStates
)

var dialStateNames = []string{"none", "asking", "waiting", "offered", "offered, left", "taken", "taken, left", "open", "alone"}

// String returns the state's name.
func (s DialState) String() string { return name(dialStateNames, "state", int(s)) }

// DialInput is an event of an end.
type DialInput uint8

// Inputs of an end.
const (
	DialConnects  DialInput = iota // channel_connect
	DialAsked                      // the other end asks, and may connect
	DialInVain                     // … and may not: there is no such target, it is taken, or is full
	DialAdmitted                   // the other end has a place for the caller
	DialOpened                     // … is subscribed
	DialRefused                    // … refuses the caller
	DialOtherGone                  // … is released
	DialNext                       // no other caller is offered to the host
	DialTakes                      // the host acknowledges the listener's message
	DialStops                      // … refuses it, or stops its listener
	DialOpens                      // … opens its channel
	DialCloses                     // both halves are closed by the end's process or host
	DialEnds                       // the process ends, or the host detaches
	DialLate                       // caller: no answer in a second; target: the host did not connect in ten
	DialNodeLost                   // the other node is lost
	dialInputs
)

var dialInputNames = []string{
	"connects", "asked", "asked in vain", "admitted", "opened", "refused", "other gone", "turn", "takes", "stops", "opens",
	"closes", "ends", "late", "node lost",
}

// String describes the input.
func (i DialInput) String() string { return name(dialInputNames, "input", int(i)) }

// DialDoes is what the process or the host of an end observes of a transition.
type DialDoes uint8

// Effects of a transition.
const (
	DialNothing     DialDoes = iota
	DialReturns              // a call, or OPEN, returns the row's status
	DialFails                // … the status that was found
	DialOffers               // the listener's message
	DialClose                // CLOSE of both halves
	DialOpensClosed          // OPEN returns 0, and CLOSE of both halves follows
)

// DialNews is an event of an end for the other one.
type DialNews uint8

// News of an end.
const (
	DialSilent DialNews = iota
	DialAsks
	DialAdmits
	DialSubscribes
	DialRejects
	DialLeaves
)

var dialNewsNames = []string{"", "asks", "admits", "opens", "refuses", "gone"}

// String returns the name of the news.
func (n DialNews) String() string { return name(dialNewsNames, "news", int(n)) }
