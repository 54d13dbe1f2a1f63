//go:build cgo

package main

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBeside: every method of a client of a shared device may be called beside every other one.
func TestBeside(t *testing.T) { beside.Device(t, shareDevice(t, "beat=10ms"), 150, "Fabric") }

// TestBesideOfANode: the same where the device is a node of a fabric of processes.
func TestBesideOfANode(t *testing.T) {
	p := startNodes(t)
	dev := p.open(t) // there is a way to the other node
	require.NoError(t, dev.Close())
	beside.Device(t, "shm:"+p.path, 100)
}

// TestBesideOfAFunction: the same of a PCI function, which has one client at a time.
func TestBesideOfAFunction(t *testing.T) {
	free := make(chan string, 3)
	for range cap(free) {
		path := filepath.Join(t.TempDir(), "s")
		startChild(t, "device", "--vfio-user", path, "--beat", "10ms")
		free <- "vfio-user:" + path
	}
	beside.Devices(t, func(ctx context.Context) (*beside.World, error) {
		address := <-free
		w, err := beside.OpenDevice(ctx, address, "Fabric")
		if err != nil {
			return nil, err
		}
		end := w.End
		w.End = func() error {
			defer func() { free <- address }()
			return end()
		}
		return w, nil
	}, 0)
}
