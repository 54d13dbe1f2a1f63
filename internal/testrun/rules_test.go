package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRulesNeedTestsThatPassed: a rule fails with a test that was renamed,
// skipped, failed, or that ran for one back end alone.
func TestRulesNeedTestsThatPassed(t *testing.T) {
	folder := t.TempDir()
	document := filepath.Join(folder, "rules.md")
	require.NoError(t, os.WriteFile(document, []byte("**S1. A.**\n**S2. B.**\n| S1 | `p:TestA` |\n| S2 | `a/b` |\n"), 0o600))
	const p, sim, kdev = module + "p", module + "internal/sim", module + "internal/kdev"
	all := [][4]string{
		{"pass", p, "TestA"}, {"pass", p},
		{"pass", sim, "TestConformance/a/b"}, {"pass", sim},
		{"pass", kdev, "TestConformance/a/b"}, {"pass", kdev},
	}
	run := func(t *testing.T, rows [][4]string) (counts, string) {
		held, err := readRules(document)
		require.NoError(t, err)
		name := filepath.Join(t.TempDir(), "stream")
		require.NoError(t, os.WriteFile(name, []byte(stream(rows...)), 0o600))
		var out strings.Builder
		r := &runner{out: &output{w: &out}, allowed: skipList{p: {"*"}}, held: held}
		c := r.all([]suite{{"go", "x", "cat '" + name + "'"}}, 1)
		return c, out.String()
	}
	c, out := run(t, all)
	require.Equal(t, counts{passed: 3 + 2}, c, out)
	for name, seed := range map[string]struct {
		row  int
		to   [4]string
		says string
	}{
		"renamed":      {0, [4]string{"pass", p, "TestB"}, "rule S1: p TestA"},
		"skipped":      {0, [4]string{"skip", p, "TestA"}, "rule S1: p TestA"},
		"failed":       {0, [4]string{"fail", p, "TestA"}, "rule S1: p TestA"},
		"one back end": {4, [4]string{"pass", kdev, "TestConformance/a/c"}, "rule S2: internal/kdev TestConformance/a/b"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := append([][4]string(nil), all...)
			rows[seed.row] = seed.to
			c, out := run(t, rows)
			require.Positive(t, c.failed)
			require.Contains(t, out, seed.says+" did not pass")
		})
	}
}

func TestReadRules(t *testing.T) {
	none, err := readRules("")
	require.NoError(t, err)
	require.Zero(t, none.check(os.Stderr))
	_, err = readRules(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
	document := filepath.Join(t.TempDir(), "rules.md")
	require.NoError(t, os.WriteFile(document, []byte("**S1. A.**\n"), 0o600))
	_, err = readRules(document)
	require.ErrorContains(t, err, "S1 names no test")
}
