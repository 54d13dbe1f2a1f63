//go:build cgo

package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

func TestBadTorus(t *testing.T) {
	for _, torus := range []string{"", "4", "4x4", "4x4x4x4", "1x1x1", "0x4x4", "33x1x1", "-2x1x1", "2x2x02", "32x32x2", "99999999999999999999x1x1", "axbxc"} {
		_, err := bridge.Open(context.Background(), "sim:?torus="+torus, nil)
		require.ErrorIs(t, err, bridge.ErrInvalid, torus)
		require.ErrorContains(t, err, "option torus="+torus+": ")
		require.ErrorContains(t, err, "want nodes in x, y and z as 4x4x1, 1..32 a side, 2..1024 in all")
		require.ErrorIs(t, bridge.CheckAddress("sim:?torus="+torus), bridge.ErrInvalid)
	}
	require.NoError(t, bridge.CheckAddress("sim:?torus=2x1x1&errors=1e-3"))
	for _, part := range []string{"", "x", "-1e-9", "0.0011", "NaN", "Inf"} {
		err := bridge.CheckAddress("sim:?torus=2x1x1&errors=" + part)
		require.ErrorIs(t, err, bridge.ErrInvalid, part)
		require.ErrorContains(t, err, "want 0..0.001")
	}
	require.ErrorContains(t, bridge.CheckAddress("sim:?errors=0"), "there are no links without torus")
}

// openTorus opens a device that is a node of a fabric.
func openTorus(t *testing.T, options string) bridge.FabricNode {
	t.Helper()
	dev := openDevice(t, options)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev.(bridge.FabricNode)
}

// TestFabric: the device says how its fabric is, and what a cut changes.
func TestFabric(t *testing.T) {
	e := bridgetest.NewEnv(t)
	f := openTorus(t, "torus=3x2x1").Fabric()
	state := func() bridge.FabricState {
		s, err := f.State(t.Context())
		require.NoError(t, err)
		return s
	}
	e.Until("all links are up", func() bool {
		for _, n := range state().Nodes {
			for _, l := range n.Links {
				if !n.Word.Valid() || n.Word.Worst() != abi.Normal || l.Joined != l.Up {
					return false
				}
			}
		}
		return true
	})
	s := state()
	require.Equal(t, [3]int{3, 2, 1}, s.Side)
	require.Len(t, s.Nodes, 6)
	require.False(t, s.Nodes[0].Links[4].Joined, "a side of one has no links")

	to := abi.MakeNode(1, 0, 0)
	hops, err := f.Route(t.Context(), abi.MakeNode(0, 0, 0), to)
	require.NoError(t, err)
	require.Equal(t, []bridge.FabricHop{{Link: 0}}, hops)
	require.NoError(t, f.CutLink(t.Context(), to, 1, true))
	e.Until("another way", func() bool {
		hops, err := f.Route(t.Context(), abi.MakeNode(0, 0, 0), to)
		require.NoError(t, err)
		return len(hops) > 1
	})
	require.NoError(t, f.CutLink(t.Context(), to, 1, false))
	require.NoError(t, f.KillNode(t.Context(), to, true))
	e.Until("the node is dead", func() bool { return !state().Nodes[1].Alive })
	require.NoError(t, f.KillNode(t.Context(), to, false))
	e.Until("its link is up", func() bool { return state().Nodes[0].Links[0].Up })
	require.NoError(t, f.SilenceNode(t.Context(), to))
	require.True(t, state().Nodes[0].Links[0].Up, "nothing hung up")
	e.Until("its silence is heard", func() bool { s := state(); return !s.Nodes[1].Alive && !s.Nodes[0].Links[0].Up })
	require.NoError(t, f.KillNode(t.Context(), to, false))
	e.Until("it is there again", func() bool { return state().Nodes[0].Links[0].Up })
	for _, err := range []error{
		f.CutLink(t.Context(), abi.MakeNode(3, 0, 0), 0, true), f.CutLink(t.Context(), to, 4, true), f.CutLink(t.Context(), to, 6, true), f.KillNode(t.Context(), abi.MakeNode(0, 2, 0), true),
		f.SilenceNode(t.Context(), abi.MakeNode(0, 2, 0)),
	} {
		require.ErrorIs(t, err, bridge.ErrInvalid)
	}
	_, err = f.Route(t.Context(), to, abi.MakeNode(0, 0, 1))
	require.ErrorIs(t, err, bridge.ErrInvalid)
}

// TestLinkOfATorus: a test of a link counts words; what cannot be tested says why.
func TestLinkOfATorus(t *testing.T) {
	f := openTorus(t, "torus=2x1x1").Fabric()
	require.Eventually(t, func() bool {
		s, err := f.State(t.Context())
		return err == nil && s.Nodes[0].Links[0].Up
	}, time.Minute, time.Millisecond)
	got, err := f.TestLink(t.Context(), 0, 0, 1000)
	require.NoError(t, err)
	require.Equal(t, bridge.LinkTest{Words: 1024}, got, "whole bursts")
	_, err = f.TestLink(t.Context(), abi.MakeNode(2, 0, 0), 0, 1)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	_, err = f.TestLink(t.Context(), 0, 2, 1)
	require.ErrorIs(t, err, bridge.ErrInvalid, "it leads nowhere")
	require.NoError(t, f.CutLink(t.Context(), 0, 0, true))
	_, err = f.TestLink(t.Context(), 0, 0, 1<<30)
	require.ErrorIs(t, err, bridge.ErrLinkDown)
}

// TestFabricOfAClosedDevice: what is asked late is answered.
func TestFabricOfAClosedDevice(t *testing.T) {
	dev := openDevice(t, "torus=2x1x1")
	f := dev.(bridge.FabricNode).Fabric()
	require.NoError(t, dev.Close())
	require.NoError(t, dev.Close())
	_, err := f.State(t.Context())
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.ErrorIs(t, f.KillNode(t.Context(), abi.MakeNode(1, 0, 0), true), bridge.ErrClosed)
}
