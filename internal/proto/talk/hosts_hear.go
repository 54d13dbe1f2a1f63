package talk

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// puts puts for a host what a transition puts.
func (m *HostsModel) puts(e int, d abi.Direction, r proto.ConnectionRow, found abi.Status) {
	end := &m.end[e]
	h, t := end.half[d], &end.move[d]
	a := wire.Ack{Transaction: h.Present(), Direction: uint32(d), State: wire.StateFailed, Status: found}
	moves := r.State == proto.DeviceMoving || r.State == proto.DeviceCommit || r.Input == proto.EngineDone
	if moves && (r.State == proto.DeviceMoving || end.state != proto.EndAlone) {
		a.Processed, a.Outstanding, a.Lists = t.moved, t.size-t.moved, uint32(t.finished())
	}
	switch r.Put {
	case proto.PutReady, proto.PutAsk:
		m.note(e, map[proto.Put]wire.Type{proto.PutReady: wire.TypeReady, proto.PutAsk: wire.TypeOffer}[r.Put], d, h.Next)
	case proto.PutBack:
		if r.Input == proto.HearUnpost {
			m.note(e, wire.TypeWithdrawn, d, h.Next)
		} else {
			m.note(e, wire.TypeWithdrawn, d, h.Present())
		}
	case proto.PutTakeBack:
		m.note(e, wire.TypeWithdraw, d, h.Present())
	case proto.PutConsumed:
		a.State, a.Status = wire.StateConsumed, abi.OK
		*m.slot(e, wire.TypeAck, abi.PayloadSize, a.Transaction).Ack() = a
	case proto.PutError:
		if d == abi.D2H && r.State == proto.DeviceOffered {
			a.Outstanding = end.size
		} else if found == abi.ErrSize {
			a.Outstanding = end.extra
		}
		*m.slot(e, wire.TypeError, abi.PayloadSize, a.Transaction).Ack() = a
	case proto.PutAborted:
		if !moves && d == abi.D2H {
			a.Outstanding = end.size
		} else if !moves {
			a.Outstanding = end.parked.Begin().Size
		}
		*m.slot(e, wire.TypeAborted, abi.PayloadSize, a.Transaction).Ack() = a
	case proto.PutGo, proto.PutMoved, proto.PutDone:
		m.reports(e, r.Put, a)
	case proto.PutDirect:
		m.slot(e, wire.TypeDirect, wire.Header(end.taken.Header).Length(), h.Present()).Payload = end.taken.Payload
	case proto.PutBegin:
		*m.slot(e, wire.TypeIndBegin, abi.PayloadSize, h.Present()).Begin() = wire.Begin{Transaction: h.Present(), Size: end.size}
	case proto.PutHalfClose:
		m.close(e, 1<<d)
	}
}

// reports puts a record of a transfer that moves, or has moved.
func (m *HostsModel) reports(e int, put proto.Put, a wire.Ack) {
	kind := wire.TypeAck
	a.Status = abi.OK
	switch put {
	case proto.PutGo:
		a.State = wire.StateReady
	case proto.PutMoved:
		a.State = wire.StateMoving
	default:
		a.State, kind = wire.StateDone, wire.TypeDone
	}
	*m.slot(e, kind, abi.PayloadSize, a.Transaction).Ack() = a
}

func (m *HostsModel) slot(e int, t wire.Type, length int, id uint64) *wire.Slot {
	end := &m.end[e]
	end.put = append(end.put, wire.Slot{Header: uint64(wire.MakeHeader(t, length, Epoch, uint16(id), Channel))})
	return &end.put[len(end.put)-1]
}

func (m *HostsModel) note(e int, t wire.Type, d abi.Direction, id uint64) {
	*m.slot(e, t, abi.PayloadSize, id).Note() = wire.Note{Transaction: id, Direction: uint32(d)}
}

func (m *HostsModel) close(e int, halves uint32) {
	g := hostsOpen.Generation
	*m.slot(e, wire.TypeClose, abi.PayloadSize, g).Close() = wire.Close{Halves: halves, Generation: g}
}

// DeliverOf gives the device a slot of a host. It takes the second host's slots first.
func (m *HostsModel) DeliverOf(host int, s *wire.Slot, late bool) error {
	m.late[host] = append(m.late[host], *s)
	if late {
		return nil
	}
	for _, host := range []int{1, 0} {
		for i := range m.late[host] {
			m.takes(host, &m.late[host][i])
		}
		m.late[host] = nil
	}
	m.run()
	return nil
}

// takes takes a slot of a host.
func (m *HostsModel) takes(host int, s *wire.Slot) {
	h, state := wire.Header(s.Header), m.end[host].state
	if h.Epoch() != Epoch || h.Channel() != Channel || state != proto.EndOpen && state != proto.EndAlone || !wellFormed(s) {
		return
	}
	switch h.Type() {
	case wire.TypeDirect, wire.TypeIndBegin:
		m.offers(host, s)
	case wire.TypeEager:
		if h.Length()&wire.ListD2H != 0 {
			m.gives(host, s)
		} else {
			m.offers(host, s)
		}
	case wire.TypeIndList:
		m.list(host, s)
	case wire.TypeAck, wire.TypeError:
		m.answers(host, s)
	case wire.TypeClose:
		m.closes(host, s.Close())
	default:
		m.notes(host, h.Type(), s.Note())
	}
}

// offers is DIRECT, IND_BEGIN or EAGER to the other host.
func (m *HostsModel) offers(e int, s *wire.Slot) {
	end, h := &m.end[e], wire.Header(s.Header)
	half := end.half[abi.H2D]
	direct := h.Type() == wire.TypeDirect
	if half.State != proto.DeviceIdle || direct && (h.Length() > abi.PayloadSize || h.Sequence() != uint16(half.Next)) ||
		!direct && s.Begin().Transaction != half.Next {
		return
	}
	in, status := proto.HearMessage, abi.OK
	switch h.Type() {
	case wire.TypeIndBegin:
		in, status = proto.HearBegin, checkBegin(s)
	case wire.TypeEager:
		in, status = proto.HearPages, eager.checkEager(s)
	}
	if status != abi.OK {
		in = proto.HearBadBegin
	}
	if status == abi.OK && half.Marks&(proto.EndShut|proto.EndClosed) == 0 {
		end.parked = *s
	}
	m.follow(e, abi.H2D, in, status)
}

// eager checks pages.
var eager = &DeviceModel{}

// gives is EAGER with pages for what the other host offers, or will.
func (m *HostsModel) gives(e int, s *wire.Slot) {
	end, given := &m.end[e], s.Eager()
	half, status := end.half[abi.D2H], eager.checkEager(s)
	switch offered := given.Transaction == half.Present() && half.State == proto.DeviceOffered; {
	case offered && status != abi.OK:
		m.follow(e, abi.D2H, proto.HearBadPages, status)
	case offered && end.size == given.Size && !m.isThere(e):
		m.follow(e, abi.D2H, proto.HearLate, 0)
	case offered && end.size == given.Size:
		m.follow(e, abi.D2H, proto.HearPages, 0)
	case !offered && status == abi.OK && given.Transaction == half.Next:
		if m.follow(e, abi.D2H, proto.HearPost, 0) {
			end.posted = given.Size
		}
	}
}

// list is IND_LIST.
func (m *HostsModel) list(e int, s *wire.Slot) {
	end, d := &m.end[e], abi.Direction(wire.Header(s.Header).Length()/wire.ListD2H&1)
	half := end.half[d]
	switch {
	case wire.Header(s.Header).Sequence() != uint16(half.Present()):
		return
	case d == abi.H2D && half.State == proto.DeviceOffered:
		if m.follow(e, d, proto.HearList, 0) && half.Marks&proto.EndListed == 0 {
			end.list = *s
		}
		return
	case half.State == proto.DeviceOffered && !m.isThere(e):
		m.follow(e, d, proto.HearLate, 0)
	case half.State == proto.DeviceOffered:
		m.follow(e, d, proto.HearList, 0)
	}
	if end.half[d].State == proto.DeviceMoving && !m.ends(e, d) && !m.isOver(e, d) {
		m.lists(e, d, s)
	}
}

// answers is ACK or ERROR for what the other host offers.
func (m *HostsModel) answers(e int, s *wire.Slot) {
	a := s.Ack()
	failed := wire.Header(s.Header).Type() == wire.TypeError
	if a.Direction != uint32(abi.D2H) || a.Transaction != m.end[e].half[abi.D2H].Present() || a.Status >= abi.StatusCount ||
		failed != (a.Status != abi.OK) {
		return
	}
	in := proto.HearAccept
	if failed {
		in = proto.HearRefuse
	}
	if m.follow(e, abi.D2H, in, a.Status) {
		m.end[1-e].extra = a.Outstanding
	}
}

// closes is CLOSE.
func (m *HostsModel) closes(e int, c *wire.Close) {
	if c.Generation != hostsOpen.Generation || c.Halves == 0 || c.Halves > 1<<abi.H2D|1<<abi.D2H {
		return
	}
	end := &m.end[e]
	for d := range end.half {
		if c.Halves>>d&1 != 0 {
			m.follow(e, abi.Direction(d), proto.HearClose, 0)
		}
	}
	m.over(e)
}

// notes takes what a host says of a transaction under way.
func (m *HostsModel) notes(e int, t wire.Type, n *wire.Note) {
	if n.Direction > uint32(abi.D2H) {
		return
	}
	d, id := abi.Direction(n.Direction), n.Transaction
	if t == wire.TypeOffer {
		d = abi.H2D
	}
	half := m.end[e].half[d]
	in, ok := map[wire.Type]proto.DeviceInput{
		wire.TypeWithdraw: proto.HearWithdraw, wire.TypeFin: proto.HearFin, wire.TypeAbort: proto.HearAbort,
		wire.TypeWithdrawn: proto.HearWithdrawn, wire.TypeOffer: proto.HearOffer, wire.TypeReady: proto.HearReady,
	}[t]
	want := half.Present()
	switch {
	case t == wire.TypeOffer, t == wire.TypeReady && d == abi.D2H:
		want = half.Next
	case t == wire.TypeWithdraw && d == abi.D2H:
		in, want = proto.HearUnpost, half.Next
	case t == wire.TypeFin:
		ok = half.State == proto.DeviceCommit || m.end[e].size == 0
	}
	if ok && id == want && !m.isOver(e, d) {
		m.follow(e, d, in, 0)
	}
}
