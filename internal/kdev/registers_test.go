//go:build cgo

package kdev

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/kdev/debugapi"
)

// registers are those of a card whose module is played: one BAR of 4 KiB.
type registers struct {
	mu     sync.Mutex // guards what follows
	word   map[uint64]uint64
	count  uint64 // interrupts of vector 0
	off    bool   // vector 0 is
	old    bool   // the module switches no vector
	refuse syscall.Errno
	waits  chan struct{} // takes a token for each wait, where there is room
}

// ioctl answers as kmod/nfcm_access.c does.
func (r *registers) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.refuse != 0:
		return r.refuse
	case number == debugapi.IOCAccess:
		return r.access((*debugapi.Access)(argument))
	default:
		return r.interrupt((*debugapi.Interrupt)(argument))
	}
}

func (r *registers) access(a *debugapi.Access) syscall.Errno {
	switch {
	case a.Size != debugapi.AccessSizeFirst || a.Width != 4:
		return syscall.EINVAL
	case a.BAR != 0 || a.Offset >= 4096:
		return syscall.ERANGE
	case a.Flags == debugapi.AccessWrite && a.Offset == 0x14:
		return syscall.EADDRINUSE
	case a.Flags == debugapi.AccessWrite:
		r.word[a.Offset] = a.Value
	default:
		a.Value = r.word[a.Offset]
	}
	return 0
}

func (r *registers) interrupt(w *debugapi.Interrupt) syscall.Errno {
	if w.Size != debugapi.InterruptSizeFirst || w.Vector > 0 || w.TimeoutMS > debugapi.InterruptMSMax || r.old && w.Flags != 0 {
		return syscall.EINVAL
	}
	if w.Flags != 0 {
		r.off = w.Flags == debugapi.InterruptOff
		return 0
	}
	came := r.count > w.Count
	w.Count = r.count
	if came {
		return 0
	}
	if w.TimeoutMS > 0 { // what time it takes is no matter
		select {
		case r.waits <- struct{}{}:
		default:
		}
	}
	return syscall.ETIMEDOUT
}

// fire is an interrupt.
func (r *registers) fire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
}

// carded is a module whose device is a card with registers.
func carded(t *testing.T) (*fakeModule, *registers) {
	m := newModule(t)
	m.dir = sysfsOf(t, map[string]string{"resource": emulated})
	m.registers = &registers{word: map[uint64]uint64{0: 0x314d434e}, waits: make(chan struct{}, 1)}
	return m, m.registers
}

func TestRegisters(t *testing.T) {
	m, _ := carded(t)
	dev := opened(t, m)
	id, err := dev.Peek(0, 0, 4)
	require.NoError(t, err)
	require.EqualValues(t, 0x314d434e, id)
	require.NoError(t, dev.Poke(0, 0x100, 4, math.MaxUint32))
	got, err := dev.Peek(0, 0x100, 4)
	require.NoError(t, err)
	require.EqualValues(t, math.MaxUint32, got)
}

// TestRegistersRefuse: each way in which a register cannot be reached is one clear error.
func TestRegistersRefuse(t *testing.T) {
	m, r := carded(t)
	dev := opened(t, m)
	peek := func(bar int, offset uint64, width int) error { _, err := dev.Peek(bar, offset, width); return err }
	wait := func(vector int) error { _, err := dev.WaitInterrupt(t.Context(), vector, 0); return err }
	refused := func(errno syscall.Errno) error {
		r.refuse = errno
		defer func() { r.refuse = 0 }()
		return peek(0, 0, 4)
	}
	for _, c := range []struct {
		err  error
		is   error
		says string
	}{
		{peek(0, 0, 3), bridge.ErrInvalid, "width of 3 bytes, want 4 or 8: invalid argument"},
		{peek(0, 0, 0), bridge.ErrInvalid, "width of 0 bytes, want 4 or 8: invalid argument"},
		{peek(0, 2, 4), bridge.ErrInvalid, "offset 0x2 is no multiple of 4: invalid argument"},
		{peek(0, 0, 8), bridge.ErrInvalid, "8 bytes at 0x0 of bar 0: invalid argument: its registers have 4 bytes"},
		{peek(0, 4096, 4), bridge.ErrRange, "4 bytes at 0x1000 of bar 0: outside device memory: it has 4096 bytes"},
		{peek(3, 0, 4), bridge.ErrRange, "4 bytes at 0x0 of bar 3: outside device memory: the card has no such memory"},
		{peek(4, 0, 4), bridge.ErrRange, "4 bytes at 0x0 of bar 4: outside device memory: the card has no such memory"},
		{peek(configSpace, 0, 4), bridge.ErrNotSupported, "configuration space: not supported"},
		{peek(7, 0, 4), bridge.ErrRange, "bar 7: outside device memory: bars are 0 to 5"},
		{peek(-1, 0, 4), bridge.ErrRange, "bar -1: outside device memory: bars are 0 to 5"},
		{dev.Poke(0, 0x14, 4, 1), bridge.ErrBusy, "0x14 of bar 0: in use: the driver writes it, and counts on it"},
		{dev.Poke(0, 0x100, 4, 1<<32), bridge.ErrInvalid, "0x100000000 has more than 4 bytes: invalid argument"},
		{wait(1), bridge.ErrInvalid, "vector 1 of 1: invalid argument"},
		{wait(-1), bridge.ErrInvalid, "vector -1 of 1: invalid argument"},
		{refused(syscall.EPERM), fs.ErrPermission, "operation not permitted: registers need CAP_SYS_ADMIN, and a kernel that is not locked down"},
		{refused(syscall.EOPNOTSUPP), bridge.ErrNotSupported, "not supported: register access is off: load the module with register_access=1, " +
			"or write 1 to register_access of the device in /sys/class/nfcomms"},
		{refused(syscall.ENOTTY), bridge.ErrNotSupported, "not supported: the module has no register access"},
		{refused(syscall.EBUSY), bridge.ErrBusy, "in use: the device is being reset, or sleeps"},
		{refused(syscall.ENODEV), bridge.ErrDeviceLost, "device lost: removed"},
	} {
		require.ErrorIs(t, c.err, c.is)
		require.EqualError(t, c.err, c.says)
		require.Empty(t, bridgetest.Stutter("peek dev:0: "+c.err.Error()))
	}
	require.NoError(t, dev.Close())
	require.ErrorIs(t, peek(0, 0, 4), bridge.ErrClosed)
	require.ErrorIs(t, wait(0), bridge.ErrClosed)
}

// TestConfigSpace: it is read in words by the kernel's file, which a user without rights has less of.
func TestConfigSpace(t *testing.T) {
	m, _ := carded(t)
	file := filepath.Join(m.dir, "device", "config")
	require.NoError(t, os.WriteFile(file, []byte("4\x12FN\x06\x04\x10\x00"), 0o600))
	dev := opened(t, m)
	for offset, want := range map[uint64]uint64{0: 0x4e461234, 4: 0x100406} {
		got, err := dev.Peek(configSpace, offset, 4)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	peek := func(offset uint64, width int) error {
		_, err := dev.Peek(configSpace, offset, width)
		return err
	}
	require.ErrorIs(t, peek(0, 8), bridge.ErrInvalid)
	require.ErrorIs(t, peek(2, 4), bridge.ErrInvalid)
	require.EqualError(t, peek(8, 4), "4 bytes at 0x8 of configuration space: outside device memory")
	require.ErrorIs(t, peek(math.MaxUint64-3, 4), bridge.ErrRange)
	require.EqualError(t, dev.Poke(configSpace, 4, 4, 0), "configuration space: in use: the kernel writes it")
	require.NoError(t, os.Truncate(file, 6))
	require.ErrorIs(t, peek(4, 4), fs.ErrPermission, "less can be read than there is")
	require.NoError(t, dev.Close())
	require.ErrorIs(t, peek(0, 4), bridge.ErrClosed)
}

func TestSwitchInterrupt(t *testing.T) {
	m, r := carded(t)
	dev := opened(t, m)
	for _, on := range []bool{false, true} {
		require.NoError(t, dev.SwitchInterrupt(0, on))
		require.Equal(t, !on, r.off)
	}
	require.ErrorIs(t, dev.SwitchInterrupt(1, false), bridge.ErrInvalid)
	require.ErrorIs(t, dev.SwitchInterrupt(-1, false), bridge.ErrInvalid)
	r.old = true
	require.ErrorIs(t, dev.SwitchInterrupt(0, false), bridge.ErrNotSupported)
}

func TestWaitInterrupt(t *testing.T) {
	m, r := carded(t)
	dev := opened(t, m)
	r.fire()
	before, err := dev.Interrupts(0)
	require.NoError(t, err)
	require.EqualValues(t, 1, before)
	go func() {
		<-r.waits
		r.fire()
	}()
	count, err := dev.WaitInterrupt(patience(t), 0, before)
	require.NoError(t, err)
	require.EqualValues(t, 2, count)
	count, err = dev.WaitInterrupt(patience(t), 0, before)
	require.NoError(t, err, "one that came before the wait")
	require.EqualValues(t, 2, count)

	ctx, cancel := context.WithCancel(patience(t))
	go func() {
		<-r.waits
		cancel()
	}()
	count, err = dev.WaitInterrupt(ctx, 0, count)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 2, count)
	go func() {
		<-r.waits
		_ = dev.Close()
	}()
	_, err = dev.WaitInterrupt(patience(t), 0, count)
	require.ErrorIs(t, err, bridge.ErrClosed)
}

// TestModuleWithoutRegisters: the module that is played over "sim:" has none.
func TestModuleWithoutRegisters(t *testing.T) {
	_, err := opened(t, newModule(t)).Peek(0, 0, 4)
	require.ErrorIs(t, err, bridge.ErrNotSupported)
}
