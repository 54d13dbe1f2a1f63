//go:build cgo

package device_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

func (r *rig) config(at uint64) uint32 {
	r.t.Helper()
	v, err := r.Read32(vfiouser.RegionConfig, at)
	require.NoError(r.t, err)
	return v
}

// TestConfigSpace: identity, and what a write of all ones leaves in each word.
func TestConfigSpace(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range []struct {
		name        string
		at          uint64
		reset, ones uint32
	}{
		{"vendor, device", 0x00, 0x4e461234, 0x4e461234},
		{"command, status", 0x04, 0x00100000, 0x00100546},
		{"class, revision", 0x08, 0x12000001, 0x12000001},
		{"header", 0x0c, 0, 0x000000ff},
		{"BAR 0: 4 KiB", 0x10, 0, 0xfffff000},
		{"BAR 1: 4 KiB", 0x14, 0, 0xfffff000},
		{"BAR 2: 16 MiB, 64-bit, prefetchable", 0x18, 0xc, 0xff00000c},
		{"BAR 2 above 4 GiB", 0x1c, 0, 0xffffffff},
		{"BAR 4", 0x20, 0, 0},
		{"BAR 5", 0x24, 0, 0},
		{"subsystem", 0x2c, 0x4e461234, 0x4e461234},
		{"ROM", 0x30, 0, 0},
		{"capabilities", 0x34, 0x40, 0x40},
		{"interrupt line", 0x3c, 0, 0xff},
		{"power management", 0x40, 0x00035001, 0x00035001},
		{"its state", 0x44, 0x8, 0xb},
		{"MSI-X of 3 vectors", 0x50, 0x00026011, 0xc0026011},
		{"MSI-X table in BAR 1", 0x54, 1, 1},
		{"MSI-X pending bits", 0x58, 0x801, 0x801},
		{"PCI Express endpoint", 0x60, 0x00020010, 0x00020010},
		{"function level reset", 0x64, 0x10008000, 0x10008000},
		{"extended capabilities", 0x100, 0, 0},
		{"the end", 0xffc, 0, 0},
	} {
		require.Equal(t, c.reset, r.config(c.at), c.name)
		require.NoError(t, r.Write32(vfiouser.RegionConfig, c.at, ^uint32(0)))
		require.Equal(t, c.ones, r.config(c.at), c.name)
	}
	require.NoError(t, r.Reset())
	require.EqualValues(t, 0x00100000, r.config(4), "after a bus reset")
	require.Zero(t, r.config(0x10))
}

// TestConfigAnyWidth: config space is read and written in bytes and in bulk.
func TestConfigAnyWidth(t *testing.T) {
	r := newRig(t, nil)
	all := make([]byte, 4096)
	require.NoError(t, r.Read(vfiouser.RegionConfig, 0, all))
	require.Equal(t, []byte{0x34, 0x12, 0x46, 0x4e}, all[:4])
	require.NoError(t, r.Write(vfiouser.RegionConfig, 0x13, []byte{0xfe}))
	require.EqualValues(t, 0xfe000000, r.config(0x10))
	require.NoError(t, r.Write(vfiouser.RegionConfig, 0, all))
	require.Zero(t, r.config(0x10))
}

// TestPowerStates: a function that sleeps is no bus master.
func TestPowerStates(t *testing.T) {
	r := newRig(t, nil)
	r.boot()
	bus := r.dev.Bus()
	fd, _ := memfd(t, 1<<16, true)
	require.NoError(t, r.MapDMA(0, 1<<16, 0, vfioclient.Readable, fd))
	var b [4]byte
	require.Zero(t, bus.Read(b[:], 0))
	require.NoError(t, r.Write(vfiouser.RegionConfig, 0x44, []byte{3}))
	require.NotZero(t, bus.Read(b[:], 0))
	require.NoError(t, r.Write(vfiouser.RegionConfig, 0x44, []byte{0}))
	require.Zero(t, bus.Read(b[:], 0))
}
