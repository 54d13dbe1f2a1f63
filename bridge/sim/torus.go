//go:build cgo

package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mesh"
)

// torus is the fabric of which the device is node 0.0.0.
type torus struct {
	mesh *mesh.Mesh
	side [3]int
}

// newTorus starts the nodes of a torus.
func newTorus(o options) (*torus, error) {
	m, err := mesh.Open(mesh.Config{Side: o.torus, Threads: meshThreads(), Spin: o.shape.Spin})
	if err != nil {
		return nil, err
	}
	return &torus{mesh: m, side: o.torus}, nil
}

// meshThreads leaves a processor to the host.
func meshThreads() int { return max(1, min(runtime.NumCPU()/2, 4)) }

// index numbers nodes, x first.
func (t *torus) index(n abi.Node) (int, error) {
	if int(n.X()) >= t.side[0] || int(n.Y()) >= t.side[1] || int(n.Z()) >= t.side[2] {
		return 0, fmt.Errorf("node %v: %w: not in a torus of %dx%dx%d", n, bridge.ErrInvalid, t.side[0], t.side[1], t.side[2])
	}
	return int(n.X()) + t.side[0]*(int(n.Y())+t.side[1]*int(n.Z())), nil
}

// State describes all nodes.
func (t *torus) State() (bridge.FabricState, error) {
	s, err := t.mesh.FabricState(0)
	return s, meshError(err)
}

// Route returns the way between two nodes.
func (t *torus) Route(from, to abi.Node) ([]bridge.FabricHop, error) {
	a, err := t.index(from)
	if err != nil {
		return nil, err
	}
	b, err := t.index(to)
	if err != nil {
		return nil, err
	}
	route, err := t.mesh.Route(a, b)
	hops := make([]bridge.FabricHop, 0, len(route))
	for _, h := range route {
		hops = append(hops, bridge.FabricHop(h))
	}
	if len(hops) == 0 && a != b {
		hops = nil
	}
	return hops, meshError(err)
}

// CutLink cuts a link or mends it.
func (t *torus) CutLink(node abi.Node, link int, cut bool) error {
	i, err := t.index(node)
	if err != nil {
		return err
	}
	return meshError(t.mesh.Cut(i, link, cut))
}

// KillNode ends a node or starts it anew.
func (t *torus) KillNode(node abi.Node, dead bool) error {
	i, err := t.index(node)
	if err != nil {
		return err
	}
	return meshError(t.mesh.Kill(i, dead, false))
}

// TestLink sends words that the other end checks.
func (t *torus) TestLink(ctx context.Context, node abi.Node, link int, words uint64) (bridge.LinkTest, error) {
	i, err := t.index(node)
	if err != nil {
		return bridge.LinkTest{}, err
	}
	result, err := t.mesh.Test(ctx, i, link, words)
	return bridge.LinkTest(result), meshError(err)
}

// meshError says in the words of the bridge what a mesh says.
func meshError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mesh.ErrClosed):
		return errClosed
	case errors.Is(err, mesh.ErrUnknown):
		return fmt.Errorf("%w: %w", bridge.ErrInvalid, err)
	}
	return err
}

// errClosed is what the fabric of a closed device answers.
var errClosed = fmt.Errorf("device %w", bridge.ErrClosed)

// node is a device that is node 0.0.0 of a torus.
type node struct {
	bridge.Device
	torus *torus
}

var _ bridge.FabricNode = (*node)(nil)

// Fabric returns the torus.
func (n *node) Fabric() bridge.Fabric { return n.torus }

// Close closes the device, then ends the other nodes.
func (n *node) Close() error {
	err := n.Device.Close()
	n.torus.mesh.Close()
	return err
}
