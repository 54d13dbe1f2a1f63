package shmwire

import (
	"errors"
	"fmt"
	"io"
	"syscall"
)

// Of linux/fcntl.h.
const (
	addSeals = 1033
	getSeals = 1034
	sealed   = 0x1 | 0x2 | 0x4 // no more seals, no shrinking, no growing
)

var errUnsealed = errors.New("memory that may change its size")

// Seal makes a memfd keep its size for ever.
func Seal(fd int) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), addSeals, sealed); errno != 0 {
		return fmt.Errorf("seal memory: %w", errno)
	}
	return nil
}

// SizeOf returns the size of a memfd that keeps it: then no access within it kills the
// process because the other side cut it off. Anything else is an error.
func SizeOf(fd int) (uint64, error) {
	seals, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), getSeals, 0)
	if errno != 0 || seals&sealed != sealed {
		return 0, errUnsealed
	}
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("size of memory: %w", err)
	}
	return uint64(max(st.Size, 0)), nil
}

// CheckMemory returns an error unless a descriptor is a memfd of so many bytes that keeps its
// size.
func CheckMemory(fd int, size uint64) error {
	is, err := SizeOf(fd)
	if err == nil && is != size {
		err = fmt.Errorf("memory of %d bytes in place of %d: %w", is, size, syscall.EINVAL)
	}
	return err
}

// memoryMost bounds what ReadMemory reads: the state of the largest fabric has 13 MiB.
const memoryMost = 16 << 20

// ReadMemory reads what is in a memfd of so many bytes.
func ReadMemory(fd int, size uint64) ([]byte, error) {
	if size > memoryMost {
		return nil, fmt.Errorf("%w: %d bytes", ErrForeign, size)
	}
	if err := CheckMemory(fd, size); err != nil {
		return nil, err
	}
	data := make([]byte, size)
	for done := 0; done < len(data); {
		n, err := syscall.Pread(fd, data[done:], int64(done))
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return nil, fmt.Errorf("read memory: %w", err)
		}
		done += max(n, 0)
	}
	return data, nil
}
