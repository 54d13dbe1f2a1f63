package scripted

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapMemory returns zeroed memory that begins at a page and costs nothing until it is touched.
func mapMemory(size uint64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	return mem, nil
}

func unmap(mem []byte) { _ = unix.Munmap(mem) }
