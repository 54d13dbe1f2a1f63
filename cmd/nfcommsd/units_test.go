package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/config"
	"github.com/nfcomms/nfcomms/cmd/nfcommsd/internal/listen"
)

const unitFolder = "../../deploy/systemd"

// mostExposed is the exposure, in tenths, that systemd may find in the service.
// The rest is the daemon's task: sockets, devices, the ids of callers.
const mostExposed = "17"

// units copies the units to a folder, with a program that is there, and returns
// their text by name.
func units(t *testing.T) (dir string, text map[string]string) {
	dir, text = t.TempDir(), make(map[string]string)
	files, err := os.ReadDir(unitFolder)
	require.NoError(t, err)
	for _, f := range files {
		raw, err := os.ReadFile(filepath.Join(unitFolder, f.Name()))
		require.NoError(t, err)
		text[f.Name()] = string(raw)
		local := regexp.MustCompile(`/usr/bin/nf\w+`).ReplaceAllString(string(raw), "/bin/true")
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name()), []byte(local), 0o600))
	}
	return dir, text
}

// analyze runs systemd-analyze, of Debian's package systemd.
func analyze(t *testing.T, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(deadline(t), "systemd-analyze", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestUnits: systemd finds nothing wrong with the units, and little to attack.
func TestUnits(t *testing.T) {
	dir, _ := units(t)
	out, err := analyze(t, dir, "verify", "--man=no", "./nfcommsd.service", "./nfcommsd.socket", "./nfcommsd-metrics.socket", "./nfsim@.service", "./nfsim@.socket")
	require.NoError(t, err, "%s", out)
	require.Empty(t, out)
	out, err = analyze(t, dir, "security", "--offline=true", "--no-pager", "--threshold="+mostExposed, "./nfcommsd.service")
	require.NoError(t, err, "%s", out)

	out, err = analyze(t, dir, "security", "--offline=true", "--no-pager", "--threshold=5", "./nfsim@.service")
	require.NoError(t, err, "%s", out)

	service := filepath.Join(dir, "nfcommsd.service")
	raw, err := os.ReadFile(service)
	require.NoError(t, err)
	soft := regexp.MustCompile(`(?m)^(Protect|Restrict|SystemCallFilter).*$`).ReplaceAll(raw, nil)
	require.NoError(t, os.WriteFile(service, soft, 0o600))
	_, err = analyze(t, dir, "security", "--offline=true", "--no-pager", "--threshold="+mostExposed, "./nfcommsd.service")
	require.Error(t, err, "the threshold tells a soft unit from this one")
}

// TestUnitsFitTheDaemon: what the units say is what the daemon does.
func TestUnitsFitTheDaemon(t *testing.T) {
	_, text := units(t)
	service := text["nfcommsd.service"]
	value := func(unit, key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(text[unit])
		require.NotNil(t, m, "%s lacks %s", unit, key)
		return m[1]
	}
	c := config.Default()
	require.Equal(t, c.Socket.Path, value("nfcommsd.socket", "ListenStream"))
	require.Equal(t, "0660", value("nfcommsd.socket", "SocketMode"))
	require.EqualValues(t, 0o660, c.Socket.Mode)
	require.Equal(t, listen.Control, value("nfcommsd.socket", "FileDescriptorName"))
	require.Equal(t, listen.Metrics, value("nfcommsd-metrics.socket", "FileDescriptorName"))
	require.Equal(t, filepath.Base(filepath.Dir(c.Socket.Path)), value("nfcommsd.service", "RuntimeDirectory"))
	require.Equal(t, "2", value("nfcommsd.service", "RestartPreventExitStatus"))
	require.Equal(t, 2, exitConfig)
	require.Contains(t, service, "Type=notify\n")
	require.Equal(t, "nfcommsd.socket nfcommsd-metrics.socket", value("nfcommsd.service", "Sockets"))
	check := strings.Replace(value("nfcommsd.service", "ExecStart"), " --config", " --check --config", 1)
	require.Equal(t, check, value("nfcommsd.service", "ExecReload"), "a reload checks first what the daemon reads")
	stop, err := time.ParseDuration(value("nfcommsd.service", "TimeoutStopSec") + "s")
	require.NoError(t, err)
	require.Greater(t, stop, c.Drain.Timeout+lastGrace+flushTime, "the daemon ends before systemd kills it")
	watch, err := time.ParseDuration(value("nfcommsd.service", "WatchdogSec") + "s")
	require.NoError(t, err)
	require.Greater(t, watch/3, c.Health.Timeout+c.Health.Interval, "a round trip fits into a turn of the watchdog")

	sample, err := os.ReadFile("../../deploy/config/nfcommsd.yaml")
	require.NoError(t, err)
	require.Contains(t, string(sample), `address: "unix:`+value("nfcommsd-metrics.socket", "ListenStream")+`"`)
	require.Contains(t, string(sample), "group: "+value("nfcommsd-metrics.socket", "SocketGroup")+"\n")
	require.Contains(t, text["nfcommsd.sysusers"], "m nfcomms "+value("nfcommsd-metrics.socket", "SocketGroup")+"\n")
}
