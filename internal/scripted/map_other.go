//go:build !linux

package scripted

import (
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// mapMemory returns zeroed memory that begins at a page.
func mapMemory(size uint64) ([]byte, error) {
	mem := make([]byte, size+abi.PageSize)
	skip := -uintptr(unsafe.Pointer(&mem[0])) % abi.PageSize
	return mem[skip : uint64(skip)+size : uint64(skip)+size], nil
}

func unmap([]byte) {}
