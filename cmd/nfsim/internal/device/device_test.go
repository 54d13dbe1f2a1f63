//go:build cgo

package device_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func TestBadOptions(t *testing.T) {
	for _, o := range []device.Options{
		{AreaSize: 0, Vectors: 1}, {AreaSize: 2048, Vectors: 1}, {AreaSize: 12288, Vectors: 1},
		{AreaSize: 1 << 41, Vectors: 1}, {AreaSize: 4096, Vectors: 0}, {AreaSize: 4096, Vectors: 18},
	} {
		_, err := device.New(o)
		require.Error(t, err, "%+v", o)
	}
}

// TestRegisters: every register after power-on, and what it takes.
func TestRegisters(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range []struct {
		at          uint64
		reset       uint32
		write, then uint32
	}{
		{pci.RegID, 0x314d434e, 1, 0x314d434e},
		{pci.RegVersion, 0x10000, 1, 0x10000},
		{pci.RegABI, abi.Major << 16, 1, abi.Major << 16},
		{pci.RegCapabilities, 15, 0, 15},
		{pci.RegStatus, 0, ^uint32(0), 0},
		{pci.RegControl, 0, 7, 0},
		{pci.RegEpoch, 0, 9, 0},
		{pci.RegVectors, 1, 3, 3},
		{pci.RegVectors, 3, 0, 3},
		{pci.RegVectors, 3, 4, 3},
		{pci.RegHoldoff, 0, 100, 100},
		{pci.RegVectorHoldoff + 4, 100, 20, 20},
		{pci.RegHoldoff, 100, ^uint32(0), 10000},
		{pci.RegVectorHoldoff, 10000, 30, 30},
		{pci.RegVectorHoldoff + 4, 10000, ^uint32(0), 10000},
		{pci.RegVectorHoldoff + 8, 10000, 0, 0},
		{pci.RegVectorHoldoff + 12, 0, 30, 0}, // it has three
		{pci.RegHostBeat, 0, 5, 0},
		{pci.RegWatchdog, 0, 300, 300},
		{pci.RegWatchdog, 300, ^uint32(0), 3600000},
		{pci.RegDMAFaults, 0, 5, 0},
		{pci.RegMessages, 0, 5, 0},
		{0x034, 0, 5, 0}, {0x03c, 0, 5, 0}, {0x060, 0, 5, 0}, {0x0fc, 0, 5, 0}, {0x140, 0, 5, 0}, {0xffc, 0, 5, 0},
		{pci.RegShapeChannels, 0, 64, 64},
		{pci.RegShapeMailboxes, 0, 4, 4},
		{pci.RegShapeIslands, 0, 2, 2},
		{pci.RegShapeSlots, 0, 32, 32},
		{pci.RegShapeWindow, 0, 8, 8},
		{pci.RegShapeTimeout, 0, 1500, 1500},
		{pci.RegShapeEMEM, 0, 1024, 1024},
		{pci.RegShapeStatus, 0, 5, 0},
		{pci.RegDoorbell, 0, 1, 0},
		{pci.RegDoorbell + 60, 0, 1, 0},
	} {
		require.Equal(t, c.reset, r.reg(c.at), "register %#x", c.at)
		r.setReg(c.at, c.write)
		require.Equal(t, c.then, r.reg(c.at), "register %#x after a write of %#x", c.at, c.write)
	}
	r.boot()
	require.Equal(t, device.Shape{Channels: 64, Mailboxes: 4, Islands: 2, Slots: 32, Window: 8,
		TargetTimeout: 1500 * time.Millisecond, EMEM: 4 << 20}, *r.booted.Load())
}

// TestRegisterWidth: registers are accessed whole.
func TestRegisterWidth(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range []struct {
		at uint64
		n  int
	}{{0, 1}, {0, 2}, {0, 8}, {1, 4}, {2, 4}, {pci.RegHoldoff, 2}, {pci.RegHoldoff, 8}} {
		require.ErrorIs(t, r.Read(pci.BarRegisters, c.at, make([]byte, c.n)), syscall.EINVAL)
		require.ErrorIs(t, r.Write(pci.BarRegisters, c.at, make([]byte, c.n)), syscall.EINVAL)
	}
}

// TestEpochs follows the state diagram of the specification.
func TestEpochs(t *testing.T) {
	r := newRig(t, nil)
	state := func(want uint32) {
		t.Helper()
		require.Equal(t, want, r.reg(pci.RegStatus))
	}
	magic := func() (v uint32) {
		v, err := r.Read32(pci.BarMailboxes, 0)
		require.NoError(t, err)
		return v
	}
	state(wire.DeviceOff)
	require.Zero(t, magic())
	r.boot()
	state(wire.DeviceReady | pci.StatusDMA)
	require.EqualValues(t, 1, r.reg(pci.RegEpoch))
	require.EqualValues(t, wire.Magic, magic())
	r.command(2) // no bus master
	state(wire.DeviceReady)
	r.command(6)
	state(wire.DeviceReady | pci.StatusDMA)
	r.control(pci.ControlQuiesce)
	state(wire.DeviceReady)
	require.EqualValues(t, pci.ControlQuiesce, r.reg(pci.RegControl))
	r.control(pci.ControlReset)
	state(wire.DeviceReady | pci.StatusDMA)
	require.EqualValues(t, 2, r.reg(pci.RegEpoch))
	require.NoError(t, r.Reset()) // of the bus
	state(wire.DeviceOff)
	require.Zero(t, r.reg(pci.RegEpoch))
	require.Zero(t, magic())
	r.control(pci.ControlQuiesce) // of nothing
	state(wire.DeviceOff)
	r.boot()
	require.EqualValues(t, 3, r.reg(pci.RegEpoch))
	require.NoError(t, r.Write(vfiouser.RegionConfig, 0x68, vfioclient.Words(uint16(1<<15)))) // function level
	state(wire.DeviceOff)
	var control [2]byte
	require.NoError(t, r.Read(vfiouser.RegionConfig, 0x68, control[:]))
	require.Zero(t, control)
	r.boot()
	require.EqualValues(t, 4, r.reg(pci.RegEpoch))
	require.EqualValues(t, 4, r.dev.Epochs())
}

// TestRefusedShapes: the old epoch is over, none follows it, and the next
// RESET may be better.
func TestRefusedShapes(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range []struct {
		at     uint64
		v      uint32
		status abi.Status
	}{
		{pci.RegShapeSlots, 1000, abi.ErrInvalid},
		{pci.RegShapeIslands, 17, abi.ErrInvalid},
		{pci.RegShapeChannels, ^uint32(0), abi.ErrInvalid},
		{pci.RegShapeEMEM, ^uint32(0), abi.ErrInvalid}, // 16 TiB
		{pci.RegShapeSlots, 1 << 14, abi.ErrTooLarge},  // 16.5 MiB of mailboxes
		{pci.RegShapeChannels, 1 << 24, abi.ErrTooLarge},
	} {
		r.boot()
		r.setReg(c.at, c.v)
		r.control(pci.ControlReset)
		require.EqualValues(t, c.status, r.reg(pci.RegShapeStatus), "%#x = %d", c.at, c.v)
		require.EqualValues(t, wire.DeviceOff, r.reg(pci.RegStatus))
		require.Zero(t, r.reg(pci.RegEpoch))
		r.setReg(c.at, 0)
	}
	r.boot()
}

// TestMailboxesByMessages: without a mapping BAR 2 is read and written in any
// width.
func TestMailboxesByMessages(t *testing.T) {
	r := newRig(t, func(o *device.Options) { o.Map = false })
	size, flags, file, err := r.Region(pci.BarMailboxes)
	require.NoError(t, err)
	require.EqualValues(t, 16<<20, size)
	require.EqualValues(t, 3, flags)
	require.Equal(t, -1, file)
	want := []byte("0123456789abcdefghijklmnopqrstuvw")
	for at := range uint64(9) {
		for n := 1; n <= len(want); n++ {
			require.NoError(t, r.PostWrite(pci.BarMailboxes, 1<<20+at, want[:n]))
			got := make([]byte, n)
			require.NoError(t, r.Read(pci.BarMailboxes, 1<<20+at, got))
			require.Equal(t, want[:n], got)
		}
	}
	require.ErrorIs(t, r.Read(pci.BarMailboxes, 16<<20-4, make([]byte, 5)), syscall.EINVAL)
}

// TestMSIXBar: the table is the bus's; pending bits are the device's.
func TestMSIXBar(t *testing.T) {
	r := newRig(t, nil)
	r.setReg(pci.RegVectors, 2)
	r.boot() // raises vector 0, which has no eventfd
	pba := make([]byte, 8)
	require.NoError(t, r.Read(pci.BarMSIX, pci.MSIXPBA, pba))
	require.Equal(t, []byte{1, 0, 0, 0, 0, 0, 0, 0}, pba)
	require.NoError(t, r.Write(pci.BarMSIX, 0, []byte{1, 2, 3, 4}))
	require.NoError(t, r.Read(pci.BarMSIX, 0, pba))
	require.Equal(t, make([]byte, 8), pba)
}

// TestWatchdog: a host that is silent loses its epoch, which takes its slots
// with it; one that beats does not.
func TestWatchdog(t *testing.T) {
	r := newRig(t, nil)
	bell := r.vector(0)
	const limit = time.Second
	r.setReg(pci.RegWatchdog, uint32(limit.Milliseconds()))
	status, last, longest := r.bootAndBeat(bell, 3*limit/2)
	for status&pci.StatusWatchdog != 0 {
		require.GreaterOrEqual(t, longest, limit, "only a test without a processor is silent that long")
		r.until("not busy", func() bool { return r.reg(pci.RegStatus)&pci.StatusBusy == 0 })
		status, last, longest = r.bootAndBeat(bell, 3*limit/2)
	}
	require.EqualValues(t, wire.DeviceReady|pci.StatusDMA, status)
	r.until("the watchdog", func() bool { return r.reg(pci.RegStatus)&pci.StatusWatchdog != 0 })
	require.GreaterOrEqual(t, time.Since(last), limit)
	r.until("not busy", func() bool { return r.reg(pci.RegStatus)&pci.StatusBusy == 0 })
	r.fired(bell)
	require.EqualValues(t, wire.DeviceOff|pci.StatusWatchdog, r.reg(pci.RegStatus))
	v, err := r.Read32(pci.BarMailboxes, 0)
	require.NoError(t, err)
	require.Zero(t, v, "the area of an epoch that is over")
	require.EqualValues(t, 1000, r.reg(pci.RegWatchdog))
	r.setReg(pci.RegWatchdog, 0)
	r.boot()
	require.EqualValues(t, wire.DeviceReady|pci.StatusDMA, r.reg(pci.RegStatus))
}

// TestVanish: registers read as ones and take nothing, until the client has
// disconnected.
func TestVanish(t *testing.T) {
	r := newRig(t, nil)
	r.boot()
	r.dev.Vanish()
	require.Equal(t, ^uint32(0), r.reg(pci.RegID))
	r.setReg(pci.RegControl, pci.ControlReset)
	require.Equal(t, ^uint32(0), r.reg(pci.RegStatus))
	r.dev.PowerOff()
	require.EqualValues(t, wire.Magic, r.reg(pci.RegID))
	require.EqualValues(t, 1, r.dev.Epochs())
}

// TestFakeRemoval: registers read as ones, and config space still takes the right to
// DMA away.
func TestFakeRemoval(t *testing.T) {
	r := newRig(t, nil)
	r.boot()
	r.dev.FakeRemoval()
	require.Equal(t, ^uint32(0), r.reg(pci.RegID))
	r.setReg(pci.RegControl, pci.ControlReset)
	require.EqualValues(t, 1, r.dev.Epochs(), "it takes nothing")
	const command, master = 4, 1 << 2
	var word [2]byte
	require.NoError(t, r.dev.ReadRegion(vfiouser.RegionConfig, command, word[:]))
	require.NotZero(t, word[0]&master)
	require.NoError(t, r.dev.WriteRegion(vfiouser.RegionConfig, command, []byte{word[0] &^ master, word[1]}))
	require.NoError(t, r.dev.ReadRegion(vfiouser.RegionConfig, command, word[:]))
	require.Zero(t, word[0]&master)
	r.dev.PowerOff()
	require.EqualValues(t, wire.Magic, r.reg(pci.RegID))
}

// TestPowerOff forgets what a client set up.
func TestPowerOff(t *testing.T) {
	r := newRig(t, nil)
	r.setReg(pci.RegHoldoff, 7)
	r.setReg(pci.RegVectorHoldoff, 8)
	r.boot()
	require.NoError(t, r.MapDMA(0, 4096, 0, vfioclient.Readable, -1))
	r.dev.PowerOff()
	require.Zero(t, r.reg(pci.RegStatus))
	require.Zero(t, r.reg(pci.RegHoldoff))
	require.Zero(t, r.reg(pci.RegVectorHoldoff))
	require.Zero(t, r.dev.Bus().Stats().Ranges)
}
