//go:build cgo

package firmware

/*
#cgo noescape nfc_near_ring
#cgo nocallback nfc_near_ring
#include "link/far.h"
#include "port/hosted.h"
#include "port/mesh.h"
*/
import "C"

import (
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Serve makes a shared device of that shape the device of a node, for hosts at other
// nodes.
func (m *Mesh) Serve(node int, i *Instance, c Config) {
	n, _ := c.native() // the device has it
	C.nfc_mesh_serve(m.m, C.uint32_t(node), i.h, &n)
}

// Unserve returns when no host comes to the node's device or goes any more: then it may
// be closed, and must be.
func (m *Mesh) Unserve(node int) { C.nfc_mesh_unserve(m.m, C.uint32_t(node)) }

// Joints join processes of a host to those that the host has at other nodes. The host is at
// the node of its device.
type Joints struct{ j *C.struct_nfc_hosted_joints }

// Joints returns those of a host of the owner. The status is abi.ErrNoMemory.
func (m *Mesh) Joints(node int, i *Instance, owner uint64) (*Joints, abi.Status) {
	j := C.nfc_mesh_joints(m.m, C.uint32_t(node), i.h, C.uint64_t(owner))
	if j == nil {
		return nil, abi.ErrNoMemory
	}
	return &Joints{j}, abi.OK
}

// End gives them back, when the host has ended. No other call may follow.
func (j *Joints) End() { C.nfc_mesh_disjoin(j.j) }

// Join joins the processes of a device that is not shared; nil: not any more.
func (i *Instance) Join(j *Joints) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var c *C.struct_nfc_hosted_joints
	if j != nil {
		c = j.j
	}
	C.nfc_hosted_join(i.h, c)
}

// NearsMax is how many hosts of one node the device of another takes.
const NearsMax = C.NFC_FAR_HOSTS

// Near is a host of this process at one node, of the device at another. Its methods
// are safe for concurrent use, except that Start excludes itself. It lasts as long as
// the mesh.
type Near struct{ h *C.struct_nfc_near }

// Near returns a host at a node of the device at another, of which the shape is known:
// this process if b is nil; else a client of it, whose area and memory are the bus's, and
// which is rung through a socket that stays the caller's.
//
// Hosts of one owner, a number of the node's own, are one: their processes may have channels
// to each other. Those of owner 0 have none.
func (m *Mesh) Near(node, to int, c Config, owner uint64, b *Bus, doorbell int) (*Near, abi.Status) {
	n, ok := c.native()
	if !ok {
		return nil, abi.ErrInvalid
	}
	var h *C.struct_nfc_near
	var client *C.struct_nfc_near_client
	if b != nil {
		client = &C.struct_nfc_near_client{bus: b.b, doorbell: C.int32_t(doorbell)}
	}
	if rc := C.nfc_near_new(m.m, C.uint32_t(node), C.uint32_t(to), &n, C.uint64_t(owner), client, &h); rc != 0 {
		return nil, abi.Status(-rc)
	}
	return &Near{h}, abi.OK
}

// Free takes leave. No other call may follow, nor run beside it.
func (h *Near) Free() { C.nfc_near_free(h.h) }

// Ready reports whether the device has shown itself; the status is why it never will.
func (h *Near) Ready() (bool, abi.Status) {
	switch rc := C.nfc_near_ready(h.h); rc {
	case 0:
		return true, abi.OK
	case C.NFC_PENDING:
		return false, abi.OK
	default:
		return false, abi.Status(rc)
	}
}

// Start begins an epoch: the area is zero until the device shows itself.
func (h *Near) Start() abi.Status { return abi.Status(-C.nfc_near_start(h.h)) }

// Stop takes leave. Nothing reaches the area any more.
func (h *Near) Stop() { C.nfc_near_stop(h.h) }

// Fence returns when the device reaches no memory of the host any more.
func (h *Near) Fence() { C.nfc_near_fence(h.h) }

// Ring says that there is a new slot.
func (h *Near) Ring() { C.nfc_near_ring(h.h) }

// Area returns the mailbox area. It stays where it is.
func (h *Near) Area() (unsafe.Pointer, uint64) {
	var size C.uint64_t
	p := C.nfc_near_area(h.h, &size)
	return p, uint64(size)
}

// Doorbell returns the eventfd by which the host is rung. It stays the mesh's.
func (h *Near) Doorbell() int { return int(C.nfc_near_doorbell(h.h)) }
