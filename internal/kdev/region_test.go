//go:build cgo && linux

package kdev

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// registry is a module that answers what a test says to those who register memory.
type registry struct {
	over
	answer syscall.Errno
	limit  uint64 // of locked memory
	got    []uapi.Register
	ended  []uint32
	moved  []uapi.Op // the first of each submission
}

func (r *registry) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	switch number {
	case uapi.IOCRegister:
		u := (*uapi.Register)(argument)
		r.got = append(r.got, *u)
		u.Region = uint32(len(r.got))
		return r.answer
	case uapi.IOCSubmit:
		r.moved = append(r.moved, **(**uapi.Op)(unsafe.Pointer(&(*uapi.Submit)(argument).Ops)))
	case uapi.IOCUnregister:
		r.ended = append(r.ended, (*uapi.Unregister)(argument).Region)
		return syscall.ENOENT // it was unmapped: nobody need know
	}
	errno := r.over.ioctl(number, argument)
	if number == uapi.IOCInfo && errno == 0 {
		i := (*uapi.Info)(argument)
		i.MemlockLimit, i.MemlockUsed = r.limit, 4096
	}
	return errno
}

func newRegistry(t *testing.T) (*registry, *Device) {
	t.Helper()
	r := &registry{over: over{newModule(t).open()}, limit: 1 << 20}
	dev := openOn(t, r, "")
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return r, dev
}

// TestRegister: what becomes a region is the module's to pin, and given back with it.
func TestRegister(t *testing.T) {
	r, dev := newRegistry(t)
	mem := make([]byte, 100)
	at := uint64(uintptr(unsafe.Pointer(&mem[0])))
	region, err := dev.Register(mem)
	require.NoError(t, err)
	require.Equal(t, []uapi.Register{{Size: 64, Address: at, Length: 100}}, r.got)
	require.NoError(t, region.Close())
	require.NoError(t, region.Close())
	require.Equal(t, []uint32{1}, r.ended)
}

// TestTransfersNameTheRegion: by its handle and an offset; other memory by its address.
func TestTransfersNameTheRegion(t *testing.T) {
	r, dev := newRegistry(t)
	ch, ctx := target(t, dev, "sink"), patience(t)
	_, err := dev.Alloc(100)
	require.NoError(t, err)
	region, err := dev.Alloc(100)
	require.NoError(t, err)
	require.ErrorIs(t, ch.SendInd(ctx, region.Bytes()[7:]), bridge.ErrInvalid, "the module behind knows none")
	last := r.moved[len(r.moved)-1]
	require.Equal(t, [3]uint64{2, 7, 0}, [3]uint64{uint64(last.Region), last.Offset, last.Address})
	require.NoError(t, ch.SendInd(ctx, make([]byte, 100)))
	last = r.moved[len(r.moved)-1]
	require.Zero(t, last.Region)
	require.NotZero(t, last.Address)
}

// TestRegisterRefused: each errno of the module is one error, and no region is left.
func TestRegisterRefused(t *testing.T) {
	r, dev := newRegistry(t)
	for errno, want := range map[syscall.Errno]error{
		syscall.EFAULT: bridge.ErrDMA, syscall.EIO: bridge.ErrDMA,
		syscall.ENOSPC: bridge.ErrNoMemory, syscall.ENOMEM: bridge.ErrNoMemory,
		syscall.ENODEV: bridge.ErrDeviceLost, syscall.EINVAL: bridge.ErrInvalid, syscall.EACCES: bridge.ErrInvalid,
		syscall.EBUSY: bridge.ErrBusy,
	} {
		r.answer = errno
		_, err := dev.Alloc(1 << 21)
		require.ErrorIs(t, err, want, errno)
		require.Zero(t, dev.Stats().Regions)
	}
	r.answer = syscall.ENOMEM
	_, err := dev.Alloc(1 << 21)
	require.ErrorContains(t, err, "ulimit -l")
	_, err = dev.Alloc(100)
	require.NotContains(t, err.Error(), "ulimit -l", "it was not the limit")
}

// TestImport: a dma-buf is a region by its descriptor, under addresses that show its bytes.
func TestImport(t *testing.T) {
	const size = 3 * abi.PageSize
	r, dev := newRegistry(t)
	fd, err := unix.MemfdCreate("buffer", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, size))
	region, err := dev.Import(fd)
	require.NoError(t, err)
	require.Len(t, region.Bytes(), size)
	require.Equal(t, []uapi.Register{{Size: 64, Flags: uapi.RegionDMABuf, Length: size, FD: int32(fd)}}, r.got)
	region.Bytes()[5] = 7
	var b [1]byte
	_, err = unix.Pread(fd, b[:], 5)
	require.NoError(t, err)
	require.Equal(t, byte(7), b[0])
	require.Equal(t, uint64(size), dev.Stats().RegionBytes)
	require.NoError(t, region.Close())
	require.Equal(t, []uint32{1}, r.ended)
}

// TestImportOfNoBuffer: a file that is no dma-buf is refused, by the library or the module.
func TestImportOfNoBuffer(t *testing.T) {
	r, dev := newRegistry(t)
	var way [2]int
	require.NoError(t, unix.Pipe2(way[:], unix.O_CLOEXEC))
	defer unix.Close(way[0])
	defer unix.Close(way[1])
	for _, fd := range []int{-1, 1 << 20, way[0]} {
		_, err := dev.Import(fd)
		require.ErrorIs(t, err, bridge.ErrInvalid)
	}
	require.Empty(t, r.got)
	fd, err := unix.MemfdCreate("file", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	_, err = dev.Import(fd)
	require.ErrorIs(t, err, bridge.ErrInvalid, "of no bytes")
	require.NoError(t, unix.Ftruncate(fd, 4096))
	r.answer = syscall.EOPNOTSUPP
	_, err = dev.Import(fd)
	require.ErrorIs(t, err, bridge.ErrNotSupported, "a module in a process imports none")
	r.answer = syscall.EINVAL
	_, err = dev.Import(fd)
	require.ErrorIs(t, err, bridge.ErrInvalid)
	require.ErrorContains(t, err, "is no dma-buf")
	_, err = dev.Alloc(100)
	require.ErrorContains(t, err, "at most 64 GiB")
	require.Zero(t, dev.Stats().Regions)
}
