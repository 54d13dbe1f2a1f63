//go:build cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBeside: every method of a client of a shared device may be called beside every other one.
func TestBeside(t *testing.T) { beside.Device(t, shareDevice(t, "beat=10ms"), 200, "Fabric") }

// TestBesideOfANode: the same where the device is a node of a fabric of processes.
func TestBesideOfANode(t *testing.T) {
	p := startNodes(t)
	dev := p.open(t) // there is a way to the other node
	require.NoError(t, dev.Close())
	beside.Device(t, "shm:"+p.path, 100)
}
