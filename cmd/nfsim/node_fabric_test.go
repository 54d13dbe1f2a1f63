//go:build cgo

package main

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

var node0, node1 = abi.MakeNode(0, 0, 0), abi.MakeNode(1, 0, 0)

// openFabric makes the test a client of the near node, whose links are up.
func openFabric(t *testing.T, p *pair) bridge.FabricNode {
	t.Helper()
	var dev bridge.Device
	require.Eventually(t, func() bool { // its islands may wait for a processor
		var err error
		dev, err = bridge.Open(t.Context(), "shm:"+p.path, nil)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	node, ok := dev.(bridge.FabricNode)
	require.True(t, ok)
	untilUp(t, node.Fabric(), 0, 1)
	return node
}

// untilUp waits until just these links of the near node are up.
func untilUp(t *testing.T, f bridge.Fabric, links ...int) {
	t.Helper()
	require.Eventually(t, func() bool {
		s, err := f.State(t.Context())
		require.NoError(t, err)
		var up []int
		for l, end := range s.Nodes[0].Links {
			if end.Up {
				up = append(up, l)
			}
		}
		return s.Nodes[1].Word.Valid() && len(up) == len(links) && up[0] == links[0]
	}, time.Minute, 5*time.Millisecond)
}

// TestFabricOfProcesses: a client of one node sees the fabric, and has the other node's device by
// the node of a target.
func TestFabricOfProcesses(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p := startNodes(t)
	dev := openFabric(t, p)
	f := dev.Fabric()
	require.Equal(t, node0, dev.Info().Node)
	s, err := f.State(t.Context())
	require.NoError(t, err)
	require.Equal(t, [3]int{2, 1, 1}, s.Side)
	require.Equal(t, node0, s.Node)
	require.True(t, s.Nodes[0].Alive)
	require.False(t, s.Nodes[1].Alive, "another process counts for itself")

	var far bridge.Device
	e.Until("the other node answers", func() bool { far, err = f.Device(e.Ctx(), node1); return err == nil })
	again, err := f.Device(e.Ctx(), node1)
	require.NoError(t, err)
	require.NotSame(t, far, again, "each call has a share of its own")
	require.NoError(t, again.Close())
	require.Equal(t, node1, far.Info().Node)
	programs, err := far.Programs(e.Ctx())
	require.NoError(t, err)
	require.Contains(t, programs, "loopback")
	_, err = far.Health()
	require.NoError(t, err)
	target := bridge.At(node1, nfcomms.Loopback)
	ch, err := dev.Subscribe(e.Ctx(), target)
	require.NoError(t, err)
	require.Equal(t, target, ch.Target())
	require.NoError(t, echo(e.Ctx(), ch, make([]byte, 300_000), 1))
	own, err := dev.Subscribe(e.Ctx(), bridge.At(node0, nfcomms.Loopback))
	require.NoError(t, err)
	require.NoError(t, echo(e.Ctx(), own, make([]byte, 5000), 2))

	require.NoError(t, dev.Reset(e.Ctx()))
	ch, err = dev.Subscribe(e.Ctx(), target)
	require.NoError(t, err)
	require.NoError(t, echo(e.Ctx(), ch, make([]byte, 5000), 3))
	require.NoError(t, dev.Close())
	_, err = f.State(t.Context())
	require.ErrorIs(t, err, bridge.ErrClosed)
	_, err = f.Device(e.Ctx(), node1)
	require.ErrorIs(t, err, bridge.ErrClosed)
	same, err := bridge.Open(e.Ctx(), "shm:"+p.path+"?node=0.0.0", nil)
	require.NoError(t, err)
	require.Equal(t, node0, same.Info().Node)
	require.NoError(t, same.Close())
}

// TestLinksOfProcesses: routes, cuts and tests by a client; what is another process's is refused.
func TestLinksOfProcesses(t *testing.T) {
	f := openFabric(t, startNodes(t)).Fabric()
	for _, way := range []struct {
		from, to abi.Node
		hops     int
	}{{node0, node1, 1}, {node1, node0, 1}, {node1, node1, 0}} {
		hops, err := f.Route(t.Context(), way.from, way.to)
		require.NoError(t, err)
		require.NotNil(t, hops)
		require.Len(t, hops, way.hops)
	}
	var result bridge.LinkTest
	require.Eventually(t, func() bool { // a link whose ends wait for a processor breaks
		var err error
		result, err = f.TestLink(t.Context(), node0, 0, 1000)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.GreaterOrEqual(t, result.Words, uint64(1000))
	require.Zero(t, result.Wrong)

	require.NoError(t, f.CutLink(t.Context(), node0, 0, true))
	untilUp(t, f, 1)
	_, err := f.TestLink(t.Context(), node0, 0, 1)
	require.ErrorIs(t, err, bridge.ErrLinkDown)
	require.NoError(t, f.CutLink(t.Context(), node0, 0, false))
	untilUp(t, f, 0, 1)

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = f.TestLink(ended, node0, 0, 1)
	require.ErrorIs(t, err, context.Canceled)
	outside := abi.MakeNode(2, 0, 0)
	for want, bad := range map[error][]func() error{
		bridge.ErrNotSupported: {
			func() error { return f.CutLink(t.Context(), node1, 0, true) },
			func() error { _, err := f.TestLink(t.Context(), node1, 0, 1); return err },
			func() error { return f.KillNode(t.Context(), node0, true) },
			func() error { return f.SilenceNode(t.Context(), node0) },
		},
		bridge.ErrInvalid: {
			func() error { return f.CutLink(t.Context(), outside, 0, true) },
			func() error { return f.CutLink(t.Context(), node0, 2, true) },
			func() error { return f.CutLink(t.Context(), node0, 6, true) },
			func() error { return f.CutLink(t.Context(), node0, -1, true) },
			func() error { _, err := f.TestLink(t.Context(), node0, 9, 1); return err },
			func() error { _, err := f.TestLink(t.Context(), node0, 0, 0); return err },
			func() error { _, err := f.Route(t.Context(), node0, outside); return err },
			func() error { _, err := f.Route(t.Context(), outside, node0); return err },
			func() error { _, err := f.Device(t.Context(), outside); return err },
			func() error { _, err := f.Device(t.Context(), node0); return err },
		},
	} {
		for i, call := range bad {
			require.ErrorIs(t, call(), want, i)
		}
	}
}

// TestNoFabricOfOneProcess: a device that is no node says so.
func TestNoFabricOfOneProcess(t *testing.T) {
	dev, err := bridge.Open(t.Context(), shareDevice(t, ""), nil)
	require.NoError(t, err)
	_, ok := dev.(bridge.FabricNode)
	require.False(t, ok)
	require.NoError(t, dev.Close())
}
