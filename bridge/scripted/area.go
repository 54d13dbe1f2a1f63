package scripted

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// area is the device's view of the mailbox area.
type area struct {
	mem       []byte
	base      unsafe.Pointer
	size      uint64
	mailboxes []mailboxEnd
}

// mailboxEnd is the device's end of one mailbox.
type mailboxEnd struct {
	h2dHead, d2hHead *uint64 // consumer counters
	h2d, d2h         []abi.Slot
	head             uint64 // h2d messages taken
	tail             uint64 // d2h messages published
}

const (
	parkOffset    = abi.PageSize
	mailboxHeader = 2 * abi.SlotSize
)

func (sh Shape) mailboxOffset() uint64 {
	return uint64(parkOffset+4*sh.Channels+abi.PageSize-1) &^ (abi.PageSize - 1)
}

func (sh Shape) mailboxStride() uint64 { return uint64(mailboxHeader + 2*sh.Slots*abi.SlotSize) }

// areaSize is the length of the mailbox area in bytes.
func (sh Shape) areaSize() uint64 {
	return (sh.mailboxOffset() + sh.mailboxStride()*uint64(sh.Mailboxes) + abi.PageSize - 1) &^ (abi.PageSize - 1)
}

func mapArea(size uint64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map mailbox area: %w", err)
	}
	return mem, nil
}

func unmapArea(mem []byte) { _ = unix.Munmap(mem) }

// newArea finds its way in the memory of an area, which is areaSize bytes long.
func newArea(sh Shape, mem []byte) *area {
	a := &area{mem: mem, base: unsafe.Pointer(&mem[0]), size: uint64(len(mem))}
	offset, stride := sh.mailboxOffset(), sh.mailboxStride()
	for i := range uint64(sh.Mailboxes) {
		at := offset + i*stride
		m := (*abi.Mailbox)(unsafe.Pointer(&mem[at]))
		slots := unsafe.Slice((*abi.Slot)(unsafe.Pointer(&mem[at+mailboxHeader])), 2*sh.Slots)
		a.mailboxes = append(a.mailboxes, mailboxEnd{
			h2dHead: &m.H2DHead.Word, d2hHead: &m.D2HHead.Word,
			h2d: slots[:sh.Slots], d2h: slots[sh.Slots:],
		})
	}
	return a
}

func (a *area) page() *abi.Area { return (*abi.Area)(a.base) }

// park returns the park word of a channel.
func (a *area) park(channel uint32) *uint32 {
	return (*uint32)(unsafe.Pointer(&a.mem[parkOffset+4*channel]))
}

// lay zeroes the area and writes its first page for a new epoch.
func (a *area) lay(sh Shape, epoch uint32) {
	clear(a.mem)
	for i := range a.mailboxes {
		a.mailboxes[i].head, a.mailboxes[i].tail = 0, 0
	}
	p := a.page()
	p.Magic, p.Major, p.Minor = abi.Magic, abi.Major, abi.Minor
	p.Size, p.ParkOffset = a.size, parkOffset
	p.MailboxOffset, p.MailboxStride = sh.mailboxOffset(), sh.mailboxStride()
	p.Epoch, p.State = epoch, abi.DeviceBooting
	p.DeviceHello.Header = uint64(abi.MakeHeader(abi.TypeHello, abi.PayloadSize, uint8(epoch), 0, 0))
	*p.DeviceHello.Hello() = sh.hello()
}

// hello is the HELLO of a device of this shape.
func (sh Shape) hello() abi.Hello {
	capabilities := uint32(0)
	if sh.Runs != 0 {
		capabilities |= abi.CapRuns
	}
	if sh.Eager > 0 {
		capabilities |= abi.CapEager
	}
	return abi.Hello{
		Magic: abi.Magic, Major: abi.Major, Minor: abi.Minor, Capabilities: capabilities,
		Channels: uint32(sh.Channels), Mailboxes: uint16(sh.Mailboxes), Islands: uint16(sh.Islands),
		Slots: uint32(sh.Slots), Window: uint32(sh.Window), BeatMS: uint32(sh.Beat / time.Millisecond),
		MaxTransfer: 1<<40 - 1, ReadManagers: uint32(sh.Mailboxes), WriteManagers: uint32(sh.Mailboxes),
		Contexts: uint32(sh.Contexts), Eager: uint16(sh.Eager),
	}
}

// take copies the next message of the host, if there is one.
func (b *mailboxEnd) take(m *abi.Slot) bool {
	n := uint64(len(b.h2d))
	slot := &b.h2d[b.head%n]
	h := abi.Header(atomic.LoadUint64(&slot.Header)) // SYNC: slot
	if h.Phase() != (b.head/n+1)&1 {
		return false
	}
	*m = abi.Slot{Header: uint64(h), Payload: slot.Payload}
	b.head++
	atomic.StoreUint64(b.h2dHead, b.head)
	return true
}

// give publishes a message; false if the ring is full.
func (b *mailboxEnd) give(m *abi.Slot) bool {
	n := uint64(len(b.d2h))
	if b.tail-atomic.LoadUint64(b.d2hHead) >= n {
		return false
	}
	phase := (b.tail/n + 1) & 1
	slot := &b.d2h[b.tail%n]
	slot.Payload = m.Payload
	atomic.StoreUint64(&slot.Header, m.Header^phase<<7) // SYNC: slot
	b.tail++
	return true
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
func (s *Device) enqueueLocked(m abi.Slot) {
	places := s.shape.hello()
	i := places.Mailbox(abi.Header(m.Header).Channel()) % s.shape.Mailboxes
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
	empty := true
	for i := range s.area.mailboxes {
		q, ring := s.cur.queue[i], false
		for len(q) > 0 && s.area.mailboxes[i].give(&q[0]) {
			channel := abi.Header(q[0].Header).Channel()
			if channel < uint32(s.shape.Channels) {
				ring = ring || atomic.LoadUint32(s.area.park(channel)) != 0 // SYNC: channel park
			}
			q = q[1:]
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
	slot := &s.area.page().Heartbeat
	atomic.StoreUint64(&slot.Header, uint64(abi.MakeHeader(abi.TypeNone, 0, uint8(s.epochID), 0, 0)))
	l.beat++
	b := slot.Heartbeat()
	words := [...]uint64{l.beat, uint64(time.Since(l.born)), 1<<31 | uint64(len(l.procs))<<32,
		s.taken.Load(), l.moved, s.dropped.Load(), s.parkedLocked()}
	for i, w := range words {
		atomic.StoreUint64((*uint64)(unsafe.Add(unsafe.Pointer(b), 8*i)), w)
	}
	atomic.StoreUint64(&slot.Header, uint64(abi.MakeHeader(abi.TypeHeartbeat, abi.PayloadSize,
		uint8(s.epochID), uint16(l.beat), 0)))
}
