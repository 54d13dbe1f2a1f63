//go:build unix

package stack

import (
	"fmt"
	"syscall"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
)

// mapMemory returns memory that no page was written of, and what gives it back.
func mapMemory(size int) ([]byte, func() error, error) {
	mem, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("map %s: %w", cli.SizeText(size), err)
	}
	return mem, func() error { return syscall.Munmap(mem) }, nil
}
