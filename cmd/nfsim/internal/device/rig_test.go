//go:build cgo

package device_test

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/pci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a device with a client.
type rig struct {
	*vfioclient.Client
	t      testing.TB
	dev    *device.Device
	booted atomic.Pointer[device.Shape]
}

// newRig makes a device of 16 MiB with three vectors. change may be nil.
func newRig(t testing.TB, change func(o *device.Options)) *rig {
	t.Helper()
	r := &rig{t: t}
	o := device.Options{
		AreaSize: 16 << 20, Vectors: 3, Map: true, Logger: slog.New(slog.DiscardHandler),
		Boot: func(bus *firmware.Bus, sh device.Shape, epoch uint32, _ <-chan struct{}) (device.Instance, abi.Status) {
			r.booted.Store(&sh)
			instance, status := firmware.Start(firmware.Config{
				Bus: bus, Epoch: epoch, LogFD: -1, HostRings: 1, Beat: 10 * time.Millisecond,
				Channels: int(sh.Channels), Managers: int(sh.Mailboxes), Islands: int(sh.Islands),
				Slots: int(sh.Slots), Window: int(sh.Window), TargetTimeout: sh.TargetTimeout,
				Memory: [abi.MemoryCount]uint64{abi.EMEM: sh.EMEM},
			})
			if status != abi.OK {
				return nil, status
			}
			return instance, abi.OK
		},
	}
	if change != nil {
		change(&o)
	}
	var err error
	r.dev, err = device.New(o)
	require.NoError(t, err)
	client, server, err := vfioclient.Pair()
	require.NoError(t, err)
	conn := vfiouser.NewConn(server, r.dev, o.Logger)
	var served sync.WaitGroup
	served.Go(func() { _ = conn.Serve() })
	r.Client = vfioclient.New(client, nil)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		served.Wait()
		r.dev.Close()
	})
	_, err = r.Version()
	require.NoError(t, err)
	return r
}

func (r *rig) reg(at uint64) uint32 {
	r.t.Helper()
	v, err := r.Read32(pci.BarRegisters, at)
	require.NoError(r.t, err)
	return v
}

func (r *rig) setReg(at uint64, v uint32) {
	r.t.Helper()
	require.NoError(r.t, r.Write32(pci.BarRegisters, at, v))
}

// control writes CONTROL and waits for BUSY to clear.
func (r *rig) control(v uint32) {
	r.t.Helper()
	r.setReg(pci.RegControl, v)
	r.until("not busy", func() bool { return r.reg(pci.RegStatus)&pci.StatusBusy == 0 })
}

// boot makes the device a bus master and starts an epoch.
func (r *rig) boot() {
	r.t.Helper()
	r.command(6)
	r.control(pci.ControlReset)
	require.Zero(r.t, r.reg(pci.RegShapeStatus))
}

// command writes the command register of config space.
func (r *rig) command(v uint16) {
	r.t.Helper()
	require.NoError(r.t, r.Write(vfiouser.RegionConfig, 4, vfioclient.Words(v)))
}

// until waits for something that must happen.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !cond(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			require.FailNow(r.t, "never: "+what)
		}
	}
}

// vector gives a vector an eventfd.
func (r *rig) vector(v uint32) *os.File {
	r.t.Helper()
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	require.NoError(r.t, err)
	f := os.NewFile(uintptr(fd), "vector")
	r.t.Cleanup(func() { f.Close() })
	require.NoError(r.t, r.SetIRQs(vfioclient.IRQEventfd, v, 1, nil, fd))
	return f
}

// fired waits for an interrupt and returns how many were joined in it.
func (r *rig) fired(f *os.File) uint64 {
	r.t.Helper()
	var b [8]byte
	require.NoError(r.t, f.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err := f.Read(b[:])
	require.NoError(r.t, err)
	return uint64(b[0]) | uint64(b[1])<<8
}

// bootAndBeat boots the device and has the host beat for a while. It returns the status then, a time before the
// last beat, and the longest time between two beats, or between one and either end.
func (r *rig) bootAndBeat(bell *os.File, d time.Duration) (status uint32, last time.Time, longest time.Duration) {
	last = time.Now()
	r.boot()
	r.fired(bell)
	r.until("ready", func() bool { return r.reg(pci.RegStatus)&pci.StatusBusy == 0 }) // the interrupt may be an old one
	for end := time.Now().Add(d); last.Before(end); time.Sleep(20 * time.Millisecond) {
		begin := time.Now()
		r.setReg(pci.RegHostBeat, 1)
		last, longest = begin, max(longest, time.Since(last))
	}
	status = r.reg(pci.RegStatus)
	return status, last, max(longest, time.Since(last))
}

// silent requires that no interrupt is there.
func (r *rig) silent(f *os.File) {
	r.t.Helper()
	var b [8]byte
	require.NoError(r.t, f.SetReadDeadline(time.Now().Add(time.Millisecond)))
	_, err := f.Read(b[:])
	require.ErrorIs(r.t, err, os.ErrDeadlineExceeded)
}

// memfd makes memory of a file, mapped here.
func memfd(t testing.TB, size int, sealed bool) (fd int, mem []byte) {
	t.Helper()
	fd, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	require.NoError(t, unix.Ftruncate(fd, int64(size)))
	if sealed {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW)
		require.NoError(t, err)
	}
	mem, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
	return fd, mem
}
