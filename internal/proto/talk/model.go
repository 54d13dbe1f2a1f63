package talk

import (
	"fmt"
	"math"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Model is the host that a table describes: the party of package proto.
type Model struct {
	Table *proto.Table
	Used  map[int]bool // rows of the table that were followed; nil: nobody asks

	open    Open
	half    [2]proto.Half
	ledger  [2]proto.Ledger
	offered uint64    // bytes of the device's offer
	given   [2]uint64 // bytes up to the end of the last list, by Cut
	shut    [2]bool
	layout  proto.Layout
}

var _ Host = (*Model)(nil)

// Layout is that of the device of every conversation.
func Layout(o *Open) proto.Layout {
	return proto.Layout{Epoch: Epoch, Hello: wire.Hello{
		Channels: 64, Mailboxes: 2, Islands: 1, Slots: 64, Window: uint32(o.Window), BeatMS: 100, MaxTransfer: o.Limit,
	}}
}

// Open begins a conversation.
func (m *Model) Open(o *Open) error {
	*m = Model{Table: m.Table, Used: m.Used, open: *o, layout: Layout(o)}
	for d := range m.half {
		m.half[d] = proto.Half{ID: o.Next[d] - 1, Direction: abi.Direction(d)}
	}
	return nil
}

// act does something of the host.
func (m *Model) act(d abi.Direction, in proto.Input) error {
	p := m.Table.Act(m.half[d], in, &m.ledger[d])
	if !p.OK() {
		return fmt.Errorf("%v: no %v while %v", d, in, m.state(d))
	}
	m.follow(d, p)
	return nil
}

func (m *Model) follow(d abi.Direction, p proto.Step) {
	m.half[d] = m.half[d].From(p)
	if m.Used != nil && p.Row() >= 0 {
		m.Used[p.Row()] = true
	}
}

func (m *Model) state(d abi.Direction) proto.State { return m.half[d].Stand.State() }

// Do holds or releases the offer, or shuts a half.
func (m *Model) Do(what string, d abi.Direction) (proto.State, error) {
	err := m.act(d, map[string]proto.Input{"hold": proto.Hold, "release": proto.Release, "shut": proto.Shut}[what])
	return m.state(d), err
}

// Put puts a slot of the host.
func (m *Model) Put(s *wire.Slot) (proto.State, error) {
	h := wire.Header(s.Header)
	var d abi.Direction
	id := s.Note().Transaction
	var err error
	switch h.Type() {
	case wire.TypeDirect:
		err = m.act(abi.H2D, proto.PutMessage)
		id = m.half[d].ID&^0xffff | uint64(h.Sequence())
	case wire.TypeCall:
		err = m.act(abi.H2D, proto.PutCall)
		id = m.half[d].ID&^0xffff | uint64(h.Sequence())
	case wire.TypeIndBegin:
		err = m.begin(abi.H2D, s.Begin().Size)
	case wire.TypeEager:
		if h.Length()&wire.ListD2H != 0 {
			d = abi.D2H
		}
		err = m.eager(d, s.Eager().Size)
	case wire.TypeIndList:
		if h.Length()&wire.ListD2H != 0 {
			d = abi.D2H
		}
		id = m.half[d].ID&^0xffff | uint64(h.Sequence())
		err = m.list(d, s.Gather())
	case wire.TypeAck:
		d, err = abi.D2H, m.act(abi.D2H, proto.PutAccept)
	case wire.TypeError:
		d, err = abi.D2H, m.act(abi.D2H, proto.PutRefuse)
	case wire.TypeClose:
		return m.close(s.Close().Halves)
	case wire.TypeOffer, wire.TypeReady:
		if h.Type() == wire.TypeReady {
			d = abi.D2H
		}
		id, err = m.hint(h.Type(), d, id)
	default:
		d = abi.Direction(s.Note().Direction & 1)
		err = m.note(h.Type(), d)
	}
	if m.state(d) == proto.StatePosted {
		id-- // it is for the next one
	}
	if err == nil && id != m.half[d].ID {
		err = fmt.Errorf("transaction %d, not %d", id, m.half[d].ID)
	}
	return m.state(d), err
}

// hint puts OFFER or READY, which are about the next transaction, and returns the one that is under way.
// READY answers an OFFER whose transaction may have arrived meanwhile: then it is of the one after it.
func (m *Model) hint(t wire.Type, d abi.Direction, id uint64) (uint64, error) {
	switch s := m.state(d); {
	case t == wire.TypeReady && s == proto.StatePosted:
		return id, nil
	case t == wire.TypeReady, s == proto.StateIdle:
		return id - 1, nil
	default:
		return 0, fmt.Errorf("%v while %v", t, s)
	}
}

// begin begins a transfer.
func (m *Model) begin(d abi.Direction, size uint64) error {
	err := m.act(d, proto.PutTransfer)
	if err == nil {
		m.ledger[d], m.given[d] = proto.NewLedger(m.open.split(size), m.open.Window, d == abi.D2H), 0
	}
	return err
}

// eager puts a transfer with its pages, or the pages for one that is offered or to come.
func (m *Model) eager(d abi.Direction, size uint64) error {
	if d == abi.D2H && m.state(d) == proto.StateOffered && m.offered != size {
		return fmt.Errorf("pages of %d bytes for an offer of %d", size, m.offered)
	}
	err := m.act(d, proto.PutEager)
	m.half[d].Size = size
	return err
}

// list puts a gather list.
func (m *Model) list(d abi.Direction, g *wire.Gather) error {
	if d == abi.D2H && m.state(d) == proto.StateOffered {
		if err := m.begin(d, m.offered); err != nil {
			return err
		}
	}
	l := &m.ledger[d]
	k, ok := l.Next()
	if m.state(d) != proto.StateMoving || !ok || uint16(k) != g.Number() {
		return fmt.Errorf("list %d while %v, %d sent and %d acked of %d", g.Number(), m.state(d), l.Sent, l.Acked, l.Lists)
	}
	l.Sent++
	return nil
}

// note puts FIN, WITHDRAW, WITHDRAWN or ABORT.
func (m *Model) note(t wire.Type, d abi.Direction) error {
	switch {
	case t == wire.TypeFin && d == abi.D2H && m.state(d) == proto.StateOffered && m.offered == 0:
		return m.act(d, proto.PutAccept) // an empty transfer
	case t == wire.TypeFin:
		return m.act(d, proto.PutFin)
	case t == wire.TypeWithdraw:
		return m.act(d, proto.PutWithdraw)
	case t == wire.TypeWithdrawn && d == abi.D2H:
		return m.act(d, proto.PutWithdrawn)
	case t == wire.TypeAbort:
		return m.act(d, proto.PutAbort)
	}
	return fmt.Errorf("a host does not put type %d of %v", t, d)
}

// close puts CLOSE.
func (m *Model) close(halves uint32) (proto.State, error) {
	for d := range m.half {
		if halves>>d&1 == 0 {
			continue
		}
		if err := m.act(abi.Direction(d), proto.PutClose); err != nil {
			return m.state(abi.Direction(d)), err
		}
		m.shut[d] = true
	}
	return proto.StateIdle, nil
}

// Take takes a slot of the device.
func (m *Model) Take(s *wire.Slot) (proto.Event, proto.State, error) {
	h := wire.Header(s.Header)
	event, _ := m.layout.Header(h)
	switch {
	case event != proto.EventNone:
		return event, 0, nil
	case h.Channel() != Channel:
		event, _ = m.layout.Stranger(m.layout.Hello.Mailbox(Channel), s)
		return event, 0, nil
	case h.Type() == wire.TypeClose:
		event, _ = proto.ClassifyClose(m.open.Generation, m.shut[abi.H2D] && m.shut[abi.D2H], s)
		return event, 0, nil
	}
	d, why := proto.About(s)
	if why != "" {
		return proto.EventFault, 0, nil
	}
	p, _ := m.Table.Classify(m.half[d], &m.ledger[d], m.open.Limit, s)
	m.follow(d, p)
	if p.Event() == proto.EventOffer {
		m.offered = 0
		if h.Type() == wire.TypeIndBegin {
			m.offered = s.Begin().Size
		}
	}
	return p.Event(), m.state(d), nil
}

// check plays a conversation to the table, and takes from it the states that files do not name.
func (c *Conversation) check(table *proto.Table) error {
	if c.DeviceOnly != "" {
		return nil
	}
	m := &Model{Table: table}
	if err := m.Open(&c.Open); err != nil {
		return c.at(c.Line, err)
	}
	for i := range c.Steps {
		s := &c.Steps[i]
		var err error
		switch s.Kind {
		case HostPuts:
			s.State, err = m.Put(&s.Slot)
		case HostDoes:
			s.State, err = m.Do(s.Words[0], s.Half)
		default:
			err = hostStep(s, m)
		}
		if err != nil {
			return c.at(s.Line, fmt.Errorf("not by the table: %w", err))
		}
	}
	return nil
}

// Half returns one direction of the channel.
func (m *Model) Half(d abi.Direction) proto.Half { return m.half[d] }

// Over reports whether both halves are closed by the host.
func (m *Model) Over() bool { return m.shut[abi.H2D] && m.shut[abi.D2H] }

// Equal reports whether two models that follow one channel are in the same state.
func (m *Model) Equal(other *Model) bool {
	return m.half == other.half && m.ledger == other.ledger && m.offered == other.offered && m.given == other.given && m.shut == other.shut
}

// Cut takes the bytes up to the end of a list that was put from the list itself. Conversations compute
// them from the buffer's place; a host may cut a buffer in other places, as its pages lie.
func (m *Model) Cut(d abi.Direction, s *wire.Slot) error {
	l, rest := &m.ledger[d], s.Gather().Outstanding()
	end := l.Cut.Size - rest
	switch {
	case rest >= l.Cut.Size:
		return fmt.Errorf("list %d leaves %d of %d bytes", s.Gather().Number(), rest, l.Cut.Size)
	case end <= m.given[d]: // put again
		return nil
	}
	// As if lists had the same length: up to this one these have as many bytes.
	list := (end + l.Sent - 1) / l.Sent
	l.Cut = proto.Split{Address: min(l.Sent*list-end, abi.PageSize-1), Size: l.Cut.Size, Runs: true, Most: list}
	m.given[d], l.Lists = end, math.MaxUint64
	if rest == 0 {
		l.Lists = l.Sent
	}
	return nil
}
