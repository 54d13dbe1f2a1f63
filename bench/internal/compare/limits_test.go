//go:build linux

package compare

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLimitsRun: each program compiles without a warning, does what it counts, and finds its bytes where
// they should be.
func TestLimitsRun(t *testing.T) {
	l := NewLimits(t.Context())
	require.Empty(t, l.Missing())
	defer l.Remove()
	all := append(l.Small(), l.Bulk(4097)...)
	c := &Comparison{Contenders: append(all, NewMemcpy(1))}
	for _, one := range all {
		one.batches = 2
	}
	require.NoError(t, c.Play(t.Context(), 1, time.Nanosecond, func(string) {}))
	require.Empty(t, c.Failed)
	for _, one := range all { // a batch that takes longer than NativeMillis is the last
		require.Contains(t, []int{one.Batch, 2 * one.Batch}, one.Rounds[0].Ops, one.Name)
		require.Positive(t, one.Ns()[0], one.Name)
	}
}
