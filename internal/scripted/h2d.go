package scripted

import (
	"hash/crc32"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// offeredLocked handles DIRECT, IND_BEGIN and an EAGER that is an offer. Must hold mu.
func (s *Device) offeredLocked(c *channel, m *wire.Slot) {
	h := wire.Header(m.Header)
	o := &offer{id: c.next[abi.H2D], direct: h.Type() == wire.TypeDirect}
	timeout := s.shape.TargetTimeout
	if o.direct {
		if h.Length() > abi.PayloadSize {
			s.accuseLocked("message of %d bytes", h.Length())
			return
		}
		o.size = uint64(h.Length())
		o.msg = append([]byte{}, m.Bytes()[:h.Length()]...)
	} else {
		b := m.Begin()
		o.size = b.Size
		if host := time.Duration(b.TimeoutNS); host > 0 && (timeout == 0 || host < timeout) {
			timeout = host
		}
		if h.Type() == wire.TypeEager {
			pages := *m
			o.eager = &pages
		}
		if b.Transaction != o.id {
			s.accuseLocked("channel %d: transfer %d, expected %d", c.id, b.Transaction, o.id)
			return
		}
	}
	if h.Sequence() != uint16(o.id) {
		s.accuseLocked("channel %d: sequence %d, expected %d", c.id, h.Sequence(), o.id)
		s.dropped.Add(1)
		return
	}
	if c.in != nil {
		s.accuseLocked("channel %d: offer %d while %d is pending", c.id, o.id, c.in.id)
		return
	}
	if c.closed&wire.ParkH2D != 0 {
		s.accuseLocked("channel %d: offer on a closed half", c.id)
	}
	c.next[abi.H2D]++
	c.live, c.askReady, c.in = true, false, o
	if timeout > 0 && c.id != abi.TargetControl {
		o.deadline = time.Now().Add(timeout)
		s.cur.timed[c] = struct{}{}
	}
	s.admitLocked(c, m)
}

// admitLocked brings an offer to its reader, or refuses it. Must hold mu.
func (s *Device) admitLocked(c *channel, m *wire.Slot) {
	switch o := c.in; {
	case o.eager != nil && s.checkEagerLocked(o.eager) != abi.OK:
		s.failInLocked(c, s.checkEagerLocked(o.eager), o.size)
	case !o.direct && o.eager == nil && m.Payload[3]|m.Payload[4]|m.Payload[5]|m.Payload[6] != 0:
		s.accuseLocked("channel %d: offer with reserved bits", c.id)
		s.failInLocked(c, abi.ErrProto, o.size)
	case o.size >= sizeLimit:
		s.failInLocked(c, abi.ErrTooLarge, o.size)
	case c.ended&wire.ParkH2D != 0:
		s.failInLocked(c, abi.ErrClosed, o.size)
	default:
		s.matchLocked(c)
	}
}

// sizeLimit is what no transfer reaches, in bytes: lists count 48 bits.
const sizeLimit = 1 << 48

// matchLocked brings an offer and a reader together. Must hold mu.
func (s *Device) matchLocked(c *channel) {
	o, r := c.in, c.rd
	if r == nil {
		return
	}
	if o == nil {
		if c.askReady {
			c.askReady = false
			s.readyLocked(c)
		}
		return
	}
	if o.active {
		return
	}
	switch {
	case r.verb == look:
		s.endReadLocked(c, result{direct: o.direct, size: o.size})
	case r.verb == readAny && !o.direct:
		if r.mem = r.alloc(o.size); r.mem == nil && o.size > 0 {
			s.failInLocked(c, abi.ErrNoMemory, o.size)
			s.endReadLocked(c, result{status: abi.ErrNoMemory})
			return
		}
		s.acceptLocked(c)
	case r.verb != readAny && (r.verb == readMessage) != o.direct:
		s.failInLocked(c, abi.ErrKind, o.size)
		s.endReadLocked(c, result{status: abi.ErrKind})
	case o.direct && r.mem != nil && len(o.msg) > len(r.mem):
		s.endReadLocked(c, result{status: abi.ErrTooLarge}) // it stays
	case o.direct:
		c.in = nil
		s.recordLocked(c, wire.TypeAck, wire.Ack{Transaction: o.id, State: wire.StateConsumed})
		s.endReadLocked(c, result{msg: o.msg, direct: true})
	case uint64(len(r.mem)) != o.size:
		s.failInLocked(c, abi.ErrSize, uint64(len(r.mem)))
		s.endReadLocked(c, result{status: abi.ErrSize})
	default:
		s.acceptLocked(c)
	}
}

// failInLocked refuses the host's offer or ends its transfer. Must hold mu.
func (s *Device) failInLocked(c *channel, why abi.Status, outstanding uint64) {
	o := c.in
	c.in = nil
	s.recordLocked(c, wire.TypeError, wire.Ack{Transaction: o.id, State: wire.StateFailed, Status: why,
		Processed: o.move.processed, Outstanding: outstanding, Lists: o.move.lists})
}

// acceptLocked starts a transfer whose ends agree. Must hold mu.
func (s *Device) acceptLocked(c *channel) {
	o := c.in
	o.active, o.move.mem = true, c.rd.mem
	if o.eager != nil {
		s.takeEagerLocked(c)
		return
	}
	if o.size == 0 {
		s.doneLocked(c, abi.H2D, o.id, &o.move)
		return
	}
	if early := o.early; early != nil {
		o.early = nil
		s.sourceLocked(c, early)
	}
}

// sourceLocked handles a gather list of a transfer to the device. Must hold mu.
func (s *Device) sourceLocked(c *channel, m *wire.Slot) {
	o := c.in
	if o == nil || o.direct || wire.Header(m.Header).Sequence() != uint16(o.id) {
		s.dropped.Add(1)
		return
	}
	if !o.active {
		if o.early != nil || o.eager != nil || m.Gather().Number() != 0 {
			s.accuseLocked("channel %d: list %d before READY", c.id, m.Gather().Number())
			s.failInLocked(c, abi.ErrProto, o.size)
			return
		}
		early := *m
		o.early = &early
		return
	}
	if !o.ready && m.Gather().Outstanding() > 0 && s.checkListLocked(&o.move, m) == abi.OK {
		o.ready = true
		s.recordLocked(c, wire.TypeAck, wire.Ack{Transaction: o.id, State: wire.StateReady, Outstanding: o.size})
	}
	if s.fenced || s.lostLocked(c, abi.H2D, o.id, &o.move, m.Gather()) {
		return
	}
	status, entry := s.copyListLocked(&o.move, m, abi.H2D)
	if status != abi.OK {
		a := wire.Ack{Transaction: o.id, State: wire.StateFailed, Status: status, Processed: o.move.processed,
			Outstanding: o.size - o.move.processed, Lists: o.move.lists, FaultIndex: entry}
		c.in = nil
		s.recordLocked(c, wire.TypeError, a)
		s.endReadLocked(c, result{status: status})
		return
	}
	s.progressLocked(c, abi.H2D, o.id, &o.move)
}

// lostLocked reports whether a list is not the one that the device waits for,
// and asks for that once. Must hold mu.
func (s *Device) lostLocked(c *channel, d abi.Direction, id uint64, mv *move, g *wire.Gather) bool {
	if mv.repeat && g.Number() != uint16(mv.lists) {
		return true
	}
	mv.repeat = s.hooks.Lose != nil && s.hooks.Lose(d, mv.lists)
	if mv.repeat {
		mv.acked = mv.lists
		s.recordLocked(c, wire.TypeAck, wire.Ack{Transaction: id, Direction: uint32(d), State: wire.StateRepeat,
			Lists: mv.lists, Processed: mv.processed, Outstanding: uint64(len(mv.mem)) - mv.processed})
	}
	return mv.repeat
}

// progressLocked acknowledges lists, at least every half window. Must hold mu.
func (s *Device) progressLocked(c *channel, d abi.Direction, id uint64, mv *move) {
	size := uint64(len(mv.mem))
	if mv.processed == size {
		s.doneLocked(c, d, id, mv)
		return
	}
	if mv.lists-mv.acked >= max(1, uint32(s.shape.Window)/2) {
		mv.acked = mv.lists
		s.recordLocked(c, wire.TypeAck, wire.Ack{Transaction: id, Direction: uint32(d), State: wire.StateMoving,
			Lists: mv.lists, Processed: mv.processed, Outstanding: size - mv.processed})
	}
}

// castagnoli is the polynomial of checksums of transfers.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (s *Device) doneLocked(c *channel, d abi.Direction, id uint64, mv *move) {
	mv.done = true
	sum := uint32(0)
	if mv.sum {
		sum = crc32.Checksum(mv.mem, castagnoli)
	}
	s.recordLocked(c, wire.TypeDone, wire.Ack{Transaction: id, Direction: uint32(d), State: wire.StateDone,
		Lists: mv.lists, Processed: uint64(len(mv.mem)), FaultIndex: sum})
}

// finishInLocked handles FIN of a transfer to the device. Must hold mu.
func (s *Device) finishInLocked(c *channel, id uint64) {
	if c.in == nil || c.in.id != id || !c.in.move.done {
		s.dropped.Add(1)
		return
	}
	mem := c.in.move.mem
	c.in = nil
	s.endReadLocked(c, result{msg: mem})
}

func (s *Device) withdrawLocked(c *channel, id uint64) {
	if c.in == nil || c.in.id != id || c.in.active {
		s.dropped.Add(1)
		return
	}
	c.in = nil
	s.noteToHostLocked(c, wire.TypeWithdrawn, abi.H2D, id)
}

func (s *Device) abortInLocked(c *channel, id uint64) {
	o := c.in
	if o == nil || o.id != id || o.direct {
		s.dropped.Add(1)
		return
	}
	c.in = nil
	s.recordLocked(c, wire.TypeAborted, wire.Ack{Transaction: id, State: wire.StateFailed, Status: abi.ErrAborted,
		Processed: o.move.processed, Outstanding: o.size - o.move.processed, Lists: o.move.lists})
	if o.active {
		s.endReadLocked(c, result{status: abi.ErrAborted})
	}
}

// askLocked handles OFFER. Must hold mu.
func (s *Device) askLocked(c *channel, id uint64) {
	if id != c.next[abi.H2D] {
		s.dropped.Add(1)
		return
	}
	switch c.askReady = true; {
	case c.ended&wire.ParkH2D != 0:
		c.askReady = false
		s.readyLocked(c) // to be refused
	case c.in == nil:
		s.matchLocked(c)
	}
}

func (s *Device) readyLocked(c *channel) {
	s.noteToHostLocked(c, wire.TypeReady, abi.H2D, c.next[abi.H2D])
}

func (s *Device) noteToHostLocked(c *channel, t wire.Type, d abi.Direction, id uint64) {
	var m wire.Slot
	*m.Note() = wire.Note{Transaction: id, Direction: uint32(d)}
	m.Header = s.header(t, abi.PayloadSize, id, c.id)
	s.emitLocked(m)
}

func (s *Device) endReadLocked(c *channel, r result) {
	if c.rd != nil {
		if c.seen = 0; r.status == abi.OK {
			c.seen = c.gen
		}
		c.rd.end(r)
		c.rd = nil
	}
}
