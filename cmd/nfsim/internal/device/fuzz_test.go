//go:build cgo

package device_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// input turns bytes into the arguments of a client's calls.
type input []byte

func (in *input) byte() byte {
	if len(*in) == 0 {
		return 0
	}
	b := (*in)[0]
	*in = (*in)[1:]
	return b
}

func (in *input) word() uint32 {
	return binary.LittleEndian.Uint32([]byte{in.byte(), in.byte(), in.byte(), in.byte()})
}

// page is an address or a size: few of them, so that calls meet.
func (in *input) page() uint64 {
	if b := in.byte(); b < 240 {
		return uint64(b%16) << 12
	}
	return uint64(in.word())<<32 | uint64(in.word())
}

// register is the offset of one, mostly.
func (in *input) register() uint64 {
	if b := in.byte(); b < 240 {
		return uint64(b) * 4 % 0x140
	}
	return uint64(in.word() % 5000)
}

// FuzzDevice makes sound and unsound calls of a client on a device with a
// firmware behind it: each is answered, epochs begin and end, and in the end
// nothing is left.
func FuzzDevice(f *testing.F) {
	for _, seed := range [][]byte{
		{0, 1, 6, 0, 5, 1, 0, 0, 0},                            // bus master, RESET
		{1, 0, 1, 0, 0, 3, 1, 1, 4, 0, 1, 0},                   // map, map, unmap
		{2, 1, 0x14 / 4, 2, 0, 0, 0, 2, 0x14 / 4, 1, 0, 0, 0},  // QUIESCE, RESET
		{3, 0, 1, 2, 3, 4, 4, 0, 0, 5, 6, 0x68, 0x80, 0, 0, 0}, // BAR 2, vectors, FLR
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t, func(o *device.Options) { o.AreaSize, o.Map = 4<<20, false })
		fd, _ := memfd(t, 1<<16, true)
		in := input(data)
		for calls := 0; len(in) > 0 && calls < 64; calls++ {
			require.NotErrorIs(t, r.call(&in, fd), vfioclient.ErrGone)
		}
		require.NoError(t, r.UnmapAll())
		require.NoError(t, r.Reset())
		require.Zero(t, r.reg(pci.RegStatus))
		st := r.dev.Bus().Stats()
		require.Zero(t, st.Ranges)
		require.Equal(t, st.Maps, st.Unmaps)
	})
}

// call makes one call.
func (r *rig) call(in *input, fd int) error {
	switch in.byte() % 8 {
	case 0:
		return r.Write(vfiouser.RegionConfig, uint64(in.byte()), []byte{in.byte(), in.byte()})
	case 1:
		if in.byte()%4 == 0 {
			fd = -1
		}
		return r.MapDMA(in.page(), in.page(), in.page(), uint32(in.byte()%5), fd)
	case 2:
		return r.Write32(pci.BarRegisters, in.register(), in.word())
	case 3:
		return r.PostWrite(pci.BarMailboxes, in.page(), []byte{in.byte(), in.byte(), in.byte(), in.byte(), 1, 2, 3, 4}[:1+in.byte()%8])
	case 4:
		return r.UnmapDMA(in.page(), in.page())
	case 5:
		return r.SetIRQs(uint32(in.byte()), uint32(in.byte()%4), uint32(in.byte()%4), nil)
	case 6:
		return r.Write32(vfiouser.RegionConfig, uint64(in.byte())*4, in.word())
	default:
		_, err := r.Read32(pci.BarRegisters, in.register())
		return err
	}
}
