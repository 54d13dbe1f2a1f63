//go:build cgo

package firmware

import (
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSourcesAreEmbedded: the build cache does not track a file that is not embedded, and a vendored
// copy lacks it.
func TestSourcesAreEmbedded(t *testing.T) {
	for _, room := range []string{".", "core", "link", "port", "programs"} {
		names, err := filepath.Glob(filepath.Join(room, "*.[ch]"))
		require.NoError(t, err)
		require.NotEmpty(t, names)
		for _, name := range names {
			_, err := fs.Stat(sources, name)
			require.NoError(t, err)
		}
	}
}
