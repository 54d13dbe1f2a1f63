//go:build cgo

package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// relayTo starts a process at the near node that speaks to another one, and returns the channel to
// it.
func relayTo(t *testing.T, dev bridge.Device, name string, to bridge.Target) bridge.Channel {
	t.Helper()
	p, err := dev.Start(t.Context(), bridge.Program{Name: name, Targets: 1, Argument: uint64(to)})
	require.NoError(t, err)
	ch, err := dev.Subscribe(t.Context(), p.First)
	require.NoError(t, err)
	return ch
}

// TestJointsOfNodes: a client's process at one node has a channel to one that the client has at
// the node of another process, and to nobody else's. Its call fails when that process dies.
func TestJointsOfNodes(t *testing.T) {
	e := bridgetest.NewEnv(t)
	p := startNodes(t)
	image, err := program.Build(t.Context(), os.DirFS("testdata/relay"), program.Options{})
	require.NoError(t, err)
	dev := openFabric(t, p)
	name, err := dev.Load(t.Context(), image)
	require.NoError(t, err)
	far, err := dev.Fabric().Device(t.Context(), node1)
	require.NoError(t, err)
	loop, err := far.Start(t.Context(), bridge.Program{Name: "loopback", Targets: 2})
	require.NoError(t, err)
	ch := relayTo(t, dev, name, bridge.At(node1, loop.First))
	require.NoError(t, ch.Send(e.Ctx(), []byte("there and back")))
	got := make([]byte, 56)
	n, err := ch.Receive(e.Ctx(), got)
	require.NoError(t, err)
	require.Equal(t, "there and back", string(got[:n]))
	require.NoError(t, echo(e.Ctx(), ch, make([]byte, 1_000_001), 3))

	other := openFabric(t, p) // of the same process, but another host
	stranger, err := other.Load(t.Context(), image)
	require.NoError(t, err)
	_, err = other.Fabric().Device(t.Context(), node1)
	require.NoError(t, err)
	n, err = relayTo(t, other, stranger, bridge.At(node1, loop.First+1)).Receive(e.Ctx(), got)
	require.NoError(t, err)
	require.Equal(t, []byte{byte(abi.ErrNoTarget)}, got[:n])
	mine := relayTo(t, dev, name, bridge.At(node1, loop.First+1))
	require.NoError(t, echo(e.Ctx(), mine, make([]byte, 5000), 4))

	p.far.kill()
	for err == nil {
		err = ch.Send(e.Ctx(), []byte("?"))
		if err == nil {
			_, err = ch.Receive(e.Ctx(), got)
		}
	}
	require.ErrorIs(t, err, bridge.ErrClosed)
}
