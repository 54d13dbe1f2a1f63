package mailbox

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// ledger is the host's account of one transfer: what was sent, what the device
// says it did. It is pure, and it believes nothing that cannot follow from
// what was sent.
type ledger struct {
	cut    split
	lists  uint64 // in the whole transfer
	window uint64 // lists in flight at the most

	sent      uint64 // lists given to the device
	acked     uint64 // lists the device consumed
	processed uint64 // bytes the device moved
	ready     bool   // more than list 0 may be sent
	aborting  bool   // ABORT was sent

	again    uint64 // the list the device asked for last
	tries    int    // how often
	repeated uint64 // rounds sent again
}

// verdict says what a completion record means for the transfer.
type verdict int

const (
	verdictProgress verdict = iota // carry on; lists may be sent
	verdictIgnore                  // crossed an ABORT
	verdictGiveUp                  // the same list was asked for too often
	verdictDone                    // every byte moved
	verdictFailed                  // ended by the device
	verdictAborted                 // ended by ABORT
)

// newLedger opens the account of a transfer. Transfers to the device wait for
// READY after their first list, transfers from the device do not.
func newLedger(cut split, window int, ready bool) ledger {
	return ledger{cut: cut, lists: cut.lists(), window: uint64(window), ready: ready}
}

// next returns the list to send now.
func (l *ledger) next() (k uint64, ok bool) {
	switch {
	case l.aborting || l.sent == l.lists:
		return 0, false
	case l.sent > 0 && !l.ready:
		return 0, false
	}
	return l.sent, l.sent-l.acked < l.window
}

// record takes a completion record of type t into account. An error means
// that the device broke the protocol.
func (l *ledger) record(t abi.Type, a *abi.Ack) (verdict, error) {
	if a.Status >= abi.StatusCount || a.State >= abi.StateCount {
		return 0, fmt.Errorf("%w: unknown status %d or state %d", bridge.ErrFault, a.Status, a.State)
	}
	switch t {
	case abi.TypeAck:
		return l.ack(a)
	case abi.TypeDone:
		return l.done(a)
	case abi.TypeAborted:
		return l.aborted(a)
	default:
		return l.failed(a)
	}
}

// ack handles READY, MOVING and REPEAT.
func (l *ledger) ack(a *abi.Ack) (verdict, error) {
	if a.Status != abi.OK && a.State != abi.StateRepeat { // a repeat says why
		return 0, fmt.Errorf("%w: ack with status %d", bridge.ErrFault, a.Status)
	}
	if l.sent == 0 {
		return 0, fmt.Errorf("%w: ack before any list", bridge.ErrFault)
	}
	lists, err := l.progress(a)
	if err != nil {
		return 0, err
	}
	switch a.State {
	case abi.StateReady:
		if l.ready {
			return 0, fmt.Errorf("%w: ready twice", bridge.ErrFault)
		}
		l.ready = true
	case abi.StateMoving:
		if !l.ready && lists < l.lists {
			return 0, fmt.Errorf("%w: moving before ready", bridge.ErrFault)
		}
	case abi.StateRepeat:
		return l.repeat(lists)
	default:
		return 0, fmt.Errorf("%w: ack with state %d", bridge.ErrFault, a.State)
	}
	l.acked = lists
	return l.unlessAborting(verdictProgress), nil
}

// repeat goes back to list k, which must be in flight.
func (l *ledger) repeat(k uint64) (verdict, error) {
	if k >= l.sent {
		return 0, fmt.Errorf("%w: repeat of list %d of %d sent", bridge.ErrFault, k, l.sent)
	}
	l.acked = k
	if l.aborting {
		return verdictIgnore, nil
	}
	if l.tries == 0 || k != l.again {
		l.again, l.tries = k, 0
	}
	if l.tries++; l.tries > abi.RepeatsMax {
		return verdictGiveUp, nil
	}
	l.repeated += l.sent - k
	l.sent = k
	return verdictProgress, nil
}

// done checks that nothing is missing.
func (l *ledger) done(a *abi.Ack) (verdict, error) {
	if l.sent != l.lists || a.Processed != l.cut.size || a.Outstanding != 0 ||
		a.Status != abi.OK || a.State != abi.StateDone {
		return 0, fmt.Errorf("%w: done with state %d, status %d, %d of %d lists and %d of %d bytes", bridge.ErrFault,
			a.State, a.Status, l.sent, l.lists, a.Processed, l.cut.size)
	}
	l.acked, l.processed = l.lists, l.cut.size
	return l.unlessAborting(verdictDone), nil
}

// failed handles ERROR, which ends the transfer.
func (l *ledger) failed(a *abi.Ack) (verdict, error) {
	if a.Status == abi.OK {
		return 0, fmt.Errorf("%w: error without a status", bridge.ErrFault)
	}
	return verdictFailed, l.last(a)
}

// aborted handles the answer to ABORT.
func (l *ledger) aborted(a *abi.Ack) (verdict, error) {
	if !l.aborting {
		return 0, fmt.Errorf("%w: aborted without an abort", bridge.ErrFault)
	}
	return verdictAborted, l.last(a)
}

// last takes the final count of bytes, which may be behind a repeat's, and the
// place where a transfer ended that is not done.
func (l *ledger) last(a *abi.Ack) error {
	if a.State != abi.StateFailed || a.FaultIndex >= abi.ListEntries {
		return fmt.Errorf("%w: ended with state %d in entry %d", bridge.ErrFault, a.State, a.FaultIndex)
	}
	if a.Processed > l.cut.size {
		return fmt.Errorf("%w: %d of %d bytes processed", bridge.ErrFault, a.Processed, l.cut.size)
	}
	l.processed = a.Processed
	return nil
}

// progress checks the counters of an ack and returns its cumulative lists,
// widened from the 32 bits on the wire.
func (l *ledger) progress(a *abi.Ack) (lists uint64, err error) {
	lists = l.acked + uint64(a.Lists-uint32(l.acked))
	if lists > l.sent {
		return 0, fmt.Errorf("%w: %d lists acked of %d sent", bridge.ErrFault, a.Lists, l.sent)
	}
	if a.Processed < l.processed || a.Processed > l.cut.upTo(l.sent) {
		return 0, fmt.Errorf("%w: %d bytes processed after %d, of %d sent", bridge.ErrFault,
			a.Processed, l.processed, l.cut.upTo(l.sent))
	}
	l.processed = a.Processed
	return lists, nil
}

func (l *ledger) unlessAborting(v verdict) verdict {
	if l.aborting {
		return verdictIgnore
	}
	return v
}
