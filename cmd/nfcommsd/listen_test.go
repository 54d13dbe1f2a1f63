package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// portsTaken counts the ports that freePort returned.
var portsTaken atomic.Int64

// freePort returns an address of this machine that nobody listens on. Its port is below those that the
// kernel gives to others before a daemon listens there.
func freePort(t testing.TB) string {
	for {
		port := 10_000 + (int64(os.Getpid())*101+portsTaken.Add(1))%20_000
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
}

// askTCP makes one connection and returns what a health check gives.
func askTCP(t testing.TB, address string, config *tls.Config) error {
	conn := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	defer conn.Close()
	_, err := healthpb.NewHealthClient(conn).Check(deadline(t), &healthpb.HealthCheckRequest{})
	return err
}

// TestTCP: certificates on both sides, roles by name, reflection and channelz
// only where they belong, and new certificates without a restart.
func TestTCP(t *testing.T) {
	ca, address := testcert.New(t), freePort(t)
	dir := t.TempDir()
	files := certificates(t, dir, ca.Issue(t, "server", ""), ca)
	p := start(t, append(files, "--tcp-address", address, "--roles-viewer", "cn:watcher", "--roles-admin", "uri:spiffe://example.org/chief")...)
	watcher := ca.Issue(t, "watcher", "").Client(t, ca)
	require.NoError(t, askTCP(t, address, watcher))
	require.NoError(t, askTCP(t, address, ca.Issue(t, "", "spiffe://example.org/chief").Client(t, ca)))
	require.Equal(t, codes.PermissionDenied, status.Code(askTCP(t, address, ca.Issue(t, "other", "").Client(t, ca))))
	require.Equal(t, codes.Unavailable, status.Code(askTCP(t, address, testcert.Pair{}.Client(t, ca))), "no certificate")
	require.Equal(t, codes.Unavailable, status.Code(askTCP(t, address, testcert.New(t).Issue(t, "watcher", "").Client(t, ca))), "another authority")

	conn := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(ca.Issue(t, "", "spiffe://example.org/chief").Client(t, ca))))
	for _, method := range []string{"/grpc.channelz.v1.Channelz/GetServers", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"} {
		err := conn.Invoke(deadline(t), method, &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{})
		require.Equal(t, codes.Unimplemented, status.Code(err), "%s: %v", method, err)
	}

	next := testcert.New(t)
	certificates(t, dir, next.Issue(t, "server", ""), next)
	require.NoError(t, askTCP(t, address, next.Issue(t, "watcher", "").Client(t, next)), "at once")
	require.Equal(t, codes.Unavailable, status.Code(askTCP(t, address, watcher)), "the old authority is gone")
	_, err := healthpb.NewHealthClient(conn).Check(deadline(t), &healthpb.HealthCheckRequest{})
	require.NoError(t, err, "the open connection goes on")
	p.stop()
}

func TestTCPReflection(t *testing.T) {
	ca, address := testcert.New(t), freePort(t)
	files := certificates(t, t.TempDir(), ca.Issue(t, "server", ""), ca)
	p := start(t, append(files, "--tcp-address", address, "--tcp-reflection", "--roles-viewer", "cn:watcher")...)
	conn := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(ca.Issue(t, "watcher", "").Client(t, ca))))
	require.NotContains(t, reflect(t, conn).services, "grpc.channelz.v1.Channelz")
	p.stop()
}

// get asks over HTTP.
func get(t testing.TB, client *http.Client, url, user, password string) (int, string) {
	req, err := http.NewRequestWithContext(deadline(t), http.MethodGet, url, nil)
	require.NoError(t, err)
	if user != "" {
		req.SetBasicAuth(user, password)
	}
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

func TestHTTP(t *testing.T) {
	address := freePort(t)
	p := start(t, "--http-address", address, "--http-pprof", "--devices", "good=sim:,bad=dev:9999")
	client := &http.Client{}
	defer client.CloseIdleConnections()
	url := "http://" + address
	require.NotZero(t, healthOf(t, p.client(), ""))

	code, body := get(t, client, url+"/metrics", "", "")
	require.Equal(t, http.StatusOK, code)
	for _, want := range []string{
		`nfcomms_[a-z_]+\{.*device="good"`, `go_goroutines `, `process_resident_memory_bytes `, `go_build_info\{`,
		`grpc_server_handled_total\{grpc_code="OK",grpc_method="Check",grpc_service="grpc.health.v1.Health",grpc_type="unary"\} 1`,
		`grpc_server_handled_total\{grpc_code="OK",grpc_method="ResetDevice"[^}]*\} 0`,
		`nfcommsd_connections_refused_total\{listener="http",reason="full"\} 0`,
	} {
		require.Regexp(t, regexp.MustCompile(want), body)
	}
	code, body = get(t, client, url+"/healthz", "", "")
	require.Equal(t, http.StatusOK, code, body)
	code, body = get(t, client, url+"/readyz", "", "")
	require.Equal(t, http.StatusOK, code, body)
	code, _ = get(t, client, url+"/debug/pprof/cmdline", "", "")
	require.Equal(t, http.StatusOK, code)
	client.CloseIdleConnections()
	p.stop()
}

func TestHTTPNotReady(t *testing.T) {
	address := freePort(t)
	p := start(t, "--http-address", address, "--devices", "bad=dev:9999")
	client := &http.Client{}
	defer client.CloseIdleConnections()
	code, body := get(t, client, "http://"+address+"/readyz", "", "")
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, body, "bad STATE_FAILED")
	code, _ = get(t, client, "http://"+address+"/healthz", "", "")
	require.Equal(t, http.StatusOK, code, "a restart would not help")
	code, _ = get(t, client, "http://"+address+"/debug/pprof/", "", "")
	require.Equal(t, http.StatusNotFound, code, "behind its flag")
	client.CloseIdleConnections()
	p.stop()
}

// TestWebConfig: TLS and users, in the file format of Prometheus' exporters.
func TestWebConfig(t *testing.T) {
	ca, address := testcert.New(t), freePort(t)
	dir := t.TempDir()
	certificates(t, dir, ca.Issue(t, "server", ""), ca)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	require.NoError(t, err)
	file := filepath.Join(dir, "web.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil,
		"tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\nbasic_auth_users:\n  prometheus: %s\n", hash), 0o600))
	p := start(t, "--http-address", address, "--http-web-config", file)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: testcert.Pair{}.Client(t, ca)}}
	defer client.CloseIdleConnections()
	code, _ := get(t, client, "https://"+address+"/metrics", "prometheus", "secret")
	require.Equal(t, http.StatusOK, code)
	code, _ = get(t, client, "https://"+address+"/metrics", "prometheus", "wrong")
	require.Equal(t, http.StatusUnauthorized, code)
	code, _ = get(t, client, "https://"+address+"/healthz", "", "")
	require.Equal(t, http.StatusUnauthorized, code)
	client.CloseIdleConnections()
	p.stop()
}

// TestMetricsOnUNIX: metrics are served on a UNIX socket with a mode and a group of its own, and a
// group that nobody has is refused.
func TestMetricsOnUNIX(t *testing.T) {
	file := filepath.Join(socketFolder(t), "m")
	own, err := user.LookupGroupId(fmt.Sprint(os.Getegid()))
	require.NoError(t, err)
	p := start(t, "--http-address", "unix:"+file, "--http-mode", "0640", "--http-group", own.Name, "--http-pprof")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.ModeSocket|0o640, info.Mode())
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", file)
	}}}
	defer client.CloseIdleConnections()
	_, body := get(t, client, "http://daemon/metrics", "", "")
	require.Contains(t, body, "nfcommsd_device_state")
	client.CloseIdleConnections()
	p.stop()
	code, log := fails(t, "--http-address", "unix:m", "--http-group", "no-such-group")
	require.Equal(t, exitConfig, code)
	require.Contains(t, log, "http.group: socket group: group: unknown group no-such-group")
	require.Contains(t, log, `http.address: socket path "m" is not absolute`)
}

// activate runs a daemon with sockets as systemd hands them over.
func (p *process) activate(names string, listeners ...net.Listener) {
	p.cmd = exec.Command("sh", append([]string{"-c", `LISTEN_PID=$$ exec "$0" "$@"`,
		fmt.Sprintf("/proc/%d/exe", os.Getpid())}, p.args...)...)
	p.cmd.Env = append(p.env, "LISTEN_FDNAMES="+names, fmt.Sprintf("LISTEN_FDS=%d", len(listeners)))
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	for _, l := range listeners {
		f, err := l.(interface{ File() (*os.File, error) }).File()
		require.NoError(p.t, err)
		defer f.Close()
		p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, f)
	}
	p.launch()
}

// TestSocketActivation: sockets of systemd replace those of the configuration,
// and outlive the daemon.
func TestSocketActivation(t *testing.T) {
	ca := testcert.New(t)
	files := certificates(t, t.TempDir(), ca.Issue(t, "server", ""), ca)
	p := newProcess(t, append(files, "--roles-viewer", "cn:watcher", "--http-address", "127.0.0.1:1")...)
	path := filepath.Join(p.dir, "activated")
	local, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer local.Close()
	var tcp [2]net.Listener
	for i := range tcp {
		tcp[i], err = net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer tcp[i].Close()
	}
	p.activate("control:control:metrics", local, tcp[0], tcp[1])
	p.await("READY=1")
	c, err := control.Dial("unix://" + path)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, c, ""))
	require.NoError(t, askTCP(t, tcp[0].Addr().String(), ca.Issue(t, "watcher", "").Client(t, ca)))
	client := &http.Client{}
	code, _ := get(t, client, "http://"+tcp[1].Addr().String()+"/readyz", "", "")
	require.Equal(t, http.StatusOK, code)
	client.CloseIdleConnections()
	_, err = os.Lstat(p.socket)
	require.ErrorIs(t, err, os.ErrNotExist, "the configured socket is not made")
	p.stop()
	_, err = os.Lstat(path)
	require.NoError(t, err, "the socket is systemd's")

	p.activate("control", local)
	p.await("READY=1")
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, c, ""), "the same client at the next daemon")
	p.stop()
}

func TestSocketActivationRefuses(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer tcp.Close()
	for names, want := range map[string]string{
		"control": "systemd handed over a TCP socket for the control plane: it needs tcp.certificate",
		"nfcomms": `systemd handed over a socket "nfcomms"`,
	} {
		p := newProcess(t)
		p.activate(names, tcp)
		require.Equal(t, exitFailed, p.end())
		require.Contains(t, p.log.String(), want)
	}
}

// TestSocketActivationMode: a mode that the configuration names, and that the socket of systemd does
// not have, is refused.
func TestSocketActivationMode(t *testing.T) {
	for key, name := range map[string]string{"socket": "control", "http": "metrics"} {
		p := newProcess(t, "--"+key+"-mode", "0640")
		path := filepath.Join(p.dir, "activated")
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer l.Close()
		require.NoError(t, os.Chmod(path, 0o600))
		p.activate(name, l)
		require.Equal(t, exitFailed, p.end())
		require.Contains(t, p.log.String(), "--"+key+"-mode: "+key+".mode: systemd made "+path+
			" with mode 0600, not 0640: set SocketMode= in its unit")
		require.NoError(t, os.Chmod(path, 0o640))
		p.activate(name, l)
		p.await("READY=1")
		p.stop()
	}
}

// TestMetricsSocketActivation: the metrics are served on the socket of systemd and on another
// address that is configured, and on none if the configuration turns them off.
func TestMetricsSocketActivation(t *testing.T) {
	web := freePort(t)
	p := newProcess(t, "--http-address", web)
	l, err := net.Listen("unix", filepath.Join(p.dir, "metrics"))
	require.NoError(t, err)
	defer l.Close()
	p.activate("metrics", l)
	p.await("READY=1")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", l.Addr().String())
	}}}
	defer client.CloseIdleConnections()
	for url, client := range map[string]*http.Client{"http://daemon": client, "http://" + web: http.DefaultClient} {
		_, body := get(t, client, url+"/metrics", "", "")
		require.Contains(t, body, "nfcommsd_device_state", url)
		client.CloseIdleConnections()
	}
	p.stop()

	p.args = append(p.args, "--http-address", "")
	p.activate("metrics", l)
	p.await("READY=1")
	p.logged(`http=""`)
	p.stop()
}

// TestConnectionLimits: a listener that is full closes a new connection at once, and
// one user cannot take all of it.
func TestConnectionLimits(t *testing.T) {
	p := start(t, "--limits-connections", "3", "--limits-caller-connections", "2")
	first, second := p.client(), p.client()
	require.NotZero(t, healthOf(t, first, ""))
	require.NotZero(t, healthOf(t, second, ""))
	third := p.client()
	_, err := third.Health.Check(deadline(t), &healthpb.HealthCheckRequest{})
	require.Equal(t, codes.Unavailable, status.Code(err), err)

	var idle []net.Conn // never say a word, but take a place each
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for range 5 {
		c, err := net.Dial("unix", p.socket)
		require.NoError(t, err)
		idle = append(idle, c)
	}
	require.NotZero(t, healthOf(t, first, ""), "who is in stays in")
	require.NoError(t, second.Close())
	require.Eventually(t, func() bool {
		fourth, err := control.Dial("unix://" + p.socket) // one that was refused waits before it tries again
		require.NoError(t, err)
		defer fourth.Close()
		_, err = fourth.Health.Check(deadline(t), &healthpb.HealthCheckRequest{})
		return err == nil
	}, patience, 10*time.Millisecond)
	p.stop()
}
