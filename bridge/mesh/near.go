//go:build cgo

package mesh

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/firmware"
)

// SetDevice makes a shared device of that shape the device of a node, until EndDevice.
func (m *Mesh) SetDevice(node int, i *firmware.Instance, c firmware.Config) error {
	return m.with(node, func(f *firmware.Mesh) { f.Serve(node, i, c) })
}

// EndDevice returns when no host comes to the node's device or goes any more. The device
// is to be closed after it, and the mesh after that.
func (m *Mesh) EndDevice(node int) error {
	return m.with(node, func(f *firmware.Mesh) { f.Unserve(node) })
}

// SetHome makes a device that is not shared that of a node, whose host is there and of that
// owner, until EndHome. The device is to be closed after it.
func (m *Mesh) SetHome(node int, i *firmware.Instance, owner uint64) error {
	status := abi.OK
	if err := m.with(node, func(f *firmware.Mesh) { status = f.Home(node, i, owner) }); err != nil {
		return err
	}
	if status != abi.OK {
		return bridge.Error(status)
	}
	return nil
}

// EndHome ends what joins processes of that device to those of other nodes.
func (m *Mesh) EndHome(node int, i *firmware.Instance) error {
	return m.with(node, func(f *firmware.Mesh) { f.LeaveHome(node, i) })
}

// Near returns the host at a node of the device at another, whose shape it has to know.
// It is this process, or a client of it behind a bus, whose doorbell is a socket. Processes of
// hosts of one owner, a number of the node's own, may have channels to each other. It is not
// used after Close.
func (m *Mesh) Near(from, to int, c firmware.Config, owner uint64, client *firmware.Bus, doorbell int) (h *firmware.Near, err error) {
	status := abi.OK
	err = m.with(from, func(f *firmware.Mesh) {
		if m.has(to) {
			h, status = f.Near(from, to, c, owner, client, doorbell)
		}
	})
	switch {
	case err != nil:
		return nil, err
	case status != abi.OK:
		return nil, bridge.Error(status)
	case h == nil:
		return nil, fmt.Errorf("node %d: %w", to, ErrUnknown)
	}
	return h, nil
}
