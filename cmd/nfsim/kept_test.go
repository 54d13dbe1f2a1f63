//go:build cgo

package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// TestKeptIsland: a program that does not give its island back is cut off from
// the mailboxes by a reset; the next epoch, in the same BAR, has nothing of it,
// also when the program still runs.
func TestKeptIsland(t *testing.T) {
	m := attach(t, "--beat", "10ms", "--lone", "1")
	dev := m.open(t)
	ctx := context.Background()
	if _, err := dev.Start(ctx, bridge.Program{Name: "lone.spin", Targets: 1, Argument: 4000}); err != nil {
		requireNamed(t, err) // the island may stop before it can say that it started
	}
	require.NoError(t, dev.Reset(ctx))
	require.EqualValues(t, 2, dev.Info().Epoch)
	for m.device.Epochs() < 4 {
		require.NoError(t, talk(t, dev, newGuarded(50_000), newGuarded(50_000), long))
		require.NoError(t, dev.Reset(ctx))
	}
	require.NoError(t, talk(t, dev, newGuarded(50_000), newGuarded(50_000), long))
}
