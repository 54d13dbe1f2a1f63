//go:build linux

package main

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPeersOfTwoProcesses: a device of another process is held against its own goals, and
// libraries in C are measured like the others.
func TestPeersOfTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	program, path := filepath.Join(dir, "nfsim"), filepath.Join(dir, "s")
	text, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../cmd/nfsim").CombinedOutput()
	require.NoError(t, err, "%s", text)
	device := exec.Command(program, "--shm", path)
	require.NoError(t, device.Start())
	t.Cleanup(func() {
		_ = device.Process.Kill() // it may have ended
		_ = device.Wait()
	})
	require.Eventually(t, func() bool { // a socket is there before anybody listens
		c, err := net.Dial("unixpacket", path)
		return err == nil && c.Close() == nil
	}, time.Minute, time.Millisecond)
	t.Setenv("PATH", fakeToolchain(t, fakePeer))
	var r PeersReport
	decode(t, mustRun(t, append(tinyPeers, "--address", "shm:"+path, "--output", "json", "--sizes", "1MiB")...), &r)
	require.Empty(t, r.NotMeasured)
	require.Len(t, r.Bulk, 3*(bulkSides+2+len(nativeLibraries)))
	require.Len(t, r.Small, smallSides+len(nativeLibraries))
	require.Equal(t, nameMPI, r.Small[smallSides].Peer)
	require.Equal(t, doesEcho, r.Small[smallSides].Does)
	require.InDelta(t, 10, r.Small[smallSides].P50Ns, 1, "batches of 100 that take 1000 ns")
	ids := map[string]int{}
	for _, g := range r.Goals {
		ids[g.ID]++
	}
	require.Equal(t, map[string]int{"T1": 1, "T1e": 1, "T2": 2, "T3": 2, "T4": 1, "T7": 8, "T8": 2, "T12": 4}, ids)
}
