package mailbox

import (
	"context"
	"os"
	"unsafe"
)

// Port is what a back end supplies to the mailbox manager: a mapped mailbox
// area and the few operations that are not plain memory.
type Port interface {
	// Area returns the mailbox area of the current epoch. It stays mapped
	// until Close, also across Restart.
	Area() (base unsafe.Pointer, size uint64)
	// Ring wakes an island that sleeps. It does not block.
	Ring(island int)
	// Yield lets another thread have the processor, if one waits for it.
	Yield()
	// Doorbell returns a pollable file that becomes readable when the device
	// rings the host (an eventfd). The port closes it in Close.
	Doorbell() *os.File
	// Assist moves a piece of waiting DMA on the calling goroutine and
	// reports whether there was one. Ports that cannot return false.
	Assist() bool
	// Map makes the memory of a transfer or a region known to the device and returns
	// the bus address of its first byte; the others follow it there. The memory is
	// pinned, and data is never empty. With an error the transfer does not begin.
	// Regions are mapped and unmapped at any time, also during Restart, and stay mapped over it.
	// A port with memory of its own for regions is a region.Allocator, too. Address 0: the
	// device does not reach it there, see Stager.
	Map(data []byte) (address uint64, err error)
	// Unmap ends what Map began, when DMA is quiet: once for each Map, also after a
	// Fence, but before Close, and for a transfer before Restart.
	Unmap(address, size uint64)
	// Fence stops all DMA for good and returns when none runs any more.
	Fence()
	// Restart fences the device, ends its epoch and boots the next one. The
	// area is laid anew, and the doorbell may be another. It waits for a device no longer than
	// ctx, and may be called again after an error.
	Restart(ctx context.Context) error
	// Close stops the device. The area may be unmapped afterwards.
	Close() error
}

// Runner is a Port whose islands a call that waits can run on its own thread. The
// device's thread then need not be scheduled for an answer, which on a busy machine
// takes far longer than the answer.
type Runner interface {
	// Run runs an island until it has nothing to do, some tens of microseconds
	// at most. ran is false if somebody else runs it, who will look for new
	// messages once more; thread, if that is the device's own. No doorbell rings for what it answers to calls that
	// sleep: bit i of undrained is set if the i-th mailbox of the island must be
	// drained. It is called by calls alone: none is left at Restart and Close. If it is exact, records
	// have the time of this run.
	Run(island int, exact bool) (undrained uint64, ran, thread bool)
}

// Stager is a Port whose device reaches only memory that the port itself gives for
// regions. The bytes of other buffers pass through such memory.
type Stager interface {
	// Stage returns memory for a transfer of so many bytes, from the start of a page, and its
	// bus address.
	Stage(size int) (mem []byte, address uint64, err error)
	// Fill copies bytes that the device reads next to where a page of such memory starts. It
	// returns the number of bytes copied, and an error if the next cannot be reached.
	Fill(mem, data []byte) (int, error)
	// Unstage takes it back, when DMA is quiet.
	Unstage(mem []byte)
}

// Sharer is a Port whose device reaches memory of this process in place.
type Sharer interface {
	// Share maps all of a file that keeps its size for this process and the device, until Unshare.
	// Map returns its address for the device.
	Share(file int) (mem []byte, err error)
	// Unshare ends that.
	Unshare(mem []byte)
}

// Blamer is a Port that knows what device processes did.
type Blamer interface {
	// Blame returns err, or that in a *bridge.ComputingError if a device
	// process keeps an island to itself. It does not wait.
	Blame(err error) error
	// Crashed returns err, or that in a *bridge.CrashError if a process that crashed
	// ended this subscription of a target. It does not wait.
	Crashed(target uint32, generation uint64, err error) error
}

// Carrier is a Port whose device is behind another process: that process carries the messages of
// the device, whose heartbeats may be late for other reasons.
type Carrier interface {
	// Ask asks the process whether it is there, and calls answered from another goroutine, once. It does
	// not wait.
	Ask(answered func(there bool))
}
