//go:build cgo

package hosts

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/firmware"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// Fabric is that of which the device is a node.
type Fabric interface {
	// Reach makes a client, behind a bus and rung through a socket, a host of the device
	// at another node.
	Reach(n abi.Node, b *firmware.Bus, doorbell int) (Attached, abi.Status)
	// Leave returns when hosts of other nodes neither come to the device nor go any more.
	Leave()
}

// Attached is a host while it is attached.
type Attached interface {
	// Fence returns when no DMA of the host runs any more, and none will.
	Fence()
	// Detach returns when nothing reaches its bus any more.
	Detach()
}

// Join makes the device a node of a fabric, before it serves anybody.
func (s *Server) Join(f Fabric) { s.fabric = f }

// Device is what the clients share.
func (s *Server) Device() *firmware.Instance { return s.device }

// reach attaches a client to the device that its hello names.
func (s *Server) reach(h *host, address uint64, load bool) abi.Status {
	if address == 0 {
		device, status := s.device.Attach(h.bus, h.bell[0], h.epoch, load)
		if status == abi.OK {
			h.device = device
		}
		return status
	}
	n, ok := shmwire.NodeOf(address)
	switch {
	case !ok:
		return abi.ErrInvalid
	case s.fabric == nil:
		return abi.ErrNotSupported
	}
	device, status := s.fabric.Reach(n, h.bus, h.bell[0])
	if status == abi.OK {
		h.device = device
	}
	return status
}

// boundOf is what a client that is refused would have exceeded.
func (s *Server) boundOf(status abi.Status, address uint64) shmwire.Bound {
	switch {
	case status != abi.ErrBusy:
		return shmwire.Bound{}
	case address != 0:
		return shmwire.Bound{Of: shmwire.OfNode, Most: firmware.NearsMax}
	}
	return shmwire.Bound{Of: shmwire.OfDevice, Most: uint64(s.options.Device.Shared)}
}
