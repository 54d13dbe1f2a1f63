package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/spec/internal/search"
)

// TestChartsAreThere: the tree has a chart of each broken variant, and no other.
func TestChartsAreThere(t *testing.T) {
	var want, have []string
	for _, m := range search.Models() {
		for i := range m.Broken {
			want = append(want, chartName(&m, &m.Broken[i]))
		}
	}
	files, err := os.ReadDir("../charts")
	require.NoError(t, err)
	for _, f := range files {
		have = append(have, f.Name())
	}
	require.ElementsMatch(t, want, have)
}
