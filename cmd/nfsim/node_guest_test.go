//go:build cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

// TestGuestsOfANodeThatCameAgain: a host that listens comes to the processes of a node that was
// gone meanwhile.
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
