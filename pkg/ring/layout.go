//go:build unix

package ring

import (
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The shared memory: a page with a header and the two heads, then the packets.
// All fields are little-endian and offsets count from the start, so that either
// side may map it anywhere.
const (
	magic   = 0x31474e495243464e // "NFCRING1"
	version = 1

	offGenerator = 1 << 10 // the heads have a kilobyte each
	offReader    = 2 << 10
	headArea     = 4 << 10

	// packetHeader precedes each payload: number and length.
	packetHeader = 16
)

// header is the start of the area. It does not change but for Generation.
type header struct {
	Magic      uint64
	Version    uint32
	Rsvd       uint32
	Packets    uint64
	PacketSize uint64
	Data       uint64 // offset of packet 0
	Generation uint64 // grows each time both roles were given up
}

// posInit is where a head stands before its side has started.
const posInit = -42

// States of a head. Its owner moves it on; the ring's creator sets statusInit
// and statusDied.
const (
	statusInit    = 0 // nobody attached
	statusWaiting = 1 // the reader attached and waits for the first packet
	statusRunning = 2
	statusClosed  = 3 // its owner will do no more
	statusDied    = 4 // its owner ended without closing
)

// head is what one side publishes. The words that the other side polls, and the
// ones that it writes rarely, are on cache lines of their own.
type head struct {
	// pos counts the packets that the owner moved past, and never wraps: the
	// packet it stands on is pos modulo the size. The store releases the
	// packets before it, the load acquires them.
	pos    atomic.Int64
	status atomic.Uint32
	_      [116]byte
	// parked is 1 while the owner sleeps, or is about to: it stores parked
	// and then looks at the other head; who moves a head looks at parked
	// afterwards. A full fence is between the two on both sides.
	parked atomic.Uint32
	_      [124]byte
	// done counts the packets that the owner is through with.
	done atomic.Uint64
}

// packet is the start of one.
type packet struct {
	Number uint64 // counts from 1
	Length uint32
	Rsvd   uint32
}

// shape is a layout that was checked.
type shape struct {
	packets, size, data uint64
}

func (s shape) bytes() uint64 { return s.data + s.packets*s.size }

// payload is the room for bytes in a packet.
func (s shape) payload() int { return int(s.size - packetHeader) }

// newShape checks what a user asks for.
func newShape(packets, size int) (shape, error) {
	page := unix.Getpagesize()
	switch {
	case packets < MinPackets:
		return shape{}, fmt.Errorf("%w: %d packets: a ring has at least %d, else both heads wait for each other", ErrConfig, packets, MinPackets)
	case packets > maxPackets:
		return shape{}, fmt.Errorf("%w: %d packets: at most %d", ErrConfig, packets, maxPackets)
	case size <= 0 || size%page != 0:
		return shape{}, fmt.Errorf("%w: packets of %d bytes: not a multiple of the page, %d bytes", ErrConfig, size, page)
	case size > maxPacket:
		return shape{}, fmt.Errorf("%w: packets of %d bytes: at most %d", ErrConfig, size, maxPacket)
	}
	s := shape{uint64(packets), uint64(size), uint64(max(page, headArea))}
	if s.bytes() > math.MaxInt64/2 {
		return shape{}, fmt.Errorf("%w: %d packets of %d bytes", ErrConfig, packets, size)
	}
	return s, nil
}

// area is a mapping of the shared memory.
type area struct {
	shape
	mem []byte
}

// mapArea maps memory that holds a ring of the given shape.
func mapArea(fd int, s shape) (*area, error) {
	mem, err := unix.Mmap(fd, 0, int(s.bytes()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", s.bytes(), err)
	}
	return &area{s, mem}, nil
}

func (a *area) unmap() { _ = unix.Munmap(a.mem) }

func (a *area) header() *header { return (*header)(unsafe.Pointer(&a.mem[0])) }

func (a *area) generation() *uint64 { return &a.header().Generation }

func (a *area) head(r role) *head {
	at := offGenerator
	if r == roleReader {
		at = offReader
	}
	return (*head)(unsafe.Pointer(&a.mem[at]))
}

// at returns packet number n, header and payload.
func (a *area) at(n uint64) (*packet, []byte) {
	start := a.data + n%a.packets*a.size
	raw := a.mem[start : start+a.size : start+a.size]
	return (*packet)(unsafe.Pointer(&raw[0])), raw[packetHeader:]
}

// init writes the header and puts both heads to the start.
func (a *area) init() {
	*a.header() = header{
		Magic: magic, Version: version, Packets: a.packets, PacketSize: a.size, Data: a.data,
	}
	a.restart()
}

// restart begins the next generation. Nobody may be attached.
func (a *area) restart() {
	for _, r := range []role{roleWriter, roleReader} {
		h := a.head(r)
		h.pos.Store(posInit)
		h.parked.Store(0)
		h.done.Store(0)
		h.status.Store(statusInit)
	}
	atomic.AddUint64(a.generation(), 1)
}

// checkArea reads the shape of a ring that somebody else made from memory that
// cannot shrink any more, and refuses what does not add up.
func checkArea(fd int) (shape, error) {
	if !sealed(fd) {
		return shape{}, fmt.Errorf("%w: its memory is not sealed against resizing", ErrPeer)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return shape{}, fmt.Errorf("look at shared memory: %w", err)
	}
	if st.Size < headArea {
		return shape{}, fmt.Errorf("%w: its memory of %d bytes holds no ring", ErrPeer, st.Size)
	}
	first, err := unix.Mmap(fd, 0, headArea, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return shape{}, fmt.Errorf("map header: %w", err)
	}
	h := *(*header)(unsafe.Pointer(&first[0])) // one copy, checked below
	_ = unix.Munmap(first)
	if h.Magic != magic || h.Version != version {
		return shape{}, fmt.Errorf("%w: magic %#x, version %d: this is version %d", ErrVersion, h.Magic, h.Version, version)
	}
	if h.Packets > maxPackets || h.PacketSize > maxPacket {
		return shape{}, fmt.Errorf("%w: it tells of %d packets of %d bytes", ErrPeer, h.Packets, h.PacketSize)
	}
	s, err := newShape(int(h.Packets), int(h.PacketSize))
	if err != nil {
		return shape{}, err
	}
	if s.data != h.Data || s.bytes() != uint64(st.Size) {
		return shape{}, fmt.Errorf("%w: %d packets of %d bytes in %d bytes of memory", ErrPeer, h.Packets, h.PacketSize, st.Size)
	}
	return s, nil
}
