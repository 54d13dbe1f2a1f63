//go:build cgo

package firmware

/*
#include "port/mesh.h"
*/
import "C"

import (
	"runtime"
	"runtime/cgo"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Window lets other nodes put to memory of a node, or get from it, by the key. The
// memory is pinned until Revoke or Close.
func (m *Mesh) Window(node int, mem []byte, read, write bool) (key uint64, s abi.Status) {
	var access C.uint32_t
	if read {
		access |= C.NFC_RMA_READ
	}
	if write {
		access |= C.NFC_RMA_WRITE
	}
	var k C.uint64_t
	rc := C.nfc_mesh_window(m.m, C.uint32_t(node), unsafe.Pointer(unsafe.SliceData(mem)), C.uint64_t(len(mem)), access, &k)
	return uint64(k), abi.Status(-rc)
}

// Revoke ends a window: when it returns, nothing touches its memory. False: there was
// none, as the node died since.
func (m *Mesh) Revoke(node int, key uint64) bool {
	return bool(C.nfc_mesh_revoke(m.m, C.uint32_t(node), C.uint64_t(key)))
}

// MeshOp is a put or a get that somebody waits for.
type MeshOp struct {
	op     *C.struct_nfc_mesh_op
	pin    runtime.Pinner
	ended  chan struct{} // of one that is parked
	handle cgo.Handle    // the same
}

// Begin begins a put or a get of a node; nil: no memory. Its data are pinned until
// Finish.
func (m *Mesh) Begin(node int, a MeshAccess) *MeshOp {
	o := &MeshOp{}
	p := unsafe.SliceData(a.Data)
	o.pin.Pin(p)
	o.op = C.nfc_mesh_begin(m.m, C.uint32_t(node), &C.struct_nfc_rma_op{
		to: C.uint32_t(a.To), put: C.bool(a.Put), key: C.uint64_t(a.Key), offset: C.uint64_t(a.Offset),
		size: C.uint64_t(len(a.Data)), data: (*C.uint8_t)(unsafe.Pointer(p)),
	})
	if o.op == nil {
		o.pin.Unpin()
		return nil
	}
	return o
}

// Look reports whether it ended. It looks for so long, on the thread that calls it, unless
// somebody does so for another operation.
func (o *MeshOp) Look(d time.Duration) bool { return bool(C.nfc_mesh_poll(o.op, C.uint64_t(d))) }

// Park returns what WakeEnded closes when it has ended; nil: it has. It is called once.
func (o *MeshOp) Park() <-chan struct{} {
	o.ended, o.handle = make(chan struct{}), cgo.NewHandle(o)
	if !C.nfc_mesh_park(o.op, C.uintptr_t(o.handle)) {
		return nil
	}
	return o.ended
}

// Withdraw ends it with abi.ErrWithdrawn, unless it ended.
func (o *MeshOp) Withdraw() { C.nfc_mesh_withdraw(o.op) }

// Finish returns how it ended, and gives all back that it held.
func (o *MeshOp) Finish() abi.Status {
	rc := C.nfc_mesh_finish(o.op)
	o.pin.Unpin()
	if o.handle != 0 {
		o.handle.Delete()
	}
	return abi.Status(-rc)
}

// Wakes returns an eventfd that is readable when WakeEnded has something to do. It stays
// the mesh's.
func (m *Mesh) Wakes() int { return int(C.nfc_mesh_wakes(m.m)) }

// WakeEnded wakes the waiters of ended operations. One goroutine at a time.
func (m *Mesh) WakeEnded() {
	for {
		h := cgo.Handle(C.nfc_mesh_ended(m.m))
		if h == 0 {
			return
		}
		close(h.Value().(*MeshOp).ended)
	}
}

// CloseOps ends all puts and gets with abi.ErrStopped, and lets no more begin.
func (m *Mesh) CloseOps() { C.nfc_mesh_close_ops(m.m) }

// MeasureLookups looks up random pages of so many, in windows of 16 pages each, and
// returns how many nanoseconds each took and what part of them the cache knew.
func MeasureLookups(l Lookup, pages, count int) (ns, hits float64) {
	var h C.uint64_t
	all := C.nfc_mesh_measure_lookups(C.uint32_t(l), C.uint32_t(pages), C.uint64_t(count), &h)
	return float64(all) / float64(count), float64(h) / float64(count)
}
