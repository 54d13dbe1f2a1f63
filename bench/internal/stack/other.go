//go:build !unix

package stack

// mapMemory returns nothing: this system has no mmap.
func mapMemory(int) ([]byte, func() error, error) { return nil, nil, nil }
