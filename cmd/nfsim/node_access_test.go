//go:build cgo

package main

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// newOwner starts a process with memory of zeros that it makes windows of, until the test ends.
func newOwner(t *testing.T, dev bridge.Device, image []byte) *bridgetest.Windowed {
	t.Helper()
	name, err := dev.Load(t.Context(), image)
	require.NoError(t, err)
	p, err := dev.Start(t.Context(), bridge.Program{Name: name, Targets: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = dev.Stop(context.Background(), p.ID) }) // it may have ended
	ch, err := dev.Subscribe(t.Context(), p.First)
	require.NoError(t, err)
	o := &bridgetest.Windowed{T: t, Place: dev.Info().Node, Ch: ch}
	o.Clear()
	return o
}

func buildWindowed(t *testing.T) []byte {
	t.Helper()
	image, err := program.Build(t.Context(), os.DirFS("../../pkg/nfcomms/fabric/testdata/window"), program.Options{})
	require.NoError(t, err)
	return image
}

// openFar opens the far node's device by its own socket.
func (p *pair) openFar(t *testing.T) bridge.Device {
	t.Helper()
	dev, err := bridge.Open(t.Context(), "shm:"+p.farPath, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// TestWindowsOfProcesses: a client of one node puts to and gets from windows of a process at the
// other node, and at the same.
func TestWindowsOfProcesses(t *testing.T) {
	p, image := startNodes(t), buildWindowed(t)
	near, far := openFabric(t, p), p.openFar(t)
	for place, dev := range map[string]bridge.Device{"near": near, "far": far} {
		t.Run(place, func(t *testing.T) {
			bridgetest.RunWindows(t, near.Fabric(), func(t *testing.T) bridgetest.WindowOwner { return newOwner(t, dev, image) })
		})
	}
}

// TestPutsEnd: with the node of the window, with the client's reset and close, and with the node's
// process; each by one error, and a new one does as before.
func TestPutsEnd(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p, image := startNodes(t), buildWindowed(t)
	near := openFabric(t, p)
	w := newOwner(t, near, image).Window(0, bridgetest.WindowMemory, 3)
	put := func() *bridgetest.Pending {
		moving := make(chan struct{})
		call := bridgetest.Call("put", func() error {
			data := make([]byte, bridgetest.WindowMemory)
			for n := 0; ; n++ {
				if err := near.Fabric().Put(e.Ctx(), w, 0, data); err != nil {
					return err
				}
				if n == 3 {
					close(moving)
				}
			}
		})
		<-moving
		return call
	}
	call := put()
	require.NoError(t, near.Reset(e.Ctx()))
	err := e.Wait(call) // of the window, which ended first, or of the connection
	require.True(t, errors.Is(err, bridge.ErrNotSubscribed) || errors.Is(err, bridge.ErrDeviceLost), err)

	far := p.openFar(t)
	w = newOwner(t, far, image).Window(0, bridgetest.WindowMemory, 3)
	call = put()
	p.far.kill()
	require.ErrorIs(t, e.Wait(call), bridge.ErrDeviceLost)
	p.far = startChild(t, "device", p.farArgs...)
	_, err = near.Fabric().State(t.Context())
	require.NoError(t, err, "the client's node goes on")

	w = newOwner(t, openShared(t, p.path), image).Window(0, bridgetest.WindowMemory, 3)
	call = put()
	p.near.kill()
	require.ErrorIs(t, e.Wait(call), bridge.ErrDeviceLost)
	require.ErrorIs(t, near.Fabric().Put(e.Ctx(), w, 0, []byte{1}), bridge.ErrDeviceLost)
	require.NoError(t, near.Close())
	require.ErrorIs(t, near.Fabric().Put(e.Ctx(), w, 0, []byte{1}), bridge.ErrClosed)
}
