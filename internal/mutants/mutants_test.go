package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the top of the tree.
var root = filepath.Join("..", "..")

// TestMistakesApply: each mistake changes one place of a file that exists.
func TestMistakesApply(t *testing.T) {
	require.GreaterOrEqual(t, len(mistakes), 40)
	seen := map[mistake]bool{}
	for _, m := range mistakes {
		text, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		_, err = m.mutated(string(text))
		require.NoError(t, err, m.what)
		require.NotEmpty(t, m.test, m.what)
		m.what = ""
		require.False(t, seen[m], "twice: %+v", m)
		seen[m] = true
	}
}

// TestSomeAreFound: tests find two of the mistakes, others every day; make mutants-reports has all.
func TestSomeAreFound(t *testing.T) {
	day := int(time.Now().Unix() / (24 * 60 * 60))
	for i := range 2 {
		m := mistakes[(2*day+i)%len(mistakes)]
		how, err := m.try(t.Context(), root)
		require.NoError(t, err, "%s: %s", m.file, m.what)
		t.Logf("%s: %s: %s", m.file, m.what, how)
	}
}

// TestMissed: a change that no test notices, one that does not compile, tests that do not exist and
// text that does not occur are not found mistakes.
func TestMissed(t *testing.T) {
	m := mistake{file: "internal/mutants/mistake.go", from: "// errNotFound means that", to: "// errNotFound says that", test: "TestMistakesApply"}
	_, err := m.try(t.Context(), root)
	require.ErrorIs(t, err, errNotFound)
	m.to = "\nnonsense"
	_, err = m.try(t.Context(), root)
	require.ErrorContains(t, err, "FAIL")
	m.to, m.test = "// x", "TestNoSuch"
	_, err = m.try(t.Context(), root)
	require.ErrorContains(t, err, "names no test")
	m.from = "no such text" + " in the file"
	_, err = m.try(t.Context(), root)
	require.ErrorContains(t, err, "occurs 0 times")
	m.file = "internal/none.go"
	_, err = m.try(t.Context(), root)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestList(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"--list", "--only", "pcie"}, &out, &errs))
	require.Contains(t, out.String(), "bench/internal/papers/pcie.go: a packet on PCI Express without LCRC\n")
	require.Equal(t, 2, run(t.Context(), []string{"--none"}, &out, &errs))
}
