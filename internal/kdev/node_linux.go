//go:build amd64 || arm64 || riscv64

package kdev

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

	mu   sync.Mutex // guards what follows
	card *os.File   // the node of the registers, from the first call on
	shut bool
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

// ioctl makes one call, again where a signal interrupted it.
func ioctl(fd, number uintptr, argument unsafe.Pointer) syscall.Errno {
	for {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, number, uintptr(argument)); errno != unix.EINTR {
			return errno
		}
	}
}

func newRequest() any {
	r := new(request)
	r.run = func(fd uintptr) { r.errno = ioctl(fd, r.number, r.argument) }
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

func (n *node) read(to []uapi.Record) (int, error) {
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

// openCard opens the node of the registers, which has the number of the device's own.
func (n *node) openCard() (*os.File, syscall.Errno) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.shut:
		return nil, unix.EBADF
	case n.card != nil:
		return n.card, 0
	}
	device, err := filepath.EvalSymlinks(n.sysfs())
	if err != nil {
		return nil, unix.ENOTTY
	}
	number := strings.TrimPrefix(filepath.Base(device), filepath.Base(nodePrefix))
	fd, err := unix.Open(nodePrefix+"_registers"+number, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		n.card = os.NewFile(uintptr(fd), "registers")
		return n.card, 0
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return nil, unix.ENOTTY
	default:
		return nil, err.(syscall.Errno) //nolint:errorlint,forcetypeassert // of open
	}
}

func (n *node) registers(number uintptr, argument unsafe.Pointer) syscall.Errno {
	card, errno := n.openCard()
	if errno != 0 {
		return errno
	}
	raw, err := card.SyscallConn()
	if err != nil {
		return unix.EBADF
	}
	if raw.Control(func(fd uintptr) { errno = ioctl(fd, number, argument) }) != nil {
		return unix.EBADF
	}
	return errno
}

func (n *node) close() error {
	n.mu.Lock()
	n.shut = true
	if n.card != nil {
		_ = n.card.Close()
	}
	n.mu.Unlock()
	return n.file.Close()
}
