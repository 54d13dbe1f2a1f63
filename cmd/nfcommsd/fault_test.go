package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Bounds of descriptors.
const (
	noMore = 3 // the standard streams: no other may be opened, however many are
	enough = 1024
)

// descriptors bounds the descriptors that the daemon may open.
func (p *process) descriptors(most int) {
	out, err := exec.Command("prlimit", fmt.Sprintf("--pid=%d", p.cmd.Process.Pid), fmt.Sprintf("--nofile=%d:", most)).CombinedOutput()
	require.NoError(p.t, err, "%s", out)
}

// TestNoDescriptors: a daemon out of descriptors serves whom it has, keeps its
// configuration, costs no processor and takes new clients once it has some again.
func TestNoDescriptors(t *testing.T) {
	p := newProcess(t)
	path := p.file("c.yaml", "devices:\n  sim0: \"sim:\"\n")
	p.args = append(p.args, "--config", path)
	p.run()
	p.await("READY=1")
	old := p.client()
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, old, ""))
	p.descriptors(noMore)

	conn, err := net.Dial("unix", p.socket) // the kernel takes it, the daemon cannot
	require.NoError(t, err)
	defer conn.Close()
	before := processorTime(t, p)
	p.signal(syscall.SIGHUP) // the daemon cannot notify systemd: that takes a descriptor
	require.Eventually(t, func() bool {
		return strings.Contains(p.log.String(), "the old one stays in force\" error=\"open "+path+": too many open files")
	}, patience, time.Millisecond)
	for range 20 {
		require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, old, ""))
		require.Equal(t, []string{"sim0 sim:"}, names(t, old))
		time.Sleep(50 * time.Millisecond)
	}
	require.Less(t, processorTime(t, p)-before, 10*time.Second, "it spins")

	p.descriptors(enough)
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, p.client(), ""))
	conn.Close() // it never shook hands: a stop would wait for it
	p.stop()
}

// reload makes the daemon read its configuration, which the log must answer.
func (p *process) reload(says string) {
	p.t.Helper()
	said := len(p.log.String())
	p.signal(syscall.SIGHUP)
	p.await("RELOADING=1")
	p.await("READY=1")
	require.Eventually(p.t, func() bool { return strings.Contains(p.log.String()[said:], says) }, patience, time.Millisecond, says)
}

// processorTime is what a daemon has used.
func processorTime(t testing.TB, p *process) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", p.cmd.Process.Pid))
	require.NoError(t, err)
	var ns int64
	_, err = fmt.Sscan(string(text), &ns)
	require.NoError(t, err)
	return time.Duration(ns)
}

// TestReloadOfWhatCannotBeRead: no file, a folder, a file that is cut off, or no
// text at all; the configuration in force stays, and the next good one is taken.
func TestReloadOfWhatCannotBeRead(t *testing.T) {
	const good = "devices:\n  sim0: \"sim:\"\n"
	p := newProcess(t)
	path := p.file("c.yaml", good)
	p.args = append(p.args, "--config", path)
	p.run()
	p.await("READY=1")
	c := p.client()
	for name, spoil := range map[string]func() error{
		"gone":    func() error { return nil },
		"folder":  func() error { return os.Mkdir(path, 0o755) },
		"cut off": func() error { return os.WriteFile(path, []byte("devices:\n  sim0: \"si"), 0o644) },
		"binary":  func() error { return os.WriteFile(path, []byte{0, 255, 1, 254, '\n'}, 0o644) },
		"a loop":  func() error { return os.Symlink(filepath.Base(path), path) },
	} {
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, spoil(), name)
		p.reload("the old one stays in force")
		require.Equal(t, []string{"sim0 sim:"}, names(t, c), name)
	}
	require.NoError(t, os.RemoveAll(path))
	p.file("c.yaml", "devices:\n  sim0: \"sim:\"\n  sim1: \"sim:\"\n")
	p.reload("configuration reloaded")
	require.Equal(t, []string{"sim0 sim:", "sim1 sim:"}, names(t, c))
	p.stop()
}

// TestReloadLosesADevice: one whose new address does not open is listed as
// failed, with why; the others serve as before, and the next reload can bring it back.
func TestReloadLosesADevice(t *testing.T) {
	p := newProcess(t)
	path := p.file("c.yaml", "devices:\n  a: \"sim:\"\n  b: \"sim:\"\n")
	p.args = append(p.args, "--config", path)
	p.run()
	p.await("READY=1")
	c := p.client()
	for _, address := range []string{"dev:999999", "dev:999"} {
		p.file("c.yaml", fmt.Sprintf("devices:\n  a: %q\n  b: \"sim:\"\n", address))
		p.reload("configuration reloaded")
		require.Equal(t, nfcommsv1.Device_STATE_FAILED, stateOf(t, c, "devices/a"), address)
		require.Equal(t, nfcommsv1.Device_STATE_READY, stateOf(t, c, "devices/b"), address)
	}
	p.file("c.yaml", "devices:\n  a: \"sim:\"\n  b: \"sim:\"\n")
	p.reload("configuration reloaded")
	require.Equal(t, nfcommsv1.Device_STATE_READY, stateOf(t, c, "devices/a"))
	p.stop()
}

// stateOf is the state of a device once it is open or failed.
func stateOf(t testing.TB, c *control.Client, name string) (state nfcommsv1.Device_State) {
	require.Eventually(t, func() bool {
		d, err := c.Devices.GetDevice(deadline(t), &nfcommsv1.GetDeviceRequest{Name: name})
		require.NoError(t, err)
		state = d.Device.State
		return state != nfcommsv1.Device_STATE_OPENING
	}, patience, time.Millisecond)
	return state
}

// TestReloadOfBrokenCertificates: those in use stay in use.
func TestReloadOfBrokenCertificates(t *testing.T) {
	ca, address, dir := testcert.New(t), freePort(t), t.TempDir()
	files := certificates(t, dir, ca.Issue(t, "server", ""), ca)
	p := start(t, append(files, "--tcp-address", address, "--roles-viewer", "cn:watcher")...)
	watcher := ca.Issue(t, "watcher", "").Client(t, ca)
	require.NoError(t, askTCP(t, address, watcher))
	other := ca.Issue(t, "other", "")
	for name, text := range map[string][]byte{"tls.crt": other.Cert, "tls.key": []byte("no key"), "ca.crt": nil} {
		path := filepath.Join(dir, name)
		right, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		p.reload("not reloaded, the old one")
		require.NoError(t, askTCP(t, address, watcher), name)
		require.NoError(t, os.WriteFile(path, right, 0o600))
	}
	p.stop()
}

// TestLogIsFull: a log that takes no more, and a service manager that is not
// there, do not keep a daemon from its work.
func TestLogIsFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer full.Close()
	p := newProcess(t)
	p.env = append(p.env, "NOTIFY_SOCKET="+filepath.Join(p.dir, "nobody"))
	p.cmd = exec.Command("/proc/self/exe", p.args...)
	p.cmd.Env, p.cmd.Stderr, p.cmd.Stdout = p.env, full, full
	p.launch()
	require.Eventually(t, func() bool { // the socket is there before it listens
		conn, err := net.Dial("unix", p.socket)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, patience, time.Millisecond)
	c := p.client()
	for range 5 {
		require.Equal(t, []string{"sim0 sim:"}, names(t, c))
		p.signal(syscall.SIGHUP)
	}
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, c, ""))
	p.stop()
}
