//go:build cgo

// Command umod is libnfcomms-umod.so, which libnfcomms loads for devices that need no
// kernel module: internal/kdev/umod over the back ends, for C. Built with -buildmode=c-shared.
//
// Results are 0 or a negative errno. Callers block signals (kmod/lib/umod.c).
package main

/*
#include <stdint.h>
*/
import "C"

import (
	"context"
	"errors"
	"io/fs"
	"runtime/cgo"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/kdev/umod"
	_ "github.com/nfcomms/nfcomms/internal/shm" // devices to open
	_ "github.com/nfcomms/nfcomms/internal/sim"
	_ "github.com/nfcomms/nfcomms/internal/vfio"
)

// openTime bounds how long a device process may take to say what it is.
const openTime = 10 * time.Second

// device is an open device with the one file that C has of it.
type device struct {
	module *umod.Module
	file   *umod.File
}

func at(handle C.uintptr_t) *device { return cgo.Handle(handle).Value().(*device) }

// nfcomms_umod_open opens a device. events is a descriptor that polls as readable while
// there are completions; it is the caller's, to be closed after the device.
//
//export nfcomms_umod_open
func nfcomms_umod_open(address *C.char, handle *C.uintptr_t, events *C.int) C.int {
	ctx, cancel := context.WithTimeout(context.Background(), openTime)
	defer cancel()
	dev, err := bridge.Open(ctx, C.GoString(address), nil)
	if err != nil {
		return -C.int(openErrno(err))
	}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		dev.Close()
		return -C.int(openErrno(err))
	}
	d := &device{module: umod.New(dev, umod.Options{})}
	d.file = d.module.Open(func(yes bool) { signal(fd, yes) })
	*handle, *events = C.uintptr_t(cgo.NewHandle(d)), C.int(fd)
	return 0
}

// signal makes a descriptor readable, or not readable.
func signal(fd int, yes bool) {
	one := [8]byte{1}
	if yes {
		_, _ = unix.Write(fd, one[:]) // fails only when 2^64 are in it
	} else {
		_, _ = unix.Read(fd, one[:])
	}
}

// openErrno returns the errno of why a device does not open.
func openErrno(err error) syscall.Errno {
	var errno syscall.Errno
	status, known := bridge.StatusOf(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return syscall.ETIMEDOUT
	case errors.Is(err, bridge.ErrScheme), errors.Is(err, bridge.ErrOption):
		return syscall.EINVAL
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	case known:
		code, _ := bridge.CodeOf(status)
		return code.Errno
	default:
		return syscall.EIO
	}
}

// nfcomms_umod_ioctl makes an ioctl of kmod/uapi, but for CALL.
//
//export nfcomms_umod_ioctl
func nfcomms_umod_ioctl(handle C.uintptr_t, number C.ulong, argument unsafe.Pointer) C.int {
	return -C.int(at(handle).file.Ioctl(uintptr(number), argument))
}

// nfcomms_umod_call makes an operation. If it is not over, wait becomes a descriptor
// that polls as readable when it is, which the caller closes then.
//
//export nfcomms_umod_call
func nfcomms_umod_call(handle C.uintptr_t, op, completion unsafe.Pointer, wait *C.int) C.int {
	return -C.int(at(handle).file.Call((*uapi.Op)(op), (*uapi.Completion)(completion), later(wait)))
}

// later returns the function that makes the descriptor of a call that is not over.
func later(wait *C.int) func() (over func(), errno syscall.Errno) {
	return func() (func(), syscall.Errno) {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		if err != nil {
			return nil, openErrno(err)
		}
		*wait = C.int(fd)
		return func() { signal(fd, true) }, 0
	}
}

// nfcomms_umod_meet makes a call of a host that meets others, see umod.Meeting. wait is as of
// nfcomms_umod_call.
//
//export nfcomms_umod_meet
func nfcomms_umod_meet(handle C.uintptr_t, meeting unsafe.Pointer, name *C.char, completion unsafe.Pointer, wait *C.int) C.int {
	return -C.int(at(handle).file.Meet((*umod.Meeting)(meeting), C.GoString(name), (*uapi.Completion)(completion), later(wait)))
}

// nfcomms_umod_take_back ends a call early, if that can be.
//
//export nfcomms_umod_take_back
func nfcomms_umod_take_back(handle C.uintptr_t, completion unsafe.Pointer) {
	at(handle).file.TakeBack((*uapi.Completion)(completion))
}

// nfcomms_umod_take stores completions that are there and returns how many.
//
//export nfcomms_umod_take
func nfcomms_umod_take(handle C.uintptr_t, to unsafe.Pointer, count C.uint) C.uint {
	return C.uint(at(handle).file.Take(unsafe.Slice((*uapi.Completion)(to), count)))
}

// nfcomms_umod_close closes a device and ends everything of it.
//
//export nfcomms_umod_close
func nfcomms_umod_close(handle C.uintptr_t) {
	_ = at(handle).module.Close() // a process that computes is left to itself: S34
	cgo.Handle(handle).Delete()
}

func main() {}
