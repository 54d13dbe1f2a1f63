package kdev

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

var (
	errDeviceClosed = fmt.Errorf("device %w", bridge.ErrClosed)
	errPeerClosed   = fmt.Errorf("%w by the device", bridge.ErrClosed)
	errRemoved      = fmt.Errorf("%w: removed", bridge.ErrDeviceLost)
)

// shutErr returns why the device takes no more calls.
func (d *Device) shutErr() error {
	if d.gate.why() != 0 {
		return errDeviceClosed
	}
	return nil
}

// statusErr returns the error of a device status. The first that says that the
// device is out of use is logged.
func (d *Device) statusErr(s abi.Status) error {
	err := bridge.Error(s)
	if (s == abi.ErrFault || s == abi.ErrReset) && !d.out.Swap(true) {
		d.log.Error("device out of use until reset", "address", d.where.address, "err", err)
	}
	return err
}

// outcome returns what a completion means that belongs to no channel. cause is
// why the call gave up, nil if it did not.
func (d *Device) outcome(o *op, cause error) error {
	status := abi.Status(min(o.got.Status, uint32(abi.StatusCount)))
	switch {
	case o.got.Error != 0:
		return d.refused(o, syscall.Errno(o.got.Error))
	case (status == abi.ErrWithdrawn || status == abi.ErrAborted) && cause != nil:
		return cause
	default:
		return d.statusErr(status)
	}
}

// refused returns what an errno of the module means for an operation. The
// errno can be found in it.
func (d *Device) refused(o *op, errno syscall.Errno) error {
	size := o.raw.Length
	if o.raw.Address == 0 && o.raw.Region == 0 {
		size = 0
	}
	switch errno {
	case syscall.ESTALE:
		return bridge.ErrReset
	case syscall.ENODEV:
		return errRemoved
	case syscall.EFAULT:
		return fmt.Errorf("%w: %d bytes at %#x: %w", bridge.ErrDMA, size, o.raw.Address, errno)
	case syscall.ENOMEM:
		return d.memoryErr(o, size, errno)
	case syscall.ENOENT:
		return fmt.Errorf("%w: memory of the region was unmapped: %w", bridge.ErrInvalid, errno)
	case syscall.EPERM:
		return fmt.Errorf("%w: it brings code into the device, or starts a program that may keep it, and needs CAP_SYS_ADMIN", errno)
	case syscall.EDQUOT:
		return fmt.Errorf("%w: the device was lost three times in ten minutes beside processes of this user: %w", bridge.ErrBusy, errno)
	case syscall.EACCES:
		return fmt.Errorf("%w: the device node is open to read only", errno)
	case syscall.EAGAIN:
		return fmt.Errorf("%w: too many operations in flight: %w", bridge.ErrNoMemory, errno)
	default:
		return fmt.Errorf("%w: %w", bridge.ErrInvalid, errno)
	}
}

// memoryErr tells apart a process that may not pin that much and a machine that
// is short of memory.
func (d *Device) memoryErr(o *op, size uint64, errno syscall.Errno) error {
	var i uapi.Info
	i.Size = uint32(unsafe.Sizeof(i))
	if d.ioctl(uapi.IOCInfo, unsafe.Pointer(&i)) != 0 || size == 0 {
		return fmt.Errorf("%w: %w", bridge.ErrNoMemory, errno)
	}
	limit := i.MemlockLimit
	if o.got.Limit != 0 {
		limit = o.got.Limit
	} else if limit != 0 { // it was not the limit
		return fmt.Errorf("pin %d bytes: %w: %w", size, bridge.ErrNoMemory, errno)
	}
	return lockedErr(size, &i, limit, errno)
}

// lockedErr says how to raise the limit of locked memory.
func lockedErr(size uint64, i *uapi.Info, limit uint64, errno syscall.Errno) error {
	return fmt.Errorf("pin %d bytes beside %d that are pinned: the limit of locked memory is %d bytes (RLIMIT_MEMLOCK): "+
		"raise it with \"ulimit -l\", in /etc/security/limits.d, with LimitMEMLOCK= of a systemd unit, or give CAP_IPC_LOCK: %w: %w",
		size, i.MemlockUsed, limit, bridge.ErrNoMemory, errno)
}

// resetErr returns why a reset failed.
func resetErr(errno syscall.Errno) error {
	switch errno {
	case syscall.EPERM, syscall.EACCES:
		return fmt.Errorf("%w: it ends what others do with the device and needs CAP_SYS_ADMIN", errno)
	case syscall.EINVAL:
		return fmt.Errorf("%w: the device cannot take this shape: %w", bridge.ErrInvalid, errno)
	case syscall.E2BIG:
		return fmt.Errorf("%w: the mailboxes of this shape do not fit the device: %w", bridge.ErrTooLarge, errno)
	case syscall.ENODEV:
		return errRemoved
	default:
		return fmt.Errorf("%w: %w", bridge.ErrDeviceLost, errno)
	}
}

// infoErr returns why a node does not say what it is.
func (d *Device) infoErr(errno syscall.Errno) error {
	switch errno {
	case syscall.ENOTTY:
		return fmt.Errorf("%s is no device of the module nfcomms: %w: %w", d.where.node, bridge.ErrInvalid, errno)
	case syscall.ENODEV:
		return errRemoved
	default:
		return fmt.Errorf("describe device: %w", errno)
	}
}

// stateErr returns what a state other than ready means for a caller.
func stateErr(s uapi.State) error {
	switch s {
	case uapi.StateReady:
		return nil
	case uapi.StateFault:
		return bridge.ErrFault
	case uapi.StateRemoved:
		return errRemoved
	case uapi.StateResetting:
		return bridge.ErrReset
	default:
		return bridge.ErrDeviceLost
	}
}

// isGone reports whether an error says that there is nothing left to close.
func isGone(err error) bool {
	return errors.Is(err, bridge.ErrDeviceLost) || errors.Is(err, bridge.ErrFault) || errors.Is(err, bridge.ErrClosed)
}
