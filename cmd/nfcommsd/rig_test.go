package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// patience bounds what would otherwise hang.
const patience = 2 * time.Minute

// deadline is the context of one test.
func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// output collects what a process writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// process is nfcommsd in a process of its own, with this test as its systemd.
type process struct {
	t        testing.TB
	dir      string // others can reach it
	socket   string
	cmd      *exec.Cmd
	env      []string
	args     []string
	log      output
	notified chan string // lines of sd_notify
	exited   chan error  // room for one
}

// socketFolder makes a folder that others reach, with a path that is short enough for sockets.
func socketFolder(t testing.TB) string {
	dir, err := os.MkdirTemp("", "nfcommsd")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// newProcess prepares a daemon with a socket in a folder of its own.
func newProcess(t testing.TB, args ...string) *process {
	dir := socketFolder(t)
	p := &process{t: t, dir: dir, socket: filepath.Join(dir, "s"), notified: make(chan string, 4096)}
	// A device without a processor for some seconds has not failed.
	p.args = append([]string{"--socket-path", p.socket, "--log-level", "debug", "--health-timeout", "1m"}, args...)
	p.env = append(os.Environ(), childEnv+"=daemon", "NOTIFY_SOCKET="+p.notifySocket())
	return p
}

// notifySocket collects the notifications that the daemon sends to systemd.
func (p *process) notifySocket() string {
	path := filepath.Join(p.dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { conn.Close() })
	go func() {
		defer close(p.notified)
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			for _, line := range strings.Split(string(buf[:n]), "\n") {
				select {
				case p.notified <- line:
				default: // nobody looks any more
				}
			}
		}
	}()
	return path
}

// run starts the daemon without waiting for it.
func (p *process) run() {
	p.cmd = exec.Command("/proc/self/exe", p.args...)
	p.cmd.Env = p.env
	p.cmd.Stderr = &p.log
	p.cmd.Stdout = &p.log
	p.launch()
}

// launch starts the command and sees to its end.
func (p *process) launch() {
	require.NoError(p.t, p.cmd.Start())
	cmd, exited := p.cmd, make(chan error, 1)
	p.exited = exited
	gone := make(chan struct{})
	go func() {
		exited <- cmd.Wait()
		close(gone)
	}()
	p.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-gone
		if p.t.Failed() {
			p.t.Logf("the daemon's log:\n%s", p.log.String())
		}
	})
}

// start runs a daemon and waits until it is ready.
func start(t testing.TB, args ...string) *process {
	p := newProcess(t, args...)
	p.run()
	p.await("READY=1")
	return p
}

// await waits until the daemon sent systemd a line that begins like want.
func (p *process) await(want string) string {
	timeout := time.After(patience)
	for {
		select {
		case line := <-p.notified:
			if strings.HasPrefix(line, want) {
				return line
			}
		case err := <-p.exited:
			p.exited <- err
			p.t.Fatalf("the daemon ended (%v) before %q:\n%s", err, want, p.log.String())
		case <-timeout:
			p.t.Fatalf("no %q:\n%s", want, p.log.String())
		}
	}
}

// logged waits until the log says something: what a process wrote takes a moment
// to arrive.
func (p *process) logged(want string) {
	require.Eventually(p.t, func() bool { return strings.Contains(p.log.String(), want) }, patience, time.Millisecond, want)
}

// signal sends a signal.
func (p *process) signal(s os.Signal) { require.NoError(p.t, p.cmd.Process.Signal(s)) }

// end waits for the daemon's end and returns its exit code.
func (p *process) end() int {
	select {
	case err := <-p.exited:
		p.exited <- err
	case <-time.After(patience):
		p.t.Fatalf("the daemon does not end:\n%s", p.log.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// stop ends the daemon as systemd does.
func (p *process) stop() {
	p.signal(syscall.SIGTERM)
	require.Zero(p.t, p.end(), "exit code\n%s", p.log.String())
}

// client connects to the daemon's UNIX socket.
func (p *process) client(o ...grpc.DialOption) *control.Client {
	c, err := control.Dial("unix://"+p.socket, o...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

// fails runs a daemon that must not start, and returns its exit code and log.
func fails(t testing.TB, args ...string) (int, string) {
	p := newProcess(t, args...)
	p.run()
	code := p.end()
	return code, p.log.String()
}

// file writes a file of the daemon's folder and returns its path.
func (p *process) file(name, text string) string {
	path := filepath.Join(p.dir, name)
	require.NoError(p.t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// healthOf asks for the health of a service.
func healthOf(t testing.TB, c *control.Client, service string) healthpb.HealthCheckResponse_ServingStatus {
	r, err := c.Health.Check(deadline(t), &healthpb.HealthCheckRequest{Service: service})
	require.NoError(t, err)
	return r.Status
}

// probe is a client in a process of its own: it asks for health and prints the
// code of the answer.
func probe(address string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := control.Dial(address)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer c.Close()
	_, err = c.Health.Check(ctx, &healthpb.HealthCheckRequest{})
	fmt.Println(status.Code(err), status.Convert(err).Message())
	return 0
}

// probeAs runs probe as another user.
func probeAs(t testing.TB, address string, who *syscall.Credential) string {
	cmd := exec.CommandContext(deadline(t), "/proc/self/exe", address)
	cmd.Env = append(os.Environ(), childEnv+"=probe")
	if who != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}
