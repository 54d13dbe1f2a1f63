//go:build cgo

package hosts

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// Fabric is that of which the device is a node.
type Fabric interface {
	// Reach makes a client, behind a bus and rung through a socket, a host of the device
	// at another node. Hosts of one owner are one to the fabric, unless that is 0.
	Reach(n abi.Node, owner uint64, b *firmware.Bus, doorbell int) (Attached, abi.Status)
	// Joints returns what joins processes of a client of the own device to those that
	// its hosts have at other nodes.
	Joints(owner uint64) (*firmware.Joints, error)
	// State, Route, CutLink, TestLink, Put, Get and Window are as of [bridge.Fabric].
	State() (bridge.FabricState, error)
	Route(from, to abi.Node) ([]bridge.FabricHop, error)
	CutLink(n abi.Node, link int, cut bool) error
	TestLink(ctx context.Context, n abi.Node, link int, words uint64) (bridge.LinkTest, error)
	Put(ctx context.Context, to bridge.FabricWindow, offset uint64, data []byte) error
	Get(ctx context.Context, from bridge.FabricWindow, offset uint64, buf []byte) error
	Window(ctx context.Context, mem []byte, access bridge.WindowAccess) (bridge.HostWindow, error)
	// Leave returns when no host of another node attaches or detaches any more.
	Leave()
}

// Attached is a host while it is attached.
type Attached interface {
	// Fence returns when no DMA of the host runs any more, and none will.
	Fence()
	// Detach returns when nothing reaches its bus any more.
	Detach()
}

// Join makes the device that of a node of a fabric, before it serves anybody.
func (s *Server) Join(f Fabric, n abi.Node) { s.fabric, s.place = f, shmwire.AddressOf(n) }

// Device is what the clients share.
func (s *Server) Device() *firmware.Instance { return s.device }

// near is a client that is a host of the own device.
type near struct {
	*firmware.Host
	joints *firmware.Joints // nil: there are none
}

// Detach returns when nothing reaches the client's bus any more.
func (n near) Detach() {
	n.Host.Detach()
	if n.joints != nil {
		n.joints.End()
	}
}

// attachNear makes a client a host of the own device.
func (s *Server) attachNear(h *host, owner uint64) abi.Status {
	var n near
	if s.fabric != nil && owner != 0 {
		var err error
		if n.joints, err = s.fabric.Joints(owner); err != nil {
			return statusOf(err)
		}
	}
	var status abi.Status
	seat := firmware.Seat{Bus: h.bus, Doorbell: h.bell[0], Epoch: h.epoch, Load: h.own, User: h.uid, Joints: n.joints, Part: h.part}
	if n.Host, status = s.device.Attach(seat); status == abi.OK {
		h.device = n
	} else if n.joints != nil {
		n.joints.End()
	}
	return status
}

// reach attaches a client to the device that its hello names.
func (s *Server) reach(h *host, address, owner uint64) abi.Status {
	if address == 0 || address == s.place {
		return s.attachNear(h, owner)
	}
	n, ok := shmwire.NodeOf(address)
	switch {
	case !ok:
		return abi.ErrInvalid
	case s.fabric == nil:
		return abi.ErrNotSupported
	}
	device, status := s.fabric.Reach(n, owner, h.bus, h.bell[0])
	if status == abi.OK {
		h.device = device
	}
	return status
}

// placeOf is the place of the device that a hello names, as its answer has it.
func (s *Server) placeOf(address uint64) uint64 {
	if address == 0 {
		return s.place
	}
	return address
}

// aboutFabric answers a request about the fabric; a descriptor that it gives is the caller's.
func (h *host) aboutFabric(m *shmwire.Message) (shmwire.Message, *os.File) {
	f := h.server.fabric
	if f == nil {
		return shmwire.Refusal(m.Kind, abi.ErrNotSupported, shmwire.Bound{}), nil
	}
	switch m.Kind {
	case shmwire.State:
		s, err := f.State()
		return h.answered(m, shmwire.EncodeState(&s), err)
	case shmwire.Route:
		hops, err := f.Route(shmwire.RouteOf(m.Address))
		return h.answered(m, shmwire.EncodeRoute(hops), err)
	case shmwire.Accesses:
		return h.openAccesses(m)
	}
	if !h.own { // others have links, too
		return shmwire.Refusal(m.Kind, abi.ErrNotSupported, shmwire.Bound{Of: shmwire.OfUser}), nil
	}
	n, link := shmwire.LinkOf(m.Address)
	answer := shmwire.Message{Kind: m.Kind, Address: m.Address, Size: m.Size}
	var err error
	if m.Kind == shmwire.Cut {
		err = f.CutLink(n, link, m.Size != 0)
	} else {
		answer.Address, answer.Size, err = testSlice(f, n, link, m.Size)
	}
	if err != nil {
		return shmwire.Refusal(m.Kind, statusOf(err), shmwire.Bound{}), nil
	}
	return answer, nil
}

// testSlice tests a link for a slice of time.
func testSlice(f Fabric, n abi.Node, link int, words uint64) (checked, wrong uint64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), shmwire.TestSlice)
	defer cancel()
	t, err := f.TestLink(ctx, n, link, min(words, mesh.TestMax))
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	return t.Words, t.Wrong, err
}

// answered returns an answer with data in memory of its own.
func (h *host) answered(m *shmwire.Message, data []byte, err error) (shmwire.Message, *os.File) {
	if err != nil {
		return shmwire.Refusal(m.Kind, statusOf(err), shmwire.Bound{}), nil
	}
	file, err := memoryOf(data)
	if err != nil {
		return shmwire.Refusal(m.Kind, abi.ErrNoMemory, shmwire.Bound{}), nil
	}
	return shmwire.Message{Kind: m.Kind, Address: m.Address, Size: uint64(len(data))}, file
}

// memoryOf makes memory that has some bytes, and keeps its size.
func memoryOf(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("nfcomms-fabric", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "nfcomms-fabric")
	_, err = f.Write(data)
	if err == nil {
		err = shmwire.Seal(fd)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// statusOf is the status of an error of a fabric.
func statusOf(err error) abi.Status {
	if errors.Is(err, bridge.ErrLinkDown) {
		return abi.ErrClosed
	}
	status, ok := bridge.StatusOf(err)
	if !ok {
		return abi.ErrReset
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
