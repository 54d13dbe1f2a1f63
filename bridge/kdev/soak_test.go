package kdev

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/bridgetest"
)

var faults = flag.Int("faults", 2000, "faults that TestSoak provokes")

// TestSoak is that of package sim, over a fake module. A campaign is -faults
// 100000.
func TestSoak(t *testing.T) {
	require.NotNil(t, fake, "build with CGO_ENABLED=1")
	bridgetest.Soak(t, fake, *faults)
}
