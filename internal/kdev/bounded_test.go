//go:build cgo

package kdev_test

import (
	"context"
	"testing"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBounded: every call of a device behind the module ends soon after its context while a process of
// the device computes.
func TestBounded(t *testing.T) {
	beside.Bounded(t, beside.Bounds{
		Open: func(ctx context.Context) (*beside.World, error) {
			return beside.OpenDevice(ctx, "umod:?beat=60s", "Fabric", "Listener")
		},
		At:    8,
		Enter: beside.Computing(t),
		Waits: append([]string{"Device.Close"}, beside.Waits...), // of the module's file, which gives its channels back
	})
}
