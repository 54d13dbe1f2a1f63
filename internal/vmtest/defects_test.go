//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDefectsApply: each patch of the table is there, each patch that is there is
// in the table, and what it changes stands in its file, once.
func TestDefectsApply(t *testing.T) {
	var named []string
	for _, j := range jobs {
		if j.defect != "" && !slices.Contains(named, j.defect+".patch") {
			named = append(named, j.defect+".patch")
		}
	}
	entries, err := os.ReadDir("defects")
	require.NoError(t, err)
	var there []string
	for _, e := range entries {
		there = append(there, e.Name())
		text, err := os.ReadFile(filepath.Join("defects", e.Name()))
		require.NoError(t, err)
		checkPatch(t, e.Name(), string(text))
	}
	require.ElementsMatch(t, there, named)
}

// checkPatch checks what a patch changes in each of its files.
func checkPatch(t *testing.T, name, text string) {
	t.Helper()
	require.Contains(t, text, "\n@@", name)
	for _, part := range strings.Split(text, "--- a/")[1:] {
		file, _, _ := strings.Cut(part, "\n")
		source, err := os.ReadFile(filepath.Join("..", "..", file))
		require.NoError(t, err, name)
		for _, hunk := range strings.Split(part, "\n@@")[1:] {
			require.Equal(t, 1, strings.Count(string(source), before(hunk)), "%s changes this in %s:\n%s", name, file, before(hunk))
		}
	}
}

// before returns the lines that a hunk expects.
func before(hunk string) string {
	var old strings.Builder
	for _, line := range strings.SplitAfter(hunk, "\n")[1:] { // after its position
		if line != "" && line[0] != '+' {
			old.WriteString(line[1:])
		}
	}
	return old.String()
}
