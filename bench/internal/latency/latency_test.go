package latency

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

func TestLatencyJSON(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, "latency", "--batches", "12", "--batch", "3", "--output", "json"), &r)
	clitest.RequireHeader(t, "latency", r.Header)
	require.Equal(t, []int{12, 3, 56}, []int{r.Batches, r.Batch, r.Size})
	require.Len(t, r.Configs, 4)
	for i, name := range []string{"h2d direct", "h2d indirect", "d2h direct", "d2h indirect"} {
		c := r.Configs[i]
		require.Equal(t, name, c.Direction+" "+c.Path)
		require.Equal(t, 12, c.Ns.N, "the warm-up batches are not recorded")
		require.Positive(t, c.Ns.Mean)
		require.LessOrEqual(t, c.Ns.P50, c.Ns.P99)
		require.Positive(t, c.WallS)
	}
	require.Len(t, r.Ratios, 2)
	require.Equal(t, []float64{2, 1.73}, []float64{r.Ratios[0].Paper, r.Ratios[1].Paper})
	require.Len(t, r.Goals, 2)
}

func TestLatencyTable(t *testing.T) {
	out := clitest.MustRun(t, "latency", "--batches", "1", "--batch", "1", "--size", "1")
	for _, want := range []string{"simulated device", "paper (hardware)", "h2d direct", "d2h indirect", "1.73", "14.66", "T8"} {
		require.Contains(t, out, want)
	}
}

// TestShort: --short changes what the user left alone, and nothing else.
func TestShort(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, "latency", "--short", "--batch", "2", "--output", "json"), &r)
	require.Equal(t, []int{1000, 2}, []int{r.Batches, r.Batch})
}
