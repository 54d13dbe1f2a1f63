//go:build cgo

package fabric_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// windowed is a process with memory that it makes windows of.
type windowed struct {
	bridgetest.Windowed
	fabric  fabric.Fabric
	dev     *nfcomms.Device // of its node
	process nfcomms.Process
}

// openWindowed starts a process at a node of a fabric.
func openWindowed(t *testing.T, dev *nfcomms.Device, image []byte, x uint8) *windowed {
	t.Helper()
	w := &windowed{bridgetest.Windowed{T: t, Place: fabric.At(x, 0, 0)}, fabric.Of(dev), dev, nfcomms.Process{}}
	var err error
	if x > 0 {
		w.dev, err = fabric.Device(t.Context(), dev, fabric.At(x, 0, 0))
		require.NoError(t, err)
	}
	name, err := w.dev.Load(t.Context(), image)
	require.NoError(t, err)
	w.start(name)
	return w
}

func (w *windowed) start(name string) {
	w.T.Helper()
	var err error
	w.process, err = w.dev.Start(w.T.Context(), nfcomms.Program{Name: name, Targets: 1})
	require.NoError(w.T, err)
	w.Ch, err = w.dev.Subscribe(w.T.Context(), w.process.First)
	require.NoError(w.T, err)
}

// TestWindowRules: at the own node, and one hop away.
func TestWindowRules(t *testing.T) {
	dev, image := openFabric(t), buildWindowed(t)
	for x := range uint8(2) {
		bridgetest.RunWindows(t, fabric.Of(dev), func(t *testing.T) bridgetest.WindowOwner {
			p := openWindowed(t, dev, image, x)
			t.Cleanup(func() { require.NoError(t, p.dev.Stop(context.Background(), p.process.ID)) })
			p.Clear()
			return p
		})
		state, err := fabric.Of(dev).State(t.Context())
		require.NoError(t, err)
		require.Positive(t, state.Nodes[x].PageHits)
		require.Positive(t, state.Nodes[x].PageMisses)
	}
}

func (w *windowed) get(from fabric.Window) error {
	return w.fabric.Get(w.T.Context(), from, 0, make([]byte, 1))
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
		all, odd := p.Window(0, bridgetest.WindowMemory, 3), p.Window(101, 5000, 1)
		data, got := bytes.Repeat([]byte{1, 2, 3, 4}, bridgetest.WindowMemory/4), make([]byte, 5000)
		require.NoError(t, p.fabric.Put(ctx, all, 0, data))
		require.EqualValues(t, bridgetest.WindowMemory/4*10, p.Sum())
		require.NoError(t, p.fabric.Get(ctx, odd, 0, got))
		require.Equal(t, data[101:5101], got)
		require.ErrorIs(t, p.fabric.Put(ctx, odd, 0, got), nfcomms.ErrNotSupported)
		require.ErrorIs(t, p.fabric.Put(ctx, all, bridgetest.WindowMemory-1, got[:2]), nfcomms.ErrRange)
		require.ErrorIs(t, p.get(fabric.Window{Node: all.Node, Key: all.Key + 1}), nfcomms.ErrNotSubscribed)
		require.ErrorIs(t, p.get(fabric.Window{Node: fabric.At(3, 0, 0), Key: all.Key}), nfcomms.ErrInvalid)

		status, _ := p.Ask(bridgetest.WindowMake, bridgetest.WindowMemory, 1, 1)
		require.Equal(t, abi.ErrRange, status)
		p.Revoke(odd)
		status, _ = p.Ask(bridgetest.WindowRevoke, odd.Key)
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
		"free": func(p *windowed) { p.Ask(bridgetest.WindowFree) },
		"stop": func(p *windowed) { require.NoError(p.T, p.dev.Stop(p.T.Context(), p.process.ID)) },
		"crash": func(p *windowed) {
			var message [32]byte
			message[0] = bridgetest.WindowCrash
			require.NoError(p.T, p.Ch.Send(p.T.Context(), message[:]))
		},
		"reset": func(p *windowed) { require.NoError(p.T, p.dev.Reset(p.T.Context())) },
		"close": func(p *windowed) { require.NoError(p.T, p.dev.Close()) },
	} {
		for x := range uint8(2) {
			if name == "close" && x == 0 {
				continue // nobody is left to ask
			}
			t.Run(name, func(t *testing.T) {
				dev := openFabric(t)
				p := openWindowed(t, dev, image, x)
				w := p.Window(0, bridgetest.WindowMemory, 3)
				require.NoError(t, p.get(w))
				end(p)
				require.Eventually(t, func() bool { return errors.Is(p.get(w), nfcomms.ErrNotSubscribed) }, time.Minute, time.Millisecond)
				p = openWindowed(t, dev, image, x)
				require.NoError(t, p.get(p.Window(0, 1, 1)))
			})
		}
	}
}

// TestDeviceWindowsEndUnderLoad: memory of a process that ended is not touched any more,
// also where another process has it then.
func TestDeviceWindowsEndUnderLoad(t *testing.T) {
	dev, image := openFabric(t), buildWindowed(t)
	for round := range 10 {
		p := openWindowed(t, dev, image, uint8(round%3))
		w := p.Window(0, bridgetest.WindowMemory, 2)
		ctx, cancel := context.WithCancel(t.Context())
		var writers sync.WaitGroup
		begun := make(chan error, 3)
		for range 3 {
			writers.Go(func() {
				data := bytes.Repeat([]byte{1}, bridgetest.WindowMemory)
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
		next.Clear()
		sum := next.Sum()
		writers.Wait()
		cancel()
		require.Zero(t, sum+next.Sum())
		require.NoError(t, next.dev.Stop(t.Context(), next.process.ID))
	}
}

// TestDeviceWindowsNeedAFabric: and are bounded.
func TestDeviceWindowsNeedAFabric(t *testing.T) {
	image := buildWindowed(t)
	p := openWindowed(t, openFabric(t), image, 1)
	for range 64 {
		p.Window(0, 1, 1)
	}
	status, _ := p.Ask(bridgetest.WindowMake, 0, 1, 1)
	require.Equal(t, abi.ErrNoMemory, status)

	alone, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer alone.Close()
	p = openWindowed(t, alone, image, 0)
	status, _ = p.Ask(bridgetest.WindowMake, 0, 1, 1)
	require.Equal(t, abi.ErrNotSupported, status)
}
