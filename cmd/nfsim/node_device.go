//go:build cgo

package main

import (
	"cmp"
	"fmt"
	"net"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hosts"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/topology"
)

// How long the device of another node may take to show itself.
const (
	showTime = 4 * time.Second // its threads may wait for a processor; a client waits longer
	wayTime  = time.Second     // … and without a way there: links may be connecting
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
	place := topology.Node(to)
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
		status = n.awaitShown(near, n.torus.Index(place))
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

// awaitShown waits until the device at a node has shown itself.
func (n *node) awaitShown(near *firmware.Near, to int) abi.Status {
	look := time.NewTicker(showLook)
	defer look.Stop()
	for p := patient(time.Now()); ; {
		shown, status := near.Ready()
		if shown || status != abi.OK {
			return status
		}
		_, _, way, err := n.Mesh.Next(n.own(), to)
		if err != nil || p.over(<-look.C, way) {
			return abi.ErrReset
		}
	}
}

// patience is that of a host with the device of another node.
type patience struct {
	begin time.Time
	way   time.Time // when there was one last
}

func patient(now time.Time) *patience { return &patience{begin: now, way: now} }

// over looks whether it ends, now that there is a way there or none.
func (p *patience) over(now time.Time, way bool) bool {
	if way {
		p.way = now
	}
	return now.Sub(p.begin) > showTime || now.Sub(p.way) > wayTime
}

// Leave ends the hosts of other nodes at the device.
func (n *node) Leave() { _ = n.Mesh.EndDevice(n.own()) } // the mesh is closed after the device

// reached is a client of this process that is a host of the device at another node.
type reached struct{ near *firmware.Near }

// Fence returns when the device reaches no memory of the client any more.
func (r reached) Fence() { r.near.Fence() }

// Detach takes leave of it.
func (r reached) Detach() { r.near.Free() }
