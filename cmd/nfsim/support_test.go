//go:build cgo

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/support"
)

// TestSupport holds README's status to the devices.
func TestSupport(t *testing.T) {
	require.Empty(t, support.Differences(t.Context(), "shm", openFabric(t, startNodes(t))))
	function, err := bridge.Open(t.Context(), serveFunction(t), nil)
	require.NoError(t, err)
	require.Empty(t, support.Differences(t.Context(), "vfio-user", function))
	require.NoError(t, function.Close())
}
