//go:build cgo

package sim

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestHostWindows: memory of this process, from the own node.
func TestHostWindows(t *testing.T) {
	dev := openTorus(t, "torus=3x1x1&emem=64MiB") // its rules count what is mapped beside it
	bridgetest.RunHostWindows(t, dev, dev.Fabric())
	s, err := dev.Fabric().State(t.Context())
	require.NoError(t, err)
	require.Positive(t, s.Nodes[0].PageHits)
	require.Positive(t, s.Nodes[0].PageMisses)
}

// TestHostWindowsEnd: with the node, and with the device; memory of no region is as good.
func TestHostWindowsEnd(t *testing.T) {
	dev := openDevice(t, "torus=2x1x1").(bridge.FabricNode)
	f := dev.Fabric()
	mem := make([]byte, 100)
	w, err := f.Window(t.Context(), mem, bridge.WindowRead|bridge.WindowWrite)
	require.NoError(t, err)
	require.NoError(t, f.Put(t.Context(), w.Remote(), 99, []byte{3}))
	require.Equal(t, byte(3), mem[99])
	windows := func() (n, bytes uint64) {
		s, err := f.State(t.Context())
		require.NoError(t, err)
		require.Zero(t, s.Nodes[1].Windows)
		return s.Nodes[0].Windows, s.Nodes[0].WindowBytes
	}
	n, size := windows()
	require.EqualValues(t, 1, n)
	require.EqualValues(t, 100, size)
	require.NoError(t, f.KillNode(t.Context(), w.Remote().Node, true))
	bridgetest.NewEnv(t).Until("the node is dead", func() bool {
		late, err := f.Window(t.Context(), mem, bridge.WindowRead)
		if err == nil {
			late.Revoke()
		}
		return errors.Is(err, bridge.ErrDeviceLost)
	})
	require.NoError(t, f.KillNode(t.Context(), w.Remote().Node, false))
	bridgetest.NewEnv(t).Until("the node is there again, without the window", func() bool {
		return errors.Is(f.Put(t.Context(), w.Remote(), 0, []byte{3}), bridge.ErrNotSubscribed)
	})
	w.Revoke()
	n, size = windows()
	require.Zero(t, n+size)
	w, err = f.Window(t.Context(), mem, bridge.WindowRead)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	w.Revoke()
	_, err = f.Window(t.Context(), mem, bridge.WindowRead)
	require.ErrorIs(t, err, bridge.ErrClosed)
}
