//go:build cgo

package sim

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/support"
)

// TestSupport holds README's status to the device.
func TestSupport(t *testing.T) {
	dev := openDevice(t, "torus=2x1x1")
	require.Empty(t, support.Differences(t.Context(), "sim", dev))
	require.NoError(t, dev.Close())
}
