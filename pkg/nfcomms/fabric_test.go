//go:build cgo

package nfcomms

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestChannelsOfAFabric: what the package offers works on any node as on the opened one.
func TestChannelsOfAFabric(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=3x1x1")
	far, err := dev.node(ctx, abi.MakeNode(2, 0, 0))
	require.NoError(t, err)
	p, err := far.Start(ctx, Program{Name: "loopback", Targets: 3})
	require.NoError(t, err)
	chs := make([]*Channel, 3)
	for i := range chs {
		chs[i], err = dev.Subscribe(ctx, bridge.At(abi.MakeNode(2, 0, 0), p.First+Target(i)))
		require.NoError(t, err)
		require.Equal(t, bridge.At(abi.MakeNode(2, 0, 0), p.First+Target(i)), chs[i].Target())
	}

	data, back := bytes.Repeat([]byte("stripe"), 50_000), make([]byte, 300_000)
	sent := make(chan error, 1)
	go func() { sent <- SendStriped(ctx, data, len(data), chs...) }()
	_, err = ReceiveStriped(ctx, back, len(back), chs...)
	require.NoError(t, err)
	require.NoError(t, <-sent)
	require.Equal(t, data, back)

	require.NoError(t, chs[1].Send(ctx, []byte("chosen")))
	buf, n := make([]byte, MessageSize), 0
	var cases []Case
	for _, ch := range chs {
		cases = append(cases, ReceiveCase(ch, buf, &n))
	}
	chosen, err := Select(ctx, cases...)
	require.NoError(t, err)
	require.Equal(t, 1, chosen)
	require.Equal(t, []byte("chosen"), buf[:n])
	send := SendIndCase(chs[0], data).Start(ctx)
	_, err = chs[0].ReceiveInd(ctx, back)
	require.NoError(t, err)
	_, err = send.Wait(ctx)
	require.NoError(t, err)
}

// TestNodeCountsItsHolders: each Node is a device of its own, and Close of one leaves the others.
func TestNodeCountsItsHolders(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=2x1x1")
	var nodes [2]*Device
	var chs [2]*Channel
	var err error
	for i := range nodes {
		nodes[i], err = dev.node(ctx, abi.MakeNode(1, 0, 0))
		require.NoError(t, err)
		chs[i] = startSim(t, nodes[i], "loopback", 1)[0]
	}
	over, stays := nodes[0], nodes[1]
	l, err := over.Listen(ctx, "mail")
	require.NoError(t, err)

	require.NoError(t, over.Close())
	require.ErrorIs(t, chs[0].Send(ctx, nil), ErrClosed)
	_, err = l.Accept(ctx)
	require.ErrorIs(t, err, ErrClosed)
	_, err = over.Subscribe(ctx, Loopback)
	require.ErrorIs(t, err, ErrClosed)
	_, err = over.Health()
	require.ErrorIs(t, err, ErrClosed)
	_, err = over.Run(ctx, Program{Name: "loopback"})
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, over.Reset(ctx), ErrClosed)
	require.NoError(t, over.Close(), "again, which is not the other's share")

	_, err = stays.Health()
	require.NoError(t, err)
	require.NoError(t, chs[1].Send(ctx, []byte("stays")))
	buf := make([]byte, MessageSize)
	n, err := chs[1].Receive(ctx, buf)
	require.NoError(t, err)
	require.Equal(t, "stays", string(buf[:n]))
	l, err = stays.Listen(ctx, "mail")
	require.NoError(t, err, "the name is free")
	require.NoError(t, l.Close())

	require.NoError(t, stays.Close())
	require.ErrorIs(t, chs[1].Send(ctx, nil), ErrClosed)
	again, err := dev.node(ctx, abi.MakeNode(1, 0, 0))
	require.NoError(t, err)
	startSim(t, again, "loopback", 1)
}

// TestErrorsOfAFabric: errors name the node once, and a device without a fabric says so.
func TestErrorsOfAFabric(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=2x1x1")
	_, err := dev.Subscribe(ctx, bridge.At(abi.MakeNode(1, 0, 0), 4711))
	require.ErrorIs(t, err, ErrNotSubscribed)
	require.ErrorContains(t, err, "target 1.0.0/4711: ")
	_, err = dev.node(ctx, abi.MakeNode(0, 0, 0))
	require.ErrorIs(t, err, ErrInvalid)
	_, err = dev.node(ctx, abi.MakeNode(2, 0, 0))
	require.ErrorIs(t, err, ErrInvalid)
	far, err := dev.node(ctx, abi.MakeNode(1, 0, 0))
	require.NoError(t, err)
	_, err = far.Start(ctx, Program{Name: "none", Targets: 1})
	require.ErrorIs(t, err, ErrNoProgram)
	require.ErrorContains(t, err, "torus=2x1x1 node 1.0.0: ")

	alone := openSim(t, "sim:")
	require.Nil(t, alone.fabric())
	_, err = alone.node(ctx, abi.MakeNode(1, 0, 0))
	require.ErrorIs(t, err, ErrNotSupported)
	_, err = alone.Subscribe(ctx, bridge.At(abi.MakeNode(1, 0, 0), Loopback))
	require.ErrorIs(t, err, ErrNotSubscribed)
}

// TestErrorTextsOfAFabric: an error of a fabric names what failed once.
func TestErrorTextsOfAFabric(t *testing.T) {
	ctx := background(t)
	const sim = "sim:?torus=2x1x1"
	dev, over := openSim(t, sim), openSim(t, sim)
	f, closed, here, none := dev.fabric(), over.fabric(), abi.MakeNode(0, 0, 0), abi.MakeNode(9, 0, 0)
	require.NoError(t, over.Close())
	result := func(_ any, err error) error { return err }
	for want, err := range map[string]error{
		"cut link " + sim + ": link 7 of node 0: no such node or link in this mesh: invalid argument":   f.CutLink(ctx, here, 7, true),
		"cut link " + sim + ": node 9.0.0: invalid argument: not in a torus of 2x1x1":                   f.CutLink(ctx, none, 0, true),
		"kill node " + sim + ": node 9.0.0: invalid argument: not in a torus of 2x1x1":                  f.KillNode(ctx, none, true),
		"silence node " + sim + ": device closed":                                                       closed.SilenceNode(ctx, here),
		"test link " + sim + ": link -1 of node 0: no such node or link in this mesh: invalid argument": result(f.TestLink(ctx, here, -1, 1)),
		"route " + sim + ": node 9.0.0: invalid argument: not in a torus of 2x1x1":                      result(f.Route(ctx, here, none)),
		"state of the fabric of " + sim + ": device closed":                                             result(closed.State(ctx)),
		"make window " + sim + ": window of 0 bytes, access 0: invalid argument":                        result(f.Window(ctx, nil, 0)),
		"put " + sim + ": 1 bytes at offset 0 of window 4d of node 0: no such window":                   f.Put(ctx, bridge.FabricWindow{Node: here, Key: 77}, 0, []byte{1}),
		"get " + sim + ": node 9.0.0: invalid argument: not in a torus of 2x1x1":                        f.Get(ctx, bridge.FabricWindow{Node: none}, 0, nil),
		"open " + sim + ": node 9.0.0: invalid argument: not in this torus":                             result(dev.node(ctx, abi.MakeNode(9, 0, 0))),
		"open " + sim + ": node 0.0.0: invalid argument: it is the device that was opened":              result(f.Device(ctx, here)),
		"open " + sim + ": node 1.0.0: device closed":                                                   result(over.node(ctx, abi.MakeNode(1, 0, 0))),
		"subscribe " + sim + " target 9.0.0/1: no such target: invalid argument: not in this torus":     result(dev.Subscribe(ctx, bridge.At(abi.MakeNode(9, 0, 0), 1))),
	} {
		require.EqualError(t, err, want)
		require.Empty(t, bridgetest.Stutter(err.Error()), err)
	}
}

// TestFabricWithAnEndedContext: the calls of a fabric do nothing then.
func TestFabricWithAnEndedContext(t *testing.T) {
	f := openSim(t, "sim:?torus=2x1x1").fabric()
	at := abi.MakeNode(1, 0, 0)
	require.Eventually(t, func() bool {
		hops, err := f.Route(t.Context(), abi.MakeNode(0, 0, 0), at)
		return err == nil && len(hops) > 0
	}, time.Minute, time.Millisecond, "links come up")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, state := f.State(ctx)
	_, route := f.Route(ctx, abi.MakeNode(0, 0, 0), at)
	for _, err := range []error{state, route, f.CutLink(ctx, at, 0, true), f.KillNode(ctx, at, true), f.SilenceNode(ctx, at)} {
		require.ErrorIs(t, err, ErrWithdrawn)
		require.ErrorIs(t, err, context.Canceled)
	}
	there, err := f.State(t.Context())
	require.NoError(t, err)
	require.True(t, there.Nodes[1].Alive)
	hops, err := f.Route(t.Context(), abi.MakeNode(0, 0, 0), at)
	require.NoError(t, err)
	require.NotEmpty(t, hops)
}
