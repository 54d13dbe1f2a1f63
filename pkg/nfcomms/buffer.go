package nfcomms

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

const (
	pageSize = abi.PageSize
	// pooled buffers are of 2^i pages, i < poolClasses: up to 64 MiB.
	poolClasses = 15
	// maxLent bounds what lend allocates, in bytes: 64 GiB.
	maxLent = 1 << 36
)

// pools keep buffers that are not in use, by the logarithm of their pages. The
// garbage collector empties them.
var pools [poolClasses]sync.Pool

// buffer is page-aligned memory that the framework lends for one call.
type buffer struct {
	mem   []byte
	class int
}

// lend returns a buffer of size bytes with arbitrary contents. ErrSize for a
// negative size, ErrTooLarge for one no buffer can have.
func lend(size int) (*buffer, error) {
	switch {
	case size < 0:
		return nil, fmt.Errorf("size %d is negative: %w", size, ErrSize)
	case size > maxLent:
		return nil, fmt.Errorf("a buffer of %d bytes, at most %d: %w", size, uint64(maxLent), ErrTooLarge)
	}
	class := bits.Len(uint(max(size, 1)-1) / pageSize)
	if class >= poolClasses {
		return &buffer{mem: pages(size), class: class}, nil
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
	}
}
