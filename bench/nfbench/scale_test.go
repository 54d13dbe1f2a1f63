package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestScale: each number has a row, with what a channel costs and a live one's time.
func TestScale(t *testing.T) {
	var r ScaleReport
	svg := filepath.Join(t.TempDir(), "scale.svg")
	args := []string{"scale", "--channels", "1,2000", "--blocked", "20", "--rounds", "2", "--slice", "1ms", "--plot", svg}
	decode(t, mustRun(t, append(args, "--output", "json")...), &r)
	requireHeader(t, "scale", r.Header)
	require.Len(t, r.Rows, 3)
	for i, want := range []ScaleRow{{What: scaleOpen, N: 1}, {What: scaleOpen, N: 2000}, {What: scaleBlocked, N: 20}} {
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
	require.Contains(t, mustRun(t, "scale", "--channels", "2", "--blocked", "1", "--rounds", "1", "--slice", "1ms"), "open channels")
}

func TestScaleGoals(t *testing.T) {
	r := &ScaleReport{Rows: []ScaleRow{
		{What: scaleOpen, N: 1_000_000, Bytes: 900}, {What: scaleBlocked, N: 10_000, OfAlone: Spread{Median: 2}},
		{What: scaleBlocked, N: 100, OfAlone: Spread{Median: 9}},
	}}
	goals := r.goals()
	require.Len(t, goals, 2)
	require.Equal(t, resultReached, goals[0].Result)
	require.Equal(t, "missed by 67 %", goals[1].Result)
	r.Rows[0].Bytes, r.Rows[1].Busy = -1, reasonBusy
	for _, g := range r.goals() {
		require.False(t, g.measured())
	}
	require.Equal(t, "dev:0", shapeFor("dev:0", 5), "another address is the user's")
}
