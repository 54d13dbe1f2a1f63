package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/testcert"
)

// TestFabricOfProcesses: the fabric of other processes is drawn, and its links are cut and
// mended, as it is: with links that carry nothing, for which nobody waits.
func TestFabricOfProcesses(t *testing.T) {
	d := newSharedDevice(t)
	pair := testcert.New(t).Issue(t, "node", "")
	cert, key := filepath.Join(t.TempDir(), "c"), filepath.Join(t.TempDir(), "k")
	require.NoError(t, os.WriteFile(cert, pair.Cert, 0o600))
	require.NoError(t, os.WriteFile(key, pair.Key, 0o600))
	nobody := strings.Repeat("0", 64)
	d.start(nil, "--node", "0.0.0", "--torus", "2x1x1", "--listen", "127.0.0.1:0", "--peer", "1.0.0="+nobody, "--certificate", cert, "--key", key)
	do := func(args ...string) string {
		t.Helper()
		r := nfctl(t.Context(), t, append(args, "--device", "shm:"+d.path)...)
		require.Equal(t, exitOK, r.code, "%v: %s%s", args, r.out, r.err)
		return r.out
	}
	require.Contains(t, do("fabric", "--interval", "0"), "0 normal, 0 sick, 2 broken, 0 unknown")
	require.Contains(t, do("fabric", "link", "cut", "0.0.0", "x+"), "cut")
	require.Contains(t, do("fabric", "link", "mend", "0.0.0", "x+"), "mended")
	require.Contains(t, nfctl(t.Context(), t, "fabric", "link", "test", "0.0.0", "x+", "--device", "shm:"+d.path).err, "link")
}
