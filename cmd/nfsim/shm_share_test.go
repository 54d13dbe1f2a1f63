//go:build cgo

package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// starts starts processes until one does not, and returns how many did.
func starts(t *testing.T, dev bridge.Device) (n int, err error) {
	for ; err == nil; n++ {
		_, err = dev.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 1})
	}
	return n - 1, err
}

// TestShareOfADevice: a client of a share finds a device with the share's channels and processes. Each
// limit is an error of its call, what worked before works on, and root has the limits too. Other
// clients have the whole shape, and so does the next client of a share that ended.
func TestShareOfADevice(t *testing.T) {
	dir := t.TempDir()
	device, path := filepath.Join(dir, "d"), filepath.Join(dir, "s")
	startChild(t, "device", "--shm", device)
	limits := shmwire.Limits{Clients: 1, Channels: 64, Processes: 10, Memory: 64 << 20}
	require.NoError(t, shmwire.OpenShare(t.Context(), device, path, 0o600, limits))
	dev, other := openShared(t, path), openShared(t, device)
	require.Equal(t, 64, dev.Info().Channels)
	require.Equal(t, 18, dev.Info().Contexts, "eight for services")
	require.Equal(t, 1<<16, other.Info().Channels)
	require.False(t, dev.Info().CanLoad)
	require.True(t, other.Info().CanLoad)

	loopback := port(t, dev, "loopback")
	buf := make([]byte, 100_000)
	require.NoError(t, echo(t.Context(), loopback, buf, 1))
	n, err := starts(t, dev)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.GreaterOrEqual(t, n, 9)
	require.LessOrEqual(t, n, 17)
	_, err = dev.Subscribe(t.Context(), 64)
	require.ErrorIs(t, err, bridge.ErrNotSubscribed)
	require.ErrorContains(t, err, "targets are 1 to 63")
	_, err = dev.Alloc(65 << 20)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.ErrorContains(t, err, "the clients of this share of the device may map 67108864 bytes together")
	_, err = bridge.Open(t.Context(), "shm:"+path, nil)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.NoError(t, echo(t.Context(), loopback, buf, 2))
	more, err := starts(t, other)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.Greater(t, more, 32)

	require.NoError(t, dev.Close())
	dev = openShared(t, path)
	again, err := starts(t, dev)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.Equal(t, n+1, again, "with the process of the first client")
	require.NoError(t, shmwire.CloseShare(t.Context(), path))
	_, err = dev.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 1})
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	_, err = other.Subscribe(t.Context(), abi.TargetLoopback)
	require.NoError(t, err)
}
