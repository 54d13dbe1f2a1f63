package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/nfcomms/nfcomms/kubernetes/internal/command"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// TestUsage: settings that make no sense are one line and exit code 2; nothing was begun.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		says string
	}{
		{[]string{"--nothing"}, nil, "unknown flag"},
		{[]string{"x"}, nil, "unknown command"},
		{[]string{"--shares", "a=b"}, nil, "--shares: shares \"a=b\": want N or NAME=N"},
		{[]string{"--address", "host:7450"}, nil, "want a UNIX socket"},
		{[]string{"--log-level", "loud"}, nil, "--log-level"},
		{nil, map[string]string{"NFPLUGIN_GRACE": "soon"}, "NFPLUGIN_GRACE: "},
	} {
		var out, err bytes.Buffer
		code := run(t.Context(), c.args, func(name string) string { return c.env[name] }, &out, &err)
		require.Equal(t, command.ExitUsage, code, "%s", &err)
		require.Contains(t, err.String(), c.says)
		require.Equal(t, 1, bytes.Count(err.Bytes(), []byte("\n")), "%s", &err)
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	require.Equal(t, command.ExitOK, run(t.Context(), []string{"--help"}, os.Getenv, &out, io.Discard))
	require.Contains(t, out.String(), "nfcomms.dev/share")
}

// registry is the part of a kubelet that plugins register with.
type registry struct {
	v1beta1.UnimplementedRegistrationServer
	names chan string
}

func (r *registry) Register(_ context.Context, q *v1beta1.RegisterRequest) (*v1beta1.Empty, error) {
	r.names <- q.GetResourceName()
	return &v1beta1.Empty{}, nil
}

// serveAt serves at a socket until the test ends.
func serveAt(t *testing.T, path string, register func(*grpc.Server)) {
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	s := grpc.NewServer()
	register(s)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
}

// TestRun: it registers both resources of a daemon that has devices, is ready then and not before,
// and ends with its context.
func TestRun(t *testing.T) {
	dir, err := os.MkdirTemp("", "nfp")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	daemon := control.New(control.Options{})
	t.Cleanup(func() { require.NoError(t, daemon.Shutdown(context.Background())) })
	serveAt(t, filepath.Join(dir, "d"), func(s *grpc.Server) { daemon.Register(s) })

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, code := &lines{found: make(chan string, 1)}, make(chan int, 1)
	env := map[string]string{"NFPLUGIN_KUBELET_DIR": dir, "NFPLUGIN_HTTP": "127.0.0.1:0"}
	go func() {
		code <- run(ctx, []string{"--address", "unix:" + filepath.Join(dir, "d")}, func(name string) string { return env[name] }, io.Discard, log)
	}()
	address := <-log.found
	require.Equal(t, http.StatusOK, get(t, address, "healthz"))
	require.Equal(t, http.StatusServiceUnavailable, get(t, address, "readyz"))

	k := &registry{names: make(chan string, 2)}
	serveAt(t, filepath.Join(dir, "kubelet.sock"), func(s *grpc.Server) { v1beta1.RegisterRegistrationServer(s, k) })
	require.ElementsMatch(t, []string{"nfcomms.dev/device", "nfcomms.dev/share"}, []string{<-k.names, <-k.names})
	for begin := time.Now(); get(t, address, "readyz") != http.StatusOK; time.Sleep(time.Millisecond) {
		require.Less(t, time.Since(begin), time.Minute, "not ready")
	}
	cancel()
	require.Equal(t, command.ExitOK, <-code)

	env["NFPLUGIN_KUBELET_DIR"] = filepath.Join(dir, "none")
	require.Equal(t, command.ExitFailed, run(t.Context(), []string{"--address", "unix:" + filepath.Join(dir, "d")}, func(name string) string { return env[name] }, io.Discard, log))
}

func get(t *testing.T, address, path string) int {
	r, err := http.Get(fmt.Sprintf("http://%s/%s", address, path))
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	return r.StatusCode
}

// lines finds the address of the probes in a log.
type lines struct {
	once  sync.Once
	found chan string
}

var probes = regexp.MustCompile(`msg=probes address=(\S+)`)

func (l *lines) Write(p []byte) (int, error) {
	if m := probes.FindSubmatch(p); m != nil {
		l.once.Do(func() { l.found <- string(m[1]) })
	}
	return len(p), nil
}
