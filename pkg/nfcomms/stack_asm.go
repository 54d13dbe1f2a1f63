//go:build amd64 || arm64

package nfcomms

// stackBounds returns the lowest address of the calling goroutine's stack and
// the one after its highest.
func stackBounds() (low, high uintptr)
