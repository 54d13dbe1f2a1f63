package bridgetest

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// hostOwner is this process, as a WindowOwner.
type hostOwner struct {
	t      *testing.T
	fabric bridge.Fabric
	memory []byte
	open   map[bridge.FabricWindow]bridge.HostWindow
}

// newHostOwner has memory of a device until the test ends.
func newHostOwner(t *testing.T, dev bridge.FabricNode) *hostOwner {
	t.Helper()
	r, err := dev.Alloc(WindowMemory)
	require.NoError(t, err)
	o := &hostOwner{t, dev.Fabric(), r.Bytes(), make(map[bridge.FabricWindow]bridge.HostWindow)}
	t.Cleanup(func() {
		for _, w := range o.open {
			w.Revoke()
		}
		require.NoError(t, r.Close())
	})
	return o
}

// Window makes one.
func (o *hostOwner) Window(offset, size, access uint64) bridge.FabricWindow {
	o.t.Helper()
	w, err := o.fabric.Window(o.t.Context(), o.memory[offset:][:size], bridge.WindowAccess(access))
	require.NoError(o.t, err)
	o.open[w.Remote()] = w
	return w.Remote()
}

// Revoke ends one.
func (o *hostOwner) Revoke(w bridge.FabricWindow) { o.open[w].Revoke() }

// Sum adds up all bytes of its memory.
func (o *hostOwner) Sum() (sum uint64) {
	for _, b := range o.memory {
		sum += uint64(b)
	}
	return sum
}

// RunHostWindows runs the rules about windows of a host that has opened dev. The others put and get
// through f, which is of this device or of one at another node.
func RunHostWindows(t *testing.T, dev bridge.FabricNode, f bridge.Fabric) {
	RunWindows(t, f, func(t *testing.T) WindowOwner { return newHostOwner(t, dev) })
	for name, rule := range map[string]func(*testing.T, bridge.FabricNode, bridge.Fabric){
		"host-refused": hostWindowRefused, "host-bounds": hostWindowBounds, "host-region": hostWindowRegion,
		"host-reset": hostWindowReset, "host-bad-memory": hostWindowBadMemory,
	} {
		t.Run(name, func(t *testing.T) { rule(t, dev, f) })
	}
}

// hostWindowRefused: arguments without a meaning, and a caller that gave up.
func hostWindowRefused(t *testing.T, dev bridge.FabricNode, _ bridge.Fabric) {
	o := newHostOwner(t, dev)
	window := func(mem []byte, access bridge.WindowAccess) error {
		_, err := o.fabric.Window(t.Context(), mem, access)
		return err
	}
	require.ErrorIs(t, window(nil, bridge.WindowRead), bridge.ErrInvalid)
	require.ErrorIs(t, window(o.memory, 0), bridge.ErrInvalid)
	require.ErrorIs(t, window(o.memory, 4), bridge.ErrInvalid)
	require.ErrorIs(t, window(make([]byte, bridge.HostWindowBytes+1), bridge.WindowRead), bridge.ErrTooLarge)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := o.fabric.Window(ctx, o.memory, bridge.WindowRead)
	require.ErrorIs(t, err, context.Canceled)
}

// windowsThere counts the windows of all nodes that can be asked.
func windowsThere(t *testing.T, f bridge.Fabric) (n, bytes uint64) {
	s, err := f.State(t.Context())
	require.NoError(t, err)
	for i := range s.Nodes {
		n += s.Nodes[i].Windows
		bytes += s.Nodes[i].WindowBytes
	}
	return n, bytes
}

// hostWindowBounds: so many windows and bytes, and room again for each that was revoked.
func hostWindowBounds(t *testing.T, dev bridge.FabricNode, f bridge.Fabric) {
	o := newHostOwner(t, dev)
	r, err := dev.Alloc(bridge.HostWindowBytes)
	require.NoError(t, err)
	before, bytesBefore := windowsThere(t, o.fabric)
	whole, err := o.fabric.Window(t.Context(), r.Bytes(), bridge.WindowRead)
	require.NoError(t, err)
	n, size := windowsThere(t, o.fabric)
	require.EqualValues(t, 1, n-before)
	require.EqualValues(t, bridge.HostWindowBytes, size-bytesBefore)
	_, err = o.fabric.Window(t.Context(), o.memory[:1], bridge.WindowRead)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	whole.Revoke()
	whole.Revoke()
	n, size = windowsThere(t, o.fabric)
	require.Equal(t, before, n)
	require.Equal(t, bytesBefore, size)
	require.NoError(t, r.Close())
	for range 3 {
		for i := range uint64(bridge.HostWindows) {
			o.Window(i, 1+i, uint64(bridge.WindowRead))
		}
		_, err = o.fabric.Window(t.Context(), o.memory[:1], bridge.WindowRead)
		require.ErrorIs(t, err, bridge.ErrNoMemory)
		for name, w := range o.open {
			require.NoError(t, f.Get(t.Context(), name, 0, make([]byte, 1)))
			w.Revoke()
			require.ErrorIs(t, f.Get(t.Context(), name, 0, make([]byte, 1)), bridge.ErrNotSubscribed)
		}
		clear(o.open)
	}
}

// hostWindowRegion: a region stays while a window is in it, and goes then.
func hostWindowRegion(t *testing.T, dev bridge.FabricNode, f bridge.Fabric) {
	r, err := dev.Alloc(10_000)
	require.NoError(t, err)
	w, err := dev.Fabric().Window(t.Context(), r.Bytes()[100:200], bridge.WindowWrite)
	require.NoError(t, err)
	require.ErrorIs(t, r.Close(), bridge.ErrBusy)
	require.NoError(t, f.Put(t.Context(), w.Remote(), 99, []byte{5}))
	require.Equal(t, byte(5), r.Bytes()[199])
	w.Revoke()
	require.NoError(t, r.Close())
	require.ErrorIs(t, f.Put(t.Context(), w.Remote(), 99, []byte{5}), bridge.ErrNotSubscribed)
}

// hostWindowReset: no byte comes once Reset has returned, whatever was under way, and the
// memory is good for the next window.
func hostWindowReset(t *testing.T, dev bridge.FabricNode, f bridge.Fabric) {
	o := newHostOwner(t, dev)
	w := o.Window(0, WindowMemory, windowWrite)
	begun, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		data := bytes.Repeat([]byte{1}, WindowMemory)
		err := f.Put(t.Context(), w, 0, data)
		for begun <- err; err == nil; {
			err = f.Put(t.Context(), w, 0, data)
		}
		ended <- err
	}()
	require.NoError(t, <-begun)
	require.NoError(t, dev.Reset(t.Context()))
	clear(o.memory)
	require.Error(t, <-ended)
	require.Zero(t, o.Sum())
	require.ErrorIs(t, f.Put(t.Context(), w, 0, []byte{1}), bridge.ErrNotSubscribed)
	o.Revoke(w)
	require.NoError(t, f.Put(t.Context(), o.Window(5, 1, windowWrite), 0, []byte{7}))
	require.EqualValues(t, 7, o.Sum())
}

// hostWindowBadMemory: memory of a window that its owner takes away ends puts and gets there, unless
// the node has a mapping of its own. The window is there again with the memory.
func hostWindowBadMemory(t *testing.T, dev bridge.FabricNode, f bridge.Fabric) {
	o := newHostOwner(t, dev)
	w := o.Window(0, WindowMemory, windowRead|windowWrite)
	other := o.Window(0, WindowMemory, windowRead)
	data := bytes.Repeat([]byte{3}, 10_000)
	require.NoError(t, protect(o.memory, noAccess))
	for range 3 {
		for _, err := range []error{f.Put(t.Context(), w, 100, data), f.Get(t.Context(), other, 100, make([]byte, 10_000))} {
			if err != nil {
				require.ErrorIs(t, err, bridge.ErrDMA)
			}
		}
	}
	require.NoError(t, protect(o.memory, readWrite))
	require.NoError(t, f.Put(t.Context(), w, 100, data))
	require.Equal(t, data, o.memory[100:][:len(data)])
}
