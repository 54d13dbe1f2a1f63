//go:build cgo

package firmware

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoomsAreBuilt: every file of a room is one that the build cache and a vendored copy
// know of, and every C file is in its room's unit: what the compiler reads is what it should.
func TestRoomsAreBuilt(t *testing.T) {
	rooms, err := fs.Glob(sources, "*")
	require.NoError(t, err)
	require.Equal(t, []string{"core", "link", "port", "programs"}, rooms)
	for _, room := range rooms {
		unit, err := os.ReadFile(room + ".c")
		require.NoError(t, err)
		var wanted, built []string
		files, err := os.ReadDir(room)
		require.NoError(t, err)
		for _, f := range files {
			name := path.Join(room, f.Name())
			_, err := fs.Stat(sources, name)
			require.NoError(t, err, "%s is not embedded", name)
			if path.Ext(name) == ".c" {
				wanted = append(wanted, `#include "`+name+`"`)
			}
		}
		for line := range strings.Lines(string(unit)) {
			if strings.HasPrefix(line, "#include") {
				built = append(built, strings.TrimSpace(line))
			}
		}
		slices.Sort(built)
		require.Equal(t, wanted, built, "%s.c", room)
	}
}
