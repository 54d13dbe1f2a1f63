//go:build cgo

package firmware

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -Wextra -fno-strict-aliasing
#cgo LDFLAGS: -ldl -lpthread
#include <time.h>
#include "port_hosted.h"
*/
import "C"

import (
	"sync"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Available reports whether this build contains the firmware.
const Available = true

// Config is the shape of a device. Zero fields take the firmware's defaults.
type Config struct {
	Channels, Managers, Islands int
	Microengines, Contexts      int
	Slots, Window               int
	Stack                       int // bytes per context
	Engines                     int // DMA threads beside the islands
	Beat, TargetTimeout         time.Duration
	Spin                        time.Duration // how long an idle island spins
	Memory                      [abi.MemoryCount]uint64
	LogFD                       int // device log lines go to a duplicate of it; -1: nowhere
	// Bus carries the device, nil: host memory is this process's own. There
	// is one device on a bus at a time, and it is closed before the bus.
	Bus *Bus
	// Epoch of the first life; 0: 1.
	Epoch uint32
}

// Instance is a running device. Its methods are safe for concurrent use,
// except that Restart and Close exclude each other and themselves.
type Instance struct {
	mu      sync.RWMutex // guards what follows
	h       *C.struct_nfc_hosted
	epoch   uint32
	islands int
}

// Start boots a device on threads of this process. The error is an abi.Status:
// abi.ErrInvalid for a shape that makes no sense, abi.ErrNoMemory, or
// abi.ErrTooLarge for one whose mailbox area does not fit in the bus's.
func Start(c Config) (*Instance, abi.Status) {
	config := C.struct_nfc_config{
		channels:          C.uint32_t(c.Channels),
		managers:          C.uint32_t(c.Managers),
		islands:           C.uint32_t(c.Islands),
		engines_me:        C.uint32_t(c.Microengines),
		contexts:          C.uint32_t(c.Contexts),
		slots:             C.uint32_t(c.Slots),
		window:            C.uint32_t(c.Window),
		stack:             C.uint32_t(c.Stack),
		beat_ms:           C.uint32_t(c.Beat.Milliseconds()),
		epoch:             C.uint32_t(max(c.Epoch, 1)),
		target_timeout_ns: C.uint64_t(c.TargetTimeout.Nanoseconds()),
	}
	for i, size := range c.Memory {
		config.memory[i] = C.uint64_t(size)
	}
	options := C.struct_nfc_hosted_options{
		spin_ns: C.uint64_t(c.Spin.Nanoseconds()),
		engines: C.uint32_t(c.Engines),
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

// Area returns the mailbox area of the present life.
func (i *Instance) Area() (unsafe.Pointer, uint64) {
	var size C.uint64_t
	p := C.nfc_hosted_area(i.h, &size)
	return p, uint64(size)
}

// Doorbell returns the eventfd that the device rings. It stays the instance's.
func (i *Instance) Doorbell() int { return int(C.nfc_hosted_doorbell(i.h)) }

// Assist moves one waiting DMA piece on the calling thread.
func (i *Instance) Assist() bool { return C.nfc_hosted_assist(i.h) != 0 }

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

// Restart fences the device and boots its next life in a new area. On a bus a
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
