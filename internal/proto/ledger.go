package proto

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Ledger is the host's account of one transfer: what was sent, and what the device reports. It
// believes nothing that cannot follow from what was sent.
type Ledger struct {
	Cut    Split
	Lists  uint64 // in the whole transfer
	Window uint64 // lists in flight at the most

	Sent      uint64 // lists given to the device
	Acked     uint64 // lists the device consumed
	Processed uint64 // bytes the device moved
	Repeated  uint64 // lists that the device asked for again
	Ready     bool   // more than list 0 may be sent
	Aborting  bool   // ABORT was put

	most  uint64 // lists that were ever sent, also before a REPEAT
	again uint64 // the list the device asked for last …
	at    uint64 // … the bytes it had moved when it first did …
	tries int    // … and how often in a row
}

// NewLedger opens the account of a transfer. A transfer to the device waits for READY after its
// first list, one from the device is ready from its start.
func NewLedger(cut Split, window uint64, ready bool) Ledger {
	return Ledger{Cut: cut, Lists: cut.Lists(), Window: window, Ready: ready}
}

// Next returns the list to send now; false if there is none.
func (l *Ledger) Next() (k uint64, ok bool) {
	if l.Aborting || l.Sent == l.Lists || l.Sent > 0 && !l.Ready {
		return 0, false
	}
	return l.Sent, l.Sent-l.Acked < l.Window
}

// Accepted reports whether the device has shown that its target took the transfer.
func (l *Ledger) Accepted() bool { return l.Ready || l.Acked > 0 || l.Processed > 0 }

// Record takes a completion record of type t into account and returns what it means. why is
// what is wrong with one that is TakeNonsense.
func (l *Ledger) Record(t wire.Type, a *wire.Ack) (in Input, why string) {
	if a.Status >= abi.StatusCount || a.State >= wire.StateCount {
		return TakeNonsense, "unknown status or state"
	}
	switch t {
	case wire.TypeAck:
		return l.ack(a)
	case wire.TypeDone:
		return l.done(a)
	case wire.TypeAborted:
		if !l.Aborting {
			return TakeNonsense, "aborted, but nobody asked"
		}
		return l.last(a, TakeAborted)
	default:
		if a.Status == abi.OK {
			return TakeNonsense, "error without a status"
		}
		return l.last(a, TakeFailed)
	}
}

// ack handles READY, MOVING, REPEAT and CONSUMED.
func (l *Ledger) ack(a *wire.Ack) (Input, string) {
	if a.Status != abi.OK && a.State != wire.StateRepeat { // a repeat carries its reason
		return TakeNonsense, "ack with a status"
	}
	if a.State == wire.StateConsumed {
		return l.consumed(a)
	}
	if l.Sent == 0 {
		return TakeNonsense, "ack before any list"
	}
	lists, ok := l.progress(a)
	if !ok {
		return TakeNonsense, "more lists or bytes acked than were sent"
	}
	switch {
	case a.State == wire.StateRepeat:
		return l.repeat(lists)
	case a.State == wire.StateReady && !l.Ready:
		l.Ready = true
	case a.State == wire.StateMoving && (l.Ready || l.Sent == l.Lists && (lists > 0 || l.Processed > 0)):
	default:
		return TakeNonsense, "ack of a transfer in a state that cannot be"
	}
	l.Acked = lists
	return l.unlessAborting(TakeProgress), ""
}

// repeat returns to list k, which must be in flight. A list may be asked for again and again as
// long as its bytes arrive.
func (l *Ledger) repeat(k uint64) (Input, string) {
	if k >= l.Sent {
		return TakeNonsense, "repeat of a list that was not sent"
	}
	l.Acked = k
	if l.Aborting {
		return TakeCrossed, ""
	}
	if l.tries == 0 || k != l.again || l.Processed > l.at {
		l.again, l.at, l.tries = k, l.Processed, 0
	}
	if l.tries++; l.tries > wire.RepeatsMax {
		return TakeRetriesExhausted, ""
	}
	l.Repeated += l.Sent - k
	l.most, l.Sent = max(l.most, l.Sent), k
	return TakeProgress, ""
}

// done checks that nothing is missing.
func (l *Ledger) done(a *wire.Ack) (Input, string) {
	if l.Sent != l.Lists || a.Processed != l.Cut.Size || a.Outstanding != 0 ||
		a.Status != abi.OK || a.State != wire.StateDone {
		return TakeNonsense, "done, but not all was moved"
	}
	l.Acked, l.Processed = l.Lists, l.Cut.Size
	return l.unlessAborting(TakeDone), ""
}

// consumed checks that nothing is missing of what another host took: that one had the last word, so
// that this one has no FIN to put, and no ABORT that would count.
func (l *Ledger) consumed(a *wire.Ack) (Input, string) {
	if l.Sent != l.Lists || a.Processed != l.Cut.Size || a.Outstanding != 0 {
		return TakeNonsense, "consumed, but not all was moved"
	}
	l.Acked, l.Processed = l.Lists, l.Cut.Size
	return TakeConsumed, ""
}

// last takes the place where a transfer ended that is not done. Its count of bytes may be behind
// a repeat's.
func (l *Ledger) last(a *wire.Ack, in Input) (Input, string) {
	if a.State != wire.StateFailed || a.FaultIndex >= wire.ListEntries {
		return TakeNonsense, "ended in a state or an entry that cannot be"
	}
	if a.Processed > l.Cut.Size {
		return TakeNonsense, "more bytes processed than there are"
	}
	l.Processed = a.Processed
	return in, ""
}

// progress checks the counters of an ack and returns its cumulative lists, widened from the 32
// bits on the wire.
func (l *Ledger) progress(a *wire.Ack) (lists uint64, ok bool) {
	lists = l.Acked + uint64(a.Lists-uint32(l.Acked))
	if lists > l.Sent || a.Processed < l.Processed || a.Processed > l.Cut.UpTo(max(l.most, l.Sent)) {
		return 0, false
	}
	l.Processed = a.Processed
	return lists, true
}

func (l *Ledger) unlessAborting(in Input) Input {
	if l.Aborting {
		return TakeCrossed
	}
	return in
}
