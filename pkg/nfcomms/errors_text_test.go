//go:build cgo

package nfcomms

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/bridgetest"
)

// TestErrorTexts: an error names operation, device, target and reason, each once.
func TestErrorTexts(t *testing.T) {
	dev := openSim(t, "sim:?target-timeout=1s")
	ctx := background(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	hold, closed := startSim(t, dev, "hold", 1)[0], startSim(t, dev, "hold", 1)[0]
	require.NoError(t, closed.Close())
	gone, err := dev.Start(ctx, Program{Name: "hold", First: 77, Targets: 1})
	require.NoError(t, err)
	left, err := dev.Subscribe(ctx, 77)
	require.NoError(t, err)
	require.NoError(t, dev.Stop(ctx, gone.ID))
	loop, err := dev.Subscribe(ctx, Loopback)
	require.NoError(t, err)
	buf := make([]byte, 64)
	second := startSim(t, dev, "loopback", 1)[0]
	require.NoError(t, loop.SendInd(ctx, buf))
	require.NoError(t, second.SendInd(ctx, buf))
	start := func(p Program) error { _, err := dev.Start(ctx, p); return err }
	subscribe := func(target Target) error { _, err := dev.Subscribe(ctx, target); return err }
	load := func(image string) error { _, err := dev.Load(ctx, []byte(image)); return err }
	open := func(address string) error { _, err := Open(ctx, address); return err }
	lost := openSim(t, "sim:")
	old, err := lost.Subscribe(ctx, Loopback)
	require.NoError(t, err)
	require.NoError(t, lost.Reset(ctx))
	over := openSim(t, "sim:")
	late, err := over.Subscribe(ctx, Loopback)
	require.NoError(t, err)
	require.NoError(t, over.Close())
	_, memory := dev.memory(ctx, 9)
	_, overPrograms := over.programs(ctx)
	_, overHealth := over.Health()
	_, receive := closed.Receive(ctx, buf)
	_, kind := loop.Receive(ctx, buf)
	_, size := second.ReceiveInd(ctx, buf[:8])
	_, next := left.Next(ctx)
	const sim = "sim:?target-timeout=1s "
	for want, err := range map[string]error{
		"open sim:?colour=red: option \"colour\" is not one of ":         open("sim:?colour=red"),
		"open nowhere: scheme \"nowhere\" is not one of ":                open("nowhere:"),
		"open sim: has no scheme (try \"sim:\"): unknown address scheme": open("sim"),

		"subscribe " + sim + "target 5: no such target":                                              subscribe(5),
		"subscribe " + sim + "target 16777216: targets are 1 to 65535: no such target":               subscribe(1 << 24),
		"subscribe sim:?target-timeout=1s: targets are 1 to 65535: no such target":                   subscribe(0),
		"subscribe " + sim + "target 1: in use":                                                      subscribe(1),
		"subscribe sim: target 1: device closed":                                                     func() error { _, err := over.Subscribe(ctx, 1); return err }(),
		"start sim:?target-timeout=1s: program \"none\": no such program":                            start(Program{Name: "none", Targets: 1}),
		fmt.Sprintf("start %starget %d: program \"sink\": in use", sim, hold.Target()):               start(Program{Name: "sink", First: hold.Target(), Targets: 1}),
		"start sim:?target-timeout=1s: program \"sink\": 0 targets from 0: invalid argument":         start(Program{Name: "sink"}),
		fmt.Sprintf("stop sim:?target-timeout=1s: process %d: invalid argument", gone.ID):            dev.Stop(ctx, gone.ID),
		"load sim:?target-timeout=1s: empty image: invalid argument":                                 load(""),
		"load sim:?target-timeout=1s: image of 5 bytes: is no whole shared object: invalid argument": load("image"),
		"memory sim:?target-timeout=1s: no type 9: invalid argument":                                 memory,
		"programs sim: device closed":                                                                overPrograms,
		"health sim: device closed":                                                                  overHealth,
		"reset sim: device closed":                                                                   over.Reset(ctx),

		fmt.Sprintf("send %starget %d: closed", sim, closed.Target()):                                                  closed.Send(ctx, buf[:1]),
		fmt.Sprintf("receive %starget %d: closed", sim, closed.Target()):                                               receive,
		"send " + sim + "target 77: closed by the device":                                                              left.Send(ctx, buf[:1]),
		"next " + sim + "target 77: closed by the device":                                                              next,
		fmt.Sprintf("send %starget %d: target not ready in time", sim, hold.Target()):                                  hold.Send(ctx, buf[:1]),
		fmt.Sprintf("send %starget %d: withdrawn: context canceled", sim, hold.Target()):                               hold.Send(ended, buf[:1]),
		fmt.Sprintf("send transfer %starget %d: withdrawn: context canceled", sim, hold.Target()):                      hold.SendInd(ended, buf),
		"receive " + sim + "target 1: a transfer is offered: one end sends a message, the other a transfer":            kind,
		fmt.Sprintf("receive transfer %starget %d: sizes differ: host 8 bytes, device 64 bytes", sim, second.Target()): size,
		"send sim: target 1: device lost: reset":                                                                       old.Send(ctx, buf[:1]),
		"send sim: target 1: device closed":                                                                            late.Send(ctx, buf[:1]),
	} {
		require.Error(t, err, want)
		assert.Truef(t, err.Error() == want || strings.HasSuffix(want, "is not one of ") && strings.HasPrefix(err.Error(), want),
			"got:  %s\nwant: %s", err, want)
		assert.Empty(t, bridgetest.Stutter(err.Error()), err)
		var op *OpError
		assert.True(t, errors.As(err, &op))
	}
}
