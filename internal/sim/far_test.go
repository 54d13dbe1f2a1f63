//go:build cgo

package sim

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
)

// nodeAndFabric is the device of another node, which closes the fabric with itself.
type nodeAndFabric struct {
	bridge.Device
	near bridge.Device
}

func (d *nodeAndFabric) Close() error { return errors.Join(d.Device.Close(), d.near.Close()) }

// openFar opens the device that is so many hops away.
func openFar(torus string, hops int) bridgetest.OpenFunc {
	return func(t *testing.T, options string) bridge.Device {
		t.Helper()
		near := openDevice(t, "torus="+torus+"&"+options)
		far, err := near.(bridge.FabricNode).Fabric().Device(context.Background(), at(hops))
		require.NoError(t, err)
		require.Equal(t, at(hops), far.Info().Node)
		return spectest.Verified(t, &nodeAndFabric{far, near})
	}
}

func at(x int) abi.Node { return abi.MakeNode(uint8(x), 0, 0) }

// long cases say of a far device what shorter ones do, too.
var long = []string{"huge/5GiB-sparse", "ledger/echoes-agree"}

// TestConformanceOneHop runs the rules of the contract on a device that is a node away.
func TestConformanceOneHop(t *testing.T) { bridgetest.Run(t, openFar("2x1x1", 1), long...) }

// TestConformanceFourHops runs those about transfers over four links.
func TestConformanceFourHops(t *testing.T) { bridgetest.RunTransfers(t, openFar("8x1x1", 4)) }

// TestSubscribeOnNodes: an id that names a node finds it there, and what cannot be is "no such
// target".
func TestSubscribeOnNodes(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := openTorus(t, "torus=3x2x1")
	for _, place := range []abi.Node{at(0), at(1), abi.MakeNode(2, 1, 0)} {
		target := bridge.At(place, abi.TargetLoopback)
		ch := e.Subscribe(dev, target)
		e.Echo(ch, []byte(target.String()))
		_, err := dev.Subscribe(e.Ctx(), target)
		require.ErrorIs(t, err, bridge.ErrBusy)
		_, err = dev.Subscribe(e.Ctx(), bridge.At(place, 4711))
		require.ErrorIs(t, err, bridge.ErrNotSubscribed)
	}
	for _, target := range []bridge.Target{bridge.At(at(3), abi.TargetLoopback), bridge.At(abi.MakeNode(0, 0, 1), 1), 1 << 40, 1<<63 | 1<<24 | 1} {
		_, err := dev.Subscribe(e.Ctx(), target)
		require.ErrorIs(t, err, bridge.ErrNotSubscribed, target)
	}
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	_, err := dev.Subscribe(ctx, bridge.At(at(2), abi.TargetLoopback))
	e.IsWithdrawn(err, context.Canceled)
}

// keepEchoing sends a transfer of one pattern to a loopback and takes it back, until it is told to stop.
func keepEchoing(e *bridgetest.Env, ch bridge.Channel, size int, stop *atomic.Bool) *bridgetest.Pending {
	return bridgetest.Call("echo on "+ch.Target().String(), func() error {
		data, back := make([]byte, size), make([]byte, size)
		for round := byte(1); !stop.Load(); round++ {
			for i := range data {
				data[i] = byte(i>>8) ^ byte(i)*round
			}
			sent := bridgetest.Call("send", func() error { return ch.SendInd(e.Ctx(), data) })
			if err := ch.ReceiveInd(e.Ctx(), back); err != nil {
				return err
			}
			if err := e.Wait(sent); err != nil {
				return err
			}
			if !bytes.Equal(data, back) {
				return errors.New("bytes changed")
			}
		}
		return nil
	})
}

// TestLinksCutUnderTraffic: what goes another way is neither lost nor doubled nor changed, and nobody
// is told.
func TestLinksCutUnderTraffic(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := openTorus(t, "torus=3x1x1&beat=500ms")
	f := dev.Fabric()
	var stop atomic.Bool
	var calls []*bridgetest.Pending
	var messages atomic.Uint64
	for x := 1; x < 3; x++ {
		p, err := must(f.Device(e.Ctx(), at(x))).Start(e.Ctx(), bridge.Program{Name: "loopback", Targets: 2})
		require.NoError(t, err)
		calls = append(calls, keepEchoing(e, e.Subscribe(dev, bridge.At(at(x), p.First)), 1<<20, &stop))
		ch := e.Subscribe(dev, bridge.At(at(x), p.First+1))
		calls = append(calls, bridgetest.Call("messages", func() error {
			for i := uint64(0); !stop.Load(); i++ {
				e.Echo(ch, binaryOf(i))
				messages.Add(1)
			}
			return nil
		}))
	}
	for round := range 6 {
		from, link := at(round%3), round%2
		require.NoError(t, f.CutLink(t.Context(), from, link, true))
		done := messages.Load() + 100
		e.Until("messages go another way", func() bool { return messages.Load() > done })
		require.NoError(t, f.CutLink(t.Context(), from, link, false))
		e.Until("the link is up", func() bool { return must(f.State(t.Context())).Nodes[round%3].Links[link].Up })
	}
	stop.Store(true)
	for _, p := range calls {
		require.NoError(t, e.Wait(p))
	}
}

// must returns what there must be.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func binaryOf(i uint64) []byte {
	b := make([]byte, 8)
	for k := range b {
		b[k] = byte(i >> (8 * k))
	}
	return b
}

// TestNodeKilledUnderTraffic: calls that wait for a killed node end with an error, and calls of other
// nodes continue. The node serves again once it was started and reset.
func TestNodeKilledUnderTraffic(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := openTorus(t, "torus=2x2x1")
	f := dev.Fabric()
	gone := must(f.Device(e.Ctx(), at(1)))
	var stop atomic.Bool
	lost := keepEchoing(e, e.Subscribe(dev, bridge.At(at(1), abi.TargetLoopback)), 4<<20, &stop)
	hold := must(gone.Start(e.Ctx(), bridge.Program{Name: "hold", Targets: 1}))
	waits := e.Subscribe(dev, bridge.At(at(1), hold.First))
	waiting := bridgetest.Call("send", func() error { return waits.Send(e.Ctx(), []byte("?")) })
	e.UntilBlocked(gone, 2)
	other := keepEchoing(e, e.Subscribe(dev, bridge.At(abi.MakeNode(0, 1, 0), abi.TargetLoopback)), 1<<20, &stop)

	require.NoError(t, f.KillNode(t.Context(), at(1), true))
	require.ErrorIs(t, e.Wait(lost), bridge.ErrDeviceLost)
	err := e.Wait(waiting)
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	require.ErrorContains(t, err, "no way leads there")
	require.NotContains(t, err.Error(), "heartbeat", "the fabric knew long before one was overdue")
	_, err = dev.Subscribe(e.Ctx(), bridge.At(at(1), abi.TargetTime))
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	require.ErrorIs(t, gone.Reset(e.Ctx()), bridge.ErrDeviceLost, "it is dead")
	require.False(t, other.Over())

	require.NoError(t, f.KillNode(t.Context(), at(1), false))
	e.Until("the node is there again", func() bool { return gone.Reset(e.Ctx()) == nil })
	e.Echo(e.Subscribe(dev, bridge.At(at(1), abi.TargetLoopback)), []byte("again"))
	running, err := gone.Running(e.Ctx(), hold.ID)
	require.NoError(t, err)
	require.False(t, running, "its processes went with the host")
	stop.Store(true)
	require.NoError(t, e.Wait(other))
}

// TestResetOfAFabric ends the channels to all nodes, and new ones work.
func TestResetOfAFabric(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := openTorus(t, "torus=2x1x1")
	ch := e.Subscribe(dev, bridge.At(at(1), abi.TargetLoopback))
	waiting := bridgetest.Call("receive", func() error { _, err := ch.Receive(e.Ctx(), make([]byte, 8)); return err })
	e.UntilBlocked(must(dev.Fabric().Device(e.Ctx(), at(1))), 1)
	require.NoError(t, dev.Reset(e.Ctx()))
	require.ErrorIs(t, e.Wait(waiting), bridge.ErrDeviceLost)
	e.Echo(e.Subscribe(dev, bridge.At(at(1), abi.TargetLoopback)), []byte("new"))
}

// TestNodesComeAndGo: devices of nodes are closed and opened again beside calls, and with the fabric.
func TestNodesComeAndGo(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := openDevice(t, "torus=3x1x1").(bridge.FabricNode)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range bridgetest.Scaled(40) {
				place := at(1 + (i+worker)%2)
				far, err := dev.Fabric().Device(e.Ctx(), place)
				if !assert.NoError(t, err) {
					return
				}
				p, err := far.Start(e.Ctx(), bridge.Program{Name: "loopback", Targets: 1})
				if err == nil {
					var ch bridge.Channel
					if ch, err = dev.Subscribe(e.Ctx(), bridge.At(place, p.First)); err == nil {
						err = ch.Send(e.Ctx(), []byte("?"))
					}
				}
				if err != nil && !errors.Is(err, bridge.ErrClosed) && !errors.Is(err, bridge.ErrNotSubscribed) && !errors.Is(err, bridge.ErrDeviceLost) {
					assert.NoError(t, err)
				}
				_ = far.Stop(e.Ctx(), p.ID) // nothing is left of it where the node ended
				assert.NoError(t, far.Close())
			}
		})
	}
	all.Wait()
	require.NoError(t, dev.Close())
	_, err := dev.Fabric().Device(e.Ctx(), at(1))
	require.ErrorIs(t, err, bridge.ErrClosed)
	_, err = dev.Subscribe(e.Ctx(), bridge.At(at(1), abi.TargetLoopback))
	require.ErrorIs(t, err, bridge.ErrClosed)
}

// TestCloseBesideAFunctionThatSubscribes: Close waits for the function of an extended rendezvous, and
// what that asks for is answered.
func TestCloseBesideAFunctionThatSubscribes(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := openDevice(t, "torus=3x1x1").(bridge.FabricNode)
	far := must(dev.Fabric().Device(e.Ctx(), at(1)))
	ch := e.Subscribe(dev, bridge.At(at(1), abi.TargetLoopback))
	require.NoError(t, ch.Send(e.Ctx(), []byte("?")))
	begun, on := make(chan struct{}), make(chan struct{})
	receive := bridgetest.Call("receive", func() error {
		return ch.ReceiveFunc(e.Ctx(), func([]byte) error {
			close(begun)
			<-on
			for _, place := range []abi.Node{at(1), at(2)} {
				if _, err := dev.Subscribe(e.Ctx(), bridge.At(place, abi.TargetTime)); !errors.Is(err, bridge.ErrClosed) {
					return err
				}
			}
			return nil
		})
	})
	<-begun
	closing := bridgetest.Call("close", dev.Close)
	e.Until("the node is being closed", func() bool { _, err := far.Health(); return errors.Is(err, bridge.ErrClosed) })
	close(on)
	require.NoError(t, e.Wait(closing))
	require.ErrorIs(t, e.Wait(receive), bridge.ErrClosed)
}
