package models

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/internal/model"
)

func TestModelJSON(t *testing.T) {
	var r Report
	clitest.Decode(t, clitest.MustRun(t, "model", "--output", "json"), &r)
	require.Equal(t, "modelled", r.Label)
	require.Len(t, r.Figures, len(model.Catalogue()))
	require.Len(t, r.Links, 4)
	for _, l := range r.Links {
		require.InEpsilon(t, l.Formula, l.Classic, 0.01)
		require.GreaterOrEqual(t, l.Cumulative, 0.99)
	}
}

func TestModelTable(t *testing.T) {
	out := clitest.MustRun(t, "model", "link")
	for _, want := range []string{"every figure is modelled", "A17 E1", "0.985", "n·S/(n·S+W)", "cumulative, simulated", "512 words"} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "M29")
	require.Contains(t, clitest.MustRun(t, "model", "exchange"), "0.9999999998")
}
