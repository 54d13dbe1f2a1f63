package support_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/support"
	_ "github.com/nfcomms/nfcomms/pkg/nfcomms" // registers every back end
)

var update = flag.Bool("update", false, "write the status of README.md")

const readme = "../../README.md"

// TestReadme: the status is the table.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(readme)
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(text), "\n## Status\n\n")
	is, after, found := strings.Cut(rest, "\n\n")
	require.True(t, found, "README.md has no status")
	want := strings.TrimSuffix(support.Markdown(), "\n")
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(before+"\n## Status\n\n"+want+"\n\n"+after), 0o644))
		return
	}
	require.Equal(t, want, is, "write it by: go test ./internal/support -args -update")
}

// TestEveryBackEndHasARow: each scheme that Open takes has one.
func TestEveryBackEndHasARow(t *testing.T) {
	var rows []string
	for _, e := range support.BackEnds {
		rows = append(rows, e.Scheme)
	}
	slices.Sort(rows)
	require.Equal(t, bridge.Schemes(), rows)
}

// TestDifferences: a device without an ability of its row is found.
func TestDifferences(t *testing.T) {
	dev, err := bridge.Open(t.Context(), "sim:", nil)
	require.NoError(t, err)
	defer dev.Close()
	require.Equal(t, []string{"sim: channels to other nodes: `At`, `Fabric`: false, the table says true"},
		support.Differences(t.Context(), "sim", dev))
	require.Equal(t, []string{"no row of tcp"}, support.Differences(t.Context(), "tcp", dev))
}
