package mailbox

import (
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// A half's word is {transactions so far:48 | ask:1 | parked:1 | event:5 | stand:7}, so that a call
// begins a transaction, and a message of the device ends it, with one store. The event is the
// last that the half's caller has not seen yet.
const (
	standMask  = 1<<proto.StandBits - 1
	eventShift = proto.StandBits
	eventMask  = 1<<5 - 1
	events     = eventMask << eventShift // what a caller waits for
	parkedFlag = 1 << 12                 // the caller sleeps: a token wakes it
	askFlag    = 1 << 13                 // h2d: the audit wants to know whether the device has the offer
	countShift = 16
)

// protocol is the table of all transitions.
var protocol = proto.Default()

func standOf(w uint64) proto.Stand { return proto.Stand(w & standMask) }
func stateOf(w uint64) proto.State { return standOf(w).State() }
func eventOf(w uint64) proto.Event { return proto.Event(w >> eventShift & eventMask) }
func countOf(w uint64) uint64      { return w >> countShift }

// wordAfter returns the word that follows a step, with an event.
func wordAfter(w uint64, p proto.Step, e proto.Event) uint64 {
	to := w&^(standMask|events) | uint64(p.From(standOf(w))) | uint64(e)<<eventShift
	if p.Advances() {
		to += 1 << countShift
	}
	return to
}

// eventAfter returns the event of a word after another one: an end that its caller has not seen stays.
func eventAfter(w uint64, e proto.Event) proto.Event {
	unseen := eventOf(w)
	switch e {
	case proto.EventNone, proto.EventStale, proto.EventFault, proto.EventReady, proto.EventClosed,
		proto.EventAsked:
		return unseen
	case proto.EventRecalled:
		if unseen == proto.EventOffer {
			return proto.EventNone
		}
		return unseen
	case proto.EventOffer:
		if unseen != proto.EventNone {
			return unseen
		}
		if stateOf(w) == proto.StatePosted { // the pages are void, also if the offer is taken back unseen
			return proto.EventWithdrawn
		}
	case proto.EventProgress:
		if unseen == proto.EventRetriesExhausted {
			return unseen
		}
	}
	return e
}

// keepsEvent reports whether an action leaves what the caller has not seen.
func keepsEvent(in proto.Input) bool {
	switch in {
	case proto.PutWithdraw, proto.PutWithdrawn, proto.Release, proto.Shut:
		return true
	}
	return false
}

// machine is a half as the protocol sees it. Inputs of calls are made by the holder of the half's
// queue, and inputs of the device by the goroutine that drains the mailbox, under its rx lock.
type machine struct {
	word atomic.Uint64
	dir  abi.Direction
	base uint64        // id of transaction 0; written under rx while opening
	slot wire.Slot     // h2d: how an offer was refused; d2h: the offer
	size atomic.Uint64 // bytes of the pages that the device has, of an eager transfer
	wake chan struct{} // room for one token; made by the first sleep
	xfer *transfer     // made by the first transfer
	// record is that of the call under way, nil if nobody measures it; set by the holder of the queue.
	record atomic.Pointer[stamp.Record]

	lists, repeated, registered, unaligned, corrupt atomic.Uint64
	flying                                          atomic.Int32 // lists of the transfer that were sent and not acked
}

// wakeUp leaves the token that a sleeping caller takes.
func (m *machine) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default: // it has one
	}
}

// at returns where the half stands.
func (m *machine) at(w uint64) proto.Half {
	return proto.Half{ID: m.base + countOf(w), Direction: m.dir, Stand: standOf(w), Size: m.size.Load()}
}

// id returns the transaction under way, or the last one.
func (m *machine) id() uint64 { return m.base + countOf(m.word.Load()) }

// offered reports whether the device offers something on the d2h half.
func (m *machine) offered() bool { return stateOf(m.word.Load()) == proto.StateOffered }

// act does something of the host; false if the protocol does not let it now. The caller puts the
// slot after that, so that the device's answer finds the new state.
func (m *machine) act(in proto.Input) (proto.Event, bool) {
	for {
		w := m.word.Load()
		p := protocol.Step(m.dir, standOf(w), in)
		if s := stateOf(w); s == proto.StateMoving || s == proto.StateComplete { // it has an account
			p = protocol.Act(m.at(w), in, &m.xfer.ledger)
		}
		if !p.OK() {
			return proto.EventNone, false
		}
		e := proto.EventNone
		if keepsEvent(in) {
			e = eventAfter(w, p.Event())
		}
		if m.word.CompareAndSwap(w, wordAfter(w, p, e)) {
			return p.Event(), true
		}
	}
}

// keep holds the offer unchanged for a later call; false if that cannot be.
func (m *machine) keep() bool {
	for {
		w := m.word.Load()
		p := protocol.Step(m.dir, standOf(w), proto.Hold)
		if !p.OK() {
			return false
		}
		if m.word.CompareAndSwap(w, wordAfter(w, p, eventOf(w))) {
			return true
		}
	}
}

// begin begins a transaction and returns its id, and the word before it. Must hold queue.
func (m *machine) begin(in proto.Input) (id, before uint64) {
	before = m.word.Load()
	w := wordAfter(before, protocol.Step(m.dir, standOf(before), in), proto.EventNone)
	m.word.Store(w)
	return m.base + countOf(w), before
}

// unbegin takes begin back when nothing was put. Must hold queue.
func (m *machine) unbegin(before uint64) { m.word.Store(before) }

// seen takes the event out of the word, if it is still e.
func (m *machine) seen(e proto.Event) {
	for {
		w := m.word.Load()
		if eventOf(w) != e || m.word.CompareAndSwap(w, w&^events) {
			return
		}
	}
}

// classifyLocked returns what a message means for the half, which then stands where that leads. Must
// hold rx.
func (m *machine) classifyLocked(limit uint64, s *wire.Slot) (proto.Event, string) {
	for {
		w := m.word.Load()
		if stateOf(w) == proto.StateMoving {
			return m.classifyTransferLocked(limit, s)
		}
		p, why := protocol.Classify(m.at(w), nil, limit, s)
		switch e := p.Event(); {
		case e == proto.EventRefused && m.dir == abi.D2H:
			m.xfer.end = *s.Ack()
		case e == proto.EventOffer || e == proto.EventRefused || e == proto.EventAnswered || e == proto.EventUnanswered:
			// in the two pieces in which it was just stored: a load across both waits for them
			m.slot.Header, m.slot.Payload = s.Header, s.Payload
		}
		m.saw(p.Event(), s)
		if m.followLocked(w, p) {
			return p.Event(), why
		}
	}
}

// classifyTransferLocked is classifyLocked while a transfer is under way: its caller changes where
// the half stands only under the transfer's lock. Must hold rx.
func (m *machine) classifyTransferLocked(limit uint64, s *wire.Slot) (proto.Event, string) {
	x := m.xfer
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.ledger.Repeated
	p, why := protocol.Classify(m.at(m.word.Load()), &x.ledger, limit, s)
	switch p.Event() {
	case proto.EventFailed, proto.EventAborted:
		x.end = *s.Ack()
	case proto.EventDone:
		x.theirs = s.Ack().FaultIndex
	case proto.EventProgress:
		m.repeated.Add(x.ledger.Repeated - before)
		m.flying.Store(int32(x.ledger.Sent - x.ledger.Acked))
	}
	m.saw(p.Event(), s)
	for !m.followLocked(m.word.Load(), p) {
	}
	return p.Event(), why
}

// saw gives the record of the call under way what a message says of its way.
func (m *machine) saw(e proto.Event, s *wire.Slot) {
	if m.record.Load() != nil {
		m.stamp(e, s)
	}
}

func (m *machine) stamp(e proto.Event, s *wire.Slot) {
	if r := m.record.Load(); r != nil && e != proto.EventStale {
		r.Saw(s, m.word.Load()&parkedFlag != 0)
	}
}

// followLocked moves the half on from w, and wakes the caller for events; false if the word has
// changed since. Must hold rx.
func (m *machine) followLocked(w uint64, p proto.Step) bool {
	e := eventAfter(w, p.Event())
	to := wordAfter(w, p, e)
	if to == w {
		return true
	}
	if !m.word.CompareAndSwap(w, to) {
		return false
	}
	if w&parkedFlag != 0 && e != proto.EventNone {
		m.wakeUp()
	}
	return true
}

// overLocked wakes the call that closes the channel: the device agrees. Must hold rx.
func (m *machine) overLocked() {
	for {
		w := m.word.Load()
		if m.word.CompareAndSwap(w, w&^events|uint64(proto.EventOver)<<eventShift) {
			break
		}
	}
	if m.word.Load()&parkedFlag != 0 {
		m.wakeUp()
	}
}
