//go:build cgo

package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

// giftsMany is how often a child gives memory back before it keeps some.
const giftsMany = 20

// takesGifts is a child that changes memory which it is given, and gives it back. In the end it keeps the
// last piece, says so, and offers nothing more.
func takesGifts(address string) error {
	ctx := context.Background()
	dev, err := bridge.Open(ctx, address, nil)
	if err != nil {
		return err
	}
	ch, err := dev.(bridge.HostListener).Dial(ctx, "gifts", bridge.DialOptions{})
	for i := 0; err == nil && i < giftsMany; i++ {
		var r bridge.Region
		if r, err = ch.(bridge.Mover).ReceiveRegion(ctx); err == nil {
			pattern.Fill(r.Bytes(), 0, uint64(2*i+1))
			err = ch.(bridge.Mover).SendRegion(ctx, r)
		}
	}
	if err == nil {
		_, err = ch.(bridge.Mover).ReceiveRegion(ctx)
	}
	if err == nil {
		fmt.Println("kept")
		_, err = ch.Next(ctx) // the test kills it
	}
	return err
}

// gifts is a host that gives memory away, and listens for those that get it.
type gifts struct {
	*testing.T
	path string
	dev  bridge.Device
	l    bridge.Listener
}

// newGifts opens a host of the device at a path.
func newGifts(t *testing.T, path string) *gifts {
	g := &gifts{T: t, path: path, dev: openShared(t, path)}
	g.listen()
	return g
}

func (g *gifts) listen() {
	var err error
	g.l, err = g.dev.(bridge.HostListener).Listen(g.Context(), bridge.ListenOptions{Name: "gifts"})
	require.NoError(g, err)
}

// accepts returns the channel of a host that dials.
func (g *gifts) accepts() bridge.Mover {
	ch, err := g.l.Accept(g.Context())
	require.NoError(g, err)
	return ch.(bridge.Mover)
}

// dials returns the far end of a channel, which is another host's.
func (g *gifts) dials(from bridge.Device) bridge.Mover {
	ch, err := from.(bridge.HostListener).Dial(g.Context(), "gifts", bridge.DialOptions{})
	require.NoError(g, err)
	return ch.(bridge.Mover)
}

func (g *gifts) region(seed uint64) bridge.Region {
	r, err := g.dev.Alloc(1 << 20)
	require.NoError(g, err)
	pattern.Fill(r.Bytes(), 0, seed)
	return r
}

// holds requires that a region is here, with its bytes.
func (g *gifts) holds(r bridge.Region, seed uint64) {
	g.Helper()
	require.Len(g, r.Bytes(), 1<<20)
	require.Negative(g, pattern.Diff(r.Bytes(), 0, seed))
}

func (g *gifts) sends(ch bridge.Mover, r bridge.Region) <-chan error {
	sent := make(chan error, 1)
	go func() { sent <- ch.SendRegion(g.Context(), r) }()
	return sent
}

// TestGifts: memory is given to another process and back. When that is killed, a region that it had ends with
// it, and one that it did not take stays.
func TestGifts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	startChild(t, "device", "--shm", path)
	g := newGifts(t, path)
	other := startCommand(t, func(c *exec.Cmd) { c.Args = append(c.Args, "shm:"+path) }, "gifts")
	ch := g.accepts()
	r := g.region(0)
	for i := range uint64(giftsMany) {
		require.NoError(t, ch.SendRegion(t.Context(), r))
		require.Nil(t, r.Bytes())
		var err error
		r, err = ch.ReceiveRegion(t.Context())
		require.NoError(t, err)
		g.holds(r, 2*i+1)
	}
	require.NoError(t, ch.SendRegion(t.Context(), r))
	require.True(t, other.says.Scan())
	require.Equal(t, "kept", other.says.Text())
	mine := g.region(1)
	sent := g.sends(ch, mine)
	other.kill()
	require.ErrorIs(t, <-sent, bridge.ErrClosed)
	g.holds(mine, 1)
	require.Nil(t, r.Bytes())
}

// TestGiftsOutliveTheDevice: when the device process dies, memory is with the host that has it, and a region
// that was offered with one of both. The next device has it, too.
func TestGiftsOutliveTheDevice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	device := startChild(t, "device", "--shm", path)
	g, guest := newGifts(t, path), openShared(t, path)
	there := g.dials(guest)
	ch := g.accepts()
	first, second := g.region(1), g.region(2)
	sent := g.sends(ch, first)
	got, err := there.ReceiveRegion(t.Context())
	require.NoError(t, err)
	require.NoError(t, <-sent)
	sent = g.sends(ch, second)
	_, err = there.(bridge.Channel).Next(t.Context())
	require.NoError(t, err)
	device.kill()
	require.ErrorIs(t, <-sent, bridge.ErrDeviceLost)
	g.holds(second, 2)
	_, err = there.ReceiveRegion(t.Context())
	require.Error(t, err)
	g.holds(got, 1)

	startChild(t, "device", "--shm", path)
	require.NoError(t, g.dev.Reset(t.Context()))
	require.NoError(t, guest.Reset(t.Context()))
	g.listen()
	there = g.dials(guest)
	ch = g.accepts()
	sent = g.sends(there, got)
	first, err = ch.ReceiveRegion(t.Context())
	require.NoError(t, err)
	require.NoError(t, <-sent)
	g.holds(first, 1)
	g.holds(second, 2)
}

// TestGiftsNeedTheMemoryOfOneNode: a host of another node reaches no memory of this one. Either way the
// sender gets one error, and keeps the region.
func TestGiftsNeedTheMemoryOfOneNode(t *testing.T) {
	p := startNodes(t)
	g := &gifts{T: t, path: p.farPath, dev: openShared(t, p.farPath)}
	visitor := p.open(t)
	t.Cleanup(func() { require.NoError(t, visitor.Close()) })
	l, err := g.dev.(bridge.HostListener).Listen(t.Context(), bridge.ListenOptions{Anyone: true})
	require.NoError(t, err)
	ch, err := visitor.Subscribe(t.Context(), l.Target())
	require.NoError(t, err)
	there := ch.(bridge.Mover)
	far, err := l.Accept(t.Context())
	require.NoError(t, err)

	mine := g.region(1)
	sent := g.sends(far.(bridge.Mover), mine)
	_, err = there.ReceiveRegion(t.Context())
	require.ErrorIs(t, err, bridge.ErrNotSupported)
	require.ErrorIs(t, <-sent, bridge.ErrKindMismatch)
	g.holds(mine, 1)
	theirs, err := visitor.Alloc(100)
	require.NoError(t, err)
	require.ErrorIs(t, there.SendRegion(t.Context(), theirs), bridge.ErrNotSupported)
	require.Len(t, theirs.Bytes(), 100)
	require.NoError(t, theirs.Close())
}
