//go:build cgo

package kdev

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/support"
)

// TestSupport holds README's status to the device.
func TestSupport(t *testing.T) {
	dev := fake(t, "managers=8")
	require.Empty(t, support.Differences(t.Context(), "dev", dev))
	require.NoError(t, dev.Close())
}
