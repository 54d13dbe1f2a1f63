package scripted

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// channel is the device's end of one channel.
type channel struct {
	id       uint32
	open     bool // the host subscribed
	live     bool // the host knows it: offers may be put
	gen      uint64
	seen     uint64     // generation that the process last took something from
	closed   uint32     // halves the host closed
	ended    uint32     // halves the device closed
	next     [2]uint64  // next transaction id, by direction
	in       *offer     // the host's offer or its active transfer
	rd       *request   // a process that waits to read
	wr       *request   // a process that waits to write
	askReady bool       // an OFFER is pending
	post     *wire.Slot // pages of the host for the next transfer to it
	proc     *process
	port     int
}

// offer is what the host holds ready.
type offer struct {
	id       uint64
	size     uint64
	direct   bool
	msg      []byte
	deadline time.Time
	early    *wire.Slot // list 0, if it arrived before the target
	active   bool
	ready    bool       // the host was asked to send the lists after the first
	eager    *wire.Slot // its pages, of one that is eager
	move     move
}

// move is the ledger of an active transfer.
type move struct {
	mem       []byte
	processed uint64
	lists     uint32
	acked     uint32
	done      bool
	sum       bool // its lists ask for a checksum
	repeat    bool // lists are dropped until the one asked for arrives
}

// verb is what a blocked process waits for.
type verb int

const (
	readMessage verb = iota
	readTransfer
	readAny // a message, or a transfer into memory of its size
	look
	writeMessage
	writeTransfer
)

// request is a blocked call of a process.
type request struct {
	verb   verb
	mem    []byte // message or device memory
	alloc  func(size uint64) []byte
	id     uint64     // transaction, once offered
	sent   bool       // offered to the host
	began  bool       // the host sent lists
	stop   abi.Status // why the offer is being taken back
	move   move
	result chan result // buffered 1
}

// result ends a request.
type result struct {
	status abi.Status
	msg    []byte
	direct bool
	size   uint64
}

func (r *request) end(res result) { r.result <- res }

// run is the device's thread.
func (s *Device) run(l *epoch) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		worked, idle := s.step(l)
		if worked {
			continue
		}
		s.sleep(1)
		worked, again := s.step(l)
		if !worked {
			timer.Reset(min(idle, again))
			select {
			case <-s.wake:
			case <-timer.C:
			case <-l.quit:
				return
			}
		}
		s.sleep(0)
		select {
		case <-l.quit:
			return
		default:
		}
	}
}

// sleep says of all islands whether they sleep.
func (s *Device) sleep(word uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.shape.Islands {
		s.area.sleep(i, word)
	}
}

// step takes what is there; if it found nothing it says how long the device
// may sleep.
func (s *Device) step(l *epoch) (worked bool, idle time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-l.quit:
		return false, 0
	default:
	}
	if s.dead {
		return false, time.Hour
	}
	now := time.Now()
	for i := range s.shape.Islands {
		worked = s.lookLocked(i) || worked
	}
	s.beatLocked(now, worked)
	idle = min(s.cur.next.Sub(now), s.expireLocked(now))
	if !s.flushLocked() {
		idle = min(idle, 200*time.Microsecond)
	}
	return worked, idle
}

// beatLocked writes a heartbeat if one is due. It means that the rings were dry, unless
// the device has been busy for two heartbeats more. Must hold mu.
func (s *Device) beatLocked(now time.Time, busy bool) {
	late := now.Sub(s.cur.next)
	if late < 0 || busy && late < 2*s.shape.Beat {
		return
	}
	s.cur.next = now.Add(s.shape.Beat)
	if !s.mute {
		s.writeBeat()
	}
}

// drainLocked takes at most a ring of messages. Must hold mu.
func (s *Device) drainLocked(b *mailboxEnd) (worked bool) {
	var m wire.Slot
	for range s.shape.Slots {
		if s.dead || !b.take(&m) {
			break
		}
		worked = true
		head := b.head
		if s.hooks.Head != nil {
			head = s.hooks.Head(head)
		}
		b.consumed(head)
		s.taken.Add(1)
		if s.hooks.Take != nil && !s.hooks.Take(&m) {
			continue
		}
		if !s.dead {
			s.handleLocked(&m)
		}
	}
	return worked
}

// expireLocked ends offers whose time is up. Must hold mu.
func (s *Device) expireLocked(now time.Time) time.Duration {
	idle := time.Hour
	for c := range s.cur.timed {
		switch {
		case c.in == nil || c.in.active || c.in.deadline.IsZero():
			delete(s.cur.timed, c)
		case now.Before(c.in.deadline):
			idle = min(idle, c.in.deadline.Sub(now))
		default:
			delete(s.cur.timed, c)
			s.failInLocked(c, abi.ErrTimeout, c.in.size)
		}
	}
	return idle
}

// handleLocked dispatches a message of the host. Must hold mu.
func (s *Device) handleLocked(m *wire.Slot) {
	h := wire.Header(m.Header)
	c := s.cur.channels[h.Channel()]
	if h.Epoch() != uint8(s.epochID) || c == nil || !c.open {
		s.dropped.Add(1)
		return
	}
	switch h.Type() {
	case wire.TypeDirect, wire.TypeIndBegin:
		s.offeredLocked(c, m)
	case wire.TypeEager:
		s.eagerLocked(c, m)
	case wire.TypeIndList:
		if h.Length()&wire.ListD2H != 0 {
			s.destinationLocked(c, m)
		} else {
			s.sourceLocked(c, m)
		}
	case wire.TypeAck, wire.TypeError:
		s.answeredLocked(c, m)
	case wire.TypeFin, wire.TypeWithdraw, wire.TypeWithdrawn, wire.TypeAbort, wire.TypeOffer:
		s.noteLocked(c, m)
	case wire.TypeClose:
		s.closeLocked(c, m.Close())
	default:
		s.accuseLocked("message of type %d", h.Type())
		s.dropped.Add(1)
	}
}

// noteLocked handles a note. Must hold mu.
func (s *Device) noteLocked(c *channel, m *wire.Slot) {
	n := *m.Note()
	if n.Direction > uint32(abi.D2H) {
		s.accuseLocked("note for direction %d", n.Direction)
		return
	}
	if uint16(n.Transaction) != wire.Header(m.Header).Sequence() {
		s.accuseLocked("note with transaction %d and sequence %d", n.Transaction, wire.Header(m.Header).Sequence())
	}
	d2h := abi.Direction(n.Direction) == abi.D2H
	switch t := wire.Header(m.Header).Type(); {
	case t == wire.TypeFin && d2h:
		s.finishOutLocked(c, n.Transaction)
	case t == wire.TypeFin:
		s.finishInLocked(c, n.Transaction)
	case t == wire.TypeWithdraw && d2h:
		s.unpostLocked(c, n.Transaction)
	case t == wire.TypeWithdraw:
		s.withdrawLocked(c, n.Transaction)
	case t == wire.TypeAbort && d2h:
		s.abortOutLocked(c, n.Transaction)
	case t == wire.TypeAbort:
		s.abortInLocked(c, n.Transaction)
	case t == wire.TypeOffer && !d2h:
		s.askLocked(c, n.Transaction)
	case t == wire.TypeWithdrawn && d2h:
		if r := c.wr; r != nil && r.id == n.Transaction && r.stop != abi.OK { // or the WITHDRAW was injected
			s.endWriteLocked(c, r.stop)
		}
	default:
		s.accuseLocked("%d note for direction %d", t, n.Direction)
	}
}

// closeLocked handles CLOSE from the host. Must hold mu.
func (s *Device) closeLocked(c *channel, cl *wire.Close) {
	if cl.Generation != c.gen || cl.Halves == 0 || cl.Halves > 3 {
		s.accuseLocked("close of halves %d of generation %d, now %d", cl.Halves, cl.Generation, c.gen)
		s.dropped.Add(1)
		return
	}
	c.closed |= cl.Halves
	if cl.Halves&wire.ParkD2H != 0 && c.post != nil {
		s.accuseLocked("channel %d: close of a half for which pages are posted", c.id)
		c.post = nil
	}
	if cl.Halves&wire.ParkH2D != 0 {
		if c.in != nil && c.in.active {
			s.failInLocked(c, abi.ErrAborted, c.in.size-c.in.move.processed)
			s.endReadLocked(c, result{status: abi.ErrAborted})
		}
		c.in = nil
		s.endReadLocked(c, result{status: abi.ErrClosed})
	}
	if cl.Halves&wire.ParkD2H != 0 && c.wr != nil {
		s.endWriteLocked(c, abi.ErrClosed)
	}
	if c.closed == 3 {
		s.sendCloseLocked(c, 3, abi.OK)
		c.open, c.live = false, false
		if c.proc == nil {
			delete(s.cur.channels, c.id)
		}
	}
}

func (s *Device) sendCloseLocked(c *channel, halves uint32, why abi.Status) {
	var m wire.Slot
	*m.Close() = wire.Close{Halves: halves, Status: uint32(why), Generation: c.gen}
	m.Header = s.header(wire.TypeClose, abi.PayloadSize, c.gen, c.id)
	s.emitLocked(m)
}

// header packs a header of the current epoch.
func (s *Device) header(t wire.Type, length int, transaction uint64, channel uint32) uint64 {
	return uint64(wire.MakeHeader(t, length, uint8(s.epochID), uint16(transaction), channel))
}

// emitLocked publishes a message through the Give hook. Must hold mu.
func (s *Device) emitLocked(m wire.Slot) {
	if s.hooks.Give == nil {
		s.enqueueLocked(m)
	} else {
		for _, x := range s.hooks.Give(m) {
			s.enqueueLocked(x)
		}
	}
	s.flushLocked()
}

// recordLocked publishes a completion record. Must hold mu.
func (s *Device) recordLocked(c *channel, t wire.Type, a wire.Ack) {
	var m wire.Slot
	a.NowNS = uint64(time.Since(s.cur.born))
	a.BeginNS = a.NowNS
	*m.Ack() = a
	m.Header = s.header(t, abi.PayloadSize, a.Transaction, c.id)
	s.emitLocked(m)
}

// parkedLocked counts the host's offers that wait for a target. Must hold mu.
func (s *Device) parkedLocked() (n uint64) {
	for _, c := range s.cur.channels {
		if c.in != nil && !c.in.active {
			n++
		}
	}
	return n
}
