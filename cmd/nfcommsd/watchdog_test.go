package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// stuck is a program that never gives its island back.
const stuck = `#include "nfc_fw.h"

static void stuck_main(struct nfc_process *self)
{
	(void)self;
	for (volatile int i = 0;; i++)
		;
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "stuck", stuck_main });
`

// build compiles a device program.
func build(t *testing.T, source string) []byte {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "p.c"), []byte(source), 0o600))
	out, err := exec.Command("gcc", "-std=c11", "-O1", "-shared", "-fPIC", "-DNFC_PROGRAM_SHARED", "-I../../firmware",
		"-o", filepath.Join(dir, "p.so"), filepath.Join(dir, "p.c")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	image, err := os.ReadFile(filepath.Join(dir, "p.so"))
	require.NoError(t, err)
	return image
}

// TestWatchdog: the daemon notifies systemd while the firmware answers, and
// no longer once it hangs. The daemon itself still serves and reports what is wrong.
func TestWatchdog(t *testing.T) {
	p := newProcess(t, "--devices", "sim0=sim:?islands=1", "--health-timeout", "100ms", "--health-interval", "100ms")
	p.env = append(p.env, "WATCHDOG_USEC=300000")
	p.run()
	p.await("READY=1")
	for range 3 {
		p.await("WATCHDOG=1")
	}
	p.await("STATUS=1 of 1 devices serve")

	c := p.client()
	image := build(t, stuck)
	_, err := c.LoadProgram(deadline(t), &nfcommsv1.LoadProgramHeader{Parent: "devices/sim0", SizeBytes: uint64(len(image))}, bytes.NewReader(image), nil)
	require.NoError(t, err)
	_, _ = c.Devices.StartProgram(deadline(t), &nfcommsv1.StartProgramRequest{Name: "devices/sim0/programs/stuck"}) // nobody is left to answer
	p.await("STATUS=0 of 1 devices serve")
	require.Eventually(t, func() bool {
		return bytes.Contains([]byte(p.log.String()), []byte("watchdog not answered"))
	}, patience, 10*time.Millisecond)
	for len(p.notified) > 0 {
		<-p.notified // from before
	}
	for range 4 {
		line := p.await("")
		require.NotEqual(t, "WATCHDOG=1", line, "the firmware hangs")
	}
	require.Equal(t, healthpb.HealthCheckResponse_NOT_SERVING, healthOf(t, c, ""))
	p.stop() // firmware that hangs does not keep the daemon
}

// TestLiveness: a restart is worth it only if it could help.
func TestLiveness(t *testing.T) {
	const (
		opening, ready = nfcommsv1.Device_STATE_OPENING, nfcommsv1.Device_STATE_READY
		degraded       = nfcommsv1.Device_STATE_DEGRADED
		drained        = nfcommsv1.Device_STATE_DRAINED
		resetting      = nfcommsv1.Device_STATE_RESETTING
		failed         = nfcommsv1.Device_STATE_FAILED
	)
	type states = map[string]nfcommsv1.Device_State
	l := liveness{known: make(map[string]bool)}
	for i, step := range []struct {
		why  string
		now  states
		want bool
	}{
		{"no device", states{}, true},
		{"not open yet", states{"a": opening}, true},
		{"never opened", states{"a": failed}, true},
		{"it answers", states{"a": ready}, true},
		{"being reset", states{"a": resetting}, true},
		{"drained", states{"a": drained}, true},
		{"it answered once", states{"a": failed}, false},
		{"another does", states{"a": failed, "b": degraded}, true},
		{"none does", states{"a": failed, "b": failed}, false},
		{"a new one never did", states{"a": failed, "b": failed, "c": failed}, false},
		{"the dead are removed", states{"c": failed}, true},
		{"back under its name", states{"a": failed}, true},
	} {
		require.Equal(t, step.want, l.decide(step.now), "step %d: %s", i, step.why)
	}
}
