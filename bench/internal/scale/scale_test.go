package scale

import (
	"os"
	"path/filepath"
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

func TestScaleGoals(t *testing.T) {
	r := &Report{Rows: []Row{
		{What: scaleOpen, N: 1_000_000, Bytes: 900}, {What: scaleBlocked, N: 10_000, OfAlone: stat.Spread{Median: 2}},
		{What: scaleBlocked, N: 100, OfAlone: stat.Spread{Median: 9}},
	}}
	goals := r.goals()
	require.Len(t, goals, 2)
	require.Equal(t, cli.ResultReached, goals[0].Result)
	require.Equal(t, "missed by 67 %", goals[1].Result)
	r.Rows[0].Bytes, r.Rows[1].Busy = -1, cli.ReasonBusy
	for _, g := range r.goals() {
		require.False(t, g.Measured())
	}
	require.Equal(t, "dev:0", shapeFor("dev:0", 5), "another address is the user's")
}
