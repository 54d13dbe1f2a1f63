package bridgetest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHugeNeedsItsMemory: the case fails where memory is short, in place of
// moving less.
func TestHugeNeedsItsMemory(t *testing.T) {
	const n = 5<<30 + 5
	require.NoError(t, roomFor(n, n+1<<30))
	require.ErrorContains(t, roomFor(n, n+1<<30-1), "free memory")
	require.ErrorContains(t, roomFor(7<<28, 2<<30), "free memory")
	require.Positive(t, availableMemory())
}
