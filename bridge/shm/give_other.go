//go:build linux && !amd64

package shm

// give copies bytes that another processor reads next.
func give(to, from []byte) { copy(to, from) }
