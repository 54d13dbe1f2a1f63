package group

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Small frames between processes are in cells: memory of the member that they are for,
// where each other member has some cells of its own. All that a member looks at for a
// step of small packages is contiguous, where rings would have it touch three pages for each
// source. A cell is free while its number is 0. A frame that has no room is sent by the ring; frames
// are numbered, so that they are taken in order wherever they are.

const (
	cellSize   = 512
	cellHeader = 32
	cellData   = cellSize - cellHeader
	cellsEach  = 4    // a member is a step ahead, or two
	cellsHead  = 64   // before the words of the sources
	cellsPage  = 4096 // the first cell is on the page after those
)

// cell is the room for one frame. Its source writes the rest before the number.
type cell struct {
	number atomic.Uint64 // of the frame in it, 0: none
	size   uint64
	header frameHeader
	data   [cellData]byte
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

// of returns the cells of a source, in the order of their use.
func (s *cells) of(from int) (list [cellsEach]*cell) {
	first, _ := cellsBytes(s.size)
	for i := range list {
		raw := s.mem[first+(i*s.size+from)*cellSize:][:cellSize]
		list[i] = (*cell)(unsafe.Pointer(&raw[0]))
	}
	return list
}

// put puts a frame into a cell of this member at its target; false if none is free.
func (o *ringOut) put(h frameHeader, data []byte) bool {
	c := o.to[o.cell%cellsEach]
	if c == nil || c.number.Load() != 0 {
		return false
	}
	c.size, c.header = uint64(copy(c.data[:], data)), h
	o.cell++
	o.number++
	c.number.Store(o.number)
	if parked := &o.cells.info().parked; parked.Load() != 0 && parked.Swap(0) != 0 {
		o.w.Wake()
	}
	return true
}

// fromCell takes the next frame of a source, if it is in a cell.
func (in *ringIn) fromCell(f *frame) (bool, error) {
	c := in.from[in.cell%cellsEach]
	switch number := c.number.Load(); {
	case number == 0 || number > in.number+1: // then the next one is in the ring
		return false, nil
	case number <= in.number:
		return false, fmt.Errorf("%w: frame %d again", ring.ErrCorrupt, number)
	}
	size := c.size
	if size > cellData {
		return false, fmt.Errorf("%w: %d bytes in a cell", ring.ErrCorrupt, size)
	}
	f.frameHeader, f.Data = c.header, c.data[:size:size]
	in.takeCell(c)
	return true, nil
}

func (in *ringIn) takeCell(c *cell) {
	in.cell++
	in.number++
	in.lies = c
}

// some reports whether there may be a frame of a source.
func (in *ringIn) some(own *cells, from int) bool {
	if in.held || in.ended {
		return false
	}
	return in.from[in.cell%cellsEach].number.Load() != 0 || own.pieces(from).Load() != in.pieces
}

// expect takes what a step waits for out of a cell. Everything else, what is wrong as
// well, is left to TryReceive.
func (l *ringLink) expect(from int, h frameHeader) ([]byte, bool) {
	in := &l.in[from]
	c := in.from[in.cell%cellsEach]
	if in.held || in.ended || c.number.Load() != in.number+1 || c.header != h {
		return nil, false
	}
	size := c.size
	if size > cellData {
		return nil, false
	}
	in.takeCell(c)
	in.held = true
	l.expected = append(l.expected, in)
	return c.data[:size:size], true
}

// giveBack releases what expect took.
func (l *ringLink) giveBack() {
	for _, in := range l.expected {
		in.lies.number.Store(0)
		in.held, in.lies = false, nil
		if l.hushed {
			in.watch.On = true // held, it has not ended
		}
	}
	l.expected, l.hushed = l.expected[:0], false
}

// hush has rings not watched whose members' frames are held: expect leaves that to Wait.
func (l *ringLink) hush() {
	for _, in := range l.expected {
		in.watch.On = false
	}
	l.hushed = true
}

// pause gives the processor to the awaited member, unless that has sent something else. It looks
// after nothing besides, not even at goroutines but those that are members: the runtime would wake
// a thread for them, which costs more than the step, and Wait, which follows soon, does look.
func (l *ringLink) pause(from, round int) bool {
	if round == expects || l.wait == ring.Park || l.woken.Load() || l.in[from].some(l.own, from) {
		return false
	}
	if here.Load() > 1 {
		runtime.Gosched()
	}
	if l.wait == ring.Yield {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_SCHED_YIELD, 0, 0, 0, 0, 0, 0) // it cannot fail
	}
	return true
}
