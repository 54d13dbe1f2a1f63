package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// TestAll: a folder with what was measured, and every goal of the project at the end.
func TestAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "bench")
	out := clitest.MustRun(t, "all", "--short", "--only", "latency", "--out", dir)
	for _, name := range []string{"latency.txt", "latency.json", "latency.svg", "report.md"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotEmpty(t, text)
	}
	for _, w := range allWanted {
		require.Contains(t, out, "\n"+w.id+" ")
	}
	require.Contains(t, out, "T1 56 B Send beside a Go channel")
	require.Contains(t, out, "not measured: not in this run")
	require.Contains(t, out, "T8 h2d indirect : direct, median")
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	require.NoError(t, err)
	require.Contains(t, string(page), "![latency](latency.svg)")
	require.Contains(t, string(page), "nfbench latency --short")
}

// TestAllGoals: every report has goals where they are looked for, a measurement that
// failed leaves its own unmeasured, and goals of no number stand at the end.
func TestAllGoals(t *testing.T) {
	require.Subset(t, allNames(), []string{"latency", "peers", "throughput", "crowd", "scale", "stack"})
	r := &AllReport{Parts: []AllPart{
		{Name: "peers", goals: []cli.Goal{cli.Goal{ID: "T1", What: "one", Value: 1, Target: 2}.Decide(""), cli.Goal{ID: "G9", What: "nine"}.Decide("")}},
		{Name: "scale", Command: "scale", Failed: "no memory"},
	}}
	goals := r.goals(allNames())
	require.Equal(t, "missed by 50 %", goals[0].Result)
	require.Equal(t, "G9", goals[len(goals)-1].ID)
	page, err := render("all.md.tmpl", r)
	require.NoError(t, err)
	require.Contains(t, string(page), "failed: no memory")
	var b strings.Builder
	cli.WriteGoals(&b, goals)
	require.Regexp(t, `(?m)^T2 .* – +– +not measured: `, b.String())
}

func TestAllFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct{ args, says string }{
		{"all", "--out names no folder"},
		{"all --out x --only guesses", `--only "guesses" is none of latency`},
		{"all --out " + file, "--out: mkdir"},
		{"all --out " + t.TempDir() + " --only latency --address card:0", "1 of 1 measurements failed"},
	} {
		code, _, errs := clitest.Run(t.Context(), strings.Fields(c.args)...)
		require.NotEqual(t, cli.ExitOK, code)
		require.Contains(t, errs, c.says)
	}
}
