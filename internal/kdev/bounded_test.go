//go:build cgo

package kdev_test

import (
	"context"
	"testing"
	"time"

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
		Waits: waits,
	})
}

// waits: the close of the module's file gives its channels back.
var waits = append([]string{"Device.Close"}, beside.Waits...)

// lost: the module is closed with the file, and waits a second for a process that computes, as does a reset.
const lost = beside.Lost + 2*time.Second

// TestBoundedByLoss: with the usual heartbeat the calls that need an answer of the device end, too.
func TestBoundedByLoss(t *testing.T) {
	computing := beside.Computing(t)
	for name, enter := range map[string]func([]*beside.World) func(){
		"computing": computing, "resetting": beside.Resetting(computing), "closing": beside.Closing(computing),
		"full": beside.Full(0, beside.Serving), "full and computing": beside.Full(1, computing),
	} {
		t.Run(name, func(t *testing.T) {
			beside.Bounded(t, beside.Bounds{
				Open: func(ctx context.Context) (*beside.World, error) {
					return beside.OpenDevice(ctx, "umod:?slots=16&microengines=1&contexts=16", "Fabric", "Listener")
				},
				At: 32, Enter: enter, Waits: waits, Lost: lost,
			})
		})
	}
}
