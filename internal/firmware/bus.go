//go:build cgo

package firmware

/*
#include "port/bus.h"
*/
import "C"

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Bus is a device's side of a bus: the memory behind its mailbox BAR, host
// memory by bus address, and interrupt vectors. It outlives the devices on it.
// Its methods are safe for concurrent use, except that nothing may follow Close.
type Bus struct {
	b       *C.struct_nfc_bus
	vectors int
}

// Range is a piece of host memory in bytes. File is a descriptor of the file
// behind it and stays the caller's; -1: the owner of the bus moves the bytes.
type Range struct {
	Address, Size, Offset uint64
	Read, Write           bool
	File                  int
}

// BusRequest is an access to memory without a file: its owner reads host memory
// at Address into Memory, or writes it there, and calls Done once.
type BusRequest struct {
	Address uint64
	Memory  []byte
	Write   bool

	bus *Bus
	r   *C.struct_nfc_bus_request
}

// BusStats counts since NewBus. Ranges are those mapped now; Pending is a mask
// of vectors.
type BusStats struct {
	Ranges, Maps, Unmaps         uint64
	Faults, FaultAddress         uint64
	FaultWrite                   bool
	BytesRead, BytesWritten      uint64
	Interrupts, HeldOff, Pending uint64
}

// NewBus makes a bus with a mailbox BAR of whole pages.
func NewBus(areaSize uint64, vectors int) (*Bus, error) {
	b := C.nfc_bus_new(C.uint64_t(areaSize), C.uint32_t(vectors))
	if b == nil {
		return nil, fmt.Errorf("make bus: area of %d bytes, %d vectors: %w", areaSize, vectors, syscall.ENOMEM)
	}
	return &Bus{b: b, vectors: vectors}, nil
}

// Close frees the bus. The devices on it are closed.
func (b *Bus) Close() { C.nfc_bus_free(b.b) }

// errno turns a negated errno of C into an error.
func errno(rc C.int) error {
	if rc == 0 {
		return nil
	}
	return syscall.Errno(-rc)
}

// Area returns the memory behind the mailbox BAR.
func (b *Bus) Area() []byte {
	var size C.uint64_t
	p := C.nfc_bus_area(b.b, &size)
	return unsafe.Slice((*byte)(p), int(size))
}

// AreaFile returns the descriptor of that memory. It stays the bus's.
func (b *Bus) AreaFile() int { return int(C.nfc_bus_area_fd(b.b)) }

// ClearArea zeroes it.
func (b *Bus) ClearArea() error { return errno(C.nfc_bus_area_clear(b.b)) }

// Load reads it as the host does; syscall.EINVAL outside.
func (b *Bus) Load(offset uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return errno(C.nfc_bus_area_load(b.b, C.uint64_t(offset), unsafe.Pointer(&p[0]), C.uint64_t(len(p))))
}

// Store writes it as the host does; syscall.EINVAL outside.
func (b *Bus) Store(offset uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	return errno(C.nfc_bus_area_store(b.b, C.uint64_t(offset), unsafe.Pointer(&p[0]), C.uint64_t(len(p))))
}

// Map makes host memory reachable. Errors are a syscall.Errno: EINVAL, EACCES,
// EEXIST (something is there), ENOSPC (too much is), ENOMEM.
func (b *Bus) Map(r Range) error {
	var access C.uint32_t
	if r.Read {
		access |= C.NFC_BUS_READ
	}
	if r.Write {
		access |= C.NFC_BUS_WRITE
	}
	return errno(C.nfc_bus_map(b.b, &C.struct_nfc_bus_range{
		address: C.uint64_t(r.Address), size: C.uint64_t(r.Size), offset: C.uint64_t(r.Offset),
		access: access, fd: C.int32_t(r.File),
	}))
}

// Unmap takes away every range inside, when no copy uses them any more. EINVAL
// if one is inside in part.
func (b *Bus) Unmap(address, size uint64) error {
	return errno(C.nfc_bus_unmap(b.b, C.uint64_t(address), C.uint64_t(size)))
}

// UnmapAll takes away every range.
func (b *Bus) UnmapAll() { C.nfc_bus_unmap_all(b.b) }

// Master lets the device reach host memory and interrupt, or keeps it from
// both; then it returns when no copy runs.
func (b *Bus) Master(on bool) { C.nfc_bus_master(b.b, C.bool(on)) }

// Read copies host memory; abi.ErrDMA if some of it is out of reach.
func (b *Bus) Read(p []byte, address uint64) abi.Status {
	if len(p) == 0 {
		return abi.OK
	}
	return abi.Status(C.nfc_bus_read(b.b, unsafe.Pointer(&p[0]), C.uint64_t(address), C.uint64_t(len(p))))
}

// Write copies to host memory; abi.ErrDMA if some of it is out of reach.
func (b *Bus) Write(address uint64, p []byte) abi.Status {
	if len(p) == 0 {
		return abi.OK
	}
	return abi.Status(C.nfc_bus_write(b.b, C.uint64_t(address), unsafe.Pointer(&p[0]), C.uint64_t(len(p))))
}

// Serve sets whether requests are answered. Without, access to memory
// without a file is a fault.
func (b *Bus) Serve(on bool) { C.nfc_bus_serve(b.b, C.bool(on)) }

// RequestFile returns an eventfd that is readable when there may be a request.
// It stays the bus's.
func (b *Bus) RequestFile() int { return int(C.nfc_bus_request_fd(b.b)) }

// Request returns the next request, nil if there is none.
func (b *Bus) Request() *BusRequest {
	r := C.nfc_bus_request_take(b.b)
	if r == nil {
		return nil
	}
	return &BusRequest{
		Address: uint64(r.address), Memory: unsafe.Slice((*byte)(r.memory), int(r.length)),
		Write: r.access == C.NFC_BUS_WRITE, bus: b, r: r,
	}
}

// Done ends a request. Memory is not touched afterwards.
func (r *BusRequest) Done(s abi.Status) { C.nfc_bus_request_done(r.bus.b, r.r, C.int(s)) }

// Assign gives a vector its eventfd, which stays the caller's; -1: none.
func (b *Bus) Assign(vector, fd int) error {
	return errno(C.nfc_irq_assign(b.irq(), C.uint32_t(vector), C.int(fd)))
}

// UseVectors sets how many vectors the host uses, 1 at least.
func (b *Bus) UseVectors(n int) { C.nfc_irq_use(b.irq(), C.uint32_t(n)) }

// HoldOff sets the least microseconds between two interrupts of a vector.
func (b *Bus) HoldOff(vector int, us uint32) {
	C.nfc_irq_holdoff(b.irq(), C.uint32_t(vector), C.uint32_t(us))
}

// Raise interrupts through a vector.
func (b *Bus) Raise(vector int) { C.nfc_irq_raise(b.irq(), C.uint32_t(vector)) }

// Fire interrupts now, whatever HoldOff says.
func (b *Bus) Fire(vector int) { C.nfc_irq_fire(b.irq(), C.uint32_t(vector)) }

// Vectors returns how many there are.
func (b *Bus) Vectors() int { return b.vectors }

// VectorOf returns the vector on which an island interrupts.
func (b *Bus) VectorOf(island int) int { return int(C.nfc_irq_vector(b.irq(), C.uint32_t(island))) }

// RingHost interrupts for an island.
func (b *Bus) RingHost(island int) { C.nfc_irq_ring(b.irq(), C.uint32_t(island)) }

// ClearInterrupts forgets what is pending.
func (b *Bus) ClearInterrupts() { C.nfc_irq_clear(b.irq()) }

func (b *Bus) irq() *C.struct_nfc_irq { return C.nfc_bus_irq(b.b) }

// Stats returns the counters.
func (b *Bus) Stats() BusStats {
	var s C.struct_nfc_bus_stats
	C.nfc_bus_stats(b.b, &s)
	return BusStats{
		Ranges: uint64(s.ranges), Maps: uint64(s.maps), Unmaps: uint64(s.unmaps),
		Faults: uint64(s.faults), FaultAddress: uint64(s.fault_address),
		FaultWrite: s.fault_access == C.NFC_BUS_WRITE,
		BytesRead:  uint64(s.bytes_read), BytesWritten: uint64(s.bytes_written),
		Interrupts: uint64(s.irq.sent), HeldOff: uint64(s.irq.held), Pending: uint64(s.irq.pending),
	}
}
