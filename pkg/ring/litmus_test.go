//go:build linux

package ring

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLitmusCompiled: the heads of the report, volatile and without order, fail as
// soon as a compiler knows where the packet is; those of the SYNC points do not.
func TestLitmusCompiled(t *testing.T) {
	source, err := filepath.Abs("../../kmod/lib/test/ring_litmus.c")
	require.NoError(t, err)
	for _, level := range []string{"-O0", "-O1", "-O2", "-O3"} {
		for _, heads := range []string{"-DSYNC", "-DVOLATILE"} {
			program := filepath.Join(t.TempDir(), "litmus")
			out, err := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", level, heads,
				"-pthread", "-o", program, source).CombinedOutput()
			require.NoError(t, err, "gcc (install it with: apt-get install gcc libc6-dev): %s", out)
			for _, side := range []string{"write", "read"} {
				says, err := exec.CommandContext(background(t), program, side).Output()
				require.NoError(t, err)
				switch {
				case heads == "-DSYNC":
					require.Equal(t, "right\n", string(says), "%s %s %s", level, heads, side)
				case level != "-O0":
					require.Contains(t, string(says), "was wrong", "%s %s %s", level, heads, side)
				case runtime.GOARCH == "amd64": // nothing is moved: the luck of the report
					require.Equal(t, "right\n", string(says), "%s %s %s", level, heads, side)
				}
			}
		}
	}
}
