package crowd

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// TestCrowdColumns: percentiles are of the calls that were timed, rates of all, and the table prints
// each in its column.
func TestCrowdColumns(t *testing.T) {
	s := &crowdSide{call: compare.NameSend, size: 56, ops: make([]int, 2), samples: stat.NewRecorder(), reference: []float64{4e6, 4e6}}
	took := make([]sampled, 2)
	for i := range 1000 {
		took[i%2].all = append(took[i%2].all, time.Duration(i+1)*time.Microsecond)
	}
	s.count([]int{3e6, 1e6}, took, time.Second, time.Second)
	s.count([]int{3e6, 1e6}, make([]sampled, 2), 2*time.Second, time.Second)
	row := s.row(2, 1)
	require.InEpsilonSlice(t, []float64{3e6, 2e6, 4e6, 0.75, 500e3, 990e3, 999e3, 1.5, 0.5, 250},
		[]float64{row.Rate.Median, row.Rate.Min, row.Rate.Max, row.OfGoChannels.Median, row.P50Ns, row.P99Ns, row.P999Ns, row.BestOverMean, row.WorstOverMean, row.CPUNsPerOp}, 0.01)
	var b strings.Builder
	(&Report{Rows: []Row{row}}).Table(&b)
	require.Regexp(t, `Send, 56.B +2 +1 +3\.000 +0\.75 +500 µs +990 µs +999 µs +1\.50 +0\.50 +250 ns\n`, b.String())
	p := (&Report{Rows: []Row{row}}).draw()
	require.Equal(t, []float64{2, 3}, []float64{p.Series[0].X[0], p.Series[0].Y[0]})
	require.True(t, p.Series[0].Dashed, "under load")
}

// TestCrowdGoals: each goal turns at its own bound, which a load or one processor changes.
func TestCrowdGoals(t *testing.T) {
	goals := func(procs int, row Row) (results []string) {
		row.Call, row.Size = compare.NameSend, compare.MessageSize
		for _, g := range (&Report{Procs: procs, Rows: []Row{row}}).goals() {
			results = append(results, g.Result)
		}
		return results
	}
	ratio := func(v float64) stat.Spread { return stat.Spread{Median: v} }
	met := cli.ResultReached
	require.Equal(t, []string{met, met}, goals(2, Row{Callers: 1, OfGoChannels: ratio(0.9), P99Ns: 5e3}))
	require.Equal(t, []string{"missed by 5.6 %", "missed by 20 %"}, goals(2, Row{Callers: 1, OfGoChannels: ratio(0.85), P99Ns: 6e3}))
	require.Equal(t, met, goals(1, Row{Callers: 1, OfGoChannels: ratio(0.85)})[0], "one processor is a busy machine")
	require.Equal(t, []string{met, "missed by 50 %", met}, goals(2, Row{Callers: 1, Load: 1, OfGoChannels: ratio(0.8), P50Ns: 1.5e3}))
	require.Equal(t, []string{met, met, "missed by 50 %"}, goals(2, Row{Callers: 64, OfGoChannels: ratio(0.6), P99Ns: 1e6, BestOverMean: 3}))
	require.Equal(t, []string{met, "missed by 100 %", met}, goals(2, Row{Callers: 1000, OfGoChannels: ratio(0.4), P99Ns: 30e6, BestOverMean: 5}))
	r := &Report{Rows: []Row{{Call: "a", Size: 4 << 10, Callers: 1, Rate: ratio(10)}, {Call: "a", Size: 4 << 10, Callers: 8, Rate: ratio(12)}, {Call: "a", Size: 4 << 10, Callers: 1000, Rate: ratio(6)}}}
	list := r.goals()
	require.Len(t, list, 2)
	require.Equal(t, []string{met, "missed by 14 %"}, []string{list[0].Result, list[1].Result})
	r.Rows[0].busy = cli.ReasonBusy // of one row: no goal is reached or missed
	for _, g := range r.goals() {
		require.Equal(t, cli.ResultNotMeasured+cli.ReasonBusy, g.Result)
	}
}

// TestCrowdTheory: beside a curve is one caller's rate, times callers up to the number of processors.
func TestCrowdTheory(t *testing.T) {
	r := &Report{Procs: 2}
	for load := range 2 {
		for _, callers := range []int{1, 2, 8} {
			r.Rows = append(r.Rows, Row{Call: "a", Callers: callers, Load: load, Rate: stat.Spread{Median: 3e6}})
		}
	}
	p := r.draw()
	require.Len(t, p.Series, 3, "none under load")
	require.Equal(t, []float64{3, 6, 6}, p.Series[2].Y)
	require.Equal(t, p.Series[0].Colour, p.Series[2].Colour)
	require.True(t, p.Series[2].Dashed)
}
