package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestChangelogHasTheRelease: the changelog has a section for the version of the tree.
func TestChangelogHasTheRelease(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	require.NoError(t, err)
	require.Contains(t, string(changes), "\n## "+release(t, "../..")+"\n")
}

// TestReleaseRefuses: each reason for which no release is made, in the order in which they are met.
func TestReleaseRefuses(t *testing.T) {
	script, err := os.ReadFile("../../scripts/release.sh")
	require.NoError(t, err)
	dir := t.TempDir()
	write := func(name, text string) { t.Helper(); write(t, dir, name, text) }
	commit := func() {
		t.Helper()
		output(t, dir, nil, "git", "add", ".")
		output(t, dir, author, "git", "commit", "-qm", "one")
	}
	refused := func(version, why string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "scripts/release.sh", version)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CHECKS=false")
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, "release: "+why+"\n", string(out))
		require.NoDirExists(t, filepath.Join(dir, "bin", version), "after a refusal")
	}
	write("scripts/release.sh", string(script))
	write("kmod/nfcm_kmod.h", "#define NFCM_MODULE_VERSION \"1.2.3\"\n")
	write("CHANGELOG.md", "# Changelog\n\n## v1.2.30\n\n* another\n")
	output(t, dir, nil, "git", "init", "-q")
	commit()
	for _, bad := range []string{"", "1.2.3", "v1.2", "v1.2.3-rc1", "v1.2.3/../x"} {
		refused(bad, `VERSION is as v1.2.3, not "`+bad+`"`)
	}
	refused("v1.2.4", "kmod/nfcm_kmod.h has v1.2.3: change NFCM_MODULE_VERSION there first")
	refused("v1.2.3", `CHANGELOG.md has no section "## v1.2.3"`)
	write("CHANGELOG.md", "# Changelog\n\n## v1.2.3 (today)\n\n* new\n")
	refused("v1.2.3", "there are changes without a commit")
	commit()
	refused("v1.2.3", "the checks failed")
}
