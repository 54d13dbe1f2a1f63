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

// Share makes a file of another known to the device. Over a restart of the device it is made known
// anew, as other memory.
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

// Make makes memory of a file of its own and known to the device, until Drop. It is nobody else's before
// Reveal.
func (m *Arenas) Make(size int) ([]byte, error) {
	a, err := newFile(uint64(pagesOf(size)) * abi.PageSize)
	if err != nil {
		return nil, fmt.Errorf("%d bytes of shared memory: %w: %w", size, bridge.ErrNoMemory, err)
	}
	return m.show(a)
}

// Reveal returns a descriptor of memory of Make for others, which is the caller's.
func (m *Arenas) Reveal(mem []byte) (fd int, err error) {
	fd, _, err = m.File(mem)
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, _ := m.holderLocked(mem); a != nil {
		a.shared = true
	}
	return fd, err
}

// Adopt is Share of a file of another process, that may be here already: then it is not mapped once
// more. A file of huge pages is refused: where there are none, an access ends the process.
func (m *Arenas) Adopt(file int) ([]byte, error) {
	var system unix.Statfs_t
	if unix.Fstatfs(file, &system) != nil || system.Type != unix.TMPFS_MAGIC {
		return nil, fmt.Errorf("not a file of shared memory: %w", bridge.ErrInvalid)
	}
	var is, known unix.Stat_t
	if err := unix.Fstat(file, &is); err != nil {
		return nil, os.NewSyscallError("fstat", err)
	}
	m.mu.Lock()
	for _, a := range m.list {
		if a.shared && unix.Fstat(a.fd, &known) == nil && known.Dev == is.Dev && known.Ino == is.Ino {
			defer m.mu.Unlock()
			return a.bytes(0, int(a.size)), nil
		}
	}
	m.mu.Unlock()
	return m.Share(file)
}

// Drop is Unshare. If wipe, the system has the pages after the first back, also where others map them.
func (m *Arenas) Drop(mem []byte, wipe bool) {
	if wipe && len(mem) > abi.PageSize {
		m.mu.Lock()
		if a, _ := m.holderLocked(mem); a != nil {
			const hole = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
			_ = unix.Fallocate(a.fd, hole, abi.PageSize, int64(a.size)-abi.PageSize) // else they go with the last mapping
		}
		m.mu.Unlock()
	}
	m.Free(mem)
}

// Unshare ends that: the device reaches it no more.
func (m *Arenas) Unshare(mem []byte) { m.Free(mem) }
