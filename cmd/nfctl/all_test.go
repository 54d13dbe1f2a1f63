package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// crowd is many servers in this process, each with a context.
type crowd struct {
	dir  string
	text strings.Builder
	// slow servers answer when done is closed: after all others have.
	done chan struct{}
	left sync.WaitGroup
}

// member is a server that a crowd makes up.
type member struct {
	nfcommsv1.UnimplementedDeviceServiceServer
	nfcommsv1.UnimplementedDiagnosticServiceServer
	nfcommsv1.UnimplementedChannelServiceServer
	nfcommsv1.UnimplementedVersionServiceServer
	device, version string
	answered        func() error
	messages        atomic.Uint64
}

func (m *member) GetVersion(context.Context, *nfcommsv1.GetVersionRequest) (*nfcommsv1.GetVersionResponse, error) {
	return &nfcommsv1.GetVersionResponse{Version: m.version}, nil
}

func (m *member) ListDevices(context.Context, *nfcommsv1.ListDevicesRequest) (*nfcommsv1.ListDevicesResponse, error) {
	if err := m.answered(); err != nil {
		return nil, err
	}
	stats := &nfcommsv1.DeviceStats{OpenChannels: 1, Channels: &nfcommsv1.ChannelStats{DirectH2D: &nfcommsv1.PathStats{Messages: m.messages.Add(1000)}}}
	return &nfcommsv1.ListDevicesResponse{Devices: []*nfcommsv1.Device{{Name: "devices/" + m.device, State: nfcommsv1.Device_STATE_READY, Stats: stats}}}, nil
}

func (m *member) GetDiagnostics(context.Context, *nfcommsv1.GetDiagnosticsRequest) (*nfcommsv1.GetDiagnosticsResponse, error) {
	return &nfcommsv1.GetDiagnosticsResponse{}, nil
}

func (m *member) ListChannels(context.Context, *nfcommsv1.ListChannelsRequest) (*nfcommsv1.ListChannelsResponse, error) {
	return &nfcommsv1.ListChannelsResponse{Channels: []*nfcommsv1.Channel{{Name: "devices/" + m.device + "/channels/7", Target: 7}}}, nil
}

// context names a server in the file.
func (c *crowd) context(name, address string) {
	fmt.Fprintf(&c.text, "  %s: {address: \"%s\", server-user: \"*\"}\n", name, address)
}

// serve has a server with services answer in a context.
func (c *crowd) serve(t *testing.T, name string, register func(*grpc.Server)) {
	t.Helper()
	path := filepath.Join(c.dir, name)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	srv := grpc.NewServer()
	register(srv)
	go func() { _ = srv.Serve(l) }() // it ends with Stop
	t.Cleanup(srv.Stop)
	c.context(name, "unix://"+path)
}

// add adds a server of a version with one device. It answers with an error if there is one.
func (c *crowd) add(t *testing.T, name, device, version string, refuses error) {
	m := &member{device: device, version: version, answered: sync.OnceValue(func() error {
		c.left.Done()
		return refuses
	})}
	c.left.Add(1)
	c.serve(t, name, func(srv *grpc.Server) {
		nfcommsv1.RegisterDeviceServiceServer(srv, m)
		nfcommsv1.RegisterDiagnosticServiceServer(srv, m)
		nfcommsv1.RegisterChannelServiceServer(srv, m)
		nfcommsv1.RegisterVersionServiceServer(srv, m)
	})
}

// addSlow adds a server that does not answer in time, once all others have answered.
func (c *crowd) addSlow(t *testing.T, name string) {
	c.serve(t, name, func(srv *grpc.Server) {
		nfcommsv1.RegisterDeviceServiceServer(srv, &member{answered: func() error {
			<-c.done
			return status.Error(codes.DeadlineExceeded, "too late")
		}})
	})
}

// newCrowd makes 100 servers: 87 that answer, one of them with hostile names, and 13 that do not.
func newCrowd(t *testing.T) *crowd {
	dir, err := os.MkdirTemp("", "nfctl") // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	c := &crowd{dir: dir, done: make(chan struct{})}
	for i := range 86 {
		c.add(t, fmt.Sprintf("good%02d", i), "card0", "v1.2.3", nil)
	}
	for i := range 5 {
		c.addSlow(t, fmt.Sprintf("slow%d", i))
		c.context(fmt.Sprintf("gone%d", i), "unix://"+filepath.Join(dir, "none"))
	}
	c.add(t, "denied", "card0", "v1.2.3", status.Error(codes.PermissionDenied, "no role"))
	c.serve(t, "old", func(srv *grpc.Server) { nfcommsv1.RegisterVersionServiceServer(srv, &member{version: "v0.0.1"}) })
	c.context("plain", "192.0.2.1:7070") // without certificates nobody calls it
	c.add(t, "hostile", hostileText, hostileText, nil)
	go func() {
		c.left.Wait()
		close(c.done)
	}()
	return c
}

// nfctl runs a command line with the contexts.
func (c *crowd) nfctl(t *testing.T, args ...string) result {
	t.Helper()
	path := filepath.Join(c.dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte("contexts:\n"+c.text.String()), 0o600))
	return nfctl(t.Context(), t, append([]string{"--config", path, "--timeout", watchdog.String()}, args...)...)
}

// crowdStatus is the status of each server of a crowd that is not ok.
var crowdStatus = map[string]string{
	"denied": "denied", "old": "refused", "plain": "usage", "slow0": "slow", "slow1": "slow", "slow2": "slow", "slow3": "slow", "slow4": "slow",
	"gone0": "unreachable", "gone1": "unreachable", "gone2": "unreachable", "gone3": "unreachable", "gone4": "unreachable",
}

// requireCrowd holds the records of servers to the crowd.
func requireCrowd(t *testing.T, servers []serverRecord) {
	t.Helper()
	require.Len(t, servers, 100)
	for _, s := range servers {
		want, wrong := crowdStatus[s.Context]
		if !wrong {
			want = "ok"
		}
		require.Equal(t, want, s.Status, "%+v", s)
		require.Equal(t, wrong, s.Error != "", "%+v", s)
	}
}

// TestListAll asks a hundred servers, of which some are slow, dead, old or hostile.
func TestListAll(t *testing.T) {
	c := newCrowd(t)
	r := c.nfctl(t, "list", "--all", "-o", "json")
	require.Equal(t, exitUnhealthy, r.code, r.err)
	require.Equal(t, "nfctl: 13 of 100 servers are not ok, 1 denied, 1 refused, 5 slow, 5 unreachable, 1 usage\n", r.err)
	require.NoError(t, eachDocument(r.out, func(doc any) { require.Empty(t, deviations("", doc, listRecord{})) }))
	var list listRecord
	require.NoError(t, json.Unmarshal([]byte(r.out), &list))
	requireCrowd(t, list.Servers)
	require.Len(t, list.Devices, 87)
	require.Equal(t, "v0.0.1", list.Servers[93].Version, "the old one has a version")

	table := c.nfctl(t, "list", "--all")
	require.Equal(t, exitUnhealthy, table.code)
	require.Regexp(t, `(?m)^CONTEXT +DEVICE +STATE `, table.out)
	require.Regexp(t, `(?m)^good42 +card0 +ready `, table.out)
	require.Regexp(t, `(?m)^gone1 +unreachable .* no such file`, table.out)
	require.Regexp(t, `(?m)^slow4 +slow `, table.out)
	require.Contains(t, table.out, `a\x1b]0;x\x07`, "a hostile name")
	require.NotContains(t, table.out, "\x1b")
	require.NotRegexp(t, `(?m)^good42 +ok`, table.out)
	require.Regexp(t, `(?m)^good42 +ok .* v1\.2\.3 `, c.nfctl(t, "list", "--all", "-o", "wide").out)
}

// TestTopAll shows the rates of a hundred servers, of which some have none.
func TestTopAll(t *testing.T) {
	c := newCrowd(t)
	r := c.nfctl(t, "top", "--all", "--once", "-i", "200ms", "-o", "json")
	require.Equal(t, exitUnhealthy, r.code, r.err)
	require.Equal(t, "nfctl: 13 of 100 servers are not ok, 1 denied, 1 refused, 5 slow, 5 unreachable, 1 usage\n", r.err)
	require.NoError(t, eachDocument(r.out, func(doc any) { require.Empty(t, deviations("", doc, topRecord{})) }))
	var top topRecord
	require.NoError(t, json.Unmarshal([]byte(r.out), &top))
	plain := plainServers(top.Servers)
	requireCrowd(t, plain)
	require.Len(t, top.Devices, 87)
	for _, d := range top.Devices {
		require.Positive(t, d.DirectH2D.Messages, d.Context)
	}
	require.Equal(t, 87, top.Total)
	require.Len(t, top.Channels, 20)

	loop := c.nfctl(t, "top", "--all", "--loop", "-n", "2", "-i", "100ms")
	require.Equal(t, exitOK, loop.code, loop.err)
	require.Equal(t, 2, strings.Count(loop.out, "rates over"))
	require.Regexp(t, `(?m)^good42 +card0 +kind not told +ready `, loop.out)
	require.Regexp(t, `(?m)^slow4 +slow `, loop.out)
	require.NotContains(t, loop.out, "\x1b")
}

// TestPollersWait: fetch waits for servers that are ok, and for no others.
func TestPollersWait(t *testing.T) {
	news := make(chan struct{}, 1)
	fine, gone := &poller{asked: &asked{namedServer: namedServer{name: "fine"}}, news: news}, &poller{asked: &asked{namedServer: namedServer{name: "gone"}}, news: news}
	p := &pollers{all: []*poller{fine, gone}, news: news}
	statuses := func() (list []string) {
		s, err := p.fetch(t.Context())
		require.NoError(t, err)
		for _, x := range compare(sample{}, s, 9).Servers {
			list = append(list, x.Status)
		}
		return list
	}
	require.Equal(t, []string{"slow", "slow"}, statuses(), "the first does not wait, and there is no answer yet")
	ok := serverRecord{Context: "fine", Status: "ok"}
	gone.note(serverRecord{Context: "gone", Status: "unreachable", code: exitUnreachable}, sample{})
	go func() {
		fine.note(ok, moment(10))
		fine.note(ok, moment(14))
	}()
	require.Equal(t, []string{"ok", "unreachable"}, statuses(), "the second waits for two answers, of which there are rates")
	require.Equal(t, 4.0, compare(sample{}, sample{parts: []part{fine.part}}, 9).Interval)
	p.limit = time.Nanosecond
	require.Equal(t, []string{"slow", "unreachable"}, statuses(), "the third gives up")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p.limit = 0
	_, err := p.fetch(ended)
	require.ErrorIs(t, err, context.Canceled)

	// A screen has the names of contexts, and how many servers are not ok.
	gone.note(serverRecord{Context: "gone", Status: "unreachable", code: exitUnreachable}, sample{})
	parts, _ := p.parts(2, false)
	m := topModel{opt: topOptions{interval: time.Second, channels: 9}, title: "2 servers"}.add(sample{at: time.Unix(1, 0), parts: parts})
	text := m.View().Content
	require.Contains(t, text, "1 of 2 servers are not ok, 1 unreachable")
	require.Regexp(t, `> +fine +nic0 +kind not told +ready`, text)
	require.Regexp(t, `(?m)^gone +unreachable`, text)
}

// TestAllOfOneKind: the exit code is that of all servers if they have the same one.
func TestAllOfOneKind(t *testing.T) {
	dir := t.TempDir()
	c := &crowd{dir: dir}
	c.context("a", "unix://"+dir+"/none")
	require.Equal(t, exitUnreachable, c.nfctl(t, "list", "--all").code)
	c.context("b", "192.0.2.1:1")
	r := c.nfctl(t, "list", "--all")
	require.Equal(t, exitUnhealthy, r.code)
	require.Contains(t, r.out, "needs --tls-ca")
	for _, args := range [][]string{
		{"list", "--all", "sim0"}, {"list", "--all", "--watch"}, {"list", "--all", "--context", "a"}, {"list", "--all", "--device", "sim:"},
		{"top", "--all", "--once", "sim0"}, {"top", "--all"},
	} {
		require.Equal(t, exitUsage, c.nfctl(t, args...).code, args)
	}
	none := nfctl(t.Context(), t, "list", "--all")
	require.Equal(t, exitUsage, none.code)
	require.Contains(t, none.err, "no contexts")
}

// TestServerThatHangs: a server that takes a connection and never speaks is given up.
func TestServerThatHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close() // nobody accepts
	a := &app{timeout: 100 * time.Millisecond}
	q := connect(namedServer{"x", server{address: "unix://" + path, serverUser: anyUser}})
	defer func() { require.NoError(t, q.close()) }()
	r := a.ask(t.Context(), q, func(ctx context.Context, _ *control.Client) error { <-ctx.Done(); return ctx.Err() })
	require.Contains(t, []string{"slow", "unreachable"}, r.Status, "by the time that the connection took")
	require.Contains(t, r.Error, "within 100ms")
}

// TestSlowOrDead: a server that was connected is slow, and others are unreachable.
func TestSlowOrDead(t *testing.T) {
	a := &app{timeout: time.Second}
	q := connect(namedServer{"x", server{address: "unix:///none", serverUser: anyUser}})
	defer func() { require.NoError(t, q.close()) }()
	late := func(context.Context, *control.Client) error { return context.DeadlineExceeded }
	require.Equal(t, "unreachable", a.ask(t.Context(), q, late).Status)
	q.connected.Store(true)
	r := a.ask(t.Context(), q, late)
	require.Equal(t, "slow", r.Status)
	require.Equal(t, exitTimeout, r.code)
	require.Contains(t, r.Error, "no answer within 1s")
	require.Equal(t, "failed", a.ask(t.Context(), q, func(context.Context, *control.Client) error { return errors.New("x") }).Status)
	var b bytes.Buffer
	writeServers(&printer{w: &b, color: true}, []serverRecord{r})
	require.Contains(t, b.String(), tintCodes[warn]+"slow")
}
