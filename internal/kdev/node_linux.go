//go:build amd64 || arm64 || riscv64

package kdev

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
)

// node is an open device node. Reads wait in the runtime's poller; ioctls run
// under the file's own reference, so that a close cannot hand the descriptor's
// number to another file meanwhile.
type node struct {
	file  *os.File
	raw   syscall.RawConn
	calls sync.Pool // of *request
}

// request is one ioctl. It is used again: a closure would be garbage.
type request struct {
	number   uintptr
	argument unsafe.Pointer
	errno    syscall.Errno
	run      func(fd uintptr)
}

var _ kernel = (*node)(nil)

// openNode opens a device node, or says what is missing.
func openNode(path string) (kernel, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, openErr(path, err)
	}
	file := os.NewFile(uintptr(fd), path)
	// A file that is no device of ours need not be pollable; INFO reports it better.
	if err := file.SetReadDeadline(time.Time{}); errors.Is(err, os.ErrNoDeadline) {
		file.Close()
		return nil, fmt.Errorf("%s is no device of the module nfcomms: %w: %w", path, bridge.ErrInvalid, unix.ENOTTY)
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &node{file: file, raw: raw, calls: sync.Pool{New: newRequest}}, nil
}

// openErr returns what to do about a node that does not open.
func openErr(path string, err error) error {
	const load = "load it with \"modprobe nfcomms\", or start a virtual machine with a device by \"make vm\""
	err = fmt.Errorf("%s: %w", path, err)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("%w: join the group nfcomms-dev (\"usermod -aG nfcomms-dev USER\", then log in again)", err)
	case !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENODEV):
		return err
	}
	err = missing{err}
	if _, loaded := os.Stat("/sys/module/nfcomms"); loaded == nil {
		return fmt.Errorf("%w: the module nfcomms is there and has no such device: see \"ls /dev/nfcomms*\" and \"dmesg\"", err)
	}
	return fmt.Errorf("%w: the module nfcomms is not loaded: %s", err, load)
}

// missing is the error of a node without a device, whatever the kernel calls it.
type missing struct{ error }

func (m missing) Unwrap() error        { return m.error }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

func newRequest() any {
	r := new(request)
	r.run = func(fd uintptr) {
		for {
			_, _, r.errno = unix.Syscall(unix.SYS_IOCTL, fd, r.number, uintptr(r.argument))
			if r.errno != unix.EINTR {
				return
			}
		}
	}
	return r
}

func (n *node) ioctl(number uintptr, argument unsafe.Pointer) syscall.Errno {
	r := n.calls.Get().(*request)
	r.number, r.argument = number, argument
	if n.raw.Control(r.run) != nil {
		r.errno = unix.EBADF
	}
	errno := r.errno
	r.argument = nil
	n.calls.Put(r)
	return errno
}

func (n *node) read(to []uapi.Completion) (int, error) {
	const size = int(unsafe.Sizeof(to[0]))
	count, err := n.file.Read(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(to))), len(to)*size))
	if errors.Is(err, io.EOF) {
		err = unix.ENODEV
	}
	return count / size, err
}

// sysfs finds the folder by the node's number: its name may be any.
func (n *node) sysfs() string {
	var s unix.Stat_t
	if n.raw.Control(func(fd uintptr) { _ = unix.Fstat(int(fd), &s) }) != nil || s.Rdev == 0 {
		return ""
	}
	return fmt.Sprintf("/sys/dev/char/%d:%d", unix.Major(s.Rdev), unix.Minor(s.Rdev))
}

func (n *node) close() error { return n.file.Close() }
