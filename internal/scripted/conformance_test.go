package scripted

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/spectest"
)

// TestConformance runs the suite against a scripted device that behaves: host and
// device, both in Go. The device also checks every message of the host. It
// allocates in this very process, so allocations cannot be counted; and its
// programs wait at each port by itself, so none continues with another's message.
func TestConformance(t *testing.T) {
	bridgetest.Run(t, openScripted, "stats/allocations", "try/arm-again")
}

// TestConformanceOfRuns runs the rules about transfers with lists of runs.
func TestConformanceOfRuns(t *testing.T) {
	bridgetest.RunTransfers(t, func(t *testing.T, options string) bridge.Device {
		dev := openScripted(t, "runs=1&"+options)
		require.True(t, dev.Info().Runs)
		return dev
	})
}

// openScripted opens a scripted device that behaves, and that accuses its host.
func openScripted(t *testing.T, options string) bridge.Device {
	sh, err := ParseShape(options)
	require.NoError(t, err)
	s, err := New(sh, Hooks{})
	require.NoError(t, err)
	dev, err := mailbox.Open(t.Context(), s, bridge.Info{Address: "script:?" + options, Driver: "script"}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Empty(t, s.Offences(), "rules that the host broke")
	})
	return spectest.Verified(t, dev)
}
