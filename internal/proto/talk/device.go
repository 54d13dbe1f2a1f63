package talk

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// DeviceModel is the device that a table describes. Its engine moves the bytes of a list as it
// arrives, unless a conversation has it slow, busy or failing. Its process makes the calls that it is told to.
type DeviceModel struct {
	Table *proto.DeviceTable
	Used  map[int]bool // rows of the table that were followed; nil: nobody asks

	open     Open
	engine   engine
	closed   bool // the subscription is over
	half     [2]proto.DeviceHalf
	transfer [2]moving
	list     wire.Slot // list 0 beside an offer
	kept     bool
	timed    bool   // the offer has a deadline
	length   uint64 // bytes of the message or question that is offered
	posted   uint64 // bytes of the pages that are posted
	put      []wire.Slot

	// The process.
	call   []string
	size   uint64 // of its call
	stop   bool
	asked  asked
	busy   bool // in a call
	done   bool // it returned, and nobody asked yet
	result int
}

// asked is what the process has taken by its last channel_question, and not answered.
type asked int

// Kinds of what the process has taken.
const (
	askedNothing asked = iota
	askedByMessage
	askedByCall
)

var _ Device = (*DeviceModel)(nil)

// Open begins a conversation.
func (m *DeviceModel) Open(o *Open) error {
	*m = DeviceModel{Table: m.Table, Used: m.Used, open: *o}
	for d := range m.half {
		m.half[d] = proto.DeviceHalf{Direction: abi.Direction(d), Next: o.Next[d]}
	}
	return nil
}

// follow takes a transition, if there is one. found is the status where the row names none.
func (m *DeviceModel) follow(d abi.Direction, in proto.DeviceInput, found abi.Status) bool {
	r, i := m.Table.Step(m.half[d], in)
	if i < 0 {
		return false
	}
	if m.Used != nil {
		m.Used[i] = true
	}
	before := m.half[d]
	m.half[d] = before.From(r)
	if r.Status != abi.OK {
		found = r.Status
	}
	t := &m.transfer[d]
	if r.Set&proto.DeviceEnding != 0 && before.Marks&proto.DeviceEnding == 0 {
		t.status = found
	}
	if in == proto.EngineQuiet {
		found = t.status
	}
	m.answer(d, r, found)
	if before.State == proto.DeviceIdle || r.Next == proto.DeviceIdle {
		m.kept = m.kept && d != abi.H2D
	}
	m.returns(d, r, found)
	if m.half[d].Marks&proto.DeviceEnding != 0 {
		m.pump(d)
	}
	return true
}

// returns ends the call of the process, if the transition does.
func (m *DeviceModel) returns(d abi.Direction, r proto.DeviceRow, found abi.Status) {
	switch {
	case r.Return == proto.Fails:
		m.back(-int(found))
	case r.Return == proto.Succeeds && (r.State == proto.DeviceMessage || r.State == proto.DeviceQuestion) && d == abi.H2D:
		m.back(int(m.length))
	case r.Return == proto.Succeeds:
		m.back(0)
	}
}

// back ends the call of the process.
func (m *DeviceModel) back(result int) {
	if m.busy {
		m.busy, m.done, m.result = false, true, result
	}
}

// answer puts what a transition puts.
func (m *DeviceModel) answer(d abi.Direction, r proto.DeviceRow, found abi.Status) {
	t, id := &m.transfer[d], m.half[d].Present()
	a := wire.Ack{Transaction: id, Direction: uint32(d)}
	if r.State == proto.DeviceMoving || r.State == proto.DeviceEager || r.State == proto.DeviceCommit {
		a.Processed, a.Outstanding, a.Lists = t.moved, t.size-t.moved, uint32(t.finished)
	}
	switch r.Put {
	case proto.PutReady:
		m.note(wire.TypeReady, d, m.half[d].Next)
	case proto.PutConsumed:
		a.State, a.Status = wire.StateConsumed, r.Status
		m.record(wire.TypeAck, a)
	case proto.PutGo:
		a.State, a.Processed, a.Outstanding, a.Lists = wire.StateReady, 0, t.size, 0
		m.record(wire.TypeAck, a)
	case proto.PutMoved:
		a.State, t.reported = wire.StateMoving, [2]uint64{t.moved, t.finished}
		m.record(wire.TypeAck, a)
	case proto.PutRepeat:
		a.State, a.Status, t.reported = wire.StateRepeat, r.Status, [2]uint64{t.moved, t.finished}
		m.record(wire.TypeAck, a)
	case proto.PutDone:
		a.State = wire.StateDone
		m.record(wire.TypeDone, a)
	case proto.PutError, proto.PutAborted:
		a.State, a.Status = wire.StateFailed, found
		if r.Put == proto.PutAborted && r.State == proto.DeviceOffered || r.Input == proto.HearBadPages {
			a.Outstanding = t.size
		} else if r.Input == proto.TakeSize {
			a.Outstanding = m.size
		}
		m.record(map[proto.Put]wire.Type{proto.PutError: wire.TypeError, proto.PutAborted: wire.TypeAborted}[r.Put], a)
	case proto.PutBack:
		if r.Input == proto.HearUnpost {
			id++
		}
		m.note(wire.TypeWithdrawn, d, id)
	case proto.PutTakeBack:
		m.note(wire.TypeWithdraw, d, id)
	case proto.PutDirect, proto.PutBegin:
		m.offer(wire.TypeDirect, id, r.Put == proto.PutBegin)
	case proto.PutAnswer:
		m.offer(wire.TypeAnswer, id, false)
	}
}

func (m *DeviceModel) slot(t wire.Type, length int, id uint64) *wire.Slot {
	m.put = append(m.put, wire.Slot{Header: uint64(wire.MakeHeader(t, length, Epoch, uint16(id), Channel))})
	return &m.put[len(m.put)-1]
}

func (m *DeviceModel) record(t wire.Type, a wire.Ack) {
	*m.slot(t, abi.PayloadSize, a.Transaction).Ack() = a
}

func (m *DeviceModel) note(t wire.Type, d abi.Direction, id uint64) {
	*m.slot(t, abi.PayloadSize, id).Note() = wire.Note{Transaction: id, Direction: uint32(d)}
}

// offer puts what the process offers, or answers.
func (m *DeviceModel) offer(message wire.Type, id uint64, transfer bool) {
	if transfer {
		m.transfer[abi.D2H] = moving{size: m.size}
		*m.slot(wire.TypeIndBegin, abi.PayloadSize, id).Begin() = wire.Begin{Transaction: id, Size: m.size}
		return
	}
	bytes := m.slot(message, int(m.size), id).Bytes()
	for i := range min(m.size, abi.PayloadSize) {
		bytes[i] = byte(id + i)
	}
}

// close puts CLOSE of halves.
func (m *DeviceModel) close(halves uint32) {
	*m.slot(wire.TypeClose, abi.PayloadSize, m.open.Generation).Close() = wire.Close{Halves: halves, Generation: m.open.Generation}
}

// over ends the subscription once the host closed both halves and nothing moves.
func (m *DeviceModel) over() {
	if _, over := proto.SubscriptionOver(m.half); over && !m.closed {
		m.closed = true
		m.close(1<<abi.H2D | 1<<abi.D2H)
	}
}

// Next returns the next slot that the device has put.
func (m *DeviceModel) Next() (*wire.Slot, error) {
	if len(m.put) == 0 && m.timed && m.offered() {
		m.timed = false
		m.follow(abi.H2D, proto.Deadline, 0)
	}
	if len(m.put) == 0 {
		return nil, nil
	}
	s := m.put[0]
	m.put = m.put[1:]
	return &s, nil
}

// Returned returns the result of the call that has returned.
func (m *DeviceModel) Returned() (int, error) {
	if !m.done {
		return 0, fmt.Errorf("the call has not returned")
	}
	m.done = false
	return m.result, nil
}
