//go:build linux

package kdev

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pattern"
)

var dmaBufs = flag.Bool("dmabuf", false, "memory of an emulated processor is a dma-buf, by the kernel's udmabuf")

// udmabufCreate is UDMABUF_CREATE of linux/udmabuf.h.
const udmabufCreate = 0x40187542

// dmaBuf makes a dma-buf of a file of memory, which may not shrink.
func dmaBuf(t *testing.T, file *os.File, size int) (fd int) {
	maker, err := os.OpenFile("/dev/udmabuf", os.O_RDWR, 0)
	require.NoError(t, err)
	defer maker.Close()
	_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK)
	require.NoError(t, err)
	args := struct {
		memfd, flags uint32
		offset, size uint64
	}{memfd: uint32(file.Fd()), size: uint64(size)}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, maker.Fd(), udmabufCreate, uintptr(unsafe.Pointer(&args)))
	require.Zero(t, errno)
	return int(n)
}

// farMemory returns memory of an emulated processor: a file, which this process reads and writes by
// calls, and the region by which the device reaches it in place.
func farMemory(t *testing.T, dev bridge.Device, size int) (file *os.File, region bridge.Region) {
	fd, err := unix.MemfdCreate("far", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	file = os.NewFile(uintptr(fd), "far")
	t.Cleanup(func() { _ = file.Close() })
	require.NoError(t, file.Truncate(int64(size)))
	if *dmaBufs {
		fd = dmaBuf(t, file, size)
		region, err = dev.(bridge.Importer).Import(fd)
		require.NoError(t, unix.Close(fd))
	} else {
		var mem []byte
		mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Munmap(mem) })
		region, err = dev.Register(mem)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, region.Close()) })
	return file, region
}

// farDevice opens a device itself where it is to import: the pool's does not.
func farDevice(t *testing.T) bridge.Device {
	if !*dmaBufs {
		return opener(t)(t, "")
	}
	address, _, _ := strings.Cut(*devices, ",")
	dev, err := bridge.Open(t.Context(), address, nil)
	require.NoError(t, err)
	return dev
}

// TestFarMemory: transfers of another processor's memory, in place and staged, bring its bytes there and
// back. The log has the median of the times.
func TestFarMemory(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev := farDevice(t)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	ctx, ch := e.Ctx(), e.Ports(dev, "loopback", 1)[0]
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		file, region := farMemory(t, dev, size)
		bounce, sent, got, nothing := make([]byte, size), make([]byte, size), make([]byte, size), make([]byte, size)
		write := func(data []byte) { _, err := file.WriteAt(data, 0); require.NoError(t, err) }
		read := func(data []byte) { _, err := file.ReadAt(data, 0); require.NoError(t, err) }
		for _, way := range []struct {
			name          string
			mem           []byte
			before, after func([]byte)
		}{
			{"in place", region.Bytes(), func([]byte) {}, func([]byte) {}},
			{"staged", bounce, read, write},
		} {
			var times [2][]time.Duration
			timed := func(i int, do func()) {
				start := time.Now()
				do()
				times[i] = append(times[i], time.Since(start))
			}
			for round := range uint64(15) {
				pattern.Fill(sent, 0, round)
				write(sent)
				timed(0, func() { way.before(way.mem); require.NoError(t, ch.SendInd(ctx, way.mem)) })
				write(nothing)
				timed(1, func() { require.NoError(t, ch.ReceiveInd(ctx, way.mem)); way.after(way.mem) })
				read(got)
				require.Equal(t, sent, got)
			}
			slices.Sort(times[0])
			slices.Sort(times[1])
			t.Logf("%d bytes %s: %v there, %v back", size, way.name, times[0][7], times[1][7])
		}
	}
}
