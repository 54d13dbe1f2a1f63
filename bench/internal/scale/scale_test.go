package scale

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

// TestScale: each number has a row, with what a channel costs and a live one's time.
func TestScale(t *testing.T) {
	var r Report
	svg := filepath.Join(t.TempDir(), "scale.svg")
	args := []string{"scale", "--channels", "1,2000", "--blocked", "20", "--rounds", "2", "--slice", "1ms", "--plot", svg}
	clitest.Decode(t, clitest.MustRun(t, append(args, "--output", "json")...), &r)
	clitest.RequireHeader(t, "scale", r.Header)
	require.Len(t, r.Rows, 3)
	for i, want := range []Row{{What: scaleOpen, N: 1}, {What: scaleOpen, N: 2000}, {What: scaleBlocked, N: 20}} {
		row := r.Rows[i]
		require.Equal(t, want.What, row.What)
		require.Equal(t, want.N, row.N)
		require.Positive(t, row.Ns.P50)
		require.LessOrEqual(t, row.Ns.P50, row.Ns.P99)
		require.Positive(t, row.OfAlone.Median)
		require.Positive(t, row.OpenNs)
	}
	require.Greater(t, r.Rows[1].HeapBytes, 100.0, "a channel is something")
	require.Empty(t, r.Goals, "neither a million nor ten thousand")
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(text), "beside blocked senders, p99")
	require.Contains(t, clitest.MustRun(t, "scale", "--channels", "2", "--blocked", "1", "--rounds", "1", "--slice", "1ms"), "open channels")
}

// TestScaleColumns: growth is for each channel, of the process and of the heap, and the table prints
// each figure in its column.
func TestScaleColumns(t *testing.T) {
	all, heap := memory{all: 5000, heap: 900}.less(memory{all: 1000, heap: 500}, 4)
	require.Equal(t, []float64{1000, 100}, []float64{all, heap})
	all, heap = memory{all: -1, heap: 900}.less(memory{all: -1, heap: 500}, 4)
	require.Equal(t, []float64{-1, 100}, []float64{all, heap}, "the system does not tell")
	r := &Report{Rounds: 3, SliceMs: 20, Rows: []Row{{
		What: scaleOpen, N: 4, Bytes: 1000, HeapBytes: 100, OpenNs: 2500, Ns: stat.Stat{P50: 210, P99: 900},
		OfAlone: stat.Spread{Median: 1.25, Min: 1, Max: 2}, Threads: 7,
	}}}
	var b strings.Builder
	r.Table(&b)
	require.Regexp(t, `open channels +4 +1000 +100 +2\.50 µs +210 ns +900 ns +1\.25 \(1\.00\.\.2\.00\) +7`, b.String())
	p := r.draw()
	require.Equal(t, []float64{4, 210, 4, 900}, []float64{p.Series[0].X[0], p.Series[0].Y[0], p.Series[1].X[0], p.Series[1].Y[0]})
}

func TestScaleGoals(t *testing.T) {
	r := &Report{Rows: []Row{
		{What: scaleOpen, N: 1_000_000, Bytes: 900}, {What: scaleBlocked, N: 10_000, OfAlone: stat.Spread{Median: 2}},
		{What: scaleBlocked, N: 100, OfAlone: stat.Spread{Median: 9}},
	}}
	goals := r.goals()
	require.Len(t, goals, 2)
	require.Equal(t, cli.ResultReached, goals[0].Result)
	require.Equal(t, "missed by 67 %", goals[1].Result)
	r.Rows[0].Bytes, r.Rows[1].OfAlone.Median = 2048, 1.2
	goals = r.goals()
	require.Equal(t, []string{"missed by 100 %", cli.ResultReached}, []string{goals[0].Result, goals[1].Result})
	r.Rows[2].Busy = cli.ReasonBusy // of a row without a goal: none is reached or missed
	for _, g := range r.goals() {
		require.Equal(t, cli.ResultNotMeasured+cli.ReasonBusy, g.Result)
	}
	r.Rows[0].Bytes, r.Rows[1].Busy, r.Rows[2].Busy = -1, cli.ReasonBusy, ""
	for _, g := range r.goals() {
		require.False(t, g.Measured())
	}
	require.Equal(t, "dev:0", shapeFor("dev:0", 5), "another address is the user's")
}
