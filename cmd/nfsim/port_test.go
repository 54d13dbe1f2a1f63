//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// machine is a PCI device with a client that stands in for a driver in user
// space: it is the port of the host mailbox manager. A bus address is a virtual
// address of this process, which the device reaches by messages.
type machine struct {
	*vfioclient.Client
	*server
	served sync.WaitGroup
	stop   func()
	bar    []byte // BAR 2
	bell   *os.File
	died   atomic.Bool
}

var _ mailbox.Port = (*machine)(nil)

// selfMemory is this process's memory, by the kernel's hand: an address that
// makes no sense is an error, not a crash.
type selfMemory struct{}

func (selfMemory) move(p []byte, address uint64,
	call func(int, []unix.Iovec, []unix.RemoteIovec, uint) (int, error)) error {
	local := []unix.Iovec{{Base: &p[0], Len: uint64(len(p))}}
	remote := []unix.RemoteIovec{{Base: uintptr(address), Len: len(p)}}
	n, err := call(os.Getpid(), local, remote, 0)
	if err == nil && n != len(p) {
		err = unix.EFAULT
	}
	return err
}

func (s selfMemory) ReadAt(p []byte, address uint64) error {
	return s.move(p, address, unix.ProcessVMReadv)
}

func (s selfMemory) WriteAt(p []byte, address uint64) error {
	return s.move(p, address, unix.ProcessVMWritev)
}

// attach makes a device from a command line and a client of it.
func attach(t testing.TB, flags ...string) *machine {
	t.Helper()
	o := &options{}
	root := newRoot()
	root.ResetFlags()
	o.define(root)
	err := root.ParseFlags(flags)
	require.NoError(t, err)
	m := &machine{}
	m.server, err = newServer(o, slog.New(slog.DiscardHandler), -1, func() { m.died.Store(true) })
	require.NoError(t, err)
	client, server, err := vfioclient.Pair()
	require.NoError(t, err)
	conn := vfiouser.NewConn(server, m.device, m.log)
	m.stop, err = m.device.ServeDMA(conn)
	require.NoError(t, err)
	m.served.Go(func() { _ = conn.Serve() }) // ends with the client
	m.Client = vfioclient.New(client, selfMemory{})
	_, err = m.Version()
	require.NoError(t, err)
	return m
}

// detach hangs up and ends the device.
func (m *machine) detach() error {
	err := m.Client.Close()
	m.served.Wait()
	m.stop()
	m.device.Close()
	if m.bar != nil {
		err = errors.Join(err, unix.Munmap(m.bar))
	}
	if m.bell != nil {
		err = errors.Join(err, m.bell.Close())
	}
	return err
}

// enable does what a driver's probe does: bus mastering, memory, an interrupt,
// the mailboxes.
func (m *machine) enable() error {
	if err := m.Write(vfiouser.RegionConfig, 4, vfioclient.Words(uint16(6))); err != nil {
		return err
	}
	size, _, file, err := m.Region(pci.BarMailboxes)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	m.bar, err = unix.Mmap(file, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map BAR 2: %w", err)
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	m.bell = os.NewFile(uintptr(fd), "interrupt")
	if err := m.SetIRQs(vfioclient.IRQEventfd, 0, 1, nil, fd); err != nil {
		return err
	}
	return m.MapDMA(1<<16, 1<<47-1<<16, 0, vfioclient.Readable|vfioclient.Writable, -1)
}

// control writes CONTROL and waits for BUSY to clear.
func (m *machine) control(v uint32) error {
	if err := m.Write32(pci.BarRegisters, pci.RegControl, v); err != nil {
		return err
	}
	for {
		status, err := m.Read32(pci.BarRegisters, pci.RegStatus)
		switch {
		case err != nil:
			return err
		case status == ^uint32(0):
			return fmt.Errorf("registers read as ones: %w", bridge.ErrDeviceLost)
		case status&pci.StatusBusy == 0:
			return nil
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// Area returns the mapped BAR, as far as the device uses it.
func (m *machine) Area() (unsafe.Pointer, uint64) {
	base := unsafe.Pointer(&m.bar[0])
	return base, (*wire.Area)(base).Size
}

// Ring writes an island's doorbell register.
func (m *machine) Ring(island int) {
	_ = m.PostWrite(pci.BarRegisters, pci.RegDoorbell+4*uint64(island), vfioclient.Words(uint32(1)))
}

// Yield gives way to the device's threads.
func (m *machine) Yield() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Doorbell returns the eventfd of the only vector.
func (m *machine) Doorbell() *os.File { return m.bell }

// Assist does nothing: the device moves its own bytes.
func (m *machine) Assist() bool { return false }

// Map returns the address of the memory in this process: the device reads and writes it there.
func (m *machine) Map(data []byte) (uint64, error) {
	return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))), nil
}

// Unmap has nothing to end.
func (m *machine) Unmap(uint64, uint64) {}

// Fence quiesces the device.
func (m *machine) Fence() { _ = m.control(pci.ControlQuiesce) }

// Restart resets the device; the shape stays in its registers.
func (m *machine) Restart(context.Context) error {
	if err := m.control(pci.ControlReset); err != nil {
		return err
	}
	status, err := m.Read32(pci.BarRegisters, pci.RegShapeStatus)
	if err != nil {
		return err
	}
	return bridge.Error(abi.Status(status))
}

// Close ends client and device.
func (m *machine) Close() error { return m.detach() }

// wordsOf returns memory as words.
func wordsOf(mem []byte) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/8)
}

// wakeIsland wakes the first island, if it sleeps: the low half of its word is a futex.
func wakeIsland(area []byte) {
	word := &(*wire.Area)(unsafe.Pointer(unsafe.SliceData(area))).Island[0].Word
	_, _, _ = unix.Syscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), 1, 1)
}
