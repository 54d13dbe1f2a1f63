//go:build linux

package selftest

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/vmtest/wire"
)

// inGuest is set for every program of a guest.
var inGuest = os.Getenv("NFC_VM") == "1"

func TestMain(m *testing.M) {
	if !inGuest {
		os.Exit(0) // go test ./... on a host: there is nothing to hold to account
	}
	os.Exit(m.Run())
}

func TestEnvironment(t *testing.T) {
	dir, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, "/tmp", dir)
	require.Equal(t, dir, t.TempDir()[:4])
	require.Zero(t, os.Getuid())
	require.NotEqual(t, 1, os.Getpid())
	require.Greater(t, runtime.NumCPU(), 1)
}

func TestMounts(t *testing.T) {
	for _, name := range []string{
		"/proc/self/status", "/sys/kernel/debug", "/sys/bus/pci/devices", "/dev/null", "/dev/kmsg",
		"/dev/fd/0", "/dev/shm", wire.DevicePipe,
	} {
		_, err := os.Stat(name)
		require.NoError(t, err, name)
	}
	text, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.Contains(t, string(text), "tmpfs /tmp ")
}

// TestOutput writes what a serial line could lose or mangle.
func TestOutput(t *testing.T) {
	t.Log(strings.Repeat("all of it ", 2000))
	t.Log("tabs\tand\r\nlines, \x01\x7f\xff and ünïcode")
	for i := range 20 {
		t.Run("many", func(t *testing.T) { t.Log(i) })
	}
}
