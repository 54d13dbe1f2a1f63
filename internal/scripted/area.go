package scripted

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// area is the device's view of the mailbox area.
type area struct {
	mem       []byte
	base      unsafe.Pointer
	size      uint64
	mailboxes []mailboxEnd
	islands   [wire.IslandsMax]island
	own       there
}

// mailboxEnd is the device's end of one mailbox.
type mailboxEnd struct {
	h2dHead, d2hHead *uint64 // consumer counters
	h2d, d2h         []wire.Slot
	head             uint64 // h2d messages taken
	tail             uint64 // d2h messages published
	own              *there
	counters, ring   uint64 // where they are there
}

const (
	parkOffset    = abi.PageSize
	mailboxHeader = 2 * wire.SlotSize
)

func (sh Shape) mailboxOffset() uint64 {
	return uint64(parkOffset+4*sh.Channels+abi.PageSize-1) &^ (abi.PageSize - 1)
}

func (sh Shape) mailboxStride() uint64 { return uint64(mailboxHeader + 2*sh.Slots*wire.SlotSize) }

// areaSize is the length of the mailbox area in bytes.
func (sh Shape) areaSize() uint64 {
	return (sh.mailboxOffset() + sh.mailboxStride()*uint64(sh.Mailboxes) + abi.PageSize - 1) &^ (abi.PageSize - 1)
}

// newArea finds its way in the memory of an area, which is areaSize bytes long.
func newArea(sh Shape, mem []byte) *area {
	a := &area{mem: mem, base: unsafe.Pointer(&mem[0]), size: uint64(len(mem))}
	offset, stride := sh.mailboxOffset(), sh.mailboxStride()
	for i := range uint64(sh.Mailboxes) {
		at := offset + i*stride
		m := (*wire.Mailbox)(unsafe.Pointer(&mem[at]))
		slots := unsafe.Slice((*wire.Slot)(unsafe.Pointer(&mem[at+mailboxHeader])), 2*sh.Slots)
		a.mailboxes = append(a.mailboxes, mailboxEnd{
			h2dHead: &m.H2DHead.Word, d2hHead: &m.D2HHead.Word,
			h2d: slots[:sh.Slots], d2h: slots[sh.Slots:],
			own: &a.own, counters: thereMailbox + i*wire.MailboxSize, ring: sh.thereRing(int(i)),
		})
	}
	return a
}

func (a *area) page() *wire.Area { return (*wire.Area)(a.base) }

// park loads the park word of a channel.
func (a *area) park(sh Shape, channel uint32) uint32 {
	if a.own.at != 0 {
		return uint32(a.own.load(sh.therePark(channel), 4))
	}
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&a.mem[parkOffset+4*channel]))) // SYNC: channel park
}

// sleep says whether an island sleeps.
func (a *area) sleep(island int, word uint64) {
	if a.own.at == 0 {
		atomic.StoreUint64(&a.page().Island[island].Word, word) // SYNC: island park
		return
	}
	at := thereIsland + uint64(island)*wire.SlotSize
	a.own.post(at, word)
	a.own.load(at, 8) // it pushes the word there
}

// lay zeroes the area and writes its first page for a new epoch.
func (a *area) lay(sh Shape, epoch uint32) {
	clear(a.mem)
	for i := range a.mailboxes {
		a.mailboxes[i].head, a.mailboxes[i].tail = 0, 0
	}
	a.own, a.islands = there{host: a.own.host}, [wire.IslandsMax]island{}
	p := a.page()
	p.Magic, p.Major, p.Minor = wire.Magic, abi.Major, abi.Minor
	p.Size, p.ParkOffset = a.size, parkOffset
	p.MailboxOffset, p.MailboxStride = sh.mailboxOffset(), sh.mailboxStride()
	p.Epoch, p.State = epoch, wire.DeviceBooting
	p.DeviceHello.Header = uint64(wire.MakeHeader(wire.TypeHello, abi.PayloadSize, uint8(epoch), 0, 0))
	*p.DeviceHello.Hello() = sh.hello()
}

// hello is the HELLO of a device of this shape.
func (sh Shape) hello() wire.Hello {
	capabilities := uint32(0)
	if !sh.NoSums {
		capabilities |= wire.CapSum
	}
	if sh.Runs != 0 {
		capabilities |= wire.CapRuns
	}
	if sh.Eager > 0 {
		capabilities |= wire.CapEager
	}
	if sh.HostRings != 0 {
		capabilities |= wire.CapHostRings
	} else {
		capabilities |= wire.CapNews
	}
	return wire.Hello{
		Magic: wire.Magic, Major: abi.Major, Minor: abi.Minor, Capabilities: capabilities,
		Channels: uint32(sh.Channels), Mailboxes: uint16(sh.Mailboxes), Islands: uint16(sh.Islands),
		Slots: uint32(sh.Slots), Window: uint32(sh.Window), BeatMS: uint32(sh.Beat / time.Millisecond),
		MaxTransfer: 1<<40 - 1, ReadManagers: uint32(sh.Mailboxes), WriteManagers: uint32(sh.Mailboxes),
		Contexts: uint32(sh.Contexts), Eager: uint16(sh.Eager),
	}
}

// take copies the next message of the host, if there is one.
func (b *mailboxEnd) take(m *wire.Slot) bool {
	n := uint64(len(b.h2d))
	slot := &b.h2d[b.head%n]
	h := wire.Header(atomic.LoadUint64(&slot.Header)) // SYNC: slot
	if h.Phase() != (b.head/n+1)&1 {
		return false
	}
	*m = wire.Slot{Header: uint64(h), Payload: slot.Payload}
	b.head++
	return true
}

// consumed publishes how far h2d was taken.
func (b *mailboxEnd) consumed(head uint64) {
	if b.own.at != 0 {
		b.own.post(b.counters, head)
		return
	}
	atomic.StoreUint64(b.h2dHead, head)
}

// full reports whether the host has taken too little of d2h for one more message.
func (b *mailboxEnd) full() bool {
	head := uint64(0)
	if b.own.at != 0 {
		head = b.own.load(b.counters+thereD2HHead, 8)
	} else {
		head = atomic.LoadUint64(b.d2hHead)
	}
	return b.tail-head >= uint64(len(b.d2h))
}

// give stores a message as the next one.
func (b *mailboxEnd) give(m *wire.Slot) {
	n := uint64(len(b.d2h))
	header := m.Header ^ (b.tail/n+1)&1<<7
	if b.own.at != 0 {
		b.own.post(b.ring+b.tail%n*wire.SlotSize, append([]uint64{header}, m.Payload[:]...)...)
		return
	}
	slot := &b.d2h[b.tail%n]
	slot.Payload = m.Payload
	atomic.StoreUint64(&slot.Header, header) // SYNC: slot
}

// ownHost is this process: it is rung by an event file.
type ownHost struct{ bell *os.File }

// Ring rings the doorbell, which all islands share.
func (h *ownHost) Ring(int) {
	one := [8]byte{1}
	_, _ = h.bell.Write(one[:])
}

// Move copies; a bus address is a virtual address.
func (h *ownHost) Move(mem []byte, address uint64, d abi.Direction) bool {
	return copyHost(mem, uintptr(address), d)
}

// enqueueLocked queues a message for the mailbox of its channel. Must hold mu.
func (s *Device) enqueueLocked(m wire.Slot) {
	places := s.shape.hello()
	i := places.Mailbox(wire.Header(m.Header).Channel()) % s.shape.Mailboxes
	if s.hooks.Mailbox != nil {
		i = s.hooks.Mailbox(&m, i)
	}
	s.cur.queue[i] = append(s.cur.queue[i], m)
}

// flushLocked publishes what the rings have room for and reports whether
// everything fitted. Must hold mu.
func (s *Device) flushLocked() bool {
	if s.dead {
		return true
	}
	if !s.area.own.settled(s.area.page()) {
		return false
	}
	empty := true
	for i := range s.area.mailboxes {
		q, ring := s.cur.queue[i], false
		for b := &s.area.mailboxes[i]; len(q) > 0 && !b.full(); q = q[1:] {
			channel := wire.Header(q[0].Header).Channel()
			b.give(&q[0])
			if s.hooks.Rewrite != nil && s.hooks.Rewrite(&q[0]) {
				b.give(&q[0])
			}
			b.tail++
			if channel < uint32(s.shape.Channels) {
				ring = ring || s.area.park(s.shape, channel) != 0
			}
		}
		s.cur.queue[i] = q
		if len(q) > 0 {
			empty, ring = false, true
		}
		if ring {
			s.host.Ring(i * s.shape.Islands / s.shape.Mailboxes)
		}
	}
	return empty
}

// writeBeat overwrites the heartbeat in place. Must hold mu.
func (s *Device) writeBeat() {
	l := s.cur
	l.beat++
	blank := uint64(wire.MakeHeader(wire.TypeNone, 0, uint8(s.epochID), 0, 0))
	words := [...]uint64{uint64(wire.MakeHeader(wire.TypeHeartbeat, abi.PayloadSize, uint8(s.epochID), uint16(l.beat), 0)),
		l.beat, uint64(time.Since(l.born)), 1<<31 | uint64(len(l.procs))<<32,
		s.taken.Load(), l.moved, s.dropped.Load(), s.parkedLocked()}
	if s.area.own.at != 0 {
		s.area.own.post(thereBeat, blank)
		s.area.own.post(thereBeat, words[:]...)
		return
	}
	slot := &s.area.page().Heartbeat
	atomic.StoreUint64(&slot.Header, blank)
	for i, w := range words[1:] {
		atomic.StoreUint64(&slot.Payload[i], w)
	}
	atomic.StoreUint64(&slot.Header, words[0])
}
