package mesh

import (
	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Node is the address of a node.
func (m *Mesh) Node(index int) abi.Node {
	s := m.config.Side
	return abi.MakeNode(uint8(index%s[0]), uint8(index/s[0]%s[1]), uint8(index/(s[0]*s[1])))
}

// FabricState is what a node knows of all nodes, and what those of this process
// counted.
func (m *Mesh) FabricState(at int) (bridge.FabricState, error) {
	s := bridge.FabricState{Side: m.config.Side, Node: m.Node(at), Nodes: make([]bridge.FabricNodeState, m.nodes)}
	words, err := m.View(at)
	if err != nil {
		return s, err
	}
	for i := range s.Nodes {
		n, err := m.State(i)
		if err != nil {
			return s, err
		}
		s.Nodes[i] = bridge.FabricNodeState{
			Word: words[i], Alive: n.Alive, Forwarded: n.Forwarded, Detours: n.Detours, Unreachable: n.Unreachable,
		}
		for l, end := range n.Links {
			s.Nodes[i].Links[l] = bridge.FabricLinkState{
				Joined: end.Joined, Up: end.Up, Level: end.Level, Window: end.Window, RoundTrip: end.RoundTrip,
				BytesSent: end.BytesSent, BytesReceived: end.BytesReceived, Packets: end.Packets,
				Repeated: end.Repeated, Errors: end.Errors, Restarts: end.Restarts,
			}
		}
	}
	return s, nil
}
