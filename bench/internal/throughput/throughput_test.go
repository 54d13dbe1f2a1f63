package throughput

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

var tinyThroughput = []string{"throughput", "--payload", "100000", "--sizes", "4KiB,30000,64KiB",
	"--targets", "1,3", "--tests", "2", "--direct", "20"}

func TestThroughputJSON(t *testing.T) {
	var r Report
	svg := filepath.Join(t.TempDir(), "curve.svg")
	clitest.Decode(t, clitest.MustRun(t, append(tinyThroughput, "--output", "json", "--plot", svg)...), &r)
	clitest.RequireHeader(t, "throughput", r.Header)
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
	out := clitest.MustRun(t, tinyThroughput...)
	for _, want := range []string{"every byte verified after each test, 2400000 bytes in all", "simulated device", "paper (hardware)", "268", "114.3", "d2h, 3 targets"} {
		require.Contains(t, out, want)
	}
}

// TestPlotThatCannotBeWritten is refused before anything is measured: a run without end shows it.
func TestPlotThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "no", "such.svg"), dir} {
		code, _, errs := clitest.Run(t.Context(), "throughput", "--payload", "1TiB", "--tests", "1000000", "--plot", path)
		require.Equal(t, cli.ExitUsage, code)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
}

func TestPlotIsNotTouchedByAFaultOfTheRun(t *testing.T) {
	old, fresh := filepath.Join(t.TempDir(), "old.svg"), filepath.Join(t.TempDir(), "new.svg")
	require.NoError(t, os.WriteFile(old, []byte("kept"), 0o600))
	for _, path := range []string{old, fresh} {
		code, _, _ := clitest.Run(t.Context(), "throughput", "--address", "sim:?nothing=1", "--plot", path)
		require.Equal(t, cli.ExitUsage, code)
	}
	content, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "kept", string(content))
	require.NoFileExists(t, fresh)
}

func TestCurveGoals(t *testing.T) {
	c := Curve{Direction: "h2d", Targets: 1, PeakGbitS: 80, Hockney: &stat.Hockney{N95: 8 << 10}}
	size, ns := []float64{4096, flatFrom}, []float64{4096, flatFrom / 9.5}
	goals := c.goals(size, ns, "")
	require.Len(t, goals, 2)
	require.InEpsilon(t, 0.95, goals[0].Value, 1e-9)
	require.Equal(t, cli.ResultReached, goals[0].Result)
	require.Equal(t, cli.ResultReached, goals[1].Result)
	require.EqualValues(t, 8, goals[1].Value)
	require.Equal(t, "not measured: machine busy", c.goals(size, ns, "machine busy")[0].Result)
	c.Hockney = nil
	require.Empty(t, c.goals(size[:1], ns[:1], ""))
}

func TestReportPlotHasModelLine(t *testing.T) {
	r := Report{
		Points: []Point{
			{Direction: "d2h", Targets: 1, Size: 4096, GbitS: stat.Stat{Mean: 10}},
			{Direction: "d2h", Targets: 1, Size: 8192, GbitS: stat.Stat{Mean: 20}},
		},
		Curves: []Curve{{Direction: "d2h", Targets: 1, Hockney: &stat.Hockney{T0: 1000, RInf: 10}}},
	}
	p := r.Plot()
	require.Len(t, p.Series, 2)
	require.InDelta(t, 8*4096/(1000+4096/10.0), p.Series[1].Y[0], 1e-9)
	require.Equal(t, []float64{10, 20}, p.Series[0].Y)
	require.True(t, p.Series[1].Dashed)
	require.Contains(t, p.SVG(), "stroke-dasharray")
	r.Curves[0].Hockney = nil
	require.Len(t, r.Plot().Series, 1)
}

func TestThroughputShort(t *testing.T) {
	o := options{tests: 15, payload: "1MB"}
	o.shorten(func(flag string) bool { return flag == "payload" })
	require.Equal(t, "1MB", o.payload)
	require.Equal(t, 3, o.tests)
}
