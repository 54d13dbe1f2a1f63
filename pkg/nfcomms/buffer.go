package nfcomms

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/region"
)

const (
	pageSize = abi.PageSize
	// pooled buffers are of 2^i pages, i < poolClasses: up to 64 MiB.
	poolClasses = 15
)

// pools keep buffers that are not in use, by the logarithm of their pages. The
// garbage collector empties them.
var pools [poolClasses]sync.Pool

// buffer is page-aligned memory of the framework, for one call. What is
// too large for a pool is mapped, because Go's heap ends the process where it
// cannot grow.
type buffer struct {
	mem   []byte
	class int
}

// takeBuffer returns a buffer of size bytes with arbitrary contents. ErrSize for a
// negative size, ErrNoMemory where the host has not that much.
func takeBuffer(size int) (*buffer, error) {
	if size < 0 {
		return nil, fmt.Errorf("size %d is negative: %w", size, ErrSize)
	}
	class := bits.Len(uint(max(size, 1)-1) / pageSize)
	if class >= poolClasses {
		mem, err := region.Pages(size)
		if err != nil {
			return nil, err
		}
		return &buffer{mem: mem, class: class}, nil
	}
	b, ok := pools[class].Get().(*buffer)
	if !ok {
		b = &buffer{mem: pages(pageSize << class), class: class}
	}
	b.mem = b.mem[:size]
	return b, nil
}

// release takes a buffer back. Nobody may use its memory afterwards.
func (b *buffer) release() {
	if b.class < poolClasses {
		pools[b.class].Put(b)
		return
	}
	region.FreePages(b.mem)
}
