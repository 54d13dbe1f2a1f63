//go:build cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
)

// TestNodeGuests has processes at one of two nodes open channels to a host that listens at the
// other. Each node is a process, and knows no users of the other.
func TestNodeGuests(t *testing.T) {
	image := guests(t)
	long := []string{"ledger/echoes-agree", "transfer/64MiB", "direct/order"}
	for _, tt := range []struct {
		name string
		skip []string // what takes long, and has the same way as in the first place
		open func(t *testing.T, p *pair) (listens, runs bridge.Device, anyone bool)
	}{
		{"of another host", nil, func(t *testing.T, p *pair) (listens, runs bridge.Device, anyone bool) {
			return p.openNear(t), p.openFar(t), true
		}},
		{"at one node", long, func(t *testing.T, p *pair) (listens, runs bridge.Device, anyone bool) {
			return p.open(t), p.openFar(t), true
		}},
		{"of the host", long, func(t *testing.T, p *pair) (listens, runs bridge.Device, anyone bool) {
			near := p.openNear(t)
			far, err := near.(bridge.FabricNode).Fabric().Device(t.Context(), node1)
			require.NoError(t, err)
			return far, near, false
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes := pairs(t)
			bridgetest.RunGuests(t, image, func(t *testing.T, options string) (bridge.Device, bridge.Device, bridge.ListenOptions) {
				listens, runs, anyone := tt.open(t, nodes(t, options))
				return spectest.Verified(t, listens), spectest.Verified(t, runs), bridge.ListenOptions{Anyone: anyone}
			}, tt.skip...)
		})
	}
}

// TestGuestsOfANodeThatCameAgain: a host that listens connects to the processes of a node that was
// away meanwhile.
func TestGuestsOfANodeThatCameAgain(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p := startNodes(t)
	image := guests(t)
	near := p.openNear(t)
	t.Cleanup(func() { require.NoError(t, near.Close()) })
	l, err := near.(bridge.HostListener).Listen(e.Ctx(), bridge.ListenOptions{Anyone: true})
	require.NoError(t, err)
	connected := func() bridge.Channel {
		var far bridge.Device
		e.Until("the node is there", func() bool {
			far, err = bridge.Open(e.Ctx(), "shm:"+p.farPath, nil)
			return err == nil
		})
		t.Cleanup(func() { _ = far.Close() })
		_, err := far.Load(e.Ctx(), image)
		require.NoError(t, err)
		_, err = far.Start(e.Ctx(), bridge.Program{Name: "guest.loopback", Targets: 1, Argument: uint64(bridge.At(node0, l.Target()))})
		require.NoError(t, err)
		ch, err := l.Accept(e.Ctx())
		require.NoError(t, err)
		var hello [abi.PayloadSize]byte
		_, err = ch.Receive(e.Ctx(), hello[:])
		require.NoError(t, err)
		require.NoError(t, echo(e.Ctx(), ch, make([]byte, 300_000), 1))
		return ch
	}
	ch := connected()
	p.far.kill()
	_, err = ch.Receive(e.Ctx(), make([]byte, abi.PayloadSize))
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	p.far = startChild(t, "device", p.farArgs...)
	connected()
}
