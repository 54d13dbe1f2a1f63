package scripted

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// eagerLocked handles EAGER: an offer with its pages, or pages for one of the device's. Must hold mu.
func (s *Device) eagerLocked(c *channel, m *wire.Slot) {
	if s.shape.Eager == 0 {
		s.accuseLocked("message of type %d", wire.TypeEager)
		s.dropped.Add(1)
		return
	}
	if wire.Header(m.Header).Length()&wire.ListD2H == 0 {
		s.offeredLocked(c, m)
		return
	}
	e, r := m.Eager(), c.wr
	status := s.checkEagerLocked(m)
	switch offered := r != nil && r.sent && r.id == e.Transaction; {
	case wire.Header(m.Header).Sequence() != uint16(e.Transaction):
		s.accuseLocked("pages for transfer %d with sequence %d", e.Transaction, wire.Header(m.Header).Sequence())
	case offered && r.verb == writeTransfer && status != abi.OK:
		s.endEagerOutLocked(c, status, 0)
	case offered && r.verb == writeTransfer && e.Size == uint64(len(r.mem)):
		s.giveEagerLocked(c, m)
	case offered: // they crossed it, and do not fit
	case status == abi.OK && e.Transaction == c.next[abi.D2H]:
		if c.post != nil {
			s.accuseLocked("channel %d: pages posted twice", c.id)
		}
		post := *m
		c.post = &post
	default:
		s.dropped.Add(1)
	}
}

// checkEagerLocked accuses the host of pages that make no sense. Must hold mu.
func (s *Device) checkEagerLocked(m *wire.Slot) abi.Status {
	e, length := m.Eager(), wire.Header(m.Header).Length()
	n := length & wire.ListCountMask
	if n > s.shape.Eager || e.Size > wire.EagerBytes {
		s.accuseLocked("eager transfer of %d bytes in %d entries", e.Size, n)
		return abi.ErrTooLarge
	}
	sum, ok := s.sumEntriesLocked(wire.Header(m.Header), e.Entry[:], e.Size)
	if !ok || length&wire.ListSum != 0 || sum != e.Size || length&wire.ListD2H != 0 && e.TimeoutNS != 0 {
		s.accuseLocked("eager transfer of %d bytes with entries for %d, timeout %d", e.Size, sum, e.TimeoutNS)
		return abi.ErrProto
	}
	return abi.OK
}

// takeEagerLocked moves an eager transfer to the process that reads it, and commits it. Must hold mu.
func (s *Device) takeEagerLocked(c *channel) {
	o := c.in
	if s.fenced {
		return
	}
	status, entry := s.copyEntriesLocked(&o.move, o.eager, o.eager.Eager().Entry[:], abi.H2D)
	c.in = nil
	if status != abi.OK {
		s.recordLocked(c, wire.TypeError, wire.Ack{Transaction: o.id, State: wire.StateFailed, Status: status,
			Processed: o.move.processed, Outstanding: o.size - o.move.processed, FaultIndex: entry})
		s.endReadLocked(c, result{status: status})
		return
	}
	s.recordLocked(c, wire.TypeAck, wire.Ack{Transaction: o.id, State: wire.StateConsumed, Processed: o.size})
	s.endReadLocked(c, result{msg: o.move.mem})
}

// giveEagerLocked moves what a process writes to the pages of the host, and commits it. Must hold mu.
func (s *Device) giveEagerLocked(c *channel, m *wire.Slot) {
	r := c.wr
	if s.fenced {
		return
	}
	r.began, r.move.mem = true, r.mem
	status, entry := s.copyEntriesLocked(&r.move, m, m.Eager().Entry[:], abi.D2H)
	s.endEagerOutLocked(c, status, entry)
}

// endEagerOutLocked ends an eager transfer to the host. Must hold mu.
func (s *Device) endEagerOutLocked(c *channel, status abi.Status, entry uint32) {
	r := c.wr
	a := wire.Ack{Transaction: r.id, Direction: uint32(abi.D2H), State: wire.StateConsumed, Processed: r.move.processed}
	t := wire.TypeAck
	if status != abi.OK {
		t, a.State, a.Status, a.FaultIndex = wire.TypeError, wire.StateFailed, status, entry
		a.Outstanding = uint64(len(r.mem)) - a.Processed
	}
	s.recordLocked(c, t, a)
	s.endWriteLocked(c, status)
}

// unpostLocked gives back the pages that the host posted. Must hold mu.
func (s *Device) unpostLocked(c *channel, id uint64) {
	switch {
	case c.post != nil && id == c.next[abi.D2H]:
		c.post = nil
		s.noteToHostLocked(c, wire.TypeWithdrawn, abi.D2H, id)
	case id != c.next[abi.D2H]-1: // else something was offered meanwhile, or the bytes have moved
		s.dropped.Add(1)
	}
}
