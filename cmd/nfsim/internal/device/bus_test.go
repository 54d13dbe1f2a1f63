//go:build cgo

package device_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	. "github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/pci"
)

// TestDMA reads and writes through mappings of both kinds of files, over the
// borders of ranges, and never past what was mapped or against its direction.
func TestDMA(t *testing.T) {
	for _, sealed := range []bool{true, false} {
		r := newRig(t, nil)
		r.command(6)
		bus := r.dev.Bus()
		fd, mem := memfd(t, 1<<20, sealed)
		// Two ranges that touch, in turned order, and one for reading.
		require.NoError(t, r.MapDMA(0x10000, 0x2000, 0x4000, Readable|Writable, fd))
		require.NoError(t, r.MapDMA(0x12000, 0x1000, 0x1000, Readable|Writable, fd))
		require.NoError(t, r.MapDMA(0x20000, 0x1000, 0x8000, Readable, fd))
		want := bytes.Repeat([]byte("page"), 0x1800/4)
		require.Zero(t, bus.Write(0x11000, want[:0x1800]))
		require.Equal(t, want[:0x1000], mem[0x5000:0x6000])
		require.Equal(t, want[:0x800], mem[0x1000:0x1800])
		got := make([]byte, 0x1800)
		require.Zero(t, bus.Read(got, 0x11000))
		require.Equal(t, want, got)
		for _, c := range []struct {
			write bool
			at    uint64
			n     int
		}{
			{false, 0, 1}, {false, 0xffff, 2}, {false, 0x12fff, 2}, {true, 0x13000, 1}, {true, 0x20000, 1},
			{true, 0x12fff, 2}, {false, ^uint64(0), 1}, {false, ^uint64(0) - 1, 8},
		} {
			faults := r.reg(pci.RegDMAFaults)
			if c.write {
				require.Equal(t, abi.ErrDMA, bus.Write(c.at, make([]byte, c.n)))
			} else {
				require.Equal(t, abi.ErrDMA, bus.Read(make([]byte, c.n), c.at))
			}
			require.Equal(t, faults+1, r.reg(pci.RegDMAFaults), "%+v", c)
		}
		st := bus.Stats()
		require.EqualValues(t, 3, st.Ranges)
		require.EqualValues(t, 0x1800, st.BytesWritten)
		require.EqualValues(t, 0x1800, st.BytesRead)
		r.command(2)
		require.Equal(t, abi.ErrDMA, bus.Read(got, 0x11000), "no bus master")
	}
}

// TestMapRefusals: what DMA_MAP and DMA_UNMAP do not take.
func TestMapRefusals(t *testing.T) {
	r := newRig(t, nil)
	fd, _ := memfd(t, 1<<16, true)
	readOnly, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(readOnly)
	writeOnly, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(writeOnly)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	require.NoError(t, r.MapDMA(0x10000, 0x10000, 0, Readable, fd))
	for _, c := range []struct {
		name                  string
		address, size, offset uint64
		flags                 uint32
		fd                    int
		want                  syscall.Errno
	}{
		{"nothing", 0, 0, 0, Readable, fd, syscall.EINVAL},
		{"no access", 0, 4096, 0, 0, fd, syscall.EINVAL},
		{"odd address", 1, 4096, 0, Readable, fd, syscall.EINVAL},
		{"odd size", 0, 4097, 0, Readable, fd, syscall.EINVAL},
		{"odd offset", 0, 4096, 1, Readable, fd, syscall.EINVAL},
		{"past the end of addresses", ^uint64(0) - 4095, 8192, 0, Readable, fd, syscall.EINVAL},
		{"past the file", 0x100000, 0x11000, 0, Readable, fd, syscall.EINVAL},
		{"offset past the file", 0, 4096, 0x10000, Readable, fd, syscall.EINVAL},
		{"offset overflows", 0, 4096, ^uint64(0) - 4095, Readable, fd, syscall.EINVAL},
		{"no regular file", 0, 4096, 0, Readable, int(null.Fd()), syscall.EINVAL},
		{"file not open for writing", 0, 4096, 0, Readable | Writable, readOnly, syscall.EACCES},
		{"file not open for reading", 0, 4096, 0, Writable, writeOnly, syscall.EACCES},
		{"the same again", 0x10000, 0x10000, 0, Readable, fd, syscall.EEXIST},
		{"inside", 0x11000, 0x1000, 0, Readable, fd, syscall.EEXIST},
		{"around", 0xf000, 0x12000, 0, Readable, -1, syscall.EEXIST},
		{"over the start", 0xf000, 0x2000, 0, Readable, fd, syscall.EEXIST},
		{"over the end", 0x1f000, 0x2000, 0, Readable, fd, syscall.EEXIST},
	} {
		require.ErrorIs(t, r.MapDMA(c.address, c.size, c.offset, c.flags, c.fd), c.want, c.name)
	}
	for _, c := range []struct {
		name          string
		address, size uint64
		want          error
	}{
		{"nothing", 0, 0, syscall.EINVAL},
		{"odd", 1, 4096, syscall.EINVAL},
		{"past the end of addresses", ^uint64(0) - 4095, 8192, syscall.EINVAL},
		{"a part", 0x10000, 0x1000, syscall.EINVAL},
		{"a part and more", 0, 0x11000, syscall.EINVAL},
		{"a part in the middle", 0x18000, 0x1000, syscall.EINVAL},
		{"what is not there", 0x40000, 0x1000, nil},
		{"the top of addresses", ^uint64(0) - 4095, 4096, nil},
		{"more than there is", 0, 0x40000, nil},
		{"twice", 0x10000, 0x10000, nil},
	} {
		require.ErrorIs(t, r.UnmapDMA(c.address, c.size), c.want, c.name)
	}
	require.Zero(t, r.dev.Bus().Stats().Ranges)
}

// TestShrinkingFile: a client that cuts its file off makes faults, not a crash.
func TestShrinkingFile(t *testing.T) {
	r := newRig(t, nil)
	r.command(6)
	f, err := os.Create(filepath.Join(t.TempDir(), "guest"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(1<<16))
	require.NoError(t, r.MapDMA(0, 1<<16, 0, Readable|Writable, int(f.Fd())))
	bus := r.dev.Bus()
	require.Zero(t, bus.Write(0x8000, []byte("there")))
	require.NoError(t, f.Truncate(4096))
	require.Equal(t, abi.ErrDMA, bus.Read(make([]byte, 5), 0x8000))
	require.Zero(t, bus.Read(make([]byte, 4096), 0))
}

// mapping is one page for reading.
func mapping(address, offset uint64, fd int) vfiouser.Mapping {
	return vfiouser.Mapping{Address: address, Size: 4096, Offset: offset, Read: true, File: fd}
}

// mappings counts those of a file in this process.
func mappings(t *testing.T, name string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), name)
}

// TestManyRanges: a file is mapped once, however many ranges it has, and
// released with the last; there is a bound to ranges.
func TestManyRanges(t *testing.T) {
	r := newRig(t, nil)
	r.command(6)
	fd, mem := memfd(t, 1<<20, true)
	before := mappings(t, "memfd:guest")
	const most = 65535
	for i := range uint64(most) {
		require.NoError(t, r.dev.MapDMA(mapping(i*8192, (i%256)*4096, fd)))
	}
	require.ErrorIs(t, r.dev.MapDMA(mapping(most*8192, 0, fd)), syscall.ENOSPC)
	require.Equal(t, before+1, mappings(t, "memfd:guest"))
	mem[255*4096] = 42
	var b [1]byte
	require.Zero(t, r.dev.Bus().Read(b[:], 255*8192))
	require.EqualValues(t, 42, b[0])
	require.NoError(t, r.UnmapDMA(0, 8192*1000))
	require.EqualValues(t, most-1000, r.dev.Bus().Stats().Ranges)
	require.NoError(t, r.UnmapAll())
	require.Zero(t, r.dev.Bus().Stats().Ranges)
	require.Equal(t, before, mappings(t, "memfd:guest"))
}

// TestUnmapWaits: when an unmap is over nothing is written there any more,
// while copies run all the time.
func TestUnmapWaits(t *testing.T) {
	r := newRig(t, nil)
	r.command(6)
	bus := r.dev.Bus()
	fd, mem := memfd(t, 1<<20, true)
	var stop atomic.Bool
	var copies sync.WaitGroup
	for i := range 3 {
		copies.Go(func() {
			for data := bytes.Repeat([]byte{byte(i) + 1}, 1<<18); !stop.Load(); {
				bus.Write(1<<20, data)
			}
		})
	}
	for range 200 {
		require.NoError(t, r.MapDMA(1<<20, 1<<20, 0, Readable|Writable, fd))
		time.Sleep(50 * time.Microsecond)
		require.NoError(t, r.UnmapDMA(1<<20, 1<<20))
		clear(mem[:1<<18])
		for range 4 {
			require.Zero(t, bytes.Count(mem[:1<<18], []byte{1})+bytes.Count(mem[:1<<18], []byte{2}))
		}
	}
	stop.Store(true)
	copies.Wait()
	require.NotZero(t, bus.Stats().BytesWritten)
}

// TestInterrupts: which vector, what stays pending, and until when.
func TestInterrupts(t *testing.T) {
	r := newRig(t, nil)
	bus := r.dev.Bus()
	v0, v1 := r.vector(0), r.vector(1)
	bus.RingHost(0)
	r.silent(v0)
	r.command(6) // the one that waited for bus mastering is sent now
	require.EqualValues(t, 1, r.fired(v0))
	bus.RingHost(5) // with one vector each interrupt has that one
	require.EqualValues(t, 1, r.fired(v0))
	r.setReg(pci.RegVectors, 3)
	bus.RingHost(0)
	require.EqualValues(t, 1, r.fired(v1))
	r.silent(v0)
	bus.RingHost(1) // vector 2 has no eventfd yet
	bus.RingHost(3)
	require.EqualValues(t, 4, bus.Stats().Pending)
	v2 := r.vector(2)
	require.EqualValues(t, 1, r.fired(v2), "joined")
	require.Zero(t, bus.Stats().Pending)
	require.EqualValues(t, 4, r.reg(pci.RegMessages))
	require.NoError(t, r.SetIRQs(IRQNone, 0, 3, nil))
	r.fired(v0)
	r.fired(v1)
	r.fired(v2)
	require.NoError(t, r.SetIRQs(IRQNone, 0, 0, nil)) // all taken away
	bus.RingHost(0)
	r.silent(v1)
	require.NoError(t, r.Reset())
	require.Zero(t, bus.Stats().Pending, "a reset drops what is pending")
}

// TestHoldOff: interrupts of a vector are apart, and none is lost.
func TestHoldOff(t *testing.T) {
	const apart = 10 * time.Millisecond
	r := newRig(t, nil)
	r.command(6)
	bus := r.dev.Bus()
	v0 := r.vector(0)
	r.setReg(pci.RegHoldoff, uint32(apart.Microseconds()))
	start := time.Now()
	var sent, got uint64
	for time.Since(start) < 10*apart {
		bus.Raise(0)
		sent++
	}
	bus.Raise(0)
	took := time.Since(start)
	for r.dev.Bus().Stats().Pending != 0 {
		time.Sleep(time.Millisecond)
	}
	got = r.fired(v0)
	require.Positive(t, got)
	require.LessOrEqual(t, got, uint64(time.Since(start)/apart)+1, "%d raised in %v", sent, took)
	require.EqualValues(t, got, r.reg(pci.RegMessages))
	bus.Raise(0)
	bus.Raise(0) // held, unless the machine stood still
	r.setReg(pci.RegHoldoff, 0)
	require.Positive(t, r.fired(v0))
	require.Zero(t, bus.Stats().Pending, "without a hold-off nothing waits")
}

// TestHoldOffOfAVector holds back interrupts of one vector, and none of another; the first after a
// pause is never held.
func TestHoldOffOfAVector(t *testing.T) {
	r := newRig(t, nil)
	r.command(6)
	bus := r.dev.Bus()
	v0, v1 := r.vector(0), r.vector(1)
	r.setReg(pci.RegVectorHoldoff, 10000)
	for range 3 {
		bus.Raise(1)
		require.EqualValues(t, 1, r.fired(v1))
	}
	for range 3 {
		bus.Raise(0)
		require.EqualValues(t, 1, r.fired(v0))
		time.Sleep(11 * time.Millisecond) // longer than the hold-off
	}
	require.Zero(t, bus.Stats().HeldOff)
}

// TestBadVectors: nothing but an eventfd becomes a vector, and a full one does
// not stop the device.
func TestBadVectors(t *testing.T) {
	r := newRig(t, nil)
	r.command(6)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	var pipe [2]int
	require.NoError(t, unix.Pipe2(pipe[:], unix.O_CLOEXEC))
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	for _, fd := range []int{int(null.Fd()), pipe[1]} {
		require.ErrorIs(t, r.SetIRQs(IRQEventfd, 0, 1, nil, fd), syscall.EINVAL)
	}
	full, err := unix.Eventfd(0, unix.EFD_CLOEXEC) // blocks when full
	require.NoError(t, err)
	defer unix.Close(full)
	require.NoError(t, r.SetIRQs(IRQEventfd, 0, 1, nil, full))
	_, err = unix.Write(full, []byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	require.NoError(t, err)
	r.dev.Bus().Raise(0)
	require.EqualValues(t, 1, r.reg(pci.RegMessages))
}
