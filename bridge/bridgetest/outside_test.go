//go:build cgo

package bridgetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/subprocess"
)

// TestBackEndOutsideTheTree: a module of somebody else has all that a back end needs. It builds the
// one in testdata, with the firmware as its card, and runs it through the suite.
func TestBackEndOutsideTheTree(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	module := t.TempDir()
	for _, pattern := range []string{"testdata/card/*.go", "../../internal/firmware/*.c", "../../go.sum"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, f := range files {
			text, err := os.ReadFile(f)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(module, filepath.Base(f)), text, 0o600))
		}
	}
	text, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	name := regexp.MustCompile(`(?m)^module (.*)$`).FindStringSubmatch(string(text))[1]
	mod := strings.Replace(string(text), "module "+name, "module example.com/card", 1) +
		"\nrequire " + name + " v0.0.0\nreplace " + name + " => " + root + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(module, "go.mod"), []byte(mod), 0o600))
	// Not by CGO_CFLAGS, for which all packages with C would be compiled anew.
	flags := "package card\n\n// #cgo CFLAGS: -I" + filepath.Join(root, "firmware") + "\nimport \"C\"\n"
	require.NoError(t, os.WriteFile(filepath.Join(module, "flags.go"), []byte(flags), 0o600))
	cmd := subprocess.Command(t.Context(), "go", "test", "-short", "-count=1", "-v", ".")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod "+os.Getenv("GOFLAGS"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Greater(t, strings.Count(string(out), "--- PASS: TestConformance/"), 100, "cases of the suite")
}

// TestBackEndIsShort: an example that grows is none.
func TestBackEndIsShort(t *testing.T) {
	text, err := os.ReadFile("testdata/card/card.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 150)
}
