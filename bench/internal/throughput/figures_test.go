package throughput

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestConclude: rates are of the payload in one direction, processor time is of both, and the peak is
// the best size.
func TestConclude(t *testing.T) {
	test := func(h2d, d2h time.Duration) exchange {
		return exchange{moved: [2]time.Duration{h2d, d2h}, copied: [2]time.Duration{10, 20}, cpu: 400, compared: 1000}
	}
	plan := Plan{Payload: 1000, Sizes: []int{100, 200}, Targets: []int{1, 8}}
	points := []*point{
		{1, 100, []exchange{test(100, 200), test(200, 400)}}, {1, 200, []exchange{test(50, 100), test(50, 100)}},
		{8, 100, []exchange{test(50, 1000), test(50, 1000)}}, {8, 200, []exchange{test(100, 100), test(100, 100)}},
	}
	r := &Report{}
	r.conclude(plan, points, &directTest{mbit: [2][]float64{{300, 500}, {100}}})
	p := r.Points[0]
	require.InDeltaSlice(t, []float64{7.5, 60, 100, 0.075}, []float64{p.GBs.Mean, p.GbitS.Mean, p.MemcpyGBs.Mean, p.OverMemcpy.Median}, 1e-9)
	require.InDeltaSlice(t, []float64{150e-9, 0.2}, []float64{p.WallS, p.CPUSPerGB}, 1e-12)
	require.Equal(t, 2000, p.VerifiedBytes)
	require.InDelta(t, 80, r.Rate("d2h", 1, 200), 1e-9)
	for i, want := range []struct{ peak, size, paper float64 }{{160, 200, 7.8}, {160, 100, 20}, {80, 200, 9}, {80, 200, 22}} {
		c := r.Curves[i]
		require.InDeltaSlice(t, []float64{want.peak, want.size, want.paper}, []float64{c.PeakGbitS, float64(c.PeakSize), c.PaperGbitS}, 1e-9, "%s %d", c.Direction, c.Targets)
	}
	require.InDelta(t, 1e3*160/400, r.PeakRatio[0].Ratio, 1e-9)
	require.InDelta(t, 1e3*80/100, r.PeakRatio[1].Ratio, 1e-9)
	require.Equal(t, []float64{268, 114.3}, []float64{r.PeakRatio[0].Paper, r.Direct[1].PaperMbitS})
	require.InDelta(t, 0.375, r.Flatness("h2d", 1, 100), 1e-9)
	require.InDelta(t, 1, r.Flatness("h2d", 1, 200), 1e-9)
	worst := map[string]string{}
	for _, g := range r.Goals {
		if g.Target == 1 {
			worst[g.What] = g.Result
		}
	}
	require.Equal(t, map[string]string{
		"h2d, 8 targets : 1 target, the worst size": "missed by 50 %", "d2h, 8 targets : 1 target, the worst size": "missed by 73 %",
	}, worst)
	require.Empty(t, r.crowdGoal("h2d", 1), "there is no other number of targets")
}

// TestChecksumColumns: the rate with checksums is of the second pass, and the cost is the part that is missing.
func TestChecksumColumns(t *testing.T) {
	test := func(plain, summed time.Duration) exchange {
		return exchange{moved: [2]time.Duration{plain, 1}, summed: [2]time.Duration{summed, 0}, sumCPU: 600, compared: 1000}
	}
	pt := &point{1, 100, []exchange{test(100, 200), test(100, 125), test(100, 400)}}
	p := pt.report(0, 1000)
	require.InDeltaSlice(t, []float64{(5 + 8 + 2.5) / 3, 0.3, 0.5, 0.2, 0.75},
		[]float64{p.SummedGBs.Mean, p.SumCPUSPerGB, p.SumCost.Median, p.SumCost.Min, p.SumCost.Max}, 1e-9)
	require.Nil(t, pt.report(1, 1000).SummedGBs, "nobody asked")
}
