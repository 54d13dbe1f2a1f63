package latency

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
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
		require.Positive(t, c.CPUS)
	}
	require.Len(t, r.Ratios, 2)
	require.Equal(t, []float64{2, 1.73}, []float64{r.Ratios[0].Paper, r.Ratios[1].Paper})
	require.Len(t, r.Goals, 2)
}

// TestExtraCopy: a transfer includes the paper's copy between the transfer's memory and that of the
// process, in both directions; a message does not touch the transfer's memory.
func TestExtraCopy(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	local, bulk := make([]byte, compare.MessageSize), make([]byte, compare.MessageSize)
	sides, err := latencySides(t.Context(), dev, local, bulk)
	require.NoError(t, err)
	for i, s := range sides {
		for k := range local {
			local[k], bulk[k] = byte(k+1), 0xff
		}
		require.NoError(t, s.begin(t.Context(), 1))
		require.NoError(t, s.each(t.Context()))
		indirect := i%2 == 1
		require.Equal(t, indirect, slices.Equal(local, bulk), "%s %s", s.direction, s.path)
		require.Equal(t, s.direction == "h2d", local[1] == 2, "what is received replaces the old bytes")
	}
}

// TestConclude: each figure is of its own configuration, in nanoseconds of one message.
func TestConclude(t *testing.T) {
	var sides []*latencySide
	for i, path := range []string{"direct", "indirect", "direct", "indirect"} {
		s := &latencySide{direction: compare.Directions[i/2], path: path, rec: stat.NewRecorder(), wall: time.Duration(i+1) * time.Second, cpu: time.Duration(i+5) * time.Second}
		for range 3 {
			s.rec.Record([]time.Duration{1000, 1500, 2000, 5000}[i])
		}
		sides = append(sides, s)
	}
	sides[1].rec.Record(5500)
	r := &Report{}
	r.conclude(sides, 10)
	for i, mean := range []float64{100, 250, 200, 500} {
		require.InDelta(t, mean, r.Configs[i].Ns.Mean, 1e-9)
		require.Equal(t, []float64{float64(i + 1), float64(i + 5)}, []float64{r.Configs[i].WallS, r.Configs[i].CPUS})
	}
	require.InDelta(t, 2.5, r.Ratios[0].Mean, 1e-9)
	require.InDelta(t, 1.5, r.Ratios[0].P50, 0.01)
	require.InDelta(t, 2.5, r.Ratios[1].P50, 0.01)
	require.Equal(t, []string{"missed by 15 %", "missed by 92 %"}, []string{r.Goals[0].Result, r.Goals[1].Result})
	var b strings.Builder
	r.Table(&b)
	require.Contains(t, b.String(), "h2d indirect  250 ns  200 ns  150 ns  550 ns  150 ns  550 ns   2 s  6 s\n")
	require.Contains(t, b.String(), "d2h                2.50    2.50              1.73\n")
}

// TestDraw: beside each curve runs the tail of a normal distribution with its median and 75th percentile,
// whose 99th is 2.326 deviations above the median, and the 75th 0.6745.
func TestDraw(t *testing.T) {
	at := func(percent, value float64) stat.Percentile { return stat.Percentile{Percent: percent, Value: value} }
	r := &Report{Batch: 100, Configs: []Config{
		{Direction: "h2d", Path: "direct", Percentiles: []stat.Percentile{at(0, 90), at(50, 100), at(75, 106.745), at(90, 150), at(99, 300)}},
		{Direction: "d2h", Path: "direct", Percentiles: []stat.Percentile{at(0, 90), at(50, 100)}}, // too few batches
	}}
	p := r.draw()
	require.Contains(t, p.Note, "dashed: a normal distribution of the same median and 75th percentile")
	require.Len(t, p.Series, 3)
	theory := p.Series[2]
	require.True(t, theory.Dashed)
	require.Equal(t, p.Series[0].Colour, theory.Colour)
	require.InDeltaSlice(t, []float64{2, 4, 10, 100}, theory.X, 1e-9)
	require.InDeltaSlice(t, []float64{100, 106.745, 112.816, 123.263}, theory.Y, 1e-2)
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
