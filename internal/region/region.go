package region

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Most is how many regions a device has at once.
const Most = 1024

// ownFile is the size from which on memory of Alloc is of a file of its own, where hosts give it away. A
// smaller region is quicker to copy, once, than to map.
const ownFile = 1 << 20

// Mapper makes memory known to a device, see mailbox.Port. It is called at any time,
// also while the device restarts, and what it mapped stays mapped over that.
type Mapper interface {
	// Map returns the address that the device has for the first byte; 0: it does not
	// reach that memory where it lies.
	Map(data []byte) (address uint64, err error)
	// Unmap ends what Map began.
	Unmap(address, size uint64)
}

// Allocator is a Mapper with memory of its own, which the device reaches best: that
// is what Alloc then gives. Others get pages of this process.
type Allocator interface {
	// Alloc returns size bytes of zeroed memory that start on a page, at least one;
	// bridge.ErrNoMemory where there is not that much. They are given to Map next.
	Alloc(size int) ([]byte, error)
	// Free takes back what Alloc returned. Nothing of it is mapped any more.
	Free(data []byte)
}

// Table holds the regions of a device. A transfer looks its memory up without a lock.
type Table struct {
	mapper Mapper
	sorted atomic.Pointer[[]*Region] // by address; nil while there is none. Replaced, never changed.

	mu        sync.Mutex // guards changes of sorted, and what follows
	ended     bool
	givens    []*given          // memory that hosts give each other, the oldest first
	byKey     map[uint64]*given // … by the keys under which any of them exposes it
	exposures uint64            // how often this host has exposed memory

	asking sync.Mutex // held while the mapper is asked for such memory
}

// Region is memory that was prepared for transfers. It implements bridge.Region.
type Region struct {
	table   *Table
	first   uintptr // where it is in this process
	size    uint64
	address uint64 // … and for the device
	free    func([]byte)
	pin     runtime.Pinner
	users   atomic.Int64 // transfers that use it; negative once it is released, or moves
	moved   atomic.Bool  // then: another host has it, or is about to

	mem   []byte // nil once it is not this host's; guarded by the table
	given *given // the memory that hosts give each other, if it is; likewise
	ours  bool   // of Alloc
}

var _ bridge.Region = (*Region)(nil)

// released is added to the users of a region that is none any more.
const released = math.MinInt64 / 2

// Init sets who maps the memory. It comes before any other call.
func (t *Table) Init(m Mapper) { t.mapper = m }

// Use returns the region that holds all of data, for a transfer that calls Done
// afterwards; nil if there is none. It allocates nothing and takes no lock. The error is
// bridge.ErrMoved for memory that another host has.
func (t *Table) Use(data []byte) (*Region, error) {
	list := t.sorted.Load()
	if list == nil || len(data) == 0 {
		return nil, nil
	}
	r := find(*list, uintptr(unsafe.Pointer(unsafe.SliceData(data))), uint64(len(data)))
	if r == nil || r.users.Add(1) > 0 {
		return r, nil
	}
	r.users.Add(-1)
	if r.moved.Load() {
		return nil, errMoved
	}
	return nil, nil
}

// Done ends a use.
func (r *Region) Done() { r.users.Add(-1) }

// At returns the address that the device has for data, which is in the region.
func (r *Region) At(data []byte) uint64 {
	return r.address + uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))-r.first)
}

// Reached reports whether the device reaches the region where it lies.
func (r *Region) Reached() bool { return r.address != 0 }

// find returns the region that holds so many bytes at an address, nil if none does.
func find(list []*Region, at uintptr, size uint64) *Region {
	i := before(list, at+1)
	if i == 0 {
		return nil
	}
	r := list[i-1]
	if offset := uint64(at - r.first); offset >= r.size || size > r.size-offset {
		return nil
	}
	return r
}

// before returns how many regions start before an address.
func before(list []*Region, at uintptr) int {
	low, high := 0, len(list)
	for low < high {
		if mid := (low + high) / 2; list[mid].first < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Alloc returns a region of new memory.
func (t *Table) Alloc(size int) (bridge.Region, error) {
	if size <= 0 {
		return nil, fmt.Errorf("region of %d bytes: %w", size, bridge.ErrInvalid)
	}
	if giver, ok := t.mapper.(Giver); ok && size >= ownFile {
		if r, err := t.own(giver, size); !errors.Is(err, bridge.ErrNotSupported) {
			return r, err
		}
	}
	alloc, free := Pages, FreePages
	if a, ok := t.mapper.(Allocator); ok {
		alloc, free = a.Alloc, a.Free
	}
	mem, err := alloc(size)
	if err != nil {
		return nil, err
	}
	r, err := t.add(mem, t.mapper.Map, free)
	if err != nil {
		free(mem)
		return nil, err
	}
	r.ours = true
	return r, nil
}

// own returns a region of a file of its own, which can be given away without a copy.
func (t *Table) own(giver Giver, size int) (bridge.Region, error) {
	mem, err := giver.Make(abi.PageSize + size)
	if err != nil {
		return nil, err
	}
	g := &given{mem: mem}
	drop := func([]byte) { giver.Drop(mem, true) }
	r, err := t.add(g.bytes(uint64(size)), t.mapper.Map, drop)
	if err != nil {
		drop(nil)
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.mem == nil {
		return nil, errClosed // with the device
	}
	r.ours, r.given, g.last = true, g, r
	t.givens = append(t.givens, g)
	return r, nil
}

// Register makes a region of memory that is there. ErrBusy if a part of it belongs
// to one already.
func (t *Table) Register(mem []byte) (bridge.Region, error) {
	if len(mem) == 0 {
		return nil, fmt.Errorf("region of no bytes: %w", bridge.ErrInvalid)
	}
	return t.Add(mem, t.mapper.Map, func([]byte) {})
}

// Add makes a region of memory that is not Go's, which somebody else maps, and frees
// when the region ends. It is the caller's after an error.
func (t *Table) Add(mem []byte, mapping func([]byte) (uint64, error), free func([]byte)) (bridge.Region, error) {
	r, err := t.add(mem, mapping, free)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// add makes a region of mem.
func (t *Table) add(mem []byte, mapping func([]byte) (uint64, error), free func([]byte)) (*Region, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &Region{
		table: t, mem: mem, first: uintptr(unsafe.Pointer(unsafe.SliceData(mem))), size: uint64(len(mem)), free: free,
	}
	list := t.list()
	i := before(list, r.first)
	switch {
	case t.ended:
		return nil, fmt.Errorf("device %w", bridge.ErrClosed)
	case len(list) == Most:
		return nil, fmt.Errorf("more than %d regions: %w", Most, bridge.ErrNoMemory)
	case i > 0 && list[i-1].end() > r.first || i < len(list) && r.end() > list[i].first:
		return nil, fmt.Errorf("memory of another region: %w", bridge.ErrBusy)
	}
	r.pin.Pin(unsafe.SliceData(mem))
	address, err := mapping(mem)
	if err != nil {
		r.pin.Unpin()
		return nil, fmt.Errorf("map %d bytes: %w", len(mem), err)
	}
	r.address = address
	t.store(slices.Insert(slices.Clone(list), i, r))
	return r, nil
}

// end returns the address after the region. Memory never reaches the last one.
func (r *Region) end() uintptr { return r.first + uintptr(r.size) }

// list returns the present regions. Must hold mu.
func (t *Table) list() []*Region {
	if list := t.sorted.Load(); list != nil {
		return *list
	}
	return nil
}

// store replaces the regions. Must hold mu.
func (t *Table) store(list []*Region) {
	if len(list) == 0 {
		t.sorted.Store(nil)
		return
	}
	t.sorted.Store(&list)
}

// Bytes returns the memory; nil once the region is released, or another host's.
func (r *Region) Bytes() []byte {
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	return r.mem
}

// Close releases the region. ErrBusy while a transfer or a window uses it. It is idempotent.
func (r *Region) Close() error {
	t := r.table
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.mem == nil {
		return nil
	}
	if !r.users.CompareAndSwap(0, released) {
		return errUses
	}
	list := slices.Clone(t.list())
	i := slices.Index(list, r)
	t.store(slices.Delete(list, i, i+1))
	r.release()
	return nil
}

// release gives the memory back. Must hold the table's mu.
func (r *Region) release() {
	if r.given != nil {
		r.pin.Unpin()
		r.table.drop(r.given, true)
		r.mem = nil
		return
	}
	r.table.mapper.Unmap(r.address, r.size)
	r.pin.Unpin()
	r.free(r.mem)
	r.mem = nil
}

// End releases all regions, and lets nobody add one. No transfer is under way.
func (t *Table) End() {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, g := range slices.Clone(t.givens) {
		if g.offer != nil {
			g.offer.settle()
		}
	}
	for _, r := range t.list() {
		if r.users.Store(released); r.mem != nil {
			r.release()
		}
	}
	for len(t.givens) > 0 {
		t.drop(t.givens[0], false)
	}
	t.sorted.Store(nil)
}

// AddTo counts the regions.
func (t *Table) AddTo(s *bridge.Stats) {
	list := t.sorted.Load()
	if list == nil {
		return
	}
	for _, r := range *list {
		if !r.moved.Load() {
			s.Regions++
			s.RegionBytes += r.size
		}
	}
}
