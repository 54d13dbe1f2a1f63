//go:build cgo

package firmware

/*
#cgo CFLAGS: -I${SRCDIR}/../../firmware -std=gnu11 -O2 -Wall -Wextra -fno-strict-aliasing
#cgo LDFLAGS: -ldl -lpthread
#cgo noescape nfc_hosted_run
#cgo nocallback nfc_hosted_run
#cgo noescape nfc_hosted_assist
#cgo nocallback nfc_hosted_assist
#include <time.h>
#include "port/hosted.h"
*/
import "C"

import (
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
	_ "github.com/nfcomms/nfcomms/firmware" // its sources: a change of one rebuilds this package
	"github.com/nfcomms/nfcomms/internal/model"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Available reports whether this build contains the firmware.
const Available = true

// Instance is a running device. Its methods are safe for concurrent use,
// except that Restart and Close exclude each other and themselves.
type Instance struct {
	mu      sync.RWMutex // guards what follows
	h       *C.struct_nfc_hosted
	epoch   uint32
	islands int
}

// words converts numbers to those of the firmware; false if one does not fit.
func words(numbers ...int) ([]C.uint32_t, bool) {
	list := make([]C.uint32_t, len(numbers))
	for i, n := range numbers {
		if n < 0 || n > math.MaxUint32 {
			return nil, false
		}
		list[i] = C.uint32_t(n)
	}
	return list, true
}

// native is the configuration as the firmware has it; false if it has no such.
func (c *Config) native() (n C.struct_nfc_config, ok bool) {
	w, ok := words(c.Channels, c.Managers, c.Islands, c.Microengines, c.Contexts, c.Slots, c.Window,
		int(min(c.Stack, math.MaxInt)), int(c.Beat.Milliseconds()), c.Runs, c.Eager, c.Shared, c.HostRings, c.Lone)
	if !ok || c.Beat%time.Millisecond != 0 || min(c.TargetTimeout, c.Spin) < 0 {
		return n, false
	}
	n = C.struct_nfc_config{
		channels: w[0], managers: w[1], islands: w[2], engines_me: w[3], contexts: w[4], slots: w[5], window: w[6],
		stack: w[7], beat_ms: w[8], runs: w[9], eager: w[10], hosts: w[11], host_rings: w[12], lone: w[13],
		target_timeout_ns: C.uint64_t(c.TargetTimeout.Nanoseconds()), buffer: C.uint64_t(c.Buffer),
	}
	for i, size := range c.Memory {
		n.memory[i] = C.uint64_t(size)
		n.access_ns[i] = C.uint32_t(model.Memories[i].AccessNS(c.MHz))
	}
	return n, true
}

// Check returns abi.ErrInvalid for a shape that makes no sense.
func (c Config) Check() abi.Status {
	n, ok := c.native()
	if !ok || C.nfc_config_check(&n) != 0 || c.Engines < 0 || c.Engines > wire.IslandsMax || c.Busy < 0 || c.Busy > math.MaxInt32 || c.MHz < 0 || c.MHz > mhzMax {
		return abi.ErrInvalid
	}
	return abi.OK
}

// Start boots a device on threads of this process. The error is an abi.Status:
// abi.ErrInvalid for a shape that makes no sense, abi.ErrNoMemory, or
// abi.ErrTooLarge for one whose mailbox area does not fit in the bus's.
func Start(c Config) (*Instance, abi.Status) {
	if status := c.Check(); status != abi.OK {
		return nil, status
	}
	config, _ := c.native() // it was checked
	options := C.struct_nfc_hosted_options{
		spin_ns: C.uint64_t(c.Spin.Nanoseconds()),
		engines: C.uint32_t(c.Engines),
		busy:    C.uint32_t(c.Busy),
		epoch:   C.uint32_t(max(c.Epoch, 1)),
		shared:  C.bool(c.Shared > 0),
		log_fd:  C.int32_t(c.LogFD),
	}
	if c.Bus != nil {
		options.bus = c.Bus.b
	}
	i := &Instance{epoch: max(c.Epoch, 1), islands: max(c.Islands, 1)}
	if rc := C.nfc_hosted_open(&config, &options, &i.h); rc != 0 {
		return nil, abi.Status(-rc)
	}
	return i, abi.OK
}

// Area returns the mailbox area of the present epoch.
func (i *Instance) Area() (unsafe.Pointer, uint64) {
	var size C.uint64_t
	p := C.nfc_hosted_area(i.h, &size)
	return p, uint64(size)
}

// Doorbell returns the eventfd that the device rings. It stays the instance's.
func (i *Instance) Doorbell() int { return int(C.nfc_hosted_doorbell(i.h)) }

// Assist moves one waiting DMA piece on the calling thread.
func (i *Instance) Assist() bool { return C.nfc_hosted_assist(i.h) != 0 }

// Run runs an island on the calling thread until it has nothing to do, some tens of microseconds
// at most. Times of records are exact, or those of one of the last 16 runs. ran is false if somebody
// else does, who will look for new messages once more; thread, if that is the island's own. Bit i of
// undrained asks the caller to drain the island's i-th mailbox: no doorbell rang for what is there.
// Not beside Restart or Close.
func (i *Instance) Run(island int, exact bool) (undrained uint64, ran, thread bool) {
	r := C.nfc_hosted_run(i.h, C.uint32_t(island), C.bool(exact))
	return uint64(r.undrained), r.owner == C.NFC_OWNER_NONE, r.owner == C.NFC_OWNER_THREAD
}

// Sense sets what the device's sensors read from now on, with its next heartbeat:
// levels of current, voltage, temperature, links or any other part.
func (i *Instance) Sense(d abi.Diagnostic) { C.nfc_hosted_sense(i.h, C.uint32_t(d)) }

// Fence turns DMA off and returns when no copy runs any more.
func (i *Instance) Fence() { C.nfc_hosted_fence(i.h) }

// Ring wakes an island that sleeps.
func (i *Instance) Ring(island int) { C.nfc_hosted_ring(i.h, C.uint32_t(island)) }

// Computing is a process that keeps its island to itself: it computes, and does
// not call the firmware.
type Computing struct {
	Process uint64 // 0: nobody knows which
	Program string
	Island  int
	For     time.Duration
}

func computing(c *C.struct_nfc_computing) Computing {
	var now C.struct_timespec
	C.clock_gettime(C.CLOCK_MONOTONIC, &now)
	return Computing{
		Process: uint64(c.process), Program: C.GoString(&c.program[0]), Island: int(c.island),
		For: time.Duration(int64(now.tv_sec)*1e9 + int64(now.tv_nsec) - int64(c.since_ns)),
	}
}

// Computing lists the processes that have computed for longer than that. It does
// not wait: while Restart or Close is at work there are none.
func (i *Instance) Computing(longer time.Duration) []Computing {
	if !i.mu.TryRLock() {
		return nil
	}
	defer i.mu.RUnlock()
	var all []Computing
	for island := 0; i.h != nil && island < i.islands; island++ {
		var c C.struct_nfc_computing
		if !C.nfc_hosted_computes(i.h, C.uint32_t(island), &c) {
			continue
		}
		if now := computing(&c); now.For > longer {
			all = append(all, now)
		}
	}
	return all
}

// Restart fences the device and boots its next epoch in a new area. On a bus a
// new Instance takes its place. left is as for Close.
func (i *Instance) Restart() (left *Computing, status abi.Status) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var c C.struct_nfc_computing
	var stays C.bool
	i.epoch++
	status = abi.Status(-C.nfc_hosted_restart(i.h, C.uint32_t(i.epoch), &stays, &c))
	return leftBehind(stays, &c), status
}

// Close stops the device and frees what it held. It is idempotent. A process that
// computes keeps its thread, and the memory of its device, until it returns: left
// says which, nil if there is none.
func (i *Instance) Close() (left *Computing) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.h == nil {
		return nil
	}
	var c C.struct_nfc_computing
	var stays C.bool
	C.nfc_hosted_close(i.h, &stays, &c)
	i.h = nil
	return leftBehind(stays, &c)
}

func leftBehind(stays C.bool, c *C.struct_nfc_computing) *Computing {
	if !stays {
		return nil
	}
	left := computing(c)
	return &left
}
