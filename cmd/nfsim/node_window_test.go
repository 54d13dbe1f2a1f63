//go:build cgo

package main

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestWindowsOfHosts: clients of one node reach memory of a client of the other, and of their own.
func TestWindowsOfHosts(t *testing.T) {
	p := startNodes(t)
	near, far := openFabric(t, p), p.openFar(t).(bridge.FabricNode)
	t.Run("same", func(t *testing.T) { bridgetest.RunHostWindows(t, near, near.Fabric()) })
	t.Run("beside", func(t *testing.T) { bridgetest.RunHostWindows(t, openFabric(t, p), near.Fabric()) })
	t.Run("far", func(t *testing.T) { bridgetest.RunHostWindows(t, far, near.Fabric()) })
	_, err := near.Fabric().Window(t.Context(), make([]byte, 10), bridge.WindowRead)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	require.ErrorContains(t, err, "only memory of Alloc is reached")
}

// hostWindow is memory of a client that others may write, and a name for it.
func hostWindow(t *testing.T, dev bridge.FabricNode) (bridge.HostWindow, []byte) {
	t.Helper()
	r, err := dev.Alloc(bridgetest.WindowMemory)
	require.NoError(t, err)
	w, err := dev.Fabric().Window(t.Context(), r.Bytes(), bridge.WindowWrite)
	require.NoError(t, err)
	return w, r.Bytes()
}

// TestRevokedOfAStoppedProcess: a device process that does not answer reaches nothing once Revoke
// has returned, although it continues what it was asked for; it is lost until it is reset.
func TestRevokedOfAStoppedProcess(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p := startNodes(t)
	dev, other := openFabric(t, p), openFabric(t, p).Fabric()
	w, memory := hostWindow(t, dev)
	data := bytes.Repeat([]byte{1}, len(memory))
	require.NoError(t, other.Put(e.Ctx(), w.Remote(), 0, data))
	require.Equal(t, data, memory)
	ch, err := dev.Subscribe(e.Ctx(), abi.TargetLoopback)
	require.NoError(t, err)

	require.NoError(t, p.near.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, unix.Waitid(unix.P_PID, p.near.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil), "all its threads have stopped")
	w.Revoke()
	require.ErrorIs(t, ch.SendInd(e.Ctx(), memory), bridge.ErrDeviceLost)
	_, err = dev.Fabric().Window(e.Ctx(), memory, bridge.WindowRead)
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	require.Equal(t, data, memory, "what was there is there")
	clear(memory)
	var puts []*bridgetest.Pending
	for range 4 { // some arrive before what is revoked
		puts = append(puts, bridgetest.Call("put", func() error { return other.Put(e.Ctx(), w.Remote(), 0, data) }))
	}
	require.NoError(t, p.near.Process.Signal(syscall.SIGCONT))
	for _, put := range puts {
		if err := e.Wait(put); err != nil {
			require.ErrorIs(t, err, bridge.ErrNotSubscribed)
		}
	}
	require.Equal(t, make([]byte, len(memory)), memory)

	require.NoError(t, dev.Reset(e.Ctx()))
	require.ErrorIs(t, other.Put(e.Ctx(), w.Remote(), 0, data), bridge.ErrNotSubscribed)
	again, err := dev.Fabric().Window(e.Ctx(), memory, bridge.WindowWrite)
	require.NoError(t, err)
	require.NoError(t, other.Put(e.Ctx(), again.Remote(), 0, data))
	require.Equal(t, data, memory)
	again.Revoke()
}

// TestWindowsEndWithTheirClient: and with the device process, after which there are new ones.
func TestWindowsEndWithTheirClient(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p := startNodes(t)
	near := openFabric(t, p)
	far := p.openFar(t).(bridge.FabricNode)
	w, memory := hostWindow(t, far)
	require.NoError(t, near.Fabric().Put(e.Ctx(), w.Remote(), 0, []byte{1}))
	require.Equal(t, byte(1), memory[0])
	require.NoError(t, far.Close())
	require.ErrorIs(t, near.Fabric().Put(e.Ctx(), w.Remote(), 0, []byte{1}), bridge.ErrNotSubscribed)
	w.Revoke()

	far = p.openFar(t).(bridge.FabricNode)
	w, memory = hostWindow(t, far)
	p.far.kill()
	w.Revoke()
	_, err := far.Fabric().Window(e.Ctx(), memory, bridge.WindowRead)
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	p.far = startChild(t, "device", p.farArgs...)
	require.NoError(t, far.Reset(e.Ctx()))
	untilUp(t, near.Fabric(), 0, 1)
	w, err = far.Fabric().Window(e.Ctx(), memory, bridge.WindowWrite)
	require.NoError(t, err)
	e.Until("the other node has a way to it", func() bool { return near.Fabric().Put(e.Ctx(), w.Remote(), 0, []byte{7}) == nil })
	require.Equal(t, byte(7), memory[0])
}
