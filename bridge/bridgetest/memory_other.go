//go:build !linux

package bridgetest

import "testing"

// BadMemory is for systems on which the suite can make such memory.
func BadMemory(t *testing.T, kind string, _, _ int) []byte {
	t.Helper()
	t.Fatalf("memory that is bad by %s needs Linux", kind)
	return nil
}
