//go:build linux

package arena

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// blocks returns how many bytes of a file there are.
func blocks(t *testing.T, fd int) int64 {
	t.Helper()
	var s unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &s))
	return s.Blocks * 512
}

// TestCoverIsSparse: of memory that is kept from a device that does not answer, what was used is
// copied, and no page is made that nobody touched, whatever its user protected.
func TestCoverIsSparse(t *testing.T) {
	const size, huge = 1 << 30, 2 << 20
	a, err := newArena(size, arenaSize)
	require.NoError(t, err)
	m := Arenas{list: []*arena{a}}
	defer m.End()
	first, ok := a.take(size/abi.PageSize - 10)
	require.True(t, ok)
	require.Zero(t, first)
	mem := a.bytes(0, size)
	for _, at := range []int{0, 5*huge - 1, 300 << 20, size - 11*abi.PageSize, size - abi.PageSize} {
		mem[at] = byte(at>>20) + 1
	}
	before := blocks(t, a.fd)
	old, err := unix.Dup(a.fd) // as the device has it
	require.NoError(t, err)
	defer unix.Close(old)
	require.NoError(t, unix.Mprotect(mem[300<<20:301<<20], unix.PROT_NONE))

	copied, err := m.Cover()
	require.NoError(t, err)
	require.LessOrEqual(t, copied, uint64(before))
	require.Equal(t, before, blocks(t, old))
	require.LessOrEqual(t, blocks(t, a.fd), before)
	for _, at := range []int{0, 5*huge - 1, 300 << 20, size - 11*abi.PageSize} {
		require.Equal(t, byte(at>>20)+1, mem[at], at)
	}
	_, err = unix.Pwrite(old, []byte{0xff}, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, mem[0], "the device has another")
}

// TestArena: pages are dealt out and come back in any order, and Alloc gives zeros.
func TestArena(t *testing.T) {
	a, err := newArena(1, arenaSize)
	require.NoError(t, err)
	defer a.release()
	whole := arenaSize / abi.PageSize
	var first []int
	for i := range 10 {
		at, ok := a.take(i + 1)
		require.True(t, ok)
		first = append(first, at)
		copy(a.hand(at, i+1, abi.PageSize, true), "dirty")
	}
	_, ok := a.take(whole)
	require.False(t, ok)
	for _, i := range []int{3, 1, 2, 9, 0, 5, 7, 8, 6, 4} {
		a.give(first[i], i+1)
	}
	require.Equal(t, []span{{0, whole}}, a.free)
	require.Zero(t, a.used)
	at, ok := a.take(whole)
	require.True(t, ok)
	require.Equal(t, make([]byte, 100*abi.PageSize), a.hand(at, whole, 100*abi.PageSize, true))
}

// TestCover: what a device that does not answer writes later reaches nobody.
func TestCover(t *testing.T) {
	a, err := newArena(1, arenaSize)
	require.NoError(t, err)
	m := Arenas{list: []*arena{a}}
	defer m.End()
	device, err := MapFile(a.fd, 0, nil, a.size, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.MunmapPtr(device, uintptr(a.size))) }()
	_, ok := a.take(1)
	require.True(t, ok)
	seen := a.bytes(0, 4)
	copy(seen, "mine")
	theirs := (&arena{base: device}).bytes(0, 4)
	require.Equal(t, "mine", string(theirs))
	_, err = m.Cover()
	require.NoError(t, err)
	copy(theirs, "late")
	require.Equal(t, "mine", string(seen))
}

// TestFreeAfterClose: a device may be closed between the two steps of Alloc, which then gives back
// memory that is gone.
func TestFreeAfterClose(t *testing.T) {
	a, err := newArena(1, arenaSize)
	require.NoError(t, err)
	m := Arenas{list: []*arena{a}}
	_, err = m.Alloc(100, true)
	require.NoError(t, err)
	m.End()
	m.free(a.at(), 100)
}

// placed is a device that notes where memory is for it.
type placed struct {
	mu    sync.Mutex
	sizes map[uint64]uint64
}

func (p *placed) MapMemory(m Memory) error { p.note(m.Bus, m.Size); return nil }
func (p *placed) UnmapMemory(m Memory)     { p.note(m.Bus, 0) }
func (p *placed) Alive() bool              { return true }

func (p *placed) note(bus, size uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sizes[bus] = size; size == 0 {
		delete(p.sizes, bus)
	}
}

// TestWindow: a device behind an IOMMU knows memory by addresses of its window, none twice.
func TestWindow(t *testing.T) {
	const unit = 2 << 20
	m := Arenas{Window: Window{First: unit, Last: 5*unit - 1, Unit: unit}}
	defer m.End()
	device := &placed{sizes: make(map[uint64]uint64)}
	require.NoError(t, m.Join(device))
	alloc := func(size int, at uint64) []byte {
		t.Helper()
		mem, err := m.Alloc(size, true)
		require.NoError(t, err)
		require.Equal(t, at, m.Bus(mem))
		return mem
	}
	first := alloc(unit, unit)
	second := alloc(2*unit, 2*unit)
	alloc(unit/2, 4*unit)
	require.Equal(t, 4*uint64(unit)+unit/2, m.Bus(alloc(unit/2, 4*unit+unit/2)))
	_, err := m.Alloc(1, true)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	m.Free(first)
	m.Free(second)
	m.removal.Wait()
	require.Equal(t, map[uint64]uint64{4 * unit: unit}, device.sizes)
	alloc(3*unit, unit)
	require.Zero(t, m.Bus(make([]byte, 1)))
}

// TestAdopt: a file that is here already is not mapped once more, and one that could end the process is
// refused. Drop gives pages back to the system, however many map them.
func TestAdopt(t *testing.T) {
	var m Arenas
	defer m.End()
	require.NoError(t, m.Join(&placed{sizes: make(map[uint64]uint64)}))
	mem, err := m.Make(3*abi.PageSize - 1)
	require.NoError(t, err)
	require.Len(t, mem, 3*abi.PageSize)
	file, err := m.Reveal(mem)
	require.NoError(t, err)
	defer unix.Close(file)
	again, err := m.Adopt(file)
	require.NoError(t, err)
	require.Same(t, &mem[0], &again[0])

	for i := range mem {
		mem[i] = 1
	}
	require.EqualValues(t, len(mem), blocks(t, file))
	m.Drop(mem, true)
	m.removal.Wait()
	require.EqualValues(t, abi.PageSize, blocks(t, file))
	mem, err = m.Adopt(file)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 0}, mem[abi.PageSize-1:][:2])
	m.Drop(mem, false)

	huge, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB)
	if err != nil {
		return // a system without them
	}
	defer unix.Close(huge)
	require.NoError(t, unix.Ftruncate(huge, arenaStep))
	_, err = unix.FcntlInt(uintptr(huge), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	require.NoError(t, err)
	_, err = m.Adopt(huge)
	require.ErrorIs(t, err, bridge.ErrInvalid)
}
