//go:build cgo

package mesh

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// quick has heartbeats often enough for a test that waits for them.
func quick(x, y, z int) Config {
	return Config{Side: [3]int{x, y, z}, Threads: 1, Whole: true, Beat: 20 * time.Millisecond, Retry: 10 * time.Millisecond, Silence: 30 * time.Second}
}

func open(t *testing.T, c Config) *Mesh {
	t.Helper()
	m, err := Open(c)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	require.NoError(t, m.Settle(t.Context(), Well))
	return m
}

func run(t *testing.T, m *Mesh, l Load) Totals {
	t.Helper()
	require.NoError(t, m.Start(l))
	require.NoError(t, m.Wait(t.Context(), l, 2*time.Second))
	total, err := m.Totals()
	require.NoError(t, err)
	require.Zero(t, total.Changed)
	require.Zero(t, total.Doubled)
	return total
}

func TestAllToAll(t *testing.T) {
	m := open(t, quick(3, 2, 1))
	total := run(t, m, Load{From: All, To: All, Size: 1000, Count: 50})
	require.EqualValues(t, 6*5*50, total.Came)
	require.EqualValues(t, 6*5*50*1000, total.Bytes)
	took, err := m.Ping(t.Context(), 0, 4, 56, 20)
	require.NoError(t, err)
	require.Len(t, took, 20)
	hops, err := m.Route(0, 4)
	require.NoError(t, err)
	require.Equal(t, []Hop{{0, false}, {2, false}}, hops)
}

// TestBlocked: each node reports how long first packets of its inputs waited.
func TestBlocked(t *testing.T) {
	m := open(t, quick(3, 2, 1))
	var total Totals
	for total.Blocked == 0 { // until one did
		run(t, m, Load{From: All, To: All, Size: 4096, Count: 50})
		var err error
		total, err = m.Totals()
		require.NoError(t, err)
	}
	s, err := (&Fabric{Mesh: m}).State()
	require.NoError(t, err)
	for i := range s.Nodes {
		total.Blocked -= s.Nodes[i].Blocked
	}
	require.Zero(t, total.Blocked, "nothing is sent any more")
}

// TestAroundAFault: a link is cut, packets go around it, and it comes back.
func TestAroundAFault(t *testing.T) {
	m := open(t, quick(4, 1, 1))
	require.NoError(t, m.Cut(0, 0, true))
	broken := func(_ int, words []abi.Diagnostic) bool {
		return words[0].Reading(abi.DiagXPlus) == abi.Broken && words[1].Reading(abi.DiagXMinus) == abi.Broken
	}
	require.NoError(t, m.Settle(t.Context(), broken))
	hops, err := m.Route(0, 1)
	require.NoError(t, err)
	require.Len(t, hops, 3)
	require.True(t, hops[0].Detour)
	require.EqualValues(t, 20, run(t, m, Load{From: 0, To: 1, Size: 4096, Count: 20}).Came)
	require.NoError(t, m.Cut(0, 0, false))
	require.NoError(t, m.Settle(t.Context(), Well))
	hops, err = m.Route(0, 1)
	require.NoError(t, err)
	require.Equal(t, []Hop{{0, false}}, hops)
}

// TestDeadNode: what is for it is refused, and it comes back by itself.
func TestDeadNode(t *testing.T) {
	m := open(t, quick(3, 1, 1))
	require.NoError(t, m.Kill(1, true, false))
	gone := func(node int, words []abi.Diagnostic) bool {
		return words[0].Reading(abi.DiagXPlus) == abi.Broken && words[2].Reading(abi.DiagXMinus) == abi.Broken
	}
	require.NoError(t, m.Settle(t.Context(), gone))
	hops, err := m.Route(0, 1)
	require.NoError(t, err)
	require.Nil(t, hops)
	require.ErrorIs(t, m.Start(Load{From: 1, To: 0, Count: 1}), ErrBusy)
	total := run(t, m, Load{From: 0, To: 1, Size: 8, Count: 5})
	require.EqualValues(t, 5, total.Refused)
	require.NoError(t, m.Kill(1, false, false))
	require.NoError(t, m.Settle(t.Context(), Well))
	total = run(t, m, Load{From: 0, To: 1, Size: 8, Count: 5})
	require.EqualValues(t, 5, total.Came, "%+v", total)
}

func TestBadCalls(t *testing.T) {
	for _, c := range []Config{
		{}, {Side: [3]int{1, 1, 1}}, {Side: [3]int{33, 1, 1}}, {Side: [3]int{-1, 2, 2}}, {Side: [3]int{32, 32, 32}},
		{Side: [3]int{2, 1, 1}, Depth: 1000}, {Side: [3]int{2, 1, 1}, Threads: 1000},
		{Side: [3]int{2, 1, 1}, Here: []bool{true}}, {Side: [3]int{2, 1, 1}, Beat: -1},
	} {
		_, err := Open(c)
		require.ErrorIs(t, err, bridge.ErrInvalid, "%+v", c)
	}
	for text, side := range map[string][3]int{
		"one node is no fabric": {1, 1, 1}, "sides are 1..32": {32, 32, 33}, "32768 nodes: invalid argument: at most 1024": {32, 32, 32},
	} {
		_, err := Open(Config{Side: side})
		require.ErrorContains(t, err, text)
	}
	m := open(t, quick(2, 1, 1))
	require.ErrorIs(t, m.Cut(0, 2, true), ErrUnknown, "a link to itself")
	require.ErrorIs(t, m.Cut(0, 6, true), ErrUnknown)
	require.ErrorIs(t, m.Cut(2, 0, true), ErrUnknown)
	require.ErrorIs(t, m.Kill(-1, true, false), ErrUnknown)
	require.ErrorIs(t, m.Start(Load{From: 0, To: 2, Count: 1}), ErrUnknown)
	require.ErrorIs(t, m.Start(Load{From: 0, To: 1, Size: 4097, Count: 1}), bridge.ErrTooLarge)
	require.ErrorIs(t, m.Start(Load{From: 0, To: 1}), bridge.ErrInvalid)
	_, err := m.Ping(t.Context(), 0, All, 8, 1)
	require.ErrorIs(t, err, ErrUnknown)
	m.Close()
	m.Close()
	_, err = m.State(0)
	require.ErrorIs(t, err, ErrClosed)
}

// TestContextEnds: a call that waits for what never comes ends with its context.
func TestContextEnds(t *testing.T) {
	m := open(t, quick(2, 1, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, m.Settle(ctx, func(int, []abi.Diagnostic) bool { return false }), context.Canceled)
}

// TestOwnClock: without threads time passes when the test says so.
func TestOwnClock(t *testing.T) {
	m := open(t, Config{Side: [3]int{2, 1, 1}, WordPS: 1000, Delay: 55, Beat: 100 * time.Microsecond, Retry: 20 * time.Microsecond, Silence: 10 * time.Millisecond})
	require.EqualValues(t, 100, run(t, m, Load{From: 0, To: 1, Size: 4096, Count: 100}).Came)
}
