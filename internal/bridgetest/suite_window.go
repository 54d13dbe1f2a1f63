package bridgetest

import (
	"bytes"
	"context"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// WindowMemory is how many bytes a WindowOwner has.
const WindowMemory = 64 << 10

// Access of windows, as nfc_fw.h has it.
const (
	windowRead = 1 << iota
	windowWrite
)

// WindowOwner is a process with WindowMemory bytes, all of them 0, that it makes windows of.
type WindowOwner interface {
	// Window makes one of some of its bytes, from offset on.
	Window(offset, size, access uint64) bridge.FabricWindow
	// Revoke ends one.
	Revoke(w bridge.FabricWindow)
	// Sum adds up all bytes of its memory.
	Sum() uint64
}

// windowEnv is what a rule of windows works with.
type windowEnv struct {
	*testing.T
	fabric bridge.Fabric
	owner  WindowOwner
}

// RunWindows runs what the contract says of puts and gets; each rule has an owner of its own.
func RunWindows(t *testing.T, f bridge.Fabric, owner func(t *testing.T) WindowOwner) {
	for name, rule := range map[string]func(windowEnv){
		"bytes": windowBytes, "refused": windowRefused, "withdrawn": windowWithdrawn, "crowd": windowCrowd, "revoked": windowRevoked,
		"bad-memory": windowBadMemory,
	} {
		t.Run(name, func(t *testing.T) { rule(windowEnv{t, f, owner(t)}) })
	}
}

// windowBytes: any size and offset; nothing else changes.
func windowBytes(e windowEnv) {
	w := e.owner.Window(0, WindowMemory, windowRead|windowWrite)
	whole, got := make([]byte, WindowMemory), make([]byte, WindowMemory)
	for i, c := range []struct{ offset, size int }{
		{0, 1}, {4095, 2}, {100, 5000}, {1, 32<<10 - 1}, {7, 32 << 10}, {0, 32<<10 + 1}, {WindowMemory - 1, 1}, {WindowMemory, 0}, {0, WindowMemory},
	} {
		data := bytes.Repeat([]byte{byte(i + 1)}, c.size)
		copy(whole[c.offset:], data)
		require.NoError(e, e.fabric.Put(e.Context(), w, uint64(c.offset), data))
		clear(data)
		require.NoError(e, e.fabric.Get(e.Context(), w, uint64(c.offset), data))
		require.True(e, bytes.Equal(whole[c.offset:c.offset+c.size], data), i)
		require.NoError(e, e.fabric.Get(e.Context(), w, 0, got))
		require.True(e, bytes.Equal(whole, got), i)
	}
}

// windowRefused: each with an error of its own, and nothing is written.
func windowRefused(e windowEnv) {
	byteOf := make([]byte, 1)
	most := e.owner.Window(0, WindowMemory-1, windowRead|windowWrite)
	read, write := e.owner.Window(101, 10, windowRead), e.owner.Window(101, 10, windowWrite)
	put := func(w bridge.FabricWindow, offset uint64) error {
		return e.fabric.Put(e.Context(), w, offset, []byte{9})
	}
	get := func(w bridge.FabricWindow, offset uint64) error { return e.fabric.Get(e.Context(), w, offset, byteOf) }
	for i, c := range []struct {
		err, is error
	}{
		{put(bridge.FabricWindow{Node: most.Node, Key: most.Key + 1}, 0), bridge.ErrNotSubscribed},
		{get(bridge.FabricWindow{Node: most.Node}, 0), bridge.ErrNotSubscribed},
		{put(read, 0), bridge.ErrNotSupported},
		{get(write, 0), bridge.ErrNotSupported},
		{put(write, 10), bridge.ErrRange},
		{get(most, WindowMemory-1), bridge.ErrRange},
		{put(most, math.MaxUint64), bridge.ErrRange},
		{get(most, 1<<40), bridge.ErrRange},
		{e.fabric.Put(e.Context(), write, math.MaxUint64-2, make([]byte, 5)), bridge.ErrRange},
		{put(bridge.FabricWindow{Node: abi.MakeNode(200, 0, 0), Key: most.Key}, 0), bridge.ErrInvalid},
	} {
		require.ErrorIs(e, c.err, c.is, i)
	}
	require.Zero(e, e.owner.Sum())
	e.refusesNothing(most, read, write)
	e.owner.Revoke(most)
	require.ErrorIs(e, e.fabric.Put(e.Context(), most, 0, nil), bridge.ErrNotSubscribed)
	require.ErrorIs(e, put(most, 0), bridge.ErrNotSubscribed)
	require.ErrorIs(e, get(most, 0), bridge.ErrNotSubscribed)
	require.NoError(e, put(write, 0))
	require.EqualValues(e, 9, e.owner.Sum())
}

// refusesNothing: puts and gets of no bytes are refused as those of any size are; their place may be
// the end of the window.
func (e windowEnv) refusesNothing(most, read, write bridge.FabricWindow) {
	for i, c := range []struct {
		w      bridge.FabricWindow
		offset uint64
		is     [2]error // of a put, of a get
	}{
		{most, 0, [2]error{nil, nil}},
		{most, 4096, [2]error{nil, nil}},
		{most, WindowMemory - 1, [2]error{nil, nil}},
		{most, WindowMemory, [2]error{bridge.ErrRange, bridge.ErrRange}},
		{most, math.MaxUint64, [2]error{bridge.ErrRange, bridge.ErrRange}},
		{read, 10, [2]error{bridge.ErrNotSupported, nil}},
		{read, 11, [2]error{bridge.ErrNotSupported, bridge.ErrRange}},
		{write, 10, [2]error{nil, bridge.ErrNotSupported}},
		{bridge.FabricWindow{Node: most.Node, Key: most.Key + 1}, 0, [2]error{bridge.ErrNotSubscribed, bridge.ErrNotSubscribed}},
		{bridge.FabricWindow{Node: abi.MakeNode(200, 0, 0), Key: most.Key}, 0, [2]error{bridge.ErrInvalid, bridge.ErrInvalid}},
	} {
		require.ErrorIs(e, e.fabric.Put(e.Context(), c.w, c.offset, nil), c.is[0], i)
		require.ErrorIs(e, e.fabric.Get(e.Context(), c.w, c.offset, nil), c.is[1], i)
	}
}

// windowWithdrawn: a context that has ended lets nothing begin.
func windowWithdrawn(e windowEnv) {
	w := e.owner.Window(0, WindowMemory, windowWrite)
	ctx, cancel := context.WithCancel(e.Context())
	cancel()
	require.ErrorIs(e, e.fabric.Put(ctx, w, 0, []byte{1}), context.Canceled)
	require.Zero(e, e.owner.Sum())
	require.NoError(e, e.fabric.Put(e.Context(), w, 0, nil)) // what puts use is there from then on
	for i := range 50 {                                      // some of them meanwhile
		ctx, cancel := context.WithCancel(e.Context())
		done := Call("put", func() error { return e.fabric.Put(ctx, w, 0, make([]byte, WindowMemory)) })
		for range i {
			_ = e.fabric.Put(e.Context(), w, 0, nil)
		}
		cancel()
		if err := NewEnv(e.T).Wait(done); err != nil {
			require.ErrorIs(e, err, context.Canceled)
		}
	}
}

// windowCrowd: many at once, each with bytes of its own.
func windowCrowd(e windowEnv) {
	const callers, size = 64, WindowMemory / 64
	w := e.owner.Window(0, WindowMemory, windowRead|windowWrite)
	var all sync.WaitGroup
	failed := make(chan error, callers)
	for i := range uint64(callers) {
		all.Go(func() {
			data, got := make([]byte, size), make([]byte, size)
			for round := range byte(20) {
				data[0], data[size-1] = round, byte(i)
				err := e.fabric.Put(e.Context(), w, i*size, data)
				if err == nil {
					err = e.fabric.Get(e.Context(), w, i*size, got)
				}
				if err == nil && !bytes.Equal(data, got) {
					err = bridge.ErrProtocol
				}
				if err != nil {
					failed <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failed)
	require.NoError(e, <-failed)
	require.EqualValues(e, callers*19+callers*(callers-1)/2, e.owner.Sum())
}

// windowRevoked: once it is, nobody writes there, whatever was under way.
func windowRevoked(e windowEnv) {
	w := e.owner.Window(0, WindowMemory, windowWrite)
	data := bytes.Repeat([]byte{1}, WindowMemory)
	begun, ended := make(chan error, 4), make(chan error, 4)
	for range cap(begun) {
		go func() {
			err := e.fabric.Put(e.Context(), w, 0, data)
			for begun <- err; err == nil; {
				err = e.fabric.Put(e.Context(), w, 0, data)
			}
			ended <- err
		}()
	}
	for range cap(begun) {
		require.NoError(e, <-begun)
	}
	e.owner.Revoke(w)
	other := e.owner.Window(0, WindowMemory, windowWrite)
	require.NoError(e, e.fabric.Put(e.Context(), other, 0, make([]byte, WindowMemory)))
	require.Zero(e, e.owner.Sum())
	for range cap(ended) {
		require.ErrorIs(e, <-ended, bridge.ErrNotSubscribed)
	}
	require.Zero(e, e.owner.Sum())
}

// windowBadMemory: a put or a get whose own memory cannot be reached ends by itself, and others beside
// it do not.
func windowBadMemory(e windowEnv) {
	w, other := e.owner.Window(0, WindowMemory, windowRead|windowWrite), make([]byte, WindowMemory)
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for more := true; more && err == nil; {
			err = e.fabric.Get(e.Context(), w, 0, other)
			select {
			case <-over:
				more = false
			default:
			}
		}
		ended <- err
	}()
	for _, c := range []struct{ size, good int }{{1, 0}, {4096, 0}, {10_000, 4096}, {WindowMemory, 0}, {WindowMemory, 40 << 10}} {
		for _, kind := range []string{"truncated file", "no access"} {
			require.ErrorIs(e, e.fabric.Put(e.Context(), w, 0, BadMemory(e.T, kind, c.size, c.good)), bridge.ErrDMA)
		}
		for _, kind := range []string{"truncated file", "no access", "read only"} {
			require.ErrorIs(e, e.fabric.Get(e.Context(), w, 0, BadMemory(e.T, kind, c.size, c.good)), bridge.ErrDMA)
		}
	}
	close(over)
	require.NoError(e, <-ended)
	data := bytes.Repeat([]byte{5}, WindowMemory)
	require.NoError(e, e.fabric.Put(e.Context(), w, 0, data))
	require.NoError(e, e.fabric.Get(e.Context(), w, 0, other))
	require.Equal(e, data, other)
}
