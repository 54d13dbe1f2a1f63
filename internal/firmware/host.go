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

// Seat is what a host of a shared device gets.
type Seat struct {
	Bus      *Bus // its area is zero
	Doorbell int  // a socket that stays the caller's: the device rings with a byte
	Epoch    uint32
	Load     bool    // without it the host gets no capability to load
	User     uint64  // hosts of one user, a number but 0, may connect to each other
	Joints   *Joints // for channels of its processes to those of other nodes; or nil
	Part
}

// Part is the part of the shape that a host has. Zero fields are the whole.
type Part struct {
	Channels  int
	Processes int // on each island, those of the services included
}

// Part returns a host's part with so many channels, and so many processes on each island beside the
// services; 0: all. False if no host can have it.
func (c Config) Part(channels, processes int) (Part, bool) {
	p := Part{Channels: channels}
	n, ok := c.native()
	if ok = ok && C.nfc_config_check(&n) == 0; ok && processes > 0 {
		p.Processes = min(processes+C.NFC_PROCESSES_MIN, int(n.engines_me*n.contexts))
	}
	seat := C.struct_nfc_seat{channels: C.uint32_t(p.Channels), processes: C.uint32_t(p.Processes)}
	return p, ok && bool(C.nfc_seat_fits(&n, &seat))
}

// Attach serves one more host. The status is abi.ErrBusy if there is no place, abi.ErrNoMemory, or
// abi.ErrTimeout if a program keeps an island to itself.
func (i *Instance) Attach(s Seat) (*Host, abi.Status) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.h == nil {
		return nil, abi.ErrClosed
	}
	peer := C.struct_nfc_hosted_peer{
		bus: s.Bus.b, doorbell: C.int32_t(s.Doorbell), epoch: C.uint32_t(s.Epoch), no_load: C.bool(!s.Load), user: C.uint64_t(s.User),
		channels: C.uint32_t(s.Channels), processes: C.uint32_t(s.Processes),
	}
	if s.Joints != nil {
		peer.joints = s.Joints.j
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
