//go:build cgo

package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// loadCrashing loads the program that crashes as it is asked.
func loadCrashing(t *testing.T, dev bridge.Device) {
	t.Helper()
	source, err := os.ReadFile("../../internal/sim/testdata/crash.c")
	require.NoError(t, err)
	image, err := program.Build(t.Context(), fstest.MapFS{"crash.c": {Data: source}}, program.Options{})
	require.NoError(t, err)
	_, err = dev.Load(t.Context(), image)
	require.NoError(t, err)
}

// TestSharedCrash: a process that crashes ends alone, behind the filter of the device,
// too; one that breaks the firmware's memory ends the device, and hosts begin anew with
// the next.
func TestSharedCrash(t *testing.T) {
	const stop, overrun, corrupt = 2, 4, 11 // of crash.c
	path := filepath.Join(t.TempDir(), "s")
	startChild(t, "device", "--shm", path)
	dev, other := openShared(t, path), openShared(t, path)
	loadCrashing(t, dev)
	loopback := port(t, other, "loopback")
	buf := make([]byte, 100_000)
	for _, way := range []byte{0, stop, overrun} {
		ch := port(t, dev, "crash")
		require.NoError(t, ch.Send(t.Context(), []byte{way, 0, 0, 0, 0, 0, 0, 0}))
		_, err := ch.Receive(t.Context(), buf)
		require.ErrorIs(t, err, bridge.ErrClosed)
		require.NoError(t, ch.Close())
		require.NoError(t, echo(t.Context(), port(t, dev, "loopback"), buf, uint64(way)))
		require.NoError(t, echo(t.Context(), loopback, buf, uint64(way)))
	}
	ch := port(t, dev, "crash")
	err := ch.Send(t.Context(), []byte{corrupt, 0, 0, 0, 0, 0, 0, 0})
	if err == nil { // else the device died before its ack was seen
		_, err = ch.Receive(t.Context(), buf)
	}
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	require.ErrorIs(t, echo(t.Context(), loopback, buf, 0), bridge.ErrDeviceLost)
	startChild(t, "device", "--shm", path)
	for _, d := range []bridge.Device{dev, other} {
		require.NoError(t, d.Reset(t.Context()))
		require.NoError(t, echo(t.Context(), port(t, d, "loopback"), buf, 7))
	}
}
