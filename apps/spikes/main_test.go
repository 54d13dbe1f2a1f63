package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// TestMain also plays the member processes: they are this binary again.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--rank") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

func spikes(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), strings.Fields(line), &out, &errs)
	return code, out.String(), errs.String()
}

const small = "--cells 60 --connections 20 --ms 50 "

func TestSpikes(t *testing.T) {
	for _, a := range group.Algorithms() {
		code, out, errs := spikes(t, small+"--members 6 --algorithm "+a.Name)
		require.Equal(t, exitOK, code, errs)
		require.Contains(t, out, "every one is as its cell fired it")
		require.Contains(t, out, "rank 5")
	}
}

// TestOverlap: exchanges beside which the next step is computed carry the same events, with each kind
// of algorithm.
func TestOverlap(t *testing.T) {
	_, plain, _ := spikes(t, small+"--members 4")
	for _, algorithm := range []string{"auto", "isend-l", "allgather", "ssend"} {
		code, out, errs := spikes(t, small+"--members 4 --overlap --algorithm "+algorithm)
		require.Equal(t, exitOK, code, errs)
		require.Equal(t, strings.Split(plain, "\n")[1], strings.Split(out, "\n")[1], algorithm)
		require.Contains(t, out, "computing, not hidden")
	}
}

// TestProcesses: members in processes exchange the same events as in one.
func TestProcesses(t *testing.T) {
	code, here, errs := spikes(t, small+"--members 4")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, here, ", between goroutines, no device\n")
	line := func(text string) string { return strings.Split(text, "\n")[1] }
	code, there, errs := spikes(t, small+"--members 4 --transport shm --algorithm isend")
	require.Equal(t, exitOK, code, errs)
	require.Contains(t, line(here), "events exchanged and verified")
	require.Equal(t, line(here), line(there))
	require.Contains(t, there, ", between processes of this machine, no device\n")
	code, there, errs = spikes(t, small+"--members 4 --transport fabric --address sim:?torus=2x1x1")
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, line(here), line(there))
	require.Contains(t, there, ", on the nodes of a fabric, simulated devices\n")
	code, _, errs = spikes(t, small+"--transport fabric --address sim:")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "no fabric")
	code, _, errs = spikes(t, small+"--members 2 --transport shm --out /dev/null/x")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "spikes: ")
}

func TestFiles(t *testing.T) {
	for algorithm, want := range map[string][]string{
		"isend":     {"in_spikes", "out_spikes", "ttimes", "wtimes", "xtimes"},
		"allgather": {"ctimes", "in_spikes", "out_spikes", "ttimes"},
		"allgather-l --delay-member 1us --delay-byte 1ns --delay-random": {"ctimes", "in_spikes", "out_spikes", "ttimes"},
	} {
		dir := t.TempDir()
		code, _, errs := spikes(t, small+"--members 2 --algorithm "+algorithm+" --out "+dir)
		require.Equal(t, exitOK, code, errs)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
			text, err := os.ReadFile(filepath.Join(dir, e.Name()))
			require.NoError(t, err)
			require.Equal(t, 50, strings.Count(string(text), "\n"))
			require.Len(t, strings.Fields(string(text)), 100)
		}
		require.Equal(t, want, names)
	}
}

// TestWrongSpikes: a spike that was not fired, or at another time, is noticed.
func TestWrongSpikes(t *testing.T) {
	w := &network{cells: 10, connections: 20, members: 2, millis: 10, seed: 1}
	m := &member{network: w, targets: map[uint64][]int32{12: {0}}, heard: make([]uint32, 1)}
	require.ErrorContains(t, m.deliver(3, 1, spike{12, 4.5}), "at 4.500 ms")
	require.ErrorContains(t, m.deliver(4, 0, spike{12, 4.5}), "rank 0 sent a spike of cell 12")
	require.NoError(t, m.deliver(4, 1, spike{12, 4.5}))
	require.Equal(t, uint32(1), m.heard[0])
	r := &result{network: w, accounts: []account{{}, {Wrong: 1}}, samples: [][]sample{make([]sample, 10), make([]sample, 10)}}
	var out bytes.Buffer
	r.print(&out)
	require.Contains(t, out.String(), "WRONG")
}

// TestNetwork: every cell has one owner, and the network is that of the report.
func TestNetwork(t *testing.T) {
	for _, w := range []network{{cells: 7, members: 6}, {cells: 100, members: 14}, {cells: 4096, members: 2}} {
		for m := range w.members {
			from, to := w.span(m)
			for gid := from; gid < to; gid++ {
				require.Equal(t, m, w.owner(gid))
			}
		}
	}
	w := network{cells: 1000, connections: 1000, members: 2, seed: 3}
	for _, gid := range []uint64{0, 1999} {
		n := 0
		w.sources(gid, func(source uint64) {
			n++
			require.NotEqual(t, w.owner(gid), w.owner(source), "of the other population")
		})
		require.InDelta(t, 1000, n, 50)
	}
	at := 0.0
	for n := range 100 {
		next := w.fires(5, n, at)
		if n > 0 {
			require.True(t, next-at >= shortest && next-at <= longest)
		}
		at = next
	}
}

func TestBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"--members 3":           "--members 3 is not an even number",
		"--cells 0":             "--cells 0 is not",
		"--connections 0":       "--connections 0 is not",
		"--ms 0":                "--ms 0 is not",
		"--transport smoke":     `--transport "smoke"`,
		"--algorithm none":      `--algorithm "none" is unknown`,
		"--delay-byte -1us":     "are not negative",
		"--preset large":        `--preset "large" is not paper`,
		"--preset paper":        "wants about 16 GiB",
		"--members 2 something": `"something" is no flag`,
		"--cells many":          "many",
	} {
		code, out, errs := spikes(t, line)
		require.Equal(t, exitInput, code, line)
		require.Empty(t, out)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"))
	}
	code, _, errs := spikes(t, "--help")
	require.Equal(t, exitOK, code)
	require.Contains(t, errs, "-members")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, text bytes.Buffer
	require.Equal(t, exitInterrupted, run(ctx, nil, &out, &text))
}
