//go:build cgo

package firmware

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRoomsAreBuilt: every C file of a room is in the room's unit, and the unit has no other.
func TestRoomsAreBuilt(t *testing.T) {
	const folder = "../../firmware/"
	for _, room := range []string{"core", "link", "port", "programs"} {
		unit, err := os.ReadFile(room + ".c")
		require.NoError(t, err)
		var built []string
		for line := range strings.Lines(string(unit)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), `#include "`); ok {
				built = append(built, folder+strings.TrimSuffix(name, `"`))
			}
		}
		wanted, err := filepath.Glob(folder + room + "/*.c")
		require.NoError(t, err)
		require.ElementsMatch(t, wanted, built, "%s.c", room)
	}
}
