//go:build linux

package arena

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// Shared maps all of a file that keeps its size: no access can meet its end.
func Shared(file int) ([]byte, error) {
	size, err := shmwire.SizeOf(file)
	if err == nil && (size == 0 || size%abi.PageSize != 0) {
		err = fmt.Errorf("%d bytes are no whole pages", size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bridge.ErrInvalid, err)
	}
	at, err := MapFile(file, 0, nil, size, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bridge.ErrNoMemory, err)
	}
	return unsafe.Slice((*byte)(at), size), nil
}

// Share makes a file of another known to the device. Over a
// restart of the device it is made known anew, as other memory.
func (m *Arenas) Share(file int) ([]byte, error) {
	fd, err := unix.FcntlInt(uintptr(file), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", bridge.ErrNoMemory, err)
	}
	mem, err := Shared(fd)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return m.show(&arena{base: unsafe.Pointer(unsafe.SliceData(mem)), fd: fd, size: uint64(len(mem)), shared: true})
}

// show makes memory known to the device that is dealt out as a whole.
func (m *Arenas) show(a *arena) ([]byte, error) {
	a.free, a.used = nil, int(a.size/abi.PageSize)
	a.fresh = a.used
	err := m.place(a)
	for announced := false; err == nil && !announced; {
		announced, err = m.announce(a)
	}
	if err != nil {
		return nil, err
	}
	return a.bytes(0, int(a.size)), nil
}

// Unshare ends that: the device reaches it no more.
func (m *Arenas) Unshare(mem []byte) { m.Free(mem) }
