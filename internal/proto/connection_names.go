package proto

import "strings"

// Inputs of a half at an end of a channel between two hosts, beside messages of its host and the
// deadline of its offer: events of the other end.
const (
	HearReady       DeviceInput = deviceInputs + 1 + iota // d2h: READY of the next id, of this end's host
	HearLate                                              // d2h: IND_LIST or EAGER for an offer that its host has closed, or left
	OtherMessage                                          // d2h: the other host offers a message
	OtherTransfer                                         // d2h: … a transfer
	OtherFits                                             // d2h: … a transfer of the size that is posted at an open half
	OtherFitsLate                                         // d2h: … which it has closed, or left
	OtherWithdraws                                        // d2h: … asks for its offer back
	OtherAsks                                             // d2h: … asks whether this host waits
	OtherTook                                             // h2d: the other host took what this one offers
	OtherGaveBack                                         // h2d: … gave it back
	OtherRefused                                          // h2d: … refused it with a status that one may send
	OtherFailed                                           // h2d: … with another one
	OtherMoves                                            // h2d: … takes the transfer by lists
	OtherMovesPages                                       // h2d: … by pages
	OtherStops                                            // … ends a transfer that moves
	OtherReady                                            // h2d: … waits to receive
	OtherClosed                                           // the other host closed its half
	OtherGone                                             // there is no other end any more
	HostGone                                              // this end's host detaches
	connectionInputs
)

var connectionInputNames = [connectionInputs - deviceInputs]string{
	"", "READY", "IND_LIST or EAGER too late", "other: message", "other: transfer", "other: transfer of posted size",
	"other: transfer of posted size that is gone", "other: withdraws", "other: asks", "other: took it", "other: gave it back",
	"other: refused it", "other: failed it", "other: takes it by lists", "other: takes it by pages", "other: stops",
	"other: ready", "other: closed", "other: gone", "host: gone",
}

// ConnectionMarks are what an end of a channel between hosts remembers of a half beside its state.
type ConnectionMarks uint16

// Marks of a half at an end.
const (
	EndListed          ConnectionMarks = 1 << iota // h2d: list 0 lies beside the offer
	EndPages                                       // h2d: the offer has its pages; moving: a host has pages where the other has lists, or posted them
	EndAsked                                       // h2d: the offer is asked back from the other end; moving: its host withdraws the pages
	EndAborting                                    // … as the host aborts it
	EndLate                                        // … as its time is over
	EndBroken                                      // … as the host broke a rule
	EndPosted                                      // d2h: pages lie here for the next transfer
	EndReadyDue                                    // OFFER waits for READY
	EndShut                                        // the end's host closed the half
	EndClosed                                      // the other host did
	EndEnding                                      // the transfer ends: when the engine is quiet, and the other host does not decide
	connectionMarksAll = 1<<iota - 1

	connectionBrief = EndListed | EndPages | EndAsked | EndEnding | endWhy
	endWhy          = EndAborting | EndLate | EndBroken
)

var connectionMarkNames = []string{"listed", "pages", "asked back", "aborting", "late", "broken", "posted", "READY due", "shut", "closed", "ending"}

// String names the marks.
func (m ConnectionMarks) String() string { return joined(connectionMarkNames, uint(m)) }

// News are events of an end of an end for the other. Several are kept at once, and handled in this order.
type News uint16

// News of an end.
const (
	NewsAnswered  News = 1 << iota // with a status
	NewsOffered                    // with what is offered
	NewsWithdrawn                  // it asks for its offer back
	NewsAsked                      // it asks whether the other host waits
	NewsReady                      // its host waits
	NewsClosed                     // its host closed the half
	NewsClosedD2H                  // … the other half: no row has this, an end keeps one for each
	NewsGone                       // the end is released
	NewsGiveUp                     // none for the other: this end takes it for gone

	// Of transfers that move: they arrive at once.
	NewsTakes // its host takes the offer, whose bytes move from here on
	NewsStops // the transfer ends here
	NewsTook  // its host has all bytes, and took them
)

var newsNames = []string{"answered", "offered", "withdrawn", "asked", "ready", "closed", "closed d2h", "gone", "gives up", "takes it", "stops", "took it"}

// String names the news.
func (n News) String() string { return joined(newsNames, uint(n)) }

// joined names the bits that are set.
func joined(names []string, bits uint) string {
	var set []string
	for i, n := range names {
		if bits>>i&1 != 0 {
			set = append(set, n)
		}
	}
	return strings.Join(set, "+")
}

// EndState is the state of an end as a whole.
type EndState uint8

// States of an end.
const (
	EndNone  EndState = iota // it is not, or is over
	EndBound                 // it has a target at its host, which has not subscribed to it
	EndOpen                  // its host is subscribed
	EndAlone                 // its host is subscribed, and there is no other end any more
	endStates
)

var endStateNames = [endStates]string{"none", "bound", "open", "alone"}

// String returns the state's name.
func (s EndState) String() string { return name(endStateNames[:], "state", int(s)) }

// EndInput is an event of an end as a whole.
type EndInput uint8

// Inputs of an end.
const (
	EndConnects     EndInput = iota // a host connects: both ends get their targets
	EndRefuses                      // the listening host refuses the target, or is not there to take it
	EndSubscribes                   // its host subscribes to the target
	EndOver                         // its host closed both halves, and nothing moves any more
	EndOtherGone                    // the other end is released
	EndHostDetaches                 // its host detaches from the device
	endInputs
)

var endInputNames = [endInputs]string{"connect", "refuse", "subscribe", "over", "other: gone", "detach"}

// String describes the input.
func (i EndInput) String() string { return name(endInputNames[:], "input", int(i)) }
