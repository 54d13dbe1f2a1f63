package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestErrorBound: known values, and the same by simulation.
func TestErrorBound(t *testing.T) {
	require.InEpsilon(t, 2.9957e-12, ErrorBound(0, 1e12, 0.95), 1e-4)
	require.InEpsilon(t, 4.7439, ErrorBound(1, 1, 0.95), 1e-4)
	require.InEpsilon(t, 16.962, ErrorBound(10, 1, 0.95), 1e-4)
	require.InEpsilon(t, 1000, ErrorBound(1000, 1, 0.5), 0.01)
	for _, bad := range [][3]float64{{0, 0, 0.9}, {-1, 1, 0.9}, {0, 1, 0}, {0, 1, 1}} {
		require.True(t, math.IsNaN(ErrorBound(int(bad[0]), bad[1], bad[2])))
	}
}
