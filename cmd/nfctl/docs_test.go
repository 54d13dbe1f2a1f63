package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// docsFile is the document that the blocks below are written into.
const docsFile = "../../docs/nfctl.md"

// silent commands write no record.
var silent = []string{"cdi", "completion", "help", "man"}

// tree is the tree of commands as a person sees it.
func tree() *cobra.Command {
	root := newRoot(&app{})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// blocks are the parts of the document that the code knows.
func blocks() map[string]string {
	return map[string]string{"commands": commandBlock(), "exit": exitBlock(), "environment": environmentBlock(), "checks": checkBlock()}
}

func commandBlock() string {
	var b strings.Builder
	b.WriteString("| command | does |\n|---|---|\n")
	for _, c := range tree().Commands() {
		if !c.Hidden {
			fmt.Fprintf(&b, "| `nfctl %s` | %s |\n", c.Use, c.Short)
		}
	}
	return b.String()
}

func exitBlock() string {
	var b strings.Builder
	b.WriteString("| code | name | meaning |\n|---:|---|---|\n")
	for _, r := range exitTable {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", r.code, r.name, r.meaning)
	}
	return b.String()
}

func environmentBlock() string {
	names := make([]string, 0, len(flagEnv))
	for flag, env := range flagEnv {
		names = append(names, fmt.Sprintf("| `%s` | `--%s` |\n", env, flag))
	}
	slices.Sort(names)
	return "| variable | stands in for |\n|---|---|\n" + strings.Join(names, "") + "| `NO_COLOR` | `--no-color`, if it is not empty |\n"
}

func checkBlock() string {
	var b strings.Builder
	b.WriteString("| check | holds if |\n|---|---|\n")
	for _, c := range checks {
		fmt.Fprintf(&b, "| %s | %s |\n", c.name, c.about)
	}
	return b.String()
}

var block = regexp.MustCompile(`(?s)<!-- begin (.*?) -->\n(.*?)<!-- end -->`)

// TestDocs holds docs/nfctl.md to the code: commands, exit codes, environment
// and checks. -update writes them.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile(docsFile)
	require.NoError(t, err)
	want := blocks()
	written := block.ReplaceAllStringFunc(string(text), func(old string) string {
		name := block.FindStringSubmatch(old)[1]
		new, ok := want[name]
		require.True(t, ok, "docs/nfctl.md has a block %q that nothing stands for", name)
		delete(want, name)
		return "<!-- begin " + name + " -->\n" + new + "<!-- end -->"
	})
	require.Empty(t, want, "docs/nfctl.md has no block for these")
	if *update {
		require.NoError(t, os.WriteFile(docsFile, []byte(written), 0o600))
		return
	}
	require.Equal(t, written, string(text), "go test ./cmd/nfctl -run TestDocs -update mends docs/nfctl.md")
}

// TestEveryCommandIsDocumented: each has a text, a group and a record.
func TestEveryCommandIsDocumented(t *testing.T) {
	for _, c := range tree().Commands() {
		require.NotEmpty(t, c.Short, c.Name())
		require.NotRegexp(t, `[.]$`, c.Short, c.Name())
		_, ok := outputs[c.Name()]
		require.NotEqual(t, ok, slices.Contains(silent, c.Name()), c.Name())
		if ok {
			require.NotEmpty(t, c.GroupID, c.Name())
		}
		for _, line := range strings.Split(c.Long, "\n") {
			require.LessOrEqual(t, len(line), 100, "%s: %s", c.Name(), line)
		}
	}
}

// TestManPages writes the manual pages and has mandoc look for errors.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	var out, errs bytes.Buffer
	epoch := func(name string) string { return map[string]string{"SOURCE_DATE_EPOCH": "1700000000"}[name] }
	require.Equal(t, exitOK, run(t.Context(), []string{"man", dir}, streams{nil, &out, &errs}, epoch), errs.String())
	for _, c := range tree().Commands() {
		if c.Hidden || slices.Contains(silent, c.Name()) {
			continue
		}
		require.FileExists(t, filepath.Join(dir, "nfctl-"+c.Name()+".1"))
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	require.NoError(t, err)
	if _, err := exec.LookPath("mandoc"); err != nil && os.Getenv("NFC_REQUIRE_GCC") == "" {
		t.Log("mandoc is missing, the pages were not looked at: apt-get install mandoc")
		return
	}
	said, err := exec.Command("mandoc", append([]string{"-T", "lint", "-W", "warning"}, pages...)...).CombinedOutput()
	require.NoError(t, err, "%s", said)
	text, err := exec.Command("mandoc", "-T", "utf8", filepath.Join(dir, "nfctl.1")).Output()
	require.NoError(t, err)
	plain := regexp.MustCompile(".\b").ReplaceAllString(string(text), "")
	require.Contains(t, plain, "EXAMPLE")
	require.Contains(t, plain, "2023-11-14")
	for _, row := range exitTable {
		require.Contains(t, plain, row.name)
	}
}
