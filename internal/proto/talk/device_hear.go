package talk

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Deliver gives the device a slot of the host.
func (m *DeviceModel) Deliver(s *wire.Slot) error {
	h := wire.Header(s.Header)
	if h.Epoch() != Epoch || h.Channel() != Channel || m.closed || !wellFormed(s) {
		return nil
	}
	id, d := s.Payload[0], abi.Direction(s.Note().Direction)
	switch h.Type() {
	case wire.TypeDirect:
		m.message(s, proto.HearMessage, h.Length())
	case wire.TypeCall:
		m.message(s, proto.HearCall, h.Length()&^wire.CallNow)
	case wire.TypeIndBegin:
		m.begin(s, checkBegin(s))
	case wire.TypeEager:
		if h.Length()&wire.ListD2H != 0 {
			m.post(s)
		} else {
			m.begin(s, m.checkEager(s))
		}
	case wire.TypeIndList:
		d = abi.Direction(h.Length() / wire.ListD2H)
		if h.Sequence() == uint16(m.half[d].Present()) {
			m.onList(d, s)
		}
	case wire.TypeAck, wire.TypeError:
		m.onAnswer(s)
	case wire.TypeClose:
		m.onClose(s.Close())
	default:
		if d <= abi.D2H {
			m.onNote(h.Type(), d, id)
		}
	}
	m.read() // a process that waits
	m.over()
	return nil
}

// wellFormed reports whether a slot is whole.
func wellFormed(s *wire.Slot) bool {
	h := wire.Header(s.Header)
	id := s.Payload[0]
	switch h.Type() {
	case wire.TypeDirect, wire.TypeCall, wire.TypeIndList:
		return true
	case wire.TypeClose:
		id = s.Payload[1]
	}
	if h.Sequence() != uint16(id) || h.Type() != wire.TypeEager && h.Length() != abi.PayloadSize {
		return false
	}
	switch h.Type() {
	case wire.TypeEager, wire.TypeIndBegin, wire.TypeAck, wire.TypeError:
		return true
	}
	return !reserved(s, 2)
}

// reserved reports whether a word of the payload that must be zero is not.
func reserved(s *wire.Slot, from int) bool {
	for _, w := range s.Payload[from:] {
		if w != 0 {
			return true
		}
	}
	return false
}

// message is DIRECT or CALL, of so many bytes.
func (m *DeviceModel) message(s *wire.Slot, in proto.DeviceInput, length int) {
	h := wire.Header(s.Header)
	if m.half[abi.H2D].State != proto.DeviceIdle || length > abi.PayloadSize || h.Sequence() != uint16(m.half[abi.H2D].Next) {
		return
	}
	m.length, m.timed = uint64(length), m.engine.hasty || in == proto.HearCall && h.Length()&wire.CallNow != 0
	m.follow(abi.H2D, in, 0)
}

// begin is IND_BEGIN, or EAGER to the device.
func (m *DeviceModel) begin(s *wire.Slot, status abi.Status) {
	b, h := s.Begin(), &m.half[abi.H2D]
	if h.State != proto.DeviceIdle || b.Transaction != h.Next {
		return
	}
	in := proto.HearBegin
	switch {
	case status != abi.OK:
		in = proto.HearBadBegin
	case wire.Header(s.Header).Type() == wire.TypeEager:
		in = proto.HearPages
	}
	m.transfer[abi.H2D] = moving{size: b.Size}
	m.timed = m.engine.hasty || b.TimeoutNS != 0
	m.follow(abi.H2D, in, status)
}

// post is EAGER for d2h.
func (m *DeviceModel) post(s *wire.Slot) {
	e, h := s.Eager(), &m.half[abi.D2H]
	status := m.checkEager(s)
	switch offered := e.Transaction == h.Present() && h.State == proto.DeviceOffered; {
	case offered && status != abi.OK:
		m.follow(abi.D2H, proto.HearBadPages, status)
	case offered && m.transfer[abi.D2H].size == e.Size:
		if m.follow(abi.D2H, proto.HearPages, 0) {
			m.move(abi.D2H, e.Size)
		}
	case !offered && status == abi.OK && e.Transaction == h.Next:
		if m.follow(abi.D2H, proto.HearPost, 0) {
			m.posted = e.Size
		}
	}
}

// onList is IND_LIST.
func (m *DeviceModel) onList(d abi.Direction, s *wire.Slot) {
	switch state := m.half[d].State; {
	case state == proto.DeviceOffered && d == abi.H2D:
		if m.follow(d, proto.HearList, 0) && m.half[d].State == proto.DeviceOffered {
			m.list, m.kept = *s, true
		}
	case state == proto.DeviceOffered:
		if m.follow(d, proto.HearList, 0) {
			m.lists(d, s)
		}
	case state == proto.DeviceMoving || state == proto.DeviceEager:
		m.lists(d, s)
	}
}

// lists takes a list of a transfer under way.
func (m *DeviceModel) lists(d abi.Direction, s *wire.Slot) {
	t, g := &m.transfer[d], s.Gather()
	next := g.Number() == uint16(t.lists)
	if !next && t.repeat {
		return
	}
	sum, ok := m.checkList(t, s)
	if !ok || !next || g.Outstanding() != t.size-t.received-sum || t.lists-t.finished >= m.open.Window {
		m.follow(d, proto.HearBadList, 0)
		return
	}
	in := proto.HearList
	if t.lists == 0 && d == abi.H2D && sum < t.size && !t.repeat {
		in = proto.HearFirstList
	}
	if !m.follow(d, in, 0) {
		return
	}
	t.repeat = false
	t.lists++
	t.received += sum
	m.pump(d)
}

// onAnswer is ACK or ERROR for what the process offers.
func (m *DeviceModel) onAnswer(s *wire.Slot) {
	a, h := s.Ack(), &m.half[abi.D2H]
	failed := wire.Header(s.Header).Type() == wire.TypeError
	if a.Direction != uint32(abi.D2H) || a.Transaction != h.Present() || a.Status >= abi.StatusCount || failed != (a.Status != abi.OK) {
		return
	}
	if failed {
		status := a.Status
		if status == abi.ErrWithdrawn {
			status = abi.ErrStopped // as if the process had been told to stop
		}
		m.follow(abi.D2H, proto.HearRefuse, status)
	} else {
		m.follow(abi.D2H, proto.HearAccept, 0)
	}
}

// onClose is CLOSE.
func (m *DeviceModel) onClose(c *wire.Close) {
	if c.Generation != m.open.Generation || c.Halves == 0 || c.Halves > 1<<abi.H2D|1<<abi.D2H {
		return
	}
	for d := range m.half {
		if c.Halves>>d&1 != 0 {
			m.follow(abi.Direction(d), proto.HearClose, 0)
		}
	}
}

// onNote takes what the host says of a transaction under way.
func (m *DeviceModel) onNote(t wire.Type, d abi.Direction, id uint64) {
	h := &m.half[d]
	ins := map[wire.Type]proto.DeviceInput{
		wire.TypeWithdraw: proto.HearWithdraw, wire.TypeFin: proto.HearFin,
		wire.TypeAbort: proto.HearAbort, wire.TypeWithdrawn: proto.HearWithdrawn,
	}
	in, ok := ins[t]
	switch {
	case t == wire.TypeOffer:
		d, h = abi.H2D, &m.half[abi.H2D]
		in, ok = proto.HearOffer, id == h.Next
	case t == wire.TypeWithdraw && d == abi.D2H:
		in, ok = proto.HearUnpost, id == h.Next
	case t == wire.TypeFin && h.State == proto.DeviceOffered:
		ok = id == h.Present() && m.transfer[d].size == 0
	default:
		ok = ok && id == h.Present()
	}
	if ok {
		m.follow(d, in, 0)
	}
}

// checkBegin returns what is wrong with an IND_BEGIN.
func checkBegin(s *wire.Slot) abi.Status {
	switch {
	case reserved(s, 3):
		return abi.ErrProto
	case s.Begin().Size>>48 != 0:
		return abi.ErrTooLarge
	}
	return abi.OK
}

// checkEager returns what is wrong with an EAGER.
func (m *DeviceModel) checkEager(s *wire.Slot) abi.Status {
	e, length := s.Eager(), wire.Header(s.Header).Length()
	n := length & wire.ListCountMask
	if n > wire.EagerEntries || e.Size > wire.EagerBytes {
		return abi.ErrTooLarge
	}
	if length&wire.ListSum != 0 || length&wire.ListD2H != 0 && e.TimeoutNS != 0 || !m.entries(e.Entry[:], length, n, e.Size, e.Size) {
		return abi.ErrProto
	}
	return abi.OK
}

// checkList returns the bytes of a list; false if it breaks the rules.
func (m *DeviceModel) checkList(t *moving, s *wire.Slot) (sum uint64, ok bool) {
	g, length := s.Gather(), wire.Header(s.Header).Length()
	n, left := length&wire.ListCountMask, t.size-t.received
	if summed := length&wire.ListSum != 0; t.lists == 0 {
		t.sum = summed
	} else if t.sum != summed {
		return 0, false
	}
	if n == 0 || n > wire.ListEntries {
		return 0, false
	}
	sum = left - min(left, g.Outstanding())
	return sum, sum > 0 && m.entries(g.Entry[:], length, n, sum, left)
}

// entries reports whether entries have so many bytes, of those left, and break no rule.
func (m *DeviceModel) entries(all []wire.Entry, length, n int, bytes, left uint64) bool {
	sum := uint64(0)
	for i, e := range all {
		if i >= n {
			if e != 0 {
				return false
			}
			continue
		}
		address, size := wire.Header(0).Span(e)
		if length&wire.ListRuns != 0 {
			address, size = e.RunAddress(), e.RunLength()
			if rest := left - sum; size > rest && size-rest < abi.PageSize {
				size = rest
			}
			if m.open.Runs == 0 || address+size > 1<<48 {
				return false
			}
		} else if address%abi.PageSize+size > abi.PageSize {
			return false
		}
		if size == 0 || size > left-sum {
			return false
		}
		sum += size
	}
	return sum == bytes
}
