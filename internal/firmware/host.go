//go:build cgo

package firmware

/*
#include "port/hosted.h"
*/
import "C"

import "github.com/nfcomms/nfcomms/bridge/abi"

// HostsMax is how many hosts a shared device serves at a time, at most.
const HostsMax = C.NFC_HOSTS_MAX

// Host is a host of a shared device while it is attached.
type Host struct {
	instance *Instance
	index    C.uint32_t
}

// AreaSize returns the size of a mailbox area of such a device, in bytes.
func (c Config) AreaSize() uint64 {
	n, ok := c.native()
	if !ok || C.nfc_config_check(&n) != 0 {
		return 0
	}
	return uint64(C.nfc_area_size(&n))
}

// Attach serves one more host, behind a bus whose area is zero. The device rings it
// with a byte through doorbell, a socket that stays the caller's. The status is
// abi.ErrBusy if there is no place, abi.ErrNoMemory, or abi.ErrTimeout if a program
// keeps an island to itself. A host that may not load gets no capability to. Hosts
// of one user, a number but 0, may connect to each other. Its processes
// have channels to those of other nodes if there are joints.
func (i *Instance) Attach(b *Bus, doorbell int, epoch uint32, load bool, user uint64, j *Joints) (*Host, abi.Status) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.h == nil {
		return nil, abi.ErrClosed
	}
	peer := C.struct_nfc_hosted_peer{bus: b.b, doorbell: C.int32_t(doorbell), epoch: C.uint32_t(epoch), no_load: C.bool(!load), user: C.uint64_t(user)}
	if j != nil {
		peer.joints = j.j
	}
	h := &Host{instance: i}
	if rc := C.nfc_hosted_attach(i.h, &peer, &h.index); rc != 0 {
		return nil, abi.Status(-rc)
	}
	return h, abi.OK
}

// Fence turns DMA of the host off and returns when no copy of it runs any more.
func (h *Host) Fence() {
	h.instance.mu.RLock()
	defer h.instance.mu.RUnlock()
	if h.instance.h != nil {
		C.nfc_hosted_fence_host(h.instance.h, h.index)
	}
}

// Detach forgets the host. Nothing of the device reaches its bus any more.
func (h *Host) Detach() {
	h.instance.mu.Lock()
	defer h.instance.mu.Unlock()
	if h.instance.h != nil {
		C.nfc_hosted_detach(h.instance.h, h.index)
	}
}
