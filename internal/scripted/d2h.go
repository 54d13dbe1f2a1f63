package scripted

import (
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// offerOutLocked offers what a process wants to write. Must hold mu.
func (s *Device) offerOutLocked(c *channel) {
	r := c.wr
	if r == nil || r.sent || !c.live || c.closed&wire.ParkD2H != 0 {
		return
	}
	r.sent, r.id = true, c.next[abi.D2H]
	c.next[abi.D2H]++
	if post := c.post; post != nil {
		c.post = nil // if it does not fit the host finds that
		if r.verb == writeTransfer && post.Eager().Size == uint64(len(r.mem)) {
			s.giveEagerLocked(c, post)
			return
		}
	}
	var m wire.Slot
	if r.verb == writeMessage {
		copy(m.Bytes()[:], r.mem)
		m.Header = s.header(wire.TypeDirect, len(r.mem), r.id, c.id)
	} else {
		*m.Begin() = wire.Begin{Transaction: r.id, Size: uint64(len(r.mem))}
		m.Header = s.header(wire.TypeIndBegin, abi.PayloadSize, r.id, c.id)
	}
	s.emitLocked(m)
}

// answeredLocked handles ACK and ERROR of the host. Must hold mu.
func (s *Device) answeredLocked(c *channel, m *wire.Slot) {
	a, r := *m.Ack(), c.wr
	if abi.Direction(a.Direction) != abi.D2H {
		s.accuseLocked("completion record of the host for h2d")
		return
	}
	if r == nil || !r.sent || a.Transaction != r.id {
		s.dropped.Add(1)
		return
	}
	if wire.Header(m.Header).Type() == wire.TypeError {
		if a.Status == abi.OK || a.Status >= abi.StatusCount {
			s.accuseLocked("error with status %d", a.Status)
		}
		s.endWriteLocked(c, a.Status)
		return
	}
	if r.verb != writeMessage || a.State != wire.StateConsumed {
		s.accuseLocked("ack with state %d", a.State)
		return
	}
	s.endWriteLocked(c, abi.OK)
}

// destinationLocked handles a gather list of a transfer to the host. Must hold
// mu.
func (s *Device) destinationLocked(c *channel, m *wire.Slot) {
	r := c.wr
	if r == nil || !r.sent || r.verb != writeTransfer || wire.Header(m.Header).Sequence() != uint16(r.id) {
		s.dropped.Add(1)
		if last := c.next[abi.D2H] - 1; c.proc == nil && wire.Header(m.Header).Sequence() == uint16(last) {
			s.recordLocked(c, wire.TypeError, wire.Ack{Transaction: last, Direction: uint32(abi.D2H),
				State: wire.StateFailed, Status: abi.ErrClosed})
		}
		return
	}
	r.began, r.move.mem = true, r.mem
	if s.fenced || s.lostLocked(c, abi.D2H, r.id, &r.move, m.Gather()) {
		return
	}
	status, entry := s.copyListLocked(&r.move, m, abi.D2H)
	if status != abi.OK {
		s.recordLocked(c, wire.TypeError, wire.Ack{Transaction: r.id, Direction: uint32(abi.D2H),
			State: wire.StateFailed, Status: status, Processed: r.move.processed,
			Outstanding: uint64(len(r.mem)) - r.move.processed, Lists: r.move.lists, FaultIndex: entry})
		s.endWriteLocked(c, status)
		return
	}
	s.progressLocked(c, abi.D2H, r.id, &r.move)
}

func (s *Device) finishOutLocked(c *channel, id uint64) {
	r := c.wr
	if r == nil || !r.sent || r.id != id || r.verb != writeTransfer {
		s.dropped.Add(1)
		return
	}
	if !r.move.done && len(r.mem) > 0 {
		s.accuseLocked("channel %d: FIN before DONE", c.id)
		return
	}
	s.endWriteLocked(c, abi.OK)
}

func (s *Device) abortOutLocked(c *channel, id uint64) {
	r := c.wr
	if r == nil || !r.sent || r.id != id || r.verb != writeTransfer {
		s.dropped.Add(1)
		return
	}
	s.recordLocked(c, wire.TypeAborted, wire.Ack{Transaction: id, Direction: uint32(abi.D2H),
		State: wire.StateFailed, Status: abi.ErrAborted, Processed: r.move.processed,
		Outstanding: uint64(len(r.mem)) - r.move.processed, Lists: r.move.lists})
	s.endWriteLocked(c, abi.ErrAborted)
}

func (s *Device) endWriteLocked(c *channel, why abi.Status) {
	if c.wr != nil {
		c.wr.end(result{status: why})
		c.wr = nil
	}
}

// copyListLocked checks a gather list against the ledger and moves its bytes.
// On an error it names the entry. Must hold mu.
func (s *Device) copyListLocked(mv *move, m *wire.Slot, d abi.Direction) (abi.Status, uint32) {
	if status := s.checkListLocked(mv, m); status != abi.OK {
		return status, 0
	}
	status, entry := s.copyEntriesLocked(mv, m, m.Gather().Entry[:], d)
	if status == abi.OK {
		mv.lists++
	}
	return status, entry
}

// copyEntriesLocked moves the bytes of the entries in use of a message. On an error it names the
// entry. Must hold mu.
func (s *Device) copyEntriesLocked(mv *move, m *wire.Slot, entries []wire.Entry, d abi.Direction) (abi.Status, uint32) {
	h := wire.Header(m.Header)
	for i, e := range entries[:h.Length()&wire.ListCountMask] {
		address, bytes := h.Span(e)
		bytes = min(bytes, uint64(len(mv.mem))-mv.processed) // the last run
		if !s.moveLocked(mv.mem[mv.processed:][:bytes], address, d) {
			return abi.ErrDMA, uint32(i)
		}
		mv.processed += bytes
		s.cur.moved += bytes
	}
	return abi.OK, 0
}

// movePart is how much the device moves before it sees whether a heartbeat is due, in
// bytes: a run may take longer than that may be late.
const movePart = 1 << 20

// moveLocked moves bytes between device memory and host memory at a bus address; false
// if some of it is out of reach. Must hold mu.
func (s *Device) moveLocked(mem []byte, address uint64, d abi.Direction) bool {
	for part := range slices.Chunk(mem, movePart) {
		if !s.host.Move(part, address, d) {
			return false
		}
		address += uint64(len(part))
		s.beatLocked(time.Now(), true)
	}
	return true
}

// checkListLocked accuses the host of a list that is not its next one. Must
// hold mu.
func (s *Device) checkListLocked(mv *move, m *wire.Slot) abi.Status {
	h, g := wire.Header(m.Header), m.Gather()
	n := h.Length() & wire.ListCountMask
	left := uint64(len(mv.mem)) - mv.processed
	sum, ok := s.sumEntriesLocked(h, g.Entry[:], left)
	if !ok {
		return abi.ErrProto
	}
	if summed := h.Length()&wire.ListSum != 0; mv.lists == 0 {
		mv.sum = summed
	} else if mv.sum != summed {
		s.accuseLocked("list %d asks for a checksum, or not, unlike list 0", mv.lists)
		return abi.ErrProto
	}
	if n == 0 || n > wire.ListEntries || g.Number() != uint16(mv.lists) || g.Outstanding() != left-sum {
		s.accuseLocked("list %d with %d entries, %d bytes, %d outstanding; expected list %d with %d left",
			g.Number(), n, sum, g.Outstanding(), mv.lists, left)
		return abi.ErrProto
	}
	return abi.OK
}

// sumEntriesLocked returns the bytes of the entries in use, of which left are to come; false if one of
// them, or of the rest, is not as it must be. Must hold mu.
func (s *Device) sumEntriesLocked(h wire.Header, entries []wire.Entry, left uint64) (sum uint64, ok bool) {
	n := h.Length() & wire.ListCountMask
	for i, e := range entries {
		if i >= n && e != 0 {
			s.accuseLocked("%d entries, and entry %d is set", n, i)
			return 0, false
		}
		if i < n {
			bytes, ok := s.entryLocked(h, e, left-sum)
			if !ok {
				return 0, false
			}
			sum += bytes
		}
	}
	return sum, true
}

// entryLocked returns the bytes of an entry, of which left are to come. It accuses the host of one
// that crosses its page, is a run though nobody agreed on those, or ends after the transfer. Must hold mu.
func (s *Device) entryLocked(h wire.Header, e wire.Entry, left uint64) (bytes uint64, ok bool) {
	address, bytes := h.Span(e)
	if h.Length()&wire.ListRuns != 0 {
		ok = s.shape.Runs != 0 && address+bytes <= 1<<48
		if bytes > left && bytes-left < abi.PageSize {
			bytes = left // the last one ends in its last page
		}
	} else {
		ok = address%abi.PageSize+bytes <= abi.PageSize
	}
	if !ok || bytes > left || left == 0 {
		s.accuseLocked("entry of %d bytes at %#x with %d left, length %#x", bytes, address, left, h.Length())
		return 0, false
	}
	return bytes, true
}

// copyHost moves bytes between device memory and host memory; false if a page
// cannot be reached.
func copyHost(mem []byte, host uintptr, d abi.Direction) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	address := *(*unsafe.Pointer)(unsafe.Pointer(&host))
	if d == abi.H2D {
		moveBytes(unsafe.Pointer(&mem[0]), address, len(mem))
	} else {
		moveBytes(address, unsafe.Pointer(&mem[0]), len(mem))
	}
	return true
}

// moveBytes copies as a DMA engine does: unseen by the race detector, which
// knows nothing of the mailbox's ordering.
//
//go:norace
//go:nocheckptr
func moveBytes(to, from unsafe.Pointer, n int) {
	const chunk = 256
	i := 0
	for ; i+chunk <= n; i += chunk {
		*(*[chunk]byte)(unsafe.Add(to, i)) = *(*[chunk]byte)(unsafe.Add(from, i))
	}
	for ; i < n; i++ {
		*(*byte)(unsafe.Add(to, i)) = *(*byte)(unsafe.Add(from, i))
	}
}
