package subprocess

import (
	"os/exec"
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
