//go:build linux

package report

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestPaperFolder: the command writes a page that needs nothing beside it, the same
// as Markdown, and a summary.
func TestPaperFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "report")
	code, stdout, stderr := clitest.Run(t.Context(), "paper", "--only", "link", "--out", dir)
	require.Equal(t, cli.ExitOK, code, stderr)
	require.Contains(t, stdout, "Efficiency of the link")
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.NotRegexp(t, regexp.MustCompile(`(src|href)="`), string(page), "something beside the page")
	text, err := os.ReadFile(filepath.Join(dir, "paper.md"))
	require.NoError(t, err)
	for _, want := range []string{"0.985", "0.595", "Not here: ", "GPU memory read, Fermi, BAR1", "7.04e-11", "upper bound", "**same**"} {
		require.Contains(t, string(text), want)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".nfbench-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestPaperItems measures all that is measured, hardly.
func TestPaperItems(t *testing.T) {
	t.Setenv("PATH", "") // no MPI: it takes its time
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	o := paperOptions{folder{only: paperIDs(), out: t.TempDir()}}
	least := paperEffort{batches: 10, payload: 256e3, direct: 100, tests: 1, rings: 1, packages: 1, rounds: 1, slice: time.Millisecond, shrink: 100, cycles: 10000,
		groups: groups.Options{Members: []int{8}, Targets: []int{4}, Bytes: []int{64}, Transports: []string{groups.TransportMesh}, Algorithms: []string{"send", "send-loop"}}}
	r, err := o.regenerate(t.Context(), dev, least, io.Discard)
	require.NoError(t, err)
	require.Len(t, r.Papers, len(paperIDs()))
	for _, p := range r.Papers {
		require.NotEmpty(t, p.Items, p.ID)
		for _, i := range p.Items {
			if i.Absent != "" {
				for _, row := range i.Rows {
					require.True(t, row.Paper != nil && row.Model == nil && row.Measured == nil, "%s: %s", i.Ref, row.What)
				}
				continue
			}
			require.NotEmpty(t, i.Rows, i.Ref)
			require.NotEmpty(t, i.Findings, i.Ref)
			for _, row := range i.Rows {
				require.False(t, row.Paper == nil && row.Model == nil && row.Measured == nil, "%s: %s", i.Ref, row.What)
			}
		}
	}
	require.NoError(t, r.save(&o.folder))
	pictures, err := filepath.Glob(filepath.Join(o.out, "*.svg"))
	require.NoError(t, err)
	require.Len(t, pictures, 5)
	var b bytes.Buffer
	require.NoError(t, json.NewEncoder(&b).Encode(r))
}

// TestPaperEscapes: what a report says is text in the page, whatever it is.
func TestPaperEscapes(t *testing.T) {
	dir := t.TempDir()
	r := &PaperReport{Papers: []Paper{{Title: "<script>", Items: []PaperItem{{
		Ref: "1", Title: "a", Label: "x < y",
		Findings: []PaperFinding{{What: "busy", Result: cli.ShapeUnknown, Why: "</ul>"}},
	}}}}}
	require.NoError(t, r.save(&folder{out: dir}))
	page, err := os.ReadFile(filepath.Join(dir, "index.html"))
	require.NoError(t, err)
	require.NotContains(t, string(page), "<script>")
	require.Contains(t, string(page), "x &lt; y")
}

// TestPaperTrust: on a busy machine no shape is the same or another.
func TestPaperTrust(t *testing.T) {
	item := PaperItem{Findings: []PaperFinding{shape("a", true, "2.0 times"), shape("b", false, "")}}
	require.Equal(t, "1 same, 1 differs", item.Shapes())
	require.Equal(t, "2 not measured", trust(item, cli.ReasonBusy).Shapes())
}

func TestPaperRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for want, args := range map[string][]string{
		"--out names no folder": {},
		"not a directory":       {"--out", file},
		"none of bulk, ring":    {"--out", t.TempDir(), "--only", "bulk,nine"},
		"names no paper":        {"--out", t.TempDir(), "--only", ""},
		"unknown command":       {"--out", t.TempDir(), "more"},
	} {
		code, stdout, stderr := clitest.Run(t.Context(), append([]string{"paper"}, args...)...)
		require.Equal(t, cli.ExitUsage, code, want)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want)
	}
}
