//go:build linux

package shm

import "unsafe"

const (
	// giveLeast is the least that goes around the caches: less stays in them, where it is
	// found sooner.
	giveLeast = 32 << 10
	lineSize  = 64
)

// storeAround copies n bytes, whole lines and at least one, to where a line starts.
//
//go:noescape
func storeAround(to, from *byte, n uintptr)

// give copies bytes that another processor reads next, and this one does not, to where a line
// starts. A store to a line that another processor has waits for it, one line after the other;
// stores around the caches do not wait.
func give(to, from []byte) {
	if len(from) < giveLeast {
		copy(to, from)
		return
	}
	n := len(from) &^ (lineSize - 1)
	storeAround(unsafe.SliceData(to), unsafe.SliceData(from), uintptr(n))
	copy(to[n:], from[n:])
}
