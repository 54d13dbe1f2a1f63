package mesh

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Node is the address of a node.
func (m *Mesh) Node(index int) abi.Node {
	s := m.config.Side
	return abi.MakeNode(uint8(index%s[0]), uint8(index/s[0]%s[1]), uint8(index/(s[0]*s[1])))
}

// Fabric is a mesh as one of its nodes knows it, in the words of [bridge.Fabric].
type Fabric struct {
	Mesh *Mesh
	// At is the index of the node.
	At int
}

// Index numbers nodes, x first.
func (f *Fabric) Index(n abi.Node) (int, error) {
	s := f.Mesh.config.Side
	if int(n.X()) >= s[0] || int(n.Y()) >= s[1] || int(n.Z()) >= s[2] {
		return 0, fmt.Errorf("node %v: %w: not in a torus of %v", n, bridge.ErrInvalid, shape(s))
	}
	return int(n.X()) + s[0]*(int(n.Y())+s[1]*int(n.Z())), nil
}

// Error says in the words of the bridge what a mesh says.
func (*Fabric) Error(err error) error {
	if errors.Is(err, ErrClosed) {
		return fmt.Errorf("device %w", bridge.ErrClosed)
	}
	return err
}

// State is what the node knows of all nodes, and what those of this process counted.
func (f *Fabric) State() (bridge.FabricState, error) {
	m := f.Mesh
	s := bridge.FabricState{Side: m.config.Side, Node: m.Node(f.At), Nodes: make([]bridge.FabricNodeState, m.nodes)}
	words, err := m.View(f.At)
	if err != nil {
		return s, f.Error(err)
	}
	for i := range s.Nodes {
		n, err := m.State(i)
		if err != nil {
			return s, f.Error(err)
		}
		s.Nodes[i] = bridge.FabricNodeState{
			Word: words[i], Alive: n.Alive, Forwarded: n.Forwarded, Detours: n.Detours, Unreachable: n.Unreachable, Blocked: n.Blocked,
			Windows: n.Access.Windows, WindowBytes: n.Access.WindowBytes,
			PageHits: n.Access.Hits, PageMisses: n.Access.Misses,
		}
		for l, end := range n.Links {
			s.Nodes[i].Links[l] = bridge.FabricLinkState{
				Joined: end.Joined, Up: end.Up, Medium: m.medium(i, l), Level: end.Level, Window: end.Window, RoundTrip: end.RoundTrip,
				BytesSent: end.BytesSent, BytesReceived: end.BytesReceived, Packets: end.Packets,
				Repeated: end.Repeated, Errors: end.Errors, Restarts: end.Restarts,
			}
		}
	}
	return s, nil
}

// Route returns the way between two nodes.
func (f *Fabric) Route(from, to abi.Node) ([]bridge.FabricHop, error) {
	a, err := f.Index(from)
	if err != nil {
		return nil, err
	}
	b, err := f.Index(to)
	if err != nil {
		return nil, err
	}
	route, err := f.Mesh.Route(a, b)
	hops := make([]bridge.FabricHop, 0, len(route))
	for _, h := range route {
		hops = append(hops, bridge.FabricHop(h))
	}
	if len(hops) == 0 && a != b {
		hops = nil
	}
	return hops, f.Error(err)
}

// own returns the index of a node of this process: others are not cut, ended or tested from here.
func (f *Fabric) own(node abi.Node) (int, error) {
	i, err := f.Index(node)
	if err == nil && !f.Mesh.here(i) {
		err = fmt.Errorf("node %v is another process: %w", f.Mesh.Node(i), bridge.ErrNotSupported)
	}
	return i, err
}

// CutLink cuts a link of a node of this process, or mends it.
func (f *Fabric) CutLink(node abi.Node, link int, cut bool) error {
	i, err := f.own(node)
	if err != nil {
		return err
	}
	return f.Error(f.Mesh.Cut(i, link, cut))
}

// KillNode ends a node of this process, or starts it anew.
func (f *Fabric) KillNode(node abi.Node, dead bool) error { return f.kill(node, dead, false) }

// SilenceNode ends a node of this process whose links do not hang up.
func (f *Fabric) SilenceNode(node abi.Node) error { return f.kill(node, true, true) }

func (f *Fabric) kill(node abi.Node, dead, silent bool) error {
	i, err := f.own(node)
	if err != nil {
		return err
	}
	return f.Error(f.Mesh.Kill(i, dead, silent))
}

// TestLink sends words from a node of this process that the other end checks.
func (f *Fabric) TestLink(ctx context.Context, node abi.Node, link int, words uint64) (bridge.LinkTest, error) {
	i, err := f.own(node)
	if err != nil {
		return bridge.LinkTest{}, err
	}
	result, err := f.Mesh.Test(ctx, i, link, words)
	return bridge.LinkTest(result), f.Error(err)
}

// Put has the node write to a window of any node.
func (f *Fabric) Put(ctx context.Context, to bridge.FabricWindow, offset uint64, data []byte) error {
	i, err := f.Index(to.Node)
	if err != nil {
		return err
	}
	return f.Error(f.Mesh.Put(ctx, f.At, Remote{i, to.Key}, offset, data))
}

// Get has the node read from a window of any node.
func (f *Fabric) Get(ctx context.Context, from bridge.FabricWindow, offset uint64, buf []byte) error {
	i, err := f.Index(from.Node)
	if err != nil {
		return err
	}
	return f.Error(f.Mesh.Get(ctx, f.At, Remote{i, from.Key}, offset, buf))
}

// hostWindow is a window in the words of the bridge.
type hostWindow struct {
	*Window
	node abi.Node
}

// Remote returns what others need to know of it.
func (w hostWindow) Remote() bridge.FabricWindow {
	return bridge.FabricWindow{Node: w.node, Key: w.remote.Key}
}

// Window makes memory of this process a window of the node.
func (f *Fabric) Window(ctx context.Context, mem []byte, access bridge.WindowAccess) (bridge.HostWindow, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w, err := f.Mesh.Window(f.At, mem, access)
	if err != nil {
		return nil, f.Error(err)
	}
	return hostWindow{w, f.Mesh.Node(f.At)}, nil
}
