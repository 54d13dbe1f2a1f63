package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
)

func TestModelJSON(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, "model", "--output", "json"), &r)
	require.Equal(t, "modelled", r.Label)
	require.Len(t, r.Figures, len(papers.Catalogue()))
	require.Len(t, r.Links, 4)
	for _, l := range r.Links {
		require.InEpsilon(t, l.Formula, l.Classic, 0.01)
		require.GreaterOrEqual(t, l.Cumulative, 0.99)
	}
}

// TestYellow: T_YEL reaches the simulated classic flow control, which resumes earlier by it.
func TestYellow(t *testing.T) {
	var empty, half Report
	clitest.Decode(t, clitest.MustRun(t, "model", "link", "--read-every", "2", "--output", "json"), &empty)
	clitest.Decode(t, clitest.MustRun(t, "model", "link", "--read-every", "2", "--yellow", "2048", "--output", "json"), &half)
	require.Equal(t, []Reader{{0, 2}, {2048, 2}}, []Reader{empty.Reader, half.Reader})
	require.Equal(t, papers.ReportedFigures(), half.Reported)
	require.Equal(t, empty.Links[0], half.Links[0], "512 words have no room for it")
	last := len(linkDepths) - 1
	require.InDelta(t, 0.492, empty.Links[last].Classic, 0.001)
	require.InDelta(t, 0.5, half.Links[last].Classic, 0.001)
	require.Equal(t, []float64{0.5, empty.Links[last].Cumulative}, []float64{half.Links[last].Formula, half.Links[last].Cumulative})
	for _, bad := range []string{"--yellow=-1", "--yellow=3585", "--read-every=0", "--read-every=101"} {
		code, _, errs := clitest.Run(t.Context(), "model", bad)
		require.Equal(t, cli.ExitUsage, code)
		require.Regexp(t, "--(yellow|read-every) -?[0-9]+ is not [01] to ", errs)
	}
}

func TestModelTable(t *testing.T) {
	out := clitest.MustRun(t, "model", "link")
	for _, want := range []string{"nothing was measured here: every figure is a paper's, its formula's or simulated", "A17 E1", "0.985", "n·S/(n·S+W)", "cumulative, simulated", "512 words", "15 symbols              100  100                      0\n16 symbols                0  100                      4\n", "A6 GPU to GPU, peer to peer, half of a ping-pong   ", "< 7.04e-11  errors a bit"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "M29")
	out = clitest.MustRun(t, "model", "contexts")
	require.Regexp(t, `\nCLS +25 to 50 +1126 +600 +614 +40 +45 %\n`, out)
	require.Contains(t, out, "\nEMEM ")
	out = clitest.MustRun(t, "model", "exchange")
	require.Contains(t, out, "0.9999999998")
	require.Regexp(t, `\n8x8x16 +3 +1024 +8\.01 +16 +128\n4x4x4x4x4 +5 +1024 +5\.00 +10 +512\n`, out)
}
