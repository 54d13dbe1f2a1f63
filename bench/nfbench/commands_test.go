package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLatencyJSON(t *testing.T) {
	var r LatencyReport
	decode(t, mustRun(t, "latency", "--batches", "12", "--batch", "3", "--output", "json"), &r)
	requireHeader(t, "latency", r.Header)
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
	out := mustRun(t, "latency", "--batches", "1", "--batch", "1", "--size", "1")
	for _, want := range []string{"simulated device", "paper (hardware)", "h2d direct", "d2h indirect", "1.73", "14.66", "T8"} {
		require.Contains(t, out, want)
	}
}

var tinyThroughput = []string{"throughput", "--payload", "100000", "--sizes", "4KiB,30000,64KiB",
	"--targets", "1,3", "--tests", "2", "--direct", "20"}

func TestThroughputJSON(t *testing.T) {
	var r ThroughputReport
	svg := filepath.Join(t.TempDir(), "curve.svg")
	decode(t, mustRun(t, append(tinyThroughput, "--output", "json", "--plot", svg)...), &r)
	requireHeader(t, "throughput", r.Header)
	require.Equal(t, []int{100000, 2}, []int{r.Payload, r.Tests})
	require.Len(t, r.Points, 2*2*3)
	for _, p := range r.Points {
		require.Equal(t, 2, p.GBs.N)
		require.Positive(t, p.GBs.Mean)
		require.InEpsilon(t, 8*p.GBs.Mean, p.GbitS.Mean, 1e-9)
		require.Positive(t, p.MemcpyGBs.Mean)
		require.True(t, p.Verified)
		require.Equal(t, 2*100000, p.VerifiedBytes)
	}
	require.Len(t, r.Curves, 4)
	require.Equal(t, 7.8, r.Curves[0].PaperGbitS, "h2d, one target")
	require.Zero(t, r.Curves[1].PaperGbitS, "the paper has no figure for three")
	require.Len(t, r.Direct, 2)
	require.Len(t, r.PeakRatio, 2)
	for _, g := range r.Goals {
		require.NotContains(t, g.What, ": peak", "256 KiB was not measured")
		require.Contains(t, []string{"T9", "T10"}, g.ID)
	}
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	for _, want := range []string{"h2d, 1 target<", "d2h, 3 targets<", "simulated device"} {
		require.True(t, strings.Contains(string(text), want), want)
	}
}

func TestThroughputTable(t *testing.T) {
	out := mustRun(t, tinyThroughput...)
	for _, want := range []string{"every byte verified after each test, 2400000 in all", "simulated device", "paper (hardware)", "268", "114.3", "d2h, 3 targets"} {
		require.Contains(t, out, want)
	}
}

var tinyPeers = []string{"peers", "--rounds", "1", "--slice", "1ms", "--sizes", "64KiB,100000",
	"--idle", "1ms", "--blocked", "50"}

func TestPeersJSON(t *testing.T) {
	t.Setenv("PATH", "") // no libraries in C: they take their time
	var r PeersReport
	decode(t, mustRun(t, append(tinyPeers, "--output", "json")...), &r)
	requireHeader(t, "peers", r.Header)
	require.Len(t, r.Small, smallSides)
	require.Len(t, r.Bulk, 2*bulkSides)
	for _, row := range append(r.Small, r.Bulk...) {
		require.Positive(t, row.Ops, row.Peer)
		require.Positive(t, row.Ns.Median, row.Peer)
		require.Positive(t, row.VsNFComms.Median, row.Peer)
		require.LessOrEqual(t, row.P50Ns, row.P99Ns, row.Peer)
	}
	require.Equal(t, 50, r.Blocked.Sends)
	ids := map[string]int{}
	for _, g := range r.Goals {
		ids[g.ID]++
		require.NotEmpty(t, g.Result)
	}
	require.Equal(t, map[string]int{"T1": 1, "T1e": 1, "T3": 2, "T4": 1, "T5": 4, "T8": 2, "T12": 4}, ids)
}

func TestPeersTable(t *testing.T) {
	t.Setenv("PATH", "")
	out := mustRun(t, tinyPeers...)
	for _, want := range []string{nameMemcpy, nameChan, namePipe, nameUnix, nameMangos, nameGRPC, nameSend, nameReceive, nameEcho,
		nameSendInd, nameReceiveInd, "simulated device", "blocked sends", "T12"} {
		require.Contains(t, out, want)
	}
}

// TestPlotThatCannotBeWritten is refused before anything is measured: a run without end shows it.
func TestPlotThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "no", "such.svg"), dir} {
		code, _, errs := nfbench(t.Context(), "throughput", "--payload", "1TiB", "--tests", "1000000", "--plot", path)
		require.Equal(t, exitUsage, code)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
}

func TestPlotIsNotTouchedByAFaultOfTheRun(t *testing.T) {
	old, fresh := filepath.Join(t.TempDir(), "old.svg"), filepath.Join(t.TempDir(), "new.svg")
	require.NoError(t, os.WriteFile(old, []byte("kept"), 0o600))
	for _, path := range []string{old, fresh} {
		code, _, _ := nfbench(t.Context(), "throughput", "--address", "sim:?nothing=1", "--plot", path)
		require.Equal(t, exitUsage, code)
	}
	content, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "kept", string(content))
	require.NoFileExists(t, fresh)
}

func requireHeader(t *testing.T, command string, h Header) {
	t.Helper()
	require.Equal(t, command, h.Command)
	require.Equal(t, "sim", h.Device.Driver)
	require.Equal(t, "simulated device", h.Device.Label)
	require.Positive(t, h.Machine.CPUs)
	require.NotEmpty(t, h.Machine.Go)
	require.NotEmpty(t, h.Machine.Revision)
}

func TestCurveGoals(t *testing.T) {
	c := ThroughputCurve{Direction: "h2d", Targets: 1, PeakGbitS: 80, Hockney: &Hockney{N95: 8 << 10}}
	size, ns := []float64{4096, flatFrom}, []float64{4096, flatFrom / 9.5}
	goals := c.goals(size, ns, "")
	require.Len(t, goals, 2)
	require.InEpsilon(t, 0.95, goals[0].Value, 1e-9)
	require.Equal(t, resultReached, goals[0].Result)
	require.Equal(t, resultReached, goals[1].Result)
	require.EqualValues(t, 8, goals[1].Value)
	require.Equal(t, "not measured: machine busy", c.goals(size, ns, "machine busy")[0].Result)
	c.Hockney = nil
	require.Empty(t, c.goals(size[:1], ns[:1], ""))
}

func TestReportPlotHasModelLine(t *testing.T) {
	r := ThroughputReport{
		Points: []ThroughputPoint{
			{Direction: "d2h", Targets: 1, Size: 4096, GbitS: Stat{Mean: 10}},
			{Direction: "d2h", Targets: 1, Size: 8192, GbitS: Stat{Mean: 20}},
		},
		Curves: []ThroughputCurve{{Direction: "d2h", Targets: 1, Hockney: &Hockney{T0: 1000, RInf: 10}}},
	}
	p := r.plot()
	require.Len(t, p.series, 2)
	require.Equal(t, []float64{10, 20}, p.series[0].y)
	require.True(t, p.series[1].dashed)
	require.Contains(t, p.svg(), "stroke-dasharray")
	r.Curves[0].Hockney = nil
	require.Len(t, r.plot().series, 1)
}
