package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/program"
)

// TestEmbedded: without an image the program says what to do; with one in place of what go generate
// writes it computes the checksum with nothing but itself.
func TestEmbedded(t *testing.T) {
	image, err := program.Build(t.Context(), os.DirFS("../program/device"), program.Options{})
	require.NoError(t, err)
	dir, err := filepath.Abs("image")
	require.NoError(t, err)
	there, object := filepath.Join(dir, "checksum.so"), filepath.Join(t.TempDir(), "checksum.so")
	require.NoError(t, os.WriteFile(object, image, 0o600))
	for want, instead := range map[string]string{"run go generate first": "", "751f90f8\n": object} {
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {there: instead}})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "overlay")
		require.NoError(t, os.WriteFile(file, overlay, 0o600))
		binary := filepath.Join(t.TempDir(), "embedded")
		out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", file, "-o", binary, ".").CombinedOutput()
		require.NoError(t, err, "%s", out)
		cmd := exec.CommandContext(t.Context(), binary)
		cmd.Env = []string{"PATH=/nonexistent"}
		out, err = cmd.CombinedOutput()
		require.Equal(t, instead != "", err == nil, "%s", out)
		require.Contains(t, string(out), want)
	}
}
