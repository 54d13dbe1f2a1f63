package bridge

import (
	"strconv"
	"time"
)

// HalfState is where the transaction of a half stands, as docs/protocol.md names it.
type HalfState uint8

// States of a half.
const (
	// HalfUnknown: a driver keeps the state and does not report it.
	HalfUnknown HalfState = iota
	// HalfIdle: no transaction is under way. A call that waits on abi.D2H waits for an offer.
	HalfIdle
	// HalfOffered: a message waits for the target, or the device's offer for a receive.
	HalfOffered
	// HalfAnswering: the device took its offer back, and waits for the host's answer.
	HalfAnswering
	// HalfMoving: a transfer is under way, on abi.H2D from its offer on.
	HalfMoving
	// HalfComplete: every byte was moved, and the commit is still missing.
	HalfComplete
)

var halfStates = [...]string{"unknown", "idle", "offered", "answering", "moving", "complete"}

// String returns the name of the state.
func (s HalfState) String() string {
	if int(s) < len(halfStates) {
		return halfStates[s]
	}
	return "state " + strconv.Itoa(int(s))
}

// Half describes one direction of a channel. Each field is as it was at one moment, not
// all at the same. Where State is HalfUnknown, Transaction, Queued and Slept are zero, and
// Closed leaves out what the device's process closed.
type Half struct {
	// State is where the transaction stands.
	State HalfState
	// Closed is true if calls end with an error: either side closed the half, or the
	// device is lost.
	Closed bool
	// Transaction is the id of the transaction under way, as in a trace of the device;
	// zero while the half is idle.
	Transaction uint64
	// Waiting is the number of calls that wait, as in ChannelStats.
	Waiting int
	// Queued is how many of those wait behind another call.
	Queued int
	// Armed is the number of waiters of Arm.
	Armed int
	// Slept is the time since the call whose transaction it is fell asleep; whatever the
	// device reports about that transaction wakes it. Zero while none sleeps.
	Slept time.Duration
}
