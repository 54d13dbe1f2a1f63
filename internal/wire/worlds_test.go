package wire

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// The header compiles freestanding and as a kernel module includes it.
func TestHeaderCompilesInOtherWorlds(t *testing.T) {
	const script = "../../firmware/test/worlds.sh"
	// Read by the test itself, so that the test cache notices an edit.
	for _, path := range []string{headerPath, script} {
		_, err := os.ReadFile(path)
		require.NoError(t, err)
	}
	requireTool(t, "gcc", "gcc")
	out, err := exec.Command("sh", script, "header").CombinedOutput()
	require.NoError(t, err, "%s", out)
}
