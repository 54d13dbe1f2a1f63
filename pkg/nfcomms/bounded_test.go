//go:build cgo

package nfcomms_test

import (
	"context"
	"testing"

	"github.com/nfcomms/nfcomms/internal/beside"
)

// TestBoundedByLoss: with the usual heartbeat the calls that need an answer of the device end, too.
func TestBoundedByLoss(t *testing.T) {
	computing := beside.Computing(t)
	for name, enter := range map[string]func([]*beside.World) func(){
		"computing": computing, "full": beside.Full(0, beside.Serving), "full and computing": beside.Full(1, computing),
	} {
		t.Run(name, func(t *testing.T) {
			beside.Bounded(t, beside.Bounds{
				Open: func(ctx context.Context) (*beside.World, error) {
					return beside.OpenDevice(ctx, "sim:?slots=16&microengines=1&contexts=16", "Fabric")
				},
				At: 32, Enter: enter, Waits: beside.Waits, Lost: beside.Lost,
			})
		})
	}
}

// TestBounded: every call ends soon after its context while a process of the device computes, whose
// heartbeat is overdue after five minutes only.
func TestBounded(t *testing.T) {
	computing := beside.Computing(t)
	for name, enter := range map[string]func([]*beside.World) func(){
		"computing": computing, "resetting": beside.Resetting(computing), "closing": beside.Closing(computing),
	} {
		t.Run(name, func(t *testing.T) {
			beside.Bounded(t, beside.Bounds{
				Open: func(ctx context.Context) (*beside.World, error) {
					return beside.OpenDevice(ctx, "sim:?beat=60s", "Fabric")
				},
				At:    8,
				Enter: enter,
				Waits: beside.Waits,
			})
		})
	}
}
