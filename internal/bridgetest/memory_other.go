//go:build !linux

package bridgetest

import (
	"errors"
	"testing"
)

// BadMemory is for systems on which the suite can make such memory.
func BadMemory(t *testing.T, kind string, _, _ int) []byte {
	t.Helper()
	t.Fatalf("memory that is bad by %s needs Linux", kind)
	return nil
}

const (
	noAccess  = 0
	readWrite = 3
)

func protect([]byte, int) error { return errors.ErrUnsupported }

func mapMemory(int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapMemory([]byte) error { return nil }
