//go:build linux

package arena

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/logqueue"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Port is the part of a mailbox manager's port that all devices of another process have alike: the
// mailbox area, and memory of regions and transfers that both processes reach.
type Port struct {
	Path string // of the device's socket, for the log
	Log  *logqueue.Queue
	Arenas

	copied atomic.Bool // the log says that buffers are copied

	Restarting sync.RWMutex // guards what follows, and the connection, against the restart of an epoch
	area       unsafe.Pointer
	size       uint64
	old        []mapping // areas that were, until Unmap
}

// mapping is an area that is mapped.
type mapping struct {
	base unsafe.Pointer
	size uint64
}

// MapArea maps a file from an offset on as the mailbox area, in the place of the one before if it is as
// large. Nobody uses the port meanwhile.
func (p *Port) MapArea(file int, offset, size uint64) error {
	place := p.area
	if size != p.size {
		place = nil
	}
	area, err := MapFile(file, offset, place, size, 0)
	if err != nil {
		return fmt.Errorf("map mailbox area: %w", err)
	}
	if place == nil && p.area != nil {
		p.old = append(p.old, mapping{p.area, p.size})
	}
	p.area, p.size = area, size
	return nil
}

// Leave says in the mailbox area that the device serves no more: the mailbox manager takes it for lost.
func (p *Port) Leave() {
	p.Restarting.RLock()
	defer p.Restarting.RUnlock()
	if p.area != nil {
		atomic.StoreUint32(&(*wire.Area)(p.area).State, wire.DeviceOff)
	}
}

// EndMemory gives back all memory and the mailbox areas. Restarting must be locked, the device gone.
func (p *Port) EndMemory() {
	p.End()
	for _, m := range append(p.old, mapping{p.area, p.size}) {
		_ = unix.MunmapPtr(m.base, uintptr(m.size)) // it is mapped
	}
	p.area = nil
}

// Area returns the mailbox area of the present epoch.
func (p *Port) Area() (unsafe.Pointer, uint64) {
	p.Restarting.RLock()
	defer p.Restarting.RUnlock()
	return p.area, p.size
}

// Yield gives way to the device, which may wait for this processor.
func (p *Port) Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Assist has nothing to move: DMA is the device's.
func (p *Port) Assist() bool { return false }

// Map returns where the device reaches memory of a region, if it is of Alloc.
func (p *Port) Map(data []byte) (uint64, error) { return p.Bus(data), nil }

// Unmap has nothing to end.
func (p *Port) Unmap(uint64, uint64) {}

// Alloc returns memory that the device reaches.
func (p *Port) Alloc(size int) ([]byte, error) { return p.Arenas.Alloc(size, true) }

// Free takes it back, and lifts a protection that its user gave it. Nobody gets memory of which the
// user has unmapped a part.
func (p *Port) Free(data []byte) {
	if err := unix.Mprotect(data, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		p.Log.Error("memory of Alloc is gone, and stays out of use", "address", p.Path, "bytes", len(data), "err", err)
		return
	}
	p.Unstage(data)
}

// Stage gives memory of that kind to a transfer.
func (p *Port) Stage(size int) ([]byte, uint64, error) {
	if !p.copied.Swap(true) {
		p.Log.Info("buffers are copied once more: memory of Alloc is not", "address", p.Path)
	}
	mem, err := p.Arenas.Alloc(size, false)
	return mem, p.Bus(mem), err
}

// Fill copies bytes into such memory.
func (p *Port) Fill(mem, data []byte) (int, error) { return fault.Give(mem, data) }

// Unstage takes it back.
func (p *Port) Unstage(mem []byte) { p.Arenas.Free(mem) }

// Cover puts copies in the place of all memory, of which a device that does not answer keeps what it
// had.
func (p *Port) Cover() {
	copied, err := p.Arenas.Cover()
	if err != nil {
		p.Log.Error("device does not answer, and may still write to registered memory", "address", p.Path, "err", err)
		return
	}
	p.Log.Info("device does not answer, and keeps the memory that it had; calls use a copy", "address", p.Path, "bytes", copied)
}
