package shmwire

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestStateOnTheWire: what is written is read; anything shorter, longer or of no torus is refused.
func TestStateOnTheWire(t *testing.T) {
	s := bridge.FabricState{Side: [3]int{2, 1, 1}, Node: abi.MakeNode(1, 0, 0), Nodes: make([]bridge.FabricNodeState, 2)}
	s.Nodes[1] = bridge.FabricNodeState{Word: 0x80000001, Alive: true, Forwarded: 1, Detours: 2, Unreachable: 3, Windows: 13, WindowBytes: 14, PageHits: 11, PageMisses: 12}
	s.Nodes[1].Links[5] = bridge.FabricLinkState{
		Joined: true, Up: true, Level: abi.Sick, Medium: bridge.MediumUDP, Window: 4, RoundTrip: time.Second, BytesSent: 5, BytesReceived: 6, Packets: 7,
		Repeated: 8, Errors: 9, Restarts: 10,
	}
	data := EncodeState(&s)
	back, err := ParseState(data)
	require.NoError(t, err)
	require.Equal(t, s, back)
	for n := range data {
		_, err := ParseState(data[:n])
		require.ErrorIs(t, err, ErrForeign, n)
	}
	_, err = ParseState(append(data, 0))
	require.ErrorIs(t, err, ErrForeign)
	for _, side := range []byte{0, 1, 33, 255} {
		forged := append([]byte{side}, data[1:]...)
		_, err = ParseState(forged)
		require.ErrorIs(t, err, ErrForeign, side)
	}
}

// TestRouteOnTheWire likewise.
func TestRouteOnTheWire(t *testing.T) {
	hops := []bridge.FabricHop{{Link: 5}, {Link: 0, Detour: true}}
	back, err := ParseRoute(EncodeRoute(hops))
	require.NoError(t, err)
	require.Equal(t, hops, back)
	for _, forged := range [][]byte{{0}, {6, 0}, {0, 2}} {
		_, err := ParseRoute(forged)
		require.ErrorIs(t, err, ErrForeign, forged)
	}
}
