//go:build cgo

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hosts"
	"github.com/nfcomms/nfcomms/firmware"
	"github.com/nfcomms/nfcomms/pkg/fabric"
)

// How long the device of another node may take to show itself.
const (
	showTime = time.Second
	showLook = 200 * time.Microsecond
)

// startDevice boots the node's own device, which hosts at other nodes find, and clients
// of --shm.
func (n *node) startDevice(s *shared) (*hosts.Server, error) {
	server, status := hosts.New(s.device)
	if status != abi.OK {
		return nil, fmt.Errorf("start device: %w", bridge.Error(status))
	}
	n.shape, n.device = s.device.Device, server.Device()
	if err := n.Mesh.SetDevice(n.own(), n.device, n.shape); err != nil {
		server.Close()
		return nil, err
	}
	server.Join(n, n.at)
	return server, nil
}

// listenShared makes the socket of --shm; nil if there is none.
func (n *node) listenShared(o *options, s *shared) (*net.UnixListener, error) {
	if o.shm == "" {
		return nil, nil
	}
	l, err := listenShared(o.shm, s.mode, s.as)
	if err != nil {
		return nil, err
	}
	return l, s.as.assume()
}

// Reach makes a client a host of the device at another node.
func (n *node) Reach(to abi.Node, owner uint64, b *firmware.Bus, doorbell int) (hosts.Attached, abi.Status) {
	place := fabric.Node(to)
	if !n.torus.Contains(place) || n.torus.Index(place) == n.own() {
		return nil, abi.ErrNoTarget
	}
	near, err := n.Mesh.Near(n.own(), n.torus.Index(place), n.shape, owner, b, doorbell)
	if err != nil {
		status, _ := bridge.StatusOf(err)
		return nil, cmp.Or(status, abi.ErrReset) // the mesh is closed
	}
	status := near.Start()
	if status == abi.OK {
		status = awaitShown(near)
	}
	if status != abi.OK {
		near.Free()
		return nil, status
	}
	return reached{near}, abi.OK
}

// Joints joins processes of a client at the own device to those it has at other nodes.
func (n *node) Joints(owner uint64) (*firmware.Joints, error) {
	return n.Mesh.Joints(n.own(), n.device, owner)
}

// awaitShown waits until the device has shown itself.
func awaitShown(near *firmware.Near) abi.Status {
	ctx, cancel := context.WithTimeout(context.Background(), showTime)
	defer cancel()
	look := time.NewTicker(showLook)
	defer look.Stop()
	for {
		shown, status := near.Ready()
		if shown || status != abi.OK {
			return status
		}
		select {
		case <-ctx.Done():
			return abi.ErrReset
		case <-look.C:
		}
	}
}

// Leave ends the hosts of other nodes at the device.
func (n *node) Leave() { _ = n.Mesh.EndDevice(n.own()) } // the mesh is closed after the device

// reached is a client of this process that is a host of the device at another node.
type reached struct{ near *firmware.Near }

// Fence returns when the device reaches no memory of the client any more.
func (r reached) Fence() { r.near.Fence() }

// Detach takes leave of it.
func (r reached) Detach() { r.near.Free() }
