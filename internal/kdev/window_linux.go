package kdev

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
)

// window returns addresses for the bytes of a dma-buf: the bytes themselves where a process
// can see them, else nothing but addresses. free gives them back.
func window(fd int) (mem []byte, free func([]byte), err error) {
	size, err := unix.Seek(fd, 0, unix.SEEK_END)
	if err != nil || size <= 0 || size > math.MaxInt {
		return nil, nil, fmt.Errorf("descriptor %d is no dma-buf: %w: %w", fd, bridge.ErrInvalid, cause(err))
	}
	mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		mem, err = unix.Mmap(-1, 0, int(size), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("addresses for %d bytes: %w: %w", size, bridge.ErrNoMemory, err)
	}
	return mem, func(mem []byte) { _ = unix.Munmap(mem) }, nil
}

// cause returns why a descriptor has no size.
func cause(err error) error {
	if err == nil {
		return unix.EINVAL
	}
	return err
}
