//go:build cgo

package nfcomms_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/beside"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
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

// TestTraceIsBounded: a tracer that asks the device for its time returns soon after its context has ended.
func TestTraceIsBounded(t *testing.T) {
	e := bridgetest.NewEnv(t)
	dev, err := nfcomms.Open(e.Ctx(), "sim:?beat=60s")
	require.NoError(t, err)
	defer dev.Close()
	leave := beside.Computing(t)([]*beside.World{{Objects: []beside.Object{{Name: "Device", Value: dev}}}})
	defer leave()
	start := func() error {
		ctx, cancel := context.WithTimeout(e.Ctx(), time.Millisecond)
		defer cancel()
		tracer, err := trace.Start(ctx, dev, trace.Options{})
		if err == nil {
			tracer.Close()
		}
		return err
	}
	for err == nil { // the program may not keep its island yet
		err = e.Wait(bridgetest.Call("trace", start))
	}
	require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
}
