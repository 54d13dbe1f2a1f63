//go:build cgo

package nfcomms_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// What the program of testdata/window does.
const (
	windowMake = iota
	windowRevoke
	windowSum
	windowClear
	windowFree
	windowCrash
	windowMemory = 64 << 10
)

// windowed is a process with memory that it makes windows of.
type windowed struct {
	t       *testing.T
	fabric  nfcomms.Fabric
	place   nfcomms.FabricPlace
	dev     *nfcomms.Device // of that node
	process nfcomms.Process
	ch      *nfcomms.Channel
}

// openWindowed starts a process at a node of a fabric.
func openWindowed(t *testing.T, dev *nfcomms.Device, image []byte, x uint8) *windowed {
	t.Helper()
	w := &windowed{t: t, fabric: dev.Fabric(), place: nfcomms.Place(x, 0, 0), dev: dev}
	var err error
	if x > 0 {
		w.dev, err = dev.Node(t.Context(), x, 0, 0)
		require.NoError(t, err)
	}
	name, err := w.dev.Load(t.Context(), image)
	require.NoError(t, err)
	w.start(name)
	return w
}

func (w *windowed) start(name string) {
	w.t.Helper()
	var err error
	w.process, err = w.dev.Start(w.t.Context(), nfcomms.Program{Name: name, Targets: 1})
	require.NoError(w.t, err)
	w.ch, err = w.dev.Subscribe(w.t.Context(), w.process.First)
	require.NoError(w.t, err)
}

// ask has the process do something.
func (w *windowed) ask(request ...uint64) (abi.Status, uint64) {
	w.t.Helper()
	var message [32]byte
	for i, word := range request {
		binary.LittleEndian.PutUint64(message[8*i:], word)
	}
	require.NoError(w.t, w.ch.Send(w.t.Context(), message[:]))
	n, err := w.ch.Receive(w.t.Context(), message[:])
	require.NoError(w.t, err)
	require.Equal(w.t, 16, n)
	return abi.Status(-int64(binary.LittleEndian.Uint64(message[:]))), binary.LittleEndian.Uint64(message[8:])
}

// window has it make one.
func (w *windowed) window(offset, size, access uint64) nfcomms.FabricWindow {
	w.t.Helper()
	status, key := w.ask(windowMake, offset, size, access)
	require.Equal(w.t, abi.OK, status)
	return nfcomms.FabricWindow{Node: w.place, Key: key}
}

// rules has a process obey the rules of windows.
type rules struct{ *windowed }

func (r rules) Window(offset, size, access uint64) nfcomms.FabricWindow {
	return r.window(offset, size, access)
}

func (r rules) Revoke(w nfcomms.FabricWindow) {
	status, _ := r.ask(windowRevoke, w.Key)
	require.Equal(r.t, abi.OK, status)
}

func (r rules) Sum() uint64 {
	_, sum := r.ask(windowSum)
	return sum
}

// TestWindowRules: at the own node, and one hop away.
func TestWindowRules(t *testing.T) {
	dev, image := openFabric(t), buildWindowed(t)
	for x := range uint8(2) {
		bridgetest.RunWindows(t, dev.Fabric(), func(t *testing.T) bridgetest.WindowOwner {
			p := openWindowed(t, dev, image, x)
			t.Cleanup(func() { require.NoError(t, p.dev.Stop(context.Background(), p.process.ID)) })
			p.ask(windowClear)
			return rules{p}
		})
		state, err := dev.Fabric().State()
		require.NoError(t, err)
		require.Positive(t, state.Nodes[x].PageHits)
		require.Positive(t, state.Nodes[x].PageMisses)
	}
}

func (w *windowed) get(from nfcomms.FabricWindow) error {
	return w.fabric.Get(w.t.Context(), from, 0, make([]byte, 1))
}

func buildWindowed(t *testing.T) []byte {
	t.Helper()
	image, err := program.Build(t.Context(), os.DirFS("testdata/window"), program.Options{})
	require.NoError(t, err)
	return image
}

func openFabric(t *testing.T) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), "sim:?torus=3x1x1")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// TestDeviceWindows: hosts write and read a process's memory, at the own node and at
// others, as far as it lets them and for as long.
func TestDeviceWindows(t *testing.T) {
	dev, image := openFabric(t), buildWindowed(t)
	ctx := t.Context()
	for x := range uint8(3) {
		p := openWindowed(t, dev, image, x)
		all, odd := p.window(0, windowMemory, 3), p.window(101, 5000, 1)
		data, got := bytes.Repeat([]byte{1, 2, 3, 4}, windowMemory/4), make([]byte, 5000)
		require.NoError(t, p.fabric.Put(ctx, all, 0, data))
		_, sum := p.ask(windowSum)
		require.EqualValues(t, windowMemory/4*10, sum)
		require.NoError(t, p.fabric.Get(ctx, odd, 0, got))
		require.Equal(t, data[101:5101], got)
		require.ErrorIs(t, p.fabric.Put(ctx, odd, 0, got), nfcomms.ErrNotSupported)
		require.ErrorIs(t, p.fabric.Put(ctx, all, windowMemory-1, got[:2]), nfcomms.ErrRange)
		require.ErrorIs(t, p.get(nfcomms.FabricWindow{Node: all.Node, Key: all.Key + 1}), nfcomms.ErrNotSubscribed)
		require.ErrorIs(t, p.get(nfcomms.FabricWindow{Node: nfcomms.Place(3, 0, 0), Key: all.Key}), nfcomms.ErrInvalid)

		status, _ := p.ask(windowMake, windowMemory, 1, 1)
		require.Equal(t, abi.ErrRange, status)
		status, _ = p.ask(windowRevoke, odd.Key)
		require.Equal(t, abi.OK, status)
		status, _ = p.ask(windowRevoke, odd.Key)
		require.Equal(t, abi.ErrClosed, status)
		require.ErrorIs(t, p.get(odd), nfcomms.ErrNotSubscribed)
		require.NoError(t, p.get(all))
	}
}

// TestDeviceWindowsEnd: with the memory, with the process however that ends, and with the
// device's epoch; the next process does as before.
func TestDeviceWindowsEnd(t *testing.T) {
	image := buildWindowed(t)
	for name, end := range map[string]func(p *windowed){
		"free": func(p *windowed) { p.ask(windowFree) },
		"stop": func(p *windowed) { require.NoError(p.t, p.dev.Stop(p.t.Context(), p.process.ID)) },
		"crash": func(p *windowed) {
			var message [32]byte
			message[0] = windowCrash
			require.NoError(p.t, p.ch.Send(p.t.Context(), message[:]))
		},
		"reset": func(p *windowed) { require.NoError(p.t, p.dev.Reset(p.t.Context())) },
		"close": func(p *windowed) { require.NoError(p.t, p.dev.Close()) },
	} {
		for x := range uint8(2) {
			if name == "close" && x == 0 {
				continue // nobody is left to ask
			}
			t.Run(name, func(t *testing.T) {
				dev := openFabric(t)
				p := openWindowed(t, dev, image, x)
				w := p.window(0, windowMemory, 3)
				require.NoError(t, p.get(w))
				end(p)
				require.Eventually(t, func() bool { return errors.Is(p.get(w), nfcomms.ErrNotSubscribed) }, time.Minute, time.Millisecond)
				p = openWindowed(t, dev, image, x)
				require.NoError(t, p.get(p.window(0, 1, 1)))
			})
		}
	}
}

// TestDeviceWindowsEndUnderLoad: memory of a process that ended is not touched any more,
// whoever has it then.
func TestDeviceWindowsEndUnderLoad(t *testing.T) {
	dev, image := openFabric(t), buildWindowed(t)
	for round := range 10 {
		p := openWindowed(t, dev, image, uint8(round%3))
		w := p.window(0, windowMemory, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		begun := make(chan error, 3)
		for range 3 {
			writers.Go(func() {
				data := bytes.Repeat([]byte{1}, windowMemory)
				begun <- p.fabric.Put(ctx, w, 0, data)
				for p.fabric.Put(ctx, w, 0, data) == nil {
				}
			})
		}
		for range 3 {
			require.NoError(t, <-begun)
		}
		require.NoError(t, p.dev.Stop(t.Context(), p.process.ID))
		next := openWindowed(t, dev, image, uint8(round%3))
		next.ask(windowClear)
		_, sum := next.ask(windowSum)
		writers.Wait()
		cancel()
		_, again := next.ask(windowSum)
		require.Zero(t, sum+again)
		require.NoError(t, next.dev.Stop(t.Context(), next.process.ID))
	}
}

// TestDeviceWindowsNeedAFabric: and are bounded.
func TestDeviceWindowsNeedAFabric(t *testing.T) {
	image := buildWindowed(t)
	p := openWindowed(t, openFabric(t), image, 1)
	for range 64 {
		p.window(0, 1, 1)
	}
	status, _ := p.ask(windowMake, 0, 1, 1)
	require.Equal(t, abi.ErrNoMemory, status)

	alone, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer alone.Close()
	p = openWindowed(t, alone, image, 0)
	status, _ = p.ask(windowMake, 0, 1, 1)
	require.Equal(t, abi.ErrNotSupported, status)
}
