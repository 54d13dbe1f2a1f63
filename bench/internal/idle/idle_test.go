//go:build linux

package idle

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
)

// TestIdle: the time of the device's process is found, and of clients that do nothing.
func TestIdle(t *testing.T) {
	address := clitest.StartDevice(t, "--hosts", "64", "--beat", "10ms")
	var r Report
	clitest.Decode(t, clitest.MustRun(t, "idle", "--address", address, "--clients", "1,3", "--duration", "200ms", "--output", "json"), &r)
	require.Len(t, r.Rows, 2)
	for i, n := range []int{1, 3} {
		require.Equal(t, n, r.Rows[i].Clients)
		require.Positive(t, r.Rows[i].DevicePercent)
	}
	require.Empty(t, r.Goals)
	r.Rows[1].Clients = idleMost
	require.Len(t, r.goals(), 1)
	require.Contains(t, clitest.MustRun(t, "idle", "--address", address, "--clients", "2", "--duration", "10ms"), "a client")
	code, _, errs := clitest.Run(t.Context(), "idle", "--address", "shm:"+filepath.Join(t.TempDir(), "s"))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "no device process")
}

// TestIdleColumns: percent of a core, of the device and of all clients; a client has its part.
func TestIdleColumns(t *testing.T) {
	row := rowOf(64, 2*time.Second, time.Millisecond, 4*time.Millisecond)
	require.Equal(t, Row{Clients: 64, Seconds: 2, DevicePercent: 0.05, ClientsPercent: 0.2}, row)
	r := &Report{Rows: []Row{row}}
	r.Goals = r.goals()
	require.Equal(t, "missed by 25 %", r.Goals[0].Result)
	var b strings.Builder
	r.Table(&b)
	require.Regexp(t, `\n64 +2\.0 +0\.0500 % +0\.2000 % +0\.0031 %\n`, b.String())
	r.Rows[0].DevicePercent = 0
	require.Equal(t, cli.ResultReached, r.goals()[0].Result)
}

func TestIdleBadInput(t *testing.T) {
	for _, c := range []struct{ flag, value, says string }{
		{"--address", "sim:", "is no device that processes share"},
		{"--clients", "0", "--clients [0]: want numbers from 1 to 64"},
		{"--duration", "0s", "--duration 0s is not a positive time"},
	} {
		code, _, errs := clitest.Run(t.Context(), "idle", "--address", "shm:/s", c.flag, c.value)
		require.Equal(t, cli.ExitUsage, code)
		require.Contains(t, errs, c.says)
	}
}
