//go:build !linux

package region

import (
	"fmt"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// pagesMax bounds what is taken from Go's heap, in bytes: 64 GiB.
const pagesMax = 1 << 36

// Pages returns size bytes of zeroed memory that start on a page; FreePages takes
// them back. ErrNoMemory where there is not that much.
func Pages(size int) ([]byte, error) {
	if int64(size) > pagesMax {
		return nil, fmt.Errorf("%d bytes of memory on this host: %w", size, bridge.ErrNoMemory)
	}
	b := make([]byte, size+abi.PageSize)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (abi.PageSize - 1)
	return b[skip : skip+size : skip+size], nil
}

// Discard leaves what Pages returned to the garbage collector. False: it may not be used again.
func Discard([]byte) bool { return false }

// FreePages leaves what Pages returned to the garbage collector.
func FreePages([]byte) {}
