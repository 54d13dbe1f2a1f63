package kubernetes

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// inside marks the process that has a /var/lib of its own: the kubelet's folders are fixed.
const inside = "NFCOMMS_TEST_INSIDE"

// programs is the folder of what build built.
var programs string

func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(run(m))
	}
	mount := `mount -t tmpfs none /var/lib && exec "$0" "$@"`
	cmd := exec.Command("unshare", append([]string{"--user", "--map-root-user", "--mount", "sh", "-c", mount}, os.Args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), inside+"=1"), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "unshare:", err)
		os.Exit(1)
	}
}

// run runs the tests with a folder for programs.
func run(m *testing.M) int {
	var err error
	if programs, err = os.MkdirTemp("", "nfk"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(programs) }() // what is left is the system's
	return m.Run()
}

// build builds a program of the workspace, once for all tests, and returns its path.
func build(t *testing.T, pkg string) string {
	path := filepath.Join(programs, filepath.Base(pkg))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", path, pkg)
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOWORK=") // with the modules of the tree
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}
