//go:build cgo

package kdev

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestErrorTexts: an error has what its caller does not know, once, and repeats
// neither operation nor device nor target.
func TestErrorTexts(t *testing.T) {
	m := newModule(t)
	dev, over := opened(t, m), opened(t, m)
	ctx := patience(t)
	hold, closed, loop := target(t, dev, "hold"), target(t, dev, "hold"), target(t, dev, "loopback")
	second := target(t, dev, "loopback")
	late := target(t, over, "hold")
	require.NoError(t, closed.Close())
	require.NoError(t, over.Close())
	buf := make([]byte, 64)
	require.NoError(t, loop.SendInd(ctx, buf))
	require.NoError(t, second.SendInd(ctx, buf))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	subscribe := func(d *Device, t bridge.Target) error { _, err := d.Subscribe(ctx, t); return err }
	start := func(p bridge.Program) error { _, err := dev.Start(ctx, p); return err }
	load := func(image string) error { _, err := dev.Load(ctx, []byte(image)); return err }
	_, memory := dev.Memory(ctx, 9)
	_, receive := closed.Receive(ctx, buf)
	_, kind := loop.Receive(ctx, buf)
	m.resetting = syscall.EPERM
	for _, c := range []struct {
		op, says string
		err      error
	}{
		{"subscribe", "no such target", subscribe(dev, 5)},
		{"subscribe", fmt.Sprintf("targets are 1 to %d: no such target", dev.Info().Channels-1), subscribe(dev, 1<<24)},
		{"subscribe", "in use", subscribe(dev, hold.Target())},
		{"subscribe", "device closed", subscribe(over, 1)},
		{"start", `program "none": no such program`, start(bridge.Program{Name: "none", Targets: 1})},
		{"start", `program "sink": in use`, start(bridge.Program{Name: "sink", First: hold.Target(), Targets: 1})},
		{"stop", "process 99: invalid argument", dev.Stop(ctx, 99)},
		{"load", "empty image: invalid argument", load("")},
		{"load", "image of 5 bytes: is no whole shared object: invalid argument", load("image")},
		{"memory", "no type 9: invalid argument", memory},
		{"reset", "operation not permitted: it ends what others do with the device and needs CAP_SYS_ADMIN", dev.Reset(ctx)},
		{"reset", "device closed", over.Reset(ctx)},
		{"send", "closed", closed.Send(ctx, buf[:1])},
		{"send", "device closed", late.Send(ctx, buf[:1])},
		{"send", "withdrawn: context canceled", hold.Send(ended, buf[:1])},
		{"receive", "closed", receive},
		{"receive", "one end sends a message, the other a transfer", kind},
		{"receive transfer", "sizes differ: host 8 bytes, device 64 bytes", second.ReceiveInd(ctx, buf[:8])},
	} {
		require.EqualError(t, c.err, c.says, c.op)
		assert.Empty(t, bridgetest.Stutter(fmt.Sprintf("%s dev:0 target 5: %v", c.op, c.err)))
	}
	m.resetting = 0
}
