package subprocess

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestOutputIsBounded: a command ends although a process that left its group keeps its output open.
func TestOutputIsBounded(t *testing.T) {
	said, err := Command(t.Context(), "sh", "-c", "echo ready; setsid sleep 10 &").CombinedOutput()
	require.ErrorIs(t, err, exec.ErrWaitDelay)
	require.Equal(t, "ready\n", string(said))
}

// TestProgram: a program is built where it shall be, and one that is not there is an error.
func TestProgram(t *testing.T) {
	out := filepath.Join(t.TempDir(), "hello")
	require.NoError(t, Program(t.Context(), out, "../../examples/hello"))
	require.FileExists(t, out)
	require.ErrorContains(t, Program(t.Context(), out, "./nothing"), "build ./nothing: exit status 1")
}
