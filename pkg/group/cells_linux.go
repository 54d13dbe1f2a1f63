package group

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Small frames between processes go in cells: memory of the member that they are for,
// where each other member has some cells of its own. All that a member looks at for a
// step of small packages lies together, where rings would have it touch three pages
// for each source. A cell is free while its number is 0. What has no room goes in the
// ring; frames are numbered, so that they are taken in order wherever they lie.

const (
	cellSize   = 512
	cellHeader = 32
	cellData   = cellSize - cellHeader
	cellsEach  = 4    // a member is a step ahead, or two
	cellsHead  = 64   // before the words of the sources
	cellsPage  = 4096 // the first cell lies on the page after those
)

// cellHead is the start of a cell. Its source writes the rest before the number.
type cellHead struct {
	number atomic.Uint64 // of the frame in it, 0: none
	size   uint64
	header Header
}

// cells is the memory of one member, in this process.
type cells struct {
	ring *ring.Ring // has the memory
	mem  []byte
	size int // how many members the one whose it is knows
}

// cellsInfo is the start of the memory.
type cellsInfo struct {
	parked atomic.Uint32 // its member sleeps, or is about to
	_      uint32
	size   uint64
}

func cellsName(group string, rank int) string { return fmt.Sprintf("%s-%d-in", group, rank) }

// cellsBytes is how much memory a member of a group has for the others.
func cellsBytes(size int) (first, all int) {
	first = (cellsHead + 8*size + cellsPage - 1) &^ (cellsPage - 1)
	return first, first + cellsEach*size*cellSize
}

// newCells makes those of a rank.
func newCells(group string, rank, size int) (*cells, error) {
	_, all := cellsBytes(size)
	packet := (all/ring.MinPackets + cellsPage) &^ (cellsPage - 1)
	r, err := ring.Create(cellsName(group, rank), ring.Config{Packets: ring.MinPackets, PacketSize: packet})
	if err != nil {
		return nil, err
	}
	s := &cells{ring: r, mem: r.Memory(), size: size}
	s.info().size = uint64(size)
	return s, nil
}

// cellsOf looks at those that another member has made.
func cellsOf(r *ring.Ring) (*cells, error) {
	s := &cells{ring: r, mem: r.Memory()}
	size := s.info().size
	if size <= maxSize {
		s.size = int(size)
	}
	if _, all := cellsBytes(s.size); s.size == 0 || all > len(s.mem) {
		return nil, fmt.Errorf("%w: %d bytes of cells for %d members", ring.ErrPeer, len(s.mem), size)
	}
	return s, nil
}

func (s *cells) info() *cellsInfo { return (*cellsInfo)(unsafe.Pointer(&s.mem[0])) }

// pieces counts what a source has put into the ring.
func (s *cells) pieces(from int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&s.mem[cellsHead+8*from]))
}

// at returns the n-th cell of a source, and the room for bytes in it.
func (s *cells) at(from int, n uint64) (*cellHead, []byte) {
	first, _ := cellsBytes(s.size)
	raw := s.mem[first+(int(n%cellsEach)*s.size+from)*cellSize:][:cellSize:cellSize]
	return (*cellHead)(unsafe.Pointer(&raw[0])), raw[cellHeader:]
}

// put puts a frame into a cell of this member at its target; false if none is free.
func (o *ringOut) put(rank int, h Header, data []byte) bool {
	if o.cells == nil || rank >= o.cells.size {
		return false
	}
	s, room := o.cells.at(rank, o.cell)
	if s.number.Load() != 0 {
		return false
	}
	s.size, s.header = uint64(copy(room, data)), h
	o.cell++
	o.number++
	s.number.Store(o.number)
	if parked := &o.cells.info().parked; parked.Load() != 0 && parked.Swap(0) != 0 {
		o.w.Wake()
	}
	return true
}

// fromCell takes the next frame of a source, if it is in a cell.
func (in *ringIn) fromCell(own *cells, f *Frame) (bool, error) {
	s, room := own.at(f.From, in.cell)
	switch number := s.number.Load(); {
	case number == 0 || number > in.number+1: // then the next one is in the ring
		return false, nil
	case number <= in.number:
		return false, fmt.Errorf("%w: frame %d again", ring.ErrCorrupt, number)
	}
	size := s.size
	if size > cellData {
		return false, fmt.Errorf("%w: %d bytes in a cell", ring.ErrCorrupt, size)
	}
	f.Header, f.Data = s.header, room[:size:size]
	in.cell++
	in.number++
	in.lies = s
	return true, nil
}

// some reports whether there may be a frame of a source.
func (in *ringIn) some(own *cells, from int) bool {
	if in.held || in.ended {
		return false
	}
	s, _ := own.at(from, in.cell)
	return s.number.Load() != 0 || own.pieces(from).Load() != in.pieces
}
