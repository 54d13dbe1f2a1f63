package shmwire

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// sideMost is how many nodes a side of a torus has at most.
const sideMost = 32

// beginning is what a state begins with; nodes follow, x first.
type beginning struct {
	Side [3]uint32
	Node uint32
}

type node struct {
	Word, Alive                     uint32
	Forwarded, Detours, Unreachable uint64
	Windows, WindowBytes            uint64
	PageHits, PageMisses            uint64
	Links                           [bridge.FabricLinks]link
}

type link struct {
	Joined, Up                        bool
	Level, Medium                     uint8
	Window                            uint32
	RoundTrip                         int64 // nanoseconds
	BytesSent, BytesReceived, Packets uint64
	Repeated, Errors, Restarts        uint64
}

// EncodeState writes what a node knows of its fabric.
func EncodeState(s *bridge.FabricState) []byte {
	b := beginning{Node: uint32(s.Node)}
	for i, side := range s.Side {
		b.Side[i] = uint32(side)
	}
	nodes := make([]node, len(s.Nodes))
	for i := range nodes {
		n := &s.Nodes[i]
		nodes[i] = node{
			Word: uint32(n.Word), Forwarded: n.Forwarded, Detours: n.Detours, Unreachable: n.Unreachable,
			Windows: n.Windows, WindowBytes: n.WindowBytes, PageHits: n.PageHits, PageMisses: n.PageMisses,
		}
		if n.Alive {
			nodes[i].Alive = 1
		}
		for l, e := range n.Links {
			nodes[i].Links[l] = link{
				Joined: e.Joined, Up: e.Up, Level: uint8(e.Level), Medium: uint8(e.Medium), Window: uint32(e.Window), RoundTrip: int64(e.RoundTrip),
				BytesSent: e.BytesSent, BytesReceived: e.BytesReceived, Packets: e.Packets,
				Repeated: e.Repeated, Errors: e.Errors, Restarts: e.Restarts,
			}
		}
	}
	data, _ := binary.Append(nil, binary.LittleEndian, b) // never fails: its size is fixed, as that of nodes
	data, _ = binary.Append(data, binary.LittleEndian, nodes)
	return data
}

// ParseState reads it.
func ParseState(data []byte) (s bridge.FabricState, err error) {
	var b beginning
	n, err := binary.Decode(data, binary.LittleEndian, &b)
	if err != nil {
		return s, fmt.Errorf("%w: state of a fabric: %w", ErrForeign, err)
	}
	count := 1
	for i, side := range b.Side {
		if side < 1 || side > sideMost {
			return s, fmt.Errorf("%w: a torus of %v", ErrForeign, b.Side)
		}
		s.Side[i] = int(side)
		count *= int(side)
	}
	nodes := make([]node, count)
	if len(data)-n != binary.Size(nodes) {
		return s, fmt.Errorf("%w: %d bytes for the state of %d nodes", ErrForeign, len(data), count)
	}
	_, _ = binary.Decode(data[n:], binary.LittleEndian, nodes) // its size is right
	s.Node, s.Nodes = abi.Node(b.Node), make([]bridge.FabricNodeState, count)
	for i := range nodes {
		s.Nodes[i] = nodes[i].state()
	}
	return s, nil
}

// state is what a node on the wire says.
func (n *node) state() bridge.FabricNodeState {
	s := bridge.FabricNodeState{
		Word: abi.Diagnostic(n.Word), Alive: n.Alive != 0,
		Forwarded: n.Forwarded, Detours: n.Detours, Unreachable: n.Unreachable,
		Windows: n.Windows, WindowBytes: n.WindowBytes, PageHits: n.PageHits, PageMisses: n.PageMisses,
	}
	for l, e := range n.Links {
		s.Links[l] = bridge.FabricLinkState{
			Joined: e.Joined, Up: e.Up, Level: abi.Level(e.Level & 3), Medium: bridge.FabricMedium(e.Medium), Window: int(e.Window), RoundTrip: time.Duration(e.RoundTrip),
			BytesSent: e.BytesSent, BytesReceived: e.BytesReceived, Packets: e.Packets,
			Repeated: e.Repeated, Errors: e.Errors, Restarts: e.Restarts,
		}
	}
	return s
}

// hopBytes are those of a hop of a route: its link, and 1 for a detour.
const hopBytes = 2

// EncodeRoute writes the hops of a way.
func EncodeRoute(hops []bridge.FabricHop) []byte {
	data := make([]byte, 0, hopBytes*len(hops))
	for _, h := range hops {
		detour := byte(0)
		if h.Detour {
			detour = 1
		}
		data = append(data, byte(h.Link), detour)
	}
	return data
}

// ParseRoute reads them; nil for none.
func ParseRoute(data []byte) ([]bridge.FabricHop, error) {
	if len(data)%hopBytes != 0 {
		return nil, fmt.Errorf("%w: a route of %d bytes", ErrForeign, len(data))
	}
	var hops []bridge.FabricHop
	for at := 0; at < len(data); at += hopBytes {
		if data[at] >= bridge.FabricLinks || data[at+1] > 1 {
			return nil, fmt.Errorf("%w: hop %x of a route", ErrForeign, data[at:at+hopBytes])
		}
		hops = append(hops, bridge.FabricHop{Link: int(data[at]), Detour: data[at+1] == 1})
	}
	return hops, nil
}
