//go:build cgo

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// startPipeline starts two stages, the first of which connects to the second, and
// returns the channels to the one and of the other.
func startPipeline(t *testing.T, dev bridge.Device, image []byte) (in, out bridge.Channel) {
	t.Helper()
	name, err := dev.Load(t.Context(), image)
	require.NoError(t, err)
	last, err := dev.Start(t.Context(), bridge.Program{Name: name, Targets: 2})
	require.NoError(t, err)
	first, err := dev.Start(t.Context(), bridge.Program{Name: name, Targets: 1, Argument: uint64(last.First)})
	require.NoError(t, err)
	in, err = dev.Subscribe(t.Context(), first.First)
	require.NoError(t, err)
	out, err = dev.Subscribe(t.Context(), last.First+1)
	require.NoError(t, err)
	return in, out
}

// TestSharedJoints: the processes of each host are joined with each other, and those
// of a host that closes leave nothing to the next.
func TestSharedJoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	startChild(t, "device", "--shm", path, "--islands", "2")
	image, err := program.Build(t.Context(), os.DirFS("../../examples/pipeline/device"), program.Options{})
	require.NoError(t, err)
	other := openShared(t, path)
	in, out := startPipeline(t, other, image)
	for range 3 {
		dev := openShared(t, path)
		mine, from := startPipeline(t, dev, image)
		passBlock(t, in, out, 300_001)
		passBlock(t, mine, from, 5)
		require.NoError(t, mine.Send(t.Context(), []byte("left behind")))
		require.NoError(t, dev.Close())
		passBlock(t, in, out, 70_000)
	}
}

// passBlock sends a block through two stages that add 1 to each byte.
func passBlock(t *testing.T, in, out bridge.Channel, size int) {
	t.Helper()
	block, got := make([]byte, size), make([]byte, size)
	for i := range block {
		block[i] = byte(i * 7)
	}
	require.NoError(t, in.SendInd(t.Context(), block))
	require.NoError(t, out.ReceiveInd(t.Context(), got))
	for i := range block {
		block[i] += 2
	}
	require.Equal(t, block, got)
}
