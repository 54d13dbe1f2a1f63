//go:build cgo

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// What the program of windowSource does.
const (
	windowMake = iota
	windowRevoke
	windowSum
	windowClear

	windowSource = "../../pkg/nfcomms/testdata/window"
)

// owner is a process of a node's own client, with memory that it makes windows of.
type owner struct {
	t     *testing.T
	place abi.Node
	ch    bridge.Channel
}

// newOwner starts one with memory of zeros, until the test ends.
func newOwner(t *testing.T, dev bridge.Device, image []byte) *owner {
	t.Helper()
	name, err := dev.Load(t.Context(), image)
	require.NoError(t, err)
	p, err := dev.Start(t.Context(), bridge.Program{Name: name, Targets: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = dev.Stop(context.Background(), p.ID) }) // it may have ended
	ch, err := dev.Subscribe(t.Context(), p.First)
	require.NoError(t, err)
	o := &owner{t, dev.Info().Node, ch}
	o.ask(windowClear)
	return o
}

// ask has the process do something, which succeeds.
func (o *owner) ask(request ...uint64) uint64 {
	o.t.Helper()
	var message [32]byte
	for i, word := range request {
		binary.LittleEndian.PutUint64(message[8*i:], word)
	}
	require.NoError(o.t, o.ch.Send(o.t.Context(), message[:]))
	_, err := o.ch.Receive(o.t.Context(), message[:])
	require.NoError(o.t, err)
	require.Zero(o.t, binary.LittleEndian.Uint64(message[:]))
	return binary.LittleEndian.Uint64(message[8:])
}

// Window makes one.
func (o *owner) Window(offset, size, access uint64) bridge.FabricWindow {
	return bridge.FabricWindow{Node: o.place, Key: o.ask(windowMake, offset, size, access)}
}

// Revoke ends one.
func (o *owner) Revoke(w bridge.FabricWindow) { o.ask(windowRevoke, w.Key) }

// Sum adds up the process's memory.
func (o *owner) Sum() uint64 { return o.ask(windowSum) }

func buildWindowed(t *testing.T) []byte {
	t.Helper()
	image, err := program.Build(t.Context(), os.DirFS(windowSource), program.Options{})
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
	_, err = near.Fabric().State()
	require.NoError(t, err, "the client's node goes on")

	w = newOwner(t, openShared(t, p.path), image).Window(0, bridgetest.WindowMemory, 3)
	call = put()
	p.near.kill()
	require.ErrorIs(t, e.Wait(call), bridge.ErrDeviceLost)
	require.ErrorIs(t, near.Fabric().Put(e.Ctx(), w, 0, []byte{1}), bridge.ErrDeviceLost)
	require.NoError(t, near.Close())
	require.ErrorIs(t, near.Fabric().Put(e.Ctx(), w, 0, []byte{1}), bridge.ErrClosed)
}
