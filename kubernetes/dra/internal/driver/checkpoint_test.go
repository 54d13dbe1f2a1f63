package driver

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// TestCheckpoint: a restart finds what was noted, and nothing that was not; a write that fails changes
// nothing. A file that cannot be read ends the driver with a line that names it.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "checkpoint.json")
	c, err := openCheckpoint(path)
	require.NoError(t, err)
	require.Empty(t, c.all())
	one := prepared{Namespace: "default", Name: "one", Devices: []given{{Request: "r", Device: "s", Name: "s", Share: "5", parts: parts{Clients: 1, Channels: 125}}}}
	require.NoError(t, c.set("1", &one))
	require.NoError(t, c.set("2", &prepared{Name: "two"}))
	require.NoError(t, c.set("2", nil))
	require.NoError(t, c.set("2", nil))

	c, err = openCheckpoint(path)
	require.NoError(t, err)
	require.Equal(t, map[types.UID]prepared{"1": one}, c.all())
	c.path = filepath.Join(dir, "none", "checkpoint.json")
	require.Error(t, c.set("1", nil))
	got, is := c.get("1")
	require.True(t, is)
	require.Equal(t, one, got)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)

	for _, bad := range []string{"", "{", `{"version": 2}`, `{"version": 1, "claims": []}`} {
		require.NoError(t, os.WriteFile(path, []byte(bad), 0o600))
		_, err = openCheckpoint(path)
		require.ErrorContains(t, err, path, "%q", bad)
	}
}
