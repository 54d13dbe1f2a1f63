package kdev

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/debugapi"
)

var _ bridge.RegisterAccess = (*Device)(nil)

// configSpace stands in place of a bar for the card's configuration space.
const configSpace = barsMax

// interruptSlice is how long the module waits at a stretch: a context or a Close that ends
// a wait is seen when it is over.
const interruptSlice = 100 * time.Millisecond

// Peek reads a register. See bridge.RegisterAccess.
func (d *Device) Peek(bar int, offset uint64, width int) (uint64, error) {
	if bar == configSpace {
		return d.peekConfig(offset, width)
	}
	return d.access(bar, offset, width, 0, 0)
}

// Poke writes a register. See bridge.RegisterAccess.
func (d *Device) Poke(bar int, offset uint64, width int, value uint64) error {
	if width == 4 && value > math.MaxUint32 {
		return fmt.Errorf("%#x has more than 4 bytes: %w", value, bridge.ErrInvalid)
	}
	_, err := d.access(bar, offset, width, debugapi.AccessWrite, value)
	return err
}

// access makes one access and returns the value that was read or written.
func (d *Device) access(bar int, offset uint64, width int, flags uint32, value uint64) (uint64, error) {
	switch {
	case width != 4 && width != 8:
		return 0, fmt.Errorf("width of %d bytes, want 4 or 8: %w", width, bridge.ErrInvalid)
	case offset%uint64(width) != 0:
		return 0, fmt.Errorf("offset %#x is no multiple of %d: %w", offset, width, bridge.ErrInvalid)
	case bar == configSpace:
		return 0, fmt.Errorf("configuration space: %w: the kernel writes it", bridge.ErrBusy)
	case bar < 0 || bar >= barsMax:
		return 0, fmt.Errorf("bar %d: %w: bars are 0 to %d", bar, bridge.ErrRange, barsMax-1)
	}
	a := debugapi.Access{Flags: flags, BAR: uint32(bar), Width: uint32(width), Offset: offset, Value: value}
	a.Size = uint32(unsafe.Sizeof(a))
	if errno := d.debug(debugapi.IOCAccess, unsafe.Pointer(&a)); errno != 0 {
		return 0, d.accessErr(&a, errno)
	}
	return a.Value, nil
}

// peekConfig reads the configuration space by the kernel's file of it, which has 64 bytes for users
// without CAP_SYS_ADMIN.
func (d *Device) peekConfig(offset uint64, width int) (uint64, error) {
	switch {
	case width != 4 || offset%4 != 0:
		return 0, fmt.Errorf("%d bytes at %#x of configuration space: %w: want 4, at a multiple of 4", width, offset, bridge.ErrInvalid)
	case d.shutErr() != nil:
		return 0, d.shutErr()
	}
	f, err := os.Open(filepath.Join(d.k.sysfs(), "device", "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("configuration space: %w", bridge.ErrNotSupported)
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var word [4]byte
	switch _, err = f.ReadAt(word[:], int64(min(offset, math.MaxInt32))); {
	case err == nil:
		return uint64(binary.LittleEndian.Uint32(word[:])), nil
	case !errors.Is(err, io.EOF):
		return 0, fmt.Errorf("read configuration space: %w", err)
	}
	all, err := f.Stat()
	if err == nil && offset < uint64(all.Size()) {
		return 0, debugErr(syscall.EPERM)
	}
	return 0, fmt.Errorf("4 bytes at %#x of configuration space: %w", offset, bridge.ErrRange)
}

// debug makes a call on the node of the registers, while the device is open.
func (d *Device) debug(number uintptr, argument unsafe.Pointer) syscall.Errno {
	if d.gate.enter() != 0 {
		return syscall.EBADF
	}
	defer d.gate.leave()
	return d.k.registers(number, argument)
}

// accessErr returns why a register cannot be reached.
func (d *Device) accessErr(a *debugapi.Access, errno syscall.Errno) error {
	switch errno {
	case syscall.ERANGE:
		return fmt.Errorf("%d bytes at %#x of bar %d: %w: %s", a.Width, a.Offset, a.BAR, bridge.ErrRange, d.barText(int(a.BAR)))
	case syscall.EADDRINUSE:
		return fmt.Errorf("%#x of bar %d: %w: the driver writes it, and counts on it", a.Offset, a.BAR, bridge.ErrBusy)
	case syscall.EINVAL:
		return fmt.Errorf("%d bytes at %#x of bar %d: %w: its registers have 4 bytes", a.Width, a.Offset, a.BAR, bridge.ErrInvalid)
	}
	return debugErr(errno)
}

// barText says what there is of a bar.
func (d *Device) barText(bar int) string {
	if board := d.info.Load().Board; board != nil {
		for _, b := range board.Bars {
			if b.Number == bar && b.Kind != bridge.BarIO {
				return fmt.Sprintf("it has %d bytes", b.Size)
			}
		}
	}
	return "the card has no such memory"
}

// debugErr returns why the module does not let a caller past it.
func debugErr(errno syscall.Errno) error {
	switch errno {
	case syscall.EPERM, syscall.EACCES:
		return fmt.Errorf("%w: registers need CAP_SYS_ADMIN, and a kernel that is not locked down", errno)
	case syscall.EOPNOTSUPP:
		return fmt.Errorf("%w: register access is off: load the module with register_access=1, "+
			"or write 1 to register_access of the device in /sys/class/nfcomms", bridge.ErrNotSupported)
	case syscall.ENOTTY:
		return fmt.Errorf("%w: the module has no register access", bridge.ErrNotSupported)
	case syscall.EBUSY:
		return fmt.Errorf("%w: the device is being reset, or sleeps", bridge.ErrBusy)
	case syscall.ENODEV:
		return errRemoved
	case syscall.EBADF:
		return errDeviceClosed
	}
	return fmt.Errorf("reach registers: %w", errno)
}

// Interrupts counts the interrupts of a vector. See bridge.RegisterAccess.
func (d *Device) Interrupts(vector int) (uint64, error) {
	count, _, err := d.interrupt(debugapi.Interrupt{Count: math.MaxUint64}, vector)
	return count, err
}

// WaitInterrupt waits for an interrupt. See bridge.RegisterAccess.
func (d *Device) WaitInterrupt(ctx context.Context, vector int, after uint64) (uint64, error) {
	for {
		count, came, err := d.interrupt(debugapi.Interrupt{TimeoutMS: uint32(interruptSlice.Milliseconds()), Count: after}, vector)
		switch {
		case err != nil || came:
			return count, err
		case ctx.Err() != nil:
			return count, fmt.Errorf("no interrupt of vector %d: %w", vector, ctx.Err())
		case d.shutErr() != nil:
			return count, d.shutErr()
		}
	}
}

// SwitchInterrupt switches a vector. See bridge.RegisterAccess.
func (d *Device) SwitchInterrupt(vector int, on bool) error {
	w := debugapi.Interrupt{Flags: debugapi.InterruptOff}
	if on {
		w.Flags = debugapi.InterruptOn
	}
	_, _, err := d.interrupt(w, vector)
	if board := d.info.Load().Board; errors.Is(err, bridge.ErrInvalid) && vector >= 0 && board != nil && vector < board.Vectors {
		return fmt.Errorf("vector %d: %w: the module switches none", vector, bridge.ErrNotSupported)
	}
	return err
}

// interrupt waits for more interrupts of a vector, or switches it, as w has it.
func (d *Device) interrupt(w debugapi.Interrupt, vector int) (count uint64, came bool, err error) {
	if vector < 0 || vector > math.MaxUint16 {
		return 0, false, d.vectorErr(vector)
	}
	w.Size, w.Vector = uint32(unsafe.Sizeof(w)), uint32(vector)
	switch errno := d.debug(debugapi.IOCInterrupt, unsafe.Pointer(&w)); errno {
	case 0:
		return w.Count, true, nil
	case syscall.ETIMEDOUT:
		return w.Count, false, nil
	case syscall.EINVAL:
		return 0, false, d.vectorErr(vector)
	default:
		return 0, false, debugErr(errno)
	}
}

// vectorErr returns the error of a vector that is not in use.
func (d *Device) vectorErr(vector int) error {
	if board := d.info.Load().Board; board != nil {
		return fmt.Errorf("vector %d of %d: %w", vector, board.Vectors, bridge.ErrInvalid)
	}
	return fmt.Errorf("vector %d: %w", vector, bridge.ErrInvalid)
}
