package nfcomms

import (
	"fmt"
	"math/bits"
	"slices"
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

// mapped are the buffers too large for a pool that are not in use. Their memory is the system's,
// because Go's heap ends the process where it cannot grow. It stays mapped, as a caller that kept
// it past its call would end the process otherwise; its pages are given back to the system meanwhile.
var mapped struct {
	sync.Mutex
	free []*buffer
}

// buffer is page-aligned memory of the framework, for one call.
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
		return takeMapped(size, class)
	}
	b, ok := pools[class].Get().(*buffer)
	if !ok {
		b = &buffer{mem: pages(pageSize << class), class: class}
	}
	b.mem = b.mem[:size]
	return b, nil
}

// takeMapped is takeBuffer of what is too large for a pool: the smallest mapping that is free and
// large enough, or a new one. That is of 2^class pages where the host has as many, so that calls of
// growing sizes leave few of them.
func takeMapped(size, class int) (*buffer, error) {
	mapped.Lock()
	best := -1
	for i, b := range mapped.free {
		if cap(b.mem) >= size && (best < 0 || cap(b.mem) < cap(mapped.free[best].mem)) {
			best = i
		}
	}
	if best >= 0 {
		b := mapped.free[best]
		mapped.free = slices.Delete(mapped.free, best, best+1)
		mapped.Unlock()
		b.mem = b.mem[:size]
		return b, nil
	}
	mapped.Unlock()
	mem, err := region.Pages(pageSize << class)
	if err != nil {
		mem, err = region.Pages(size)
	}
	if err != nil {
		return nil, err
	}
	return &buffer{mem: mem[:size], class: class}, nil
}

// release takes a buffer back. Its memory may be another call's afterwards.
func (b *buffer) release() {
	if b.class < poolClasses {
		pools[b.class].Put(b)
		return
	}
	if b.mem = b.mem[:cap(b.mem)]; region.Discard(b.mem) {
		mapped.Lock()
		defer mapped.Unlock()
		mapped.free = append(mapped.free, b)
	}
}
