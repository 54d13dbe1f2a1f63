//go:build cgo

package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// open shakes hands with the device of a machine, which is closed with it.
func (m *machine) open(t *testing.T) bridge.Device {
	t.Helper()
	require.NoError(t, m.enable())
	require.NoError(t, m.Restart(t.Context()))
	dev, err := mailbox.Open(context.Background(), m, bridge.Info{Address: "vfio-user:", Driver: "nfsim"}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// guarded is a buffer between canaries.
type guarded struct{ all, data []byte }

func newGuarded(size int) *guarded {
	const guard = 256
	g := &guarded{all: bytes.Repeat([]byte{0x5c}, size+2*guard)}
	g.data = g.all[guard : guard+size]
	return g
}

func (g *guarded) intact() bool {
	rest := append(bytes.Clone(g.all[:256]), g.all[256+len(g.data):]...)
	return bytes.Count(rest, []byte{0x5c}) == len(rest)
}

// How long a call may take: little where what a device swallows would hold the
// test up, much where it behaves.
const brief, long = 500 * time.Millisecond, time.Minute

// talk makes calls of every kind until one fails or all were made.
func talk(t *testing.T, dev bridge.Device, out, in *guarded, patience time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	ch, err := dev.Subscribe(ctx, abi.TargetLoopback)
	if err != nil {
		return err
	}
	defer ch.Close()
	for range 12 {
		for _, call := range []func(context.Context) error{
			func(ctx context.Context) error { return ch.Send(ctx, out.data[:abi.PayloadSize]) },
			func(ctx context.Context) error { _, err := ch.Receive(ctx, in.data); return err },
			func(ctx context.Context) error { return ch.SendInd(ctx, out.data) },
			func(ctx context.Context) error { return ch.ReceiveInd(ctx, in.data) },
		} {
			ctx, cancel := context.WithTimeout(ctx, patience)
			err := call(ctx)
			cancel()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// named are the errors a call may end with.
var named = []error{
	bridge.ErrClosed, bridge.ErrTargetTimeout, bridge.ErrSizeMismatch, bridge.ErrKindMismatch,
	bridge.ErrTooLarge, bridge.ErrRange, bridge.ErrProtocol, bridge.ErrDMA, bridge.ErrAborted,
	bridge.ErrWithdrawn, bridge.ErrNotSubscribed, bridge.ErrBusy, bridge.ErrNoMemory, bridge.ErrInvalid,
	bridge.ErrNotSupported, bridge.ErrStopped, bridge.ErrDeviceLost, bridge.ErrFault, context.DeadlineExceeded,
}

func requireNamed(t *testing.T, err error) {
	t.Helper()
	for _, is := range named {
		if errors.Is(err, is) {
			return
		}
	}
	require.NoError(t, err, "an error without a name")
}

// TestHostileDevice makes calls on devices that break each rule in turn: every
// call ends with an error that has a name or none, no byte outside of a buffer
// changes but by DMA that the script asks for, and a reset makes the device whole.
func TestHostileDevice(t *testing.T) {
	for _, script := range []string{
		"count", "count@2+3", "early", "id", "id@3+4", "epoch@2", "type", "type@5", "channel", "length", "phase@3",
		"state", "direction", "reserved", "replay", "replay+1", "again@4+2", "drop@3", "garbage", "garbage+2",
		"random@2+5", "flip", "scribble", "irq-drop", "irq-dup+1", "irq-storm", "mute@4", "hang@6", "hang:dma", "hang:control",
		"count@5:done", "garbage@2:control", "late,drop@20", "stale", "lose:direct", "lose:begin", "lose@4:list",
		"note@2", "close@2", "offer", "refuse@2", "ahead@9", "behind@9+1", "rewrite", "rewrite@3+2",
	} {
		t.Run(script, func(t *testing.T) {
			bridgetest.LeakCheck(t)
			m := attach(t, "--script", script, "--seed", "5", "--beat", "10ms", "--window", "4", "--slots", "32")
			dev := m.open(t)
			out, in := newGuarded(200_000), newGuarded(200_000)
			err := talk(t, dev, out, in, brief)
			requireNamed(t, err)
			t.Logf("%d faults struck, the call ended with: %v", m.hostile.Struck(), err)
			assert.NotZero(t, m.hostile.Struck(), "the script did nothing")
			assert.True(t, out.intact() && in.intact(), "bytes outside of a buffer changed")
			if !bytes.ContainsAny([]byte(script), "+") && script != "garbage@2:control" {
				require.NoError(t, dev.Reset(context.Background()))
				require.NoError(t, talk(t, dev, newGuarded(200_000), newGuarded(200_000), long))
			}
		})
	}
}

// TestHostileDMA: accesses that nobody asked for happen, as far as there is
// memory, and are faults otherwise. The rows say what a page that the device
// never learned of holds afterwards.
func TestHostileDMA(t *testing.T) {
	m := attach(t, "--script", "overreach+1", "--seed", "5")
	dev := m.open(t)
	out, in := newGuarded(100_000), newGuarded(100_000)
	require.NoError(t, talk(t, dev, out, in, long))
	require.True(t, out.intact(), "a source was written to")
	require.False(t, in.intact(), "DMA stayed inside its entries")
	require.Zero(t, m.device.Bus().Stats().Faults)
}

// TestDies: the process ends at the step that the script names.
func TestDies(t *testing.T) {
	for _, script := range []string{"die@3", "die:dma"} {
		m := attach(t, "--script", script)
		dev := m.open(t)
		_ = talk(t, dev, newGuarded(10_000), newGuarded(10_000), brief) // whatever: the process is about to end
		require.True(t, m.died.Load(), script)
	}
}

// TestPulledOut: registers, config space and the mapped mailboxes read as ones.
func TestPulledOut(t *testing.T) {
	bridgetest.LeakCheck(t)
	m := attach(t, "--script", "gone@5")
	dev := m.open(t)
	requireNamed(t, talk(t, dev, newGuarded(10_000), newGuarded(10_000), brief))
	id, err := m.Read32(pci.BarRegisters, pci.RegID)
	require.NoError(t, err)
	require.Equal(t, ^uint32(0), id)
	vendor, err := m.Read32(vfiouser.RegionConfig, 0)
	require.NoError(t, err)
	require.Equal(t, ^uint32(0), vendor)
	require.NoError(t, m.Write32(pci.BarRegisters, pci.RegControl, pci.ControlReset))
	require.Equal(t, byte(0xff), m.bar[100])
	require.ErrorIs(t, dev.Reset(context.Background()), bridge.ErrDeviceLost)
}

// TestStuckReset: BUSY stays set until a function level reset.
func TestStuckReset(t *testing.T) {
	bridgetest.LeakCheck(t)
	m := attach(t, "--script", "stuck@2")
	defer func() { require.NoError(t, m.detach()) }()
	require.NoError(t, m.enable())
	require.NoError(t, m.Restart(t.Context()))
	require.NoError(t, m.Write32(pci.BarRegisters, pci.RegControl, pci.ControlReset))
	for range 20 {
		status, err := m.Read32(pci.BarRegisters, pci.RegStatus)
		require.NoError(t, err)
		require.Equal(t, uint32(pci.StatusBusy|wire.DeviceBooting), status)
	}
	require.NoError(t, m.Write(vfiouser.RegionConfig, 0x68, vfioclient.Words(uint16(1<<15))))
	status, err := m.Read32(pci.BarRegisters, pci.RegStatus)
	require.NoError(t, err)
	require.Zero(t, status)
	require.NoError(t, m.Restart(t.Context()))
}
