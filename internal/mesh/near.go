//go:build cgo

package mesh

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
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

// Joints returns what joins processes of a host that is at a node, with the device, to those
// that hosts of the same owner have at other nodes. They are to end before Close.
func (m *Mesh) Joints(node int, i *firmware.Instance, owner uint64) (j *firmware.Joints, err error) {
	status := abi.OK
	if err := m.with(node, func(f *firmware.Mesh) { j, status = f.Joints(node, i, owner) }); err != nil {
		return nil, err
	}
	if status != abi.OK {
		return nil, bridge.Error(status)
	}
	return j, nil
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
