package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// fixedResult is of two members and two steps.
func fixedResult(algorithm string) *result {
	return &result{
		network:  &network{members: 2, millis: 2, cells: 10, connections: 4},
		place:    "on nodes",
		stats:    group.Stats{Algorithm: algorithm},
		accounts: []account{{Received: 5, Delivered: 50}, {Received: 6, Delivered: 60}},
		samples: [][]sample{
			{{Exchange: 10, Waiting: 4, Total: 30, Out: 1, In: 2}, {Exchange: 20, Waiting: 5, Total: 60, Out: 3, In: 4}},
			{{Exchange: 30, Waiting: 6, Total: 50, Out: 5, In: 6}, {Exchange: 10, Waiting: 9, Total: 20, Out: 7, In: 8}},
		},
	}
}

// TestSavedColumns: each file has its own figure of each member and step.
func TestSavedColumns(t *testing.T) {
	for algorithm, want := range map[string]map[string]string{
		"isend":     {"ttimes": "30 50\n60 20\n", "xtimes": "6 24\n15 1\n", "wtimes": "4 6\n5 9\n", "out_spikes": "1 5\n3 7\n", "in_spikes": "2 6\n4 8\n"},
		"allgather": {"ttimes": "30 50\n60 20\n", "ctimes": "10 30\n20 10\n", "out_spikes": "1 5\n3 7\n", "in_spikes": "2 6\n4 8\n"},
	} {
		dir, got := t.TempDir(), map[string]string{}
		require.NoError(t, fixedResult(algorithm).save(dir))
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		for _, name := range names {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			got[filepath.Base(name)] = string(text)
		}
		require.Equal(t, want, got)
	}
}

// TestPrintedFigures: mean and maximum of an interval are over the members, and the share of waiting
// is of all time.
func TestPrintedFigures(t *testing.T) {
	r := fixedResult("isend")
	require.Equal(t, []interval{{40, 50}, {40, 60}}, r.intervals(func(s sample) float64 { return s.Total }))
	var b strings.Builder
	r.print(&b)
	for _, want := range []string{
		"2 members, 2 × 10 cells, about 4 connections each, 2 ms in 0s, on nodes\n", "11 events exchanged and verified", "110 delivered to cells\n",
		"  total                        40.0 µs       55.0 µs\n", "  computing                    22.5 µs       30.0 µs\n",
		"  rank 0     10.0 % ####\n", "  rank 1     21.4 % ########\n", "total, maximum (up to 60 µs)\n  ▇█\n",
		"computing, mean (up to 25 µs)\n", "spikes a member, mean (up to 5)\n",
	} {
		require.Contains(t, b.String(), want)
	}
}

// TestMeasured: parts of a step are no longer than the step, members wait, and counts are those that
// the accounts have.
func TestMeasured(t *testing.T) {
	s := &settings{network: network{members: 4, cells: 60, connections: 20, millis: 50, seed: 1}, algorithm: "isend"}
	r, err := s.goroutines(t.Context(), group.NewMesh(4))
	require.NoError(t, err)
	waiting, exchange := 0.0, 0.0
	for rank, samples := range r.samples {
		in, fired := uint64(0), uint64(0)
		for _, m := range samples {
			require.Positive(t, m.Exchange)
			require.GreaterOrEqual(t, m.Exchange, m.Waiting)
			require.Greater(t, m.Total, m.Exchange)
			in, fired, waiting, exchange = in+m.In, fired+m.Out, waiting+m.Waiting, exchange+m.Exchange
		}
		require.Equal(t, r.accounts[rank].Received, in)
		require.Positive(t, fired)
	}
	require.Positive(t, waiting)
	require.Greater(t, exchange, waiting)
}
