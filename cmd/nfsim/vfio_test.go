//go:build cgo

package main

import (
	"context"
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
	_ "github.com/nfcomms/nfcomms/internal/vfio"
)

// serveFunction serves the PCI function of a command line until the test ends, and returns its address.
func serveFunction(t *testing.T, flags ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	t.Cleanup(serveAt(t, path, flags...))
	return "vfio-user:" + path
}

// serveAt serves one at a path until the function that it returns is called.
func serveAt(t *testing.T, path string, flags ...string) (stop func()) {
	t.Helper()
	o := &options{}
	root := newRoot()
	root.ResetFlags()
	o.define(root)
	require.NoError(t, root.ParseFlags(flags))
	s, err := newServer(o, slog.New(slog.DiscardHandler), -1, func() {})
	require.NoError(t, err)
	l, err := listen(path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.accept(ctx, l) }()
	return func() {
		cancel()
		require.NoError(t, <-served)
		s.device.Close()
	}
}

// TestFunctionConformance runs every rule of the contract on the PCI function, driven from user space
// over its socket.
func TestFunctionConformance(t *testing.T) {
	bridgetest.Run(t, func(t *testing.T, query string) bridge.Device {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		var flags []string
		for name := range values {
			flags = append(flags, "--"+name, values.Get(name))
		}
		dev, err := bridge.Open(t.Context(), serveFunction(t, flags...), nil)
		require.NoError(t, err)
		return spectest.Verified(t, dev)
	}, "stats/allocations") // device and client allocate here for each connection of theirs
}

// startOn starts a program with one target.
func startOn(t *testing.T, dev bridge.Device) error {
	_, err := dev.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 1})
	return err
}

// TestFunctionIsExclusive: the second client waits until the first has closed, or its own context ends.
// The function is reset in between.
func TestFunctionIsExclusive(t *testing.T) {
	address := serveFunction(t)
	first, err := bridge.Open(t.Context(), address, nil)
	require.NoError(t, err)
	p, err := first.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = bridge.Open(ctx, address, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorContains(t, err, "another client may have the device")
	require.NoError(t, startOn(t, first))
	require.NoError(t, first.Close())
	second, err := bridge.Open(t.Context(), address, nil)
	require.NoError(t, err)
	require.ErrorIs(t, second.Stop(t.Context(), p.ID), bridge.ErrInvalid, "it ended with its client")
	require.NoError(t, second.Close())
}

// TestFunctionServedAgain: a Reset finds a process that serves the function in place of one that ended.
func TestFunctionServedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	stop := serveAt(t, path)
	dev, err := bridge.Open(t.Context(), "vfio-user:"+path, nil)
	require.NoError(t, err)
	mem, err := dev.Alloc(1 << 20)
	require.NoError(t, err)
	stop()
	require.ErrorIs(t, startOn(t, dev), bridge.ErrDeviceLost)
	require.ErrorIs(t, dev.Reset(t.Context()), bridge.ErrDeviceLost)
	stop = serveAt(t, path)
	defer stop()
	require.NoError(t, dev.Reset(t.Context()))
	require.NoError(t, talk(t, dev, newGuarded(50_000), newGuarded(50_000), long))
	require.NoError(t, mem.Close())
	require.NoError(t, dev.Close())
}

// TestFunctionRefused: what this back end cannot drive says so.
func TestFunctionRefused(t *testing.T) {
	for flag, want := range map[string]error{
		"--no-mmap": bridge.ErrNotSupported, "--pci-version=2.0": bridge.ErrABI, "--abi-version=9.1": bridge.ErrABI,
	} {
		_, err := bridge.Open(t.Context(), serveFunction(t, flag), nil)
		require.ErrorIs(t, err, want, flag)
	}
}
