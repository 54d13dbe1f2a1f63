//go:build cgo

package kdev_test

import (
	"testing"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBeside: every method of a device behind the module may be called beside every other one.
func TestBeside(t *testing.T) { beside.Device(t, "umod:?beat=10ms", 150, "Fabric", "Listener") }
