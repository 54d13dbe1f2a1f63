package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompatible: scripts/compatible.sh finds what a change of a released module takes from its
// users, and accepts it once the changelog announces it.
func TestCompatible(t *testing.T) {
	script, err := filepath.Abs("../../scripts/compatible.sh")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) { t.Helper(); write(t, dir, name, text) }
	git := func(args ...string) {
		t.Helper()
		output(t, dir, author, "git", args...)
	}
	compare := func(good bool, finds ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), script, dir)
		out, err := cmd.CombinedOutput()
		require.Equal(t, good, err == nil, "%s", out)
		for _, f := range finds {
			require.Contains(t, string(out), f)
		}
		lines := regexp.MustCompile(`(?m)^go: downloading .*\n`).ReplaceAllString(string(out), "") // the tools, the first time
		require.Equal(t, len(finds), strings.Count(lines, "\n"), "%s", out)
	}
	write("go.mod", "module example.org/m\n\ngo 1.26.0\n")
	write("pkg/p/p.go", "package p\n\nfunc F() {}\n\nfunc G() {}\n")
	write("pkg/q/q.go", "package q\n\nconst C = 1\n")
	write("docs/metrics.md", "`nfcomms_one_total` and `nfcomms_two_total`\n")
	write("CHANGELOG.md", "# Changelog\n\n## v0.1.0\n\n* [Break] long ago\n")
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	compare(true, "no release to compare with")
	git("tag", "v0.1.0")
	write("pkg/p/p.go", "package p\n\nfunc F() {}\n\nfunc G() {}\n\nfunc H() {}\n")
	git("commit", "-qam", "more")
	compare(true, "nothing that v0.1.0 had is gone")

	write("pkg/p/p.go", "package p\n\nfunc F(int) {}\n")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "pkg/q")))
	write("docs/metrics.md", "`nfcomms_two_total`\n")
	breaks := []string{"m/pkg/p: F: changed from func() to func(int)", "m/pkg/p: G: removed", "m/pkg/q: removed", "metric: removed nfcomms_one_total"}
	compare(false, append(breaks, "announce it as [Break]")...)
	write("CHANGELOG.md", "# Changelog\n\n## Unreleased\n\n* [Break] F takes a number.\n\n## v0.1.0\n\n* [Break] long ago\n")
	compare(true, append(breaks, "as the changelog announces")...)
}
