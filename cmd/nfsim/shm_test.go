//go:build cgo

package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/hosts"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/firmware"
	_ "github.com/nfcomms/nfcomms/internal/shm"
	"github.com/nfcomms/nfcomms/internal/spectest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// shareDevice serves a device of a shape until the test ends, and returns its address.
func shareDevice(t *testing.T, query string) string {
	t.Helper()
	a, err := bridge.ParseAddress("shm:?" + query)
	require.NoError(t, err)
	c := firmware.Config{LogFD: -1, Shared: 4, Spin: defaultSpin(), Runs: 1, Eager: wire.EagerEntries}
	require.NoError(t, c.Parse(a))
	path := filepath.Join(t.TempDir(), "s")
	l, err := listenShared(path, 0o600, nil)
	require.NoError(t, err)
	s, status := hosts.New(hosts.Options{Device: c, Memory: 16 << 30, UserHosts: 4, UserMemory: 16 << 30, Logger: slog.New(slog.DiscardHandler)})
	require.Equal(t, abi.OK, status)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		s.Close()
	})
	return "shm:" + path
}

// TestSharedConformance runs every rule of the contract through memory that client and
// device share.
func TestSharedConformance(t *testing.T) {
	bridgetest.Run(t, openSharedVerified, "stats/allocations") // device and client allocate here for each connection of theirs
}

// openSharedVerified opens a device in shared memory whose slots are verified.
func openSharedVerified(t *testing.T, query string) bridge.Device {
	dev, err := bridge.Open(t.Context(), shareDevice(t, query), nil)
	require.NoError(t, err)
	return spectest.Verified(t, dev)
}
