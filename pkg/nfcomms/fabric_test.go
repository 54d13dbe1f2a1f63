//go:build cgo

package nfcomms

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChannelsOfAFabric: what the package offers works on any node as on the opened one.
func TestChannelsOfAFabric(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=3x1x1")
	far, err := dev.Node(ctx, 2, 0, 0)
	require.NoError(t, err)
	p, err := far.Start(ctx, Program{Name: "loopback", Targets: 3})
	require.NoError(t, err)
	chs := make([]*Channel, 3)
	for i := range chs {
		chs[i], err = dev.Subscribe(ctx, At(2, 0, 0, p.First+Target(i)))
		require.NoError(t, err)
		require.Equal(t, At(2, 0, 0, p.First+Target(i)), chs[i].Target())
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
	send := chs[0].SendIndAsync(ctx, data)
	_, err = chs[0].ReceiveInd(ctx, back)
	require.NoError(t, err)
	_, err = send.Wait(ctx)
	require.NoError(t, err)
}

// TestErrorsOfAFabric: errors name the node once, and a device without a fabric says so.
func TestErrorsOfAFabric(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=2x1x1")
	_, err := dev.Subscribe(ctx, At(1, 0, 0, 4711))
	require.ErrorIs(t, err, ErrNotSubscribed)
	require.ErrorContains(t, err, "target 1.0.0/4711: ")
	_, err = dev.Node(ctx, 0, 0, 0)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = dev.Node(ctx, 2, 0, 0)
	require.ErrorIs(t, err, ErrInvalid)
	far, err := dev.Node(ctx, 1, 0, 0)
	require.NoError(t, err)
	_, err = far.Start(ctx, Program{Name: "none", Targets: 1})
	require.ErrorIs(t, err, ErrNoProgram)
	require.ErrorContains(t, err, "torus=2x1x1 node 1.0.0: ")

	alone := openSim(t, "sim:")
	require.Nil(t, alone.Fabric())
	_, err = alone.Node(ctx, 1, 0, 0)
	require.ErrorIs(t, err, ErrNotSupported)
	_, err = alone.Subscribe(ctx, At(1, 0, 0, Loopback))
	require.ErrorIs(t, err, ErrNotSubscribed)
}
