package fault

import "unsafe"

const (
	// aroundLeast is the least size that bypasses the caches. Smaller copies stay in the caches,
	// where the reader finds them sooner.
	aroundLeast = 32 << 10
	lineSize    = 64
)

// storeAround copies n bytes, whole lines and at least one, to where a line starts.
//
//go:noescape
func storeAround(to, from *byte, n uintptr)

// copyAround copies to where a line starts. A plain store to a line that another processor has waits
// for it, one line after the other; stores around the caches do not wait.
func copyAround(to, from []byte) {
	if len(from) < aroundLeast {
		copy(to, from)
		return
	}
	n := len(from) &^ (lineSize - 1)
	storeAround(unsafe.SliceData(to), unsafe.SliceData(from), uintptr(n))
	copy(to[n:], from[n:])
}
