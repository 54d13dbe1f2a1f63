//go:build linux

package arena

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

const (
	// arenaSize is that of an arena, unless one allocation needs more.
	arenaSize = 64 << 20
	// arenaStep is what sizes of larger ones are a multiple of: a huge page.
	arenaStep = 2 << 20
)

// Memory is a file that is mapped in this process.
type Memory struct {
	Here uint64 // its address in this process
	Bus  uint64 // its address for the device
	Size uint64 // in bytes
	File int
}

// Device is a device that reaches memory of this process.
type Device interface {
	// MapMemory makes memory known.
	MapMemory(m Memory) error
	// UnmapMemory ends that.
	UnmapMemory(m Memory)
	// Alive reports whether the device still answers.
	Alive() bool
}

// MapFile maps a file from an offset on, in the place of what is at an address, or anywhere.
func MapFile(fd int, offset uint64, at unsafe.Pointer, size uint64, flags int) (unsafe.Pointer, error) {
	if at != nil {
		flags |= unix.MAP_FIXED
	}
	p, err := unix.MmapPtr(fd, int64(offset), at, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|flags)
	return p, os.NewSyscallError("mmap", err)
}

// span is a run of free pages of an arena.
type span struct{ first, pages int }

// arena is memory that the device reaches where it lies.
type arena struct {
	base   unsafe.Pointer
	bus    uint64 // its address for the device
	size   uint64
	fd     int
	free   []span // by place, none beside another
	used   int    // pages
	fresh  int    // pages from here on were never used: they are zero
	mapped bool   // the device knows it
	shared bool   // its file is also another's, and none of it is dealt out
}

// Window is where a device reaches memory: bus addresses from First up to Last. Arenas of Unit bytes
// fit its limits of pinned memory.
type Window struct {
	First, Last, Unit uint64
}

// Arenas is all such memory of a device, dealt out in pages. The zero Arenas has none; its
// methods are safe for concurrent use.
type Arenas struct {
	// Window is that of a device behind an IOMMU. With none, the device knows memory by its
	// addresses in this process. It is set before the first Alloc.
	Window Window

	mu      sync.Mutex // guards what follows
	list    []*arena
	leaving []*arena // removed from list; the device may know them still
	device  Device   // that new ones are made known to
	ended   bool

	making  sync.Mutex     // one arena is made at a time
	removal sync.WaitGroup // requests of the device about arenas that are removed
}

func pagesOf(size int) int { return (size-1)/abi.PageSize + 1 }

// newArena makes memory of unit bytes, or for as many as are asked for.
func newArena(size, unit uint64) (*arena, error) {
	if size > unit {
		unit = (size + arenaStep - 1) / arenaStep * arenaStep
	}
	return newFile(unit)
}

// newFile makes memory of so many bytes, whole pages.
func newFile(whole uint64) (*arena, error) {
	fd, err := unix.MemfdCreate("nfcomms-memory", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	a := &arena{fd: fd, size: whole, free: []span{{0, int(whole / abi.PageSize)}}}
	if err = unix.Ftruncate(fd, int64(whole)); err == nil {
		err = shmwire.Seal(fd)
	}
	if err == nil {
		a.base, err = MapFile(fd, 0, nil, whole, unix.MAP_NORESERVE)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	_ = unix.Madvise(a.bytes(0, int(whole)), unix.MADV_HUGEPAGE) // where the system has them for files
	return a, nil
}

// at is the address of the arena in this process.
func (a *arena) at() uintptr { return uintptr(a.base) }

// memory is what a device must know of the arena.
func (a *arena) memory() Memory { return Memory{uint64(a.at()), a.bus, a.size, a.fd} }

// bytes returns memory of the arena.
func (a *arena) bytes(offset uint64, size int) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(a.base, offset)), size)
}

func (a *arena) release() {
	_ = unix.MunmapPtr(a.base, uintptr(a.size)) // it is mapped
	_ = syscall.Close(a.fd)
}

// take takes pages out of the arena; false if they are not there in a row.
func (a *arena) take(pages int) (first int, ok bool) {
	for i := range a.free {
		s := &a.free[i]
		if s.pages < pages {
			continue
		}
		first = s.first
		s.first, s.pages = s.first+pages, s.pages-pages
		if s.pages == 0 {
			a.free = slices.Delete(a.free, i, i+1)
		}
		a.used += pages
		return first, true
	}
	return 0, false
}

// give takes pages back.
func (a *arena) give(first, pages int) {
	a.used -= pages
	i, _ := slices.BinarySearchFunc(a.free, first, func(s span, at int) int { return s.first - at })
	a.free = slices.Insert(a.free, i, span{first, pages})
	if i+1 < len(a.free) && first+pages == a.free[i+1].first {
		a.free[i].pages += a.free[i+1].pages
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].first+a.free[i-1].pages == first {
		a.free[i-1].pages += a.free[i].pages
		a.free = slices.Delete(a.free, i, i+1)
	}
}

// Alloc returns so many bytes from the start of a page. They are zero if asked for.
func (m *Arenas) Alloc(size int, zero bool) ([]byte, error) {
	for {
		if mem, err := m.take(size, zero); mem != nil || err != nil {
			return mem, err
		}
		if err := m.grow(size); err != nil {
			return nil, fmt.Errorf("%d bytes of shared memory: %w", size, err)
		}
	}
}

// take returns memory of the arenas that there are; nil if there is not so much in a row.
func (m *Arenas) take(size int, zero bool) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return nil, fmt.Errorf("device %w", bridge.ErrClosed)
	}
	pages := pagesOf(size)
	for _, a := range m.list {
		if first, ok := a.take(pages); ok {
			return a.hand(first, pages, size, zero), nil
		}
	}
	return nil, nil
}

// hasRoom reports whether there are so many bytes in a row.
func (m *Arenas) hasRoom(size int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.list, func(a *arena) bool {
		return slices.ContainsFunc(a.free, func(s span) bool { return s.pages >= pagesOf(size) })
	})
}

// grow adds an arena that has room for so many bytes, unless another call did meanwhile.
func (m *Arenas) grow(size int) error {
	m.making.Lock()
	defer m.making.Unlock()
	if m.hasRoom(size) {
		return nil
	}
	a, err := m.create(uint64(size))
	for announced := false; err == nil && !announced; {
		announced, err = m.announce(a)
	}
	if err != nil && !errors.Is(err, bridge.ErrNoMemory) && !errors.Is(err, bridge.ErrClosed) {
		err = fmt.Errorf("%w: %w", bridge.ErrNoMemory, err)
	}
	return err
}

// create makes an arena that the device can reach.
func (m *Arenas) create(size uint64) (*arena, error) {
	a, err := newArena(size, cmp.Or(m.Window.Unit, arenaSize))
	if err == nil {
		err = m.place(a)
	}
	return a, err
}

// place gives an arena its address for the device, or releases it.
func (m *Arenas) place(a *arena) error {
	a.bus = uint64(a.at())
	if m.Window.Last == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := append(slices.Clone(m.list), m.leaving...)
	slices.SortFunc(taken, func(a, b *arena) int { return cmp.Compare(a.bus, b.bus) })
	a.bus = m.Window.First
	for _, t := range taken {
		if t.bus-a.bus >= a.size {
			break
		}
		a.bus = t.bus + t.size
	}
	if a.bus > m.Window.Last || m.Window.Last-a.bus < a.size-1 {
		a.release()
		return fmt.Errorf("the device's window of addresses has no room: %w", bridge.ErrNoMemory)
	}
	return nil
}

// hand returns taken pages.
func (a *arena) hand(first, pages, size int, zero bool) []byte {
	mem := a.bytes(uint64(first)*abi.PageSize, size)
	if used := (a.fresh - first) * abi.PageSize; zero && used > 0 {
		clear(mem[:min(used, size)])
	}
	a.fresh = max(a.fresh, first+pages)
	return mem
}

// announce makes an arena known to the device, and its memory ready to be dealt out. A device that
// is lost is told with the next Join. False if that was called meanwhile.
func (m *Arenas) announce(a *arena) (bool, error) {
	m.mu.Lock()
	d := m.device
	m.mu.Unlock()
	err := d.MapMemory(a.memory())
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended:
		a.release()
		return false, fmt.Errorf("device %w", bridge.ErrClosed)
	case d != m.device:
		return false, nil
	case err != nil && d.Alive():
		a.release()
		return false, err
	}
	a.mapped = err == nil
	m.list = append(m.list, a)
	return true, nil
}

// findLocked returns the arena of memory, nil if there is none. Must hold mu.
func (m *Arenas) findLocked(at uintptr) *arena {
	for _, a := range m.list {
		if at-a.at() < uintptr(a.size) {
			return a
		}
	}
	return nil
}

// Bus returns the device's address of data; 0 unless the device reaches all of it.
func (m *Arenas) Bus(data []byte) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, offset := m.holderLocked(data)
	if a == nil {
		return 0
	}
	return a.bus + offset
}

// holderLocked returns the arena that holds all of mem, and where in it; nil if none does. Must hold
// mu.
func (m *Arenas) holderLocked(mem []byte) (*arena, uint64) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	a := m.findLocked(at)
	if a == nil || uint64(at-a.at())+uint64(len(mem)) > a.size {
		return nil, 0
	}
	return a, uint64(at - a.at())
}

// File returns a descriptor of the file that holds mem, and where in it. It is the caller's to
// close. The error is bridge.ErrNotSupported for memory that is not of Alloc.
func (m *Arenas) File(mem []byte) (fd int, offset uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, offset := m.holderLocked(mem)
	if a == nil {
		return 0, 0, fmt.Errorf("only memory of Alloc is reached: %w", bridge.ErrNotSupported)
	}
	if fd, err = unix.FcntlInt(uintptr(a.fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return 0, 0, os.NewSyscallError("fcntl", err)
	}
	return fd, offset, nil
}

// Free takes memory of Alloc back. An arena that is not used any more is removed, but for one; the
// call does not wait for the device's answer to that.
func (m *Arenas) Free(mem []byte) {
	m.free(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), len(mem))
}

func (m *Arenas) free(at uintptr, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended { // the device was closed, and all memory with it, while somebody allocated
		return
	}
	a := m.findLocked(at)
	a.give(int(at-a.at())/abi.PageSize, pagesOf(size))
	if a.used > 0 || len(m.list) == 1 && !a.shared {
		return
	}
	i, d := slices.Index(m.list, a), m.device
	m.list = slices.Delete(m.list, i, i+1)
	m.leaving = append(m.leaving, a)
	m.removal.Go(func() {
		d.UnmapMemory(a.memory()) // a device that is lost has none
		m.mu.Lock()
		m.leaving = slices.DeleteFunc(m.leaving, func(l *arena) bool { return l == a })
		m.mu.Unlock()
		a.release()
	})
}

// Join makes all memory known to a device, and that which arrives later.
func (m *Arenas) Join(d Device) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.device = d
	for _, a := range m.list {
		err := d.MapMemory(a.memory())
		if a.mapped = err == nil; err != nil {
			return fmt.Errorf("map %d bytes: %w", a.size, err)
		}
	}
	return nil
}

// Cover puts copies in the place of all memory: a device that does not answer keeps what
// it has, and reaches nothing that this process uses any more. It returns the number of bytes
// copied, which a device may keep beside the copies.
func (m *Arenas) Cover() (copied uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.list {
		if a.shared { // a copy would be of no use to those who share it
			continue
		}
		other, err := newFile(a.size)
		if err != nil {
			return copied, err
		}
		n, err := other.copyFrom(a)
		copied += n
		if err == nil {
			_, err = MapFile(other.fd, 0, a.base, a.size, unix.MAP_NORESERVE)
		}
		if err != nil {
			other.release()
			return copied, err
		}
		a.fd, other.fd = other.fd, a.fd
		other.release()
	}
	return copied, nil
}

// copyFrom copies the pages of another arena that are in use and were touched ever. It does not touch
// the other's mapping: a page that is not there would be made, and a user may have protected some.
func (a *arena) copyFrom(other *arena) (copied uint64, err error) {
	at := 0
	for _, s := range append(slices.Clone(other.free), span{int(other.size / abi.PageSize), 0}) {
		n, err := a.copyPages(other, int64(at)*abi.PageSize, int64(s.first)*abi.PageSize)
		copied += n
		if err != nil {
			return copied, err
		}
		at = s.first + s.pages
	}
	return copied, nil
}

// copyPages copies from one offset to another, without the holes of the file.
func (a *arena) copyPages(other *arena, at, end int64) (copied uint64, err error) {
	for at < end {
		at, err = unix.Seek(other.fd, at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) || err == nil && at >= end {
			return copied, nil
		}
		hole := end
		if err == nil {
			hole, err = unix.Seek(other.fd, at, unix.SEEK_HOLE)
		}
		for hole = min(hole, end); err == nil && at < hole; {
			var n int
			n, err = unix.Pread(other.fd, a.bytes(uint64(at), int(hole-at)), at)
			at, copied = at+int64(n), copied+uint64(n)
		}
		if err != nil {
			return copied, fmt.Errorf("copy shared memory: %w", err)
		}
	}
	return copied, nil
}

// End gives all memory back. The device must answer no more, so that no request waits for it.
func (m *Arenas) End() {
	m.mu.Lock()
	for _, a := range m.list {
		a.release()
	}
	m.list, m.ended = nil, true
	m.mu.Unlock()
	m.removal.Wait()
}
