package prom

import (
	"bufio"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/subprocess"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// daemon builds and starts nfcommsd, and returns the address of its metrics and
// of its control plane.
func daemon(t *testing.T) (metrics, address string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "daemon") // short: a socket's path is limited
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	program, socket := filepath.Join(dir, "nfcommsd"), filepath.Join(dir, "s")
	require.NoError(t, subprocess.Program(t.Context(), program, "../../cmd/nfcommsd"))
	cmd := exec.Command(program, "--socket-path", socket, "--http-address", "127.0.0.1:0", "--http-channels", "--http-trace", "1",
		"--devices", "sim0=sim:,sim1=sim:,absent=dev:999999", "--log-format", "json")
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stderr = w
	require.NoError(t, cmd.Start())
	w.Close()
	said, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(r); lines.Scan(); {
			var line struct{ Msg, Address string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "Listening on" {
				said <- line.Address
			}
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		<-done
		require.NoError(t, cmd.Wait())
		r.Close()
	})
	select {
	case metrics = <-said:
	case <-done:
		require.FailNow(t, "nfcommsd ended")
	case <-time.After(patience):
		require.FailNow(t, "nfcommsd does not listen")
	}
	return metrics, "unix://" + socket
}

// remoteLoad keeps a daemon's device busy through the control plane, until the
// test ends: messages both ways, calls that time out, a sender that waits.
func remoteLoad(t *testing.T, c *control.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	started, err := c.Devices.StartProgram(ctx, &nfcommsv1.StartProgramRequest{Name: "devices/sim0/programs/hold"})
	require.NoError(t, err)
	echo := control.ChannelName("sim0", nfcomms.Loopback)
	silent := control.ChannelName("sim0", nfcomms.Target(started.GetProcess().GetFirstTarget()))
	for _, name := range []string{echo, silent} {
		_, err := c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
		require.NoError(t, err)
	}
	wg.Go(func() { _ = c.Send(ctx, silent, []byte("waits")) })
	wg.Go(func() {
		for ctx.Err() == nil {
			for range 20 {
				_ = c.Send(ctx, echo, []byte("hello"))
				_, _ = c.Receive(ctx, echo)
			}
			late, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			_, _ = c.Receive(late, echo) // nothing comes
			cancel()
			time.Sleep(loadPause)
		}
	})
}

// bulk are the panels about transfers, which do not go through a daemon.
var bulk = map[string]bool{
	"Mean transfer size": true, "Transfer sends": true, "Transfer receives": true, "Window in use": true,
	"Transfer sends by layer": true, "Transfer receives by layer": true,
}

// TestDashboardDaemon runs every expression against a Prometheus that scrapes
// nfcommsd under load, with one device that does not open.
func TestDashboardDaemon(t *testing.T) {
	t.Parallel()
	metrics, address := daemon(t)
	c, err := control.Dial(address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	remoteLoad(t, c)
	s := serve(t, false, metrics)
	until(t, s, `count_over_time(nfcomms_resets_total{device="sim1"}[1m]) > 3`, some)
	reset := func() {
		_, err := c.Devices.ResetDevice(t.Context(), &nfcommsv1.ResetDeviceRequest{Name: "devices/sim1"})
		require.NoError(t, err)
	}
	reset()
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if bulk[p.Title] {
				_, err := s.Query(t.Context(), concrete(target.Expr))
				require.NoError(t, err)
			} else {
				answers(t, s, p.Title, target.Expr, target.LegendFormat)
			}
		}
	}
	reset() // the panels may have taken longer than annotations look back
	for _, a := range d.Annotations.List {
		if a.Expr != "" {
			until(t, s, concrete(a.Expr), some)
		}
	}
	for expr, want := range map[string]float64{
		`nfcomms_device_state{device="sim0",state="ready"}`:       1,
		`nfcomms_device_state{device="absent",state="failed"}`:    1,
		`nfcomms_device_failure{device="absent",code="not_open"}`: 1,
		`count(up{job="nfcomms"} == 1)`:                           1,
	} {
		until(t, s, expr, func(all []Sample) bool { return len(all) == 1 && math.Abs(all[0].Value-want) < 1e-9 })
	}
}
