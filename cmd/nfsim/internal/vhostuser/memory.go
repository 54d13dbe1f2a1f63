package vhostuser

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// region is a piece of guest memory.
type region struct {
	guest, user  uint64 // addresses: physical, and of the client's own
	size, offset uint64
	file         int
}

// memory is what the guest shared. Its files are read and written, not mapped: a
// client that cuts one off must not take this process along.
type memory []region

func (m memory) close() {
	for _, r := range m {
		_ = unix.Close(r.file) // what was written is in memory
	}
}

// find returns the file of a piece of memory and the offset there.
func (m memory) find(address, size uint64, start func(region) uint64) (file int, at int64, err error) {
	for _, r := range m {
		if from := address - start(r); address >= start(r) && from <= r.size && size <= r.size-from {
			return r.file, int64(r.offset + from), nil
		}
	}
	return -1, 0, malformed("%d bytes at %#x, which is no guest memory", size, address)
}

func byGuest(r region) uint64 { return r.guest }
func byUser(r region) uint64  { return r.user }

// read fills p from a guest physical address.
func (m memory) read(address uint64, p []byte) error {
	file, at, err := m.find(address, uint64(len(p)), byGuest)
	if err != nil {
		return err
	}
	return all(unix.Pread, file, p, at)
}

// write puts p at a guest physical address.
func (m memory) write(address uint64, p []byte) error {
	file, at, err := m.find(address, uint64(len(p)), byGuest)
	if err != nil {
		return err
	}
	return all(unix.Pwrite, file, p, at)
}

// all moves the whole of p. A file that ends too early is the client's fault.
func all(move func(int, []byte, int64) (int, error), file int, p []byte, at int64) error {
	for len(p) > 0 {
		n, err := move(file, p, at)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("guest memory at %#x: %w", at, err)
		case n == 0:
			return malformed("guest memory ends at %#x of its file", at)
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}
