package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	vegeta "github.com/tsenart/vegeta/v12/lib"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/internal/command"
	"github.com/nfcomms/nfcomms/internal/commandtest"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// long is a watchdog, not a measure.
const long = time.Minute

// client keeps no connections, so that none is left when a test ends.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: long}

// cli runs a command line and returns what it printed.
func cli(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return commandtest.Run(ctx, "service", uploads, args...)
}

// rig is a service that a test serves.
type rig struct {
	dev        *nfcomms.Device
	url, admin string
	stop       context.CancelFunc
	ended      chan error
}

// serve starts a service. It is stopped, without an error, when the test ends.
func serve(t *testing.T, s settings) *rig {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	s.serve, s.admin = "127.0.0.1:0", "127.0.0.1:0"
	for _, d := range []*time.Duration{&s.idle, &s.grace} {
		if *d == 0 {
			*d = long
		}
	}
	s.places = max(s.places, 1)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	g := &rig{dev: dev, stop: cancel, ended: make(chan error, 1)}
	go func() { g.ended <- s.run(ctx, dev, slog.New(slog.DiscardHandler), w) }()
	lines := bufio.NewScanner(r)
	for _, to := range []*string{&g.url, &g.admin} {
		require.True(t, lines.Scan())
		*to = lines.Text()[strings.Index(lines.Text(), "http://"):]
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-g.ended)
		require.NoError(t, dev.Close())
	})
	return g
}

// post uploads a body and returns the answer.
func (g *rig) post(ctx context.Context, body io.Reader) (code int, text string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, body)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

// want is the answer to a body.
func want(body []byte) string {
	text, _ := json.Marshal(answer{int64(len(body)), fmt.Sprintf("%08x", crc32.ChecksumIEEE(body))})
	return string(text) + "\n"
}

func data(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i * i >> 5)
	}
	return b
}

func TestLoad(t *testing.T) {
	code, out, errs := cli(t.Context(), "--duration", "800ms", "--rate", "50", "--size", "400000", "--places", "8")
	require.Equal(t, command.ExitOK, code, errs)
	require.Empty(t, errs)
	require.Regexp(t, `\d+ uploads of up to 400000 bytes`, out)
	require.Regexp(t, `verified: \d+ answers are right, \d+ are an honest error, none is wrong`, out)
}

func TestSizes(t *testing.T) {
	g := serve(t, settings{})
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3*chunkSize + 5} {
		for _, body := range []io.Reader{bytes.NewReader(data(size)), io.MultiReader(bytes.NewReader(data(size)))} { // the second has no length
			code, text, err := g.post(t.Context(), body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, code, text)
			require.Equal(t, want(data(size)), text)
		}
	}
	for page, says := range map[string]string{
		"/readyz": "", "/healthz": "", "/metrics": `uploads_total{code="200"} 12`, "/debug/pprof/trace?seconds=0.01": "go 1.",
	} {
		resp, err := client.Get(strings.Replace(g.admin, "/metrics", page, 1))
		require.NoError(t, err)
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", page, text)
		require.Contains(t, string(text), says)
	}
	resp, err := client.Get(g.url)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
}

// TestReset resets the device, and ends one of its processes, in the middle of an
// upload: the answer is right all the same.
func TestReset(t *testing.T) {
	g := serve(t, settings{})
	body := data(4 * chunkSize)
	r, w := io.Pipe()
	go func() {
		for i := range 4 {
			_, _ = w.Write(body[i*chunkSize : (i+1)*chunkSize])
			if i == 1 {
				_ = g.dev.Reset(context.Background())
			}
			if i == 2 {
				endOne(context.Background(), g.dev)
			}
		}
		w.Close()
	}()
	code, text, err := g.post(t.Context(), r)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, text)
	require.Equal(t, want(body), text)
}

// raw writes a request by hand and returns the first line of what comes back.
func (g *rig) raw(t *testing.T, text string, end bool) string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(g.url, "http://"), "/checksum"))
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, c.SetDeadline(time.Now().Add(long)))
	_, err = io.WriteString(c, text)
	require.NoError(t, err)
	if end {
		require.NoError(t, c.(*net.TCPConn).CloseWrite())
	}
	line, _ := bufio.NewReader(c).ReadString('\n') // there may be none
	return line
}

// TestHalfUploads: what stops half way frees its place, whether the client goes or
// says nothing more.
func TestHalfUploads(t *testing.T) {
	g := serve(t, settings{idle: 20 * time.Millisecond})
	head := "POST /checksum HTTP/1.1\r\nHost: x\r\n"
	for range 3 {
		require.Contains(t, g.raw(t, head+"Content-Length: 1000\r\n\r\nhalf", false), "408")
		require.Contains(t, g.raw(t, head+"Content-Length: 1000\r\n\r\nhalf", true), "400")
		require.Contains(t, g.raw(t, head+"Transfer-Encoding: chunked\r\n\r\nzz\r\n", false), "400")
	}
	code, text, err := g.post(t.Context(), strings.NewReader("whole"))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, text)
}

// begun starts an upload and returns when the service holds a place for it.
func (g *rig) begun(t *testing.T, ctx context.Context) (w *io.PipeWriter, code chan int) {
	t.Helper()
	r, w := io.Pipe()
	code = make(chan int, 1)
	go func() {
		c, _, _ := g.post(ctx, r)
		code <- c
	}()
	before := g.counted(t)
	_, err := w.Write(data(chunkSize + 1))
	require.NoError(t, err)
	for deadline := time.Now().Add(long); g.counted(t) == before; time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "no chunk arrives")
	}
	return w, code
}

var bytesTotal = regexp.MustCompile(`(?m)^uploads_bytes_total (\S+)$`)

// counted returns how many bytes the service says it summed up.
func (g *rig) counted(t *testing.T) string {
	t.Helper()
	resp, err := client.Get(g.admin)
	require.NoError(t, err)
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(bytesTotal.Find(page))
}

// TestBackPressure: with one place, a second upload waits until the first has ended,
// and one whose client goes frees it.
func TestBackPressure(t *testing.T) {
	g := serve(t, settings{places: 1})
	first, code := g.begun(t, t.Context())
	second := make(chan int, 1)
	go func() {
		c, _, _ := g.post(context.Background(), bytes.NewReader(data(8<<20)))
		second <- c
	}()
	require.NoError(t, first.Close())
	require.Equal(t, http.StatusOK, <-code)
	require.Equal(t, http.StatusOK, <-second)
	ctx, cancel := context.WithCancel(t.Context())
	third, gone := g.begun(t, ctx)
	cancel()
	require.NoError(t, third.CloseWithError(context.Canceled)) // what the client waits for
	require.Zero(t, <-gone)
	c, text, err := g.post(t.Context(), strings.NewReader("next"))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, c, text)
}

// TestGracefulStop: an upload that runs when the service is stopped is answered.
func TestGracefulStop(t *testing.T) {
	g := serve(t, settings{})
	w, code := g.begun(t, t.Context())
	g.stop()
	for { // until it takes no more
		c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(g.url, "http://"), "/checksum"))
		if err != nil {
			break
		}
		require.NoError(t, c.Close())
	}
	require.NoError(t, w.Close())
	require.Equal(t, http.StatusOK, <-code)
}

// TestNoDevice: without a device that works the error is honest, and what waits ends
// with its client.
func TestNoDevice(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	p, err := newPool(t.Context(), dev, nil)
	require.NoError(t, err)
	require.NoError(t, dev.Close())
	require.NoError(t, p.Close())
	s := newServer(p, 1, long, prometheus.NewRegistry())
	web := httptest.NewServer(s.handler())
	defer web.Close()
	g := &rig{url: web.URL + "/checksum"}
	code, text, err := g.post(t.Context(), strings.NewReader("x"))
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, code)
	require.Contains(t, text, "try again later")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.sum(ctx, 0, make([]byte, prefix))
	require.ErrorIs(t, err, context.Canceled)
}

func TestTally(t *testing.T) {
	var c tally
	list := bodies(100)
	for text, code := range map[string]uint16{
		`{"bytes":0,"crc32":"00000000"}`: 200, `{"bytes":0,"crc32":"00000001"}`: 200, "": 503, "x": 200, "y": 400,
	} {
		c.add(&vegeta.Result{URL: "http://x/?body=0", Code: code, Body: []byte(text)}, list)
	}
	c.add(&vegeta.Result{URL: "::"}, list)
	require.Equal(t, tally{right: 1, honest: 1, wrong: 4}, c)
}

func TestBadInput(t *testing.T) {
	for line, says := range map[string]string{
		"--places 0":          "--places 0 is not",
		"--rate 0":            "--rate 0 is not",
		"--size -1":           "--size -1 is not",
		"--idle 0s":           "more than 0",
		"--address card:0":    `"card"`,
		"--serve 127.0.0.1:x": "unknown port",
		"--admin 127.0.0.1:y": "unknown port",
		"x":                   `"x" is no flag`,
	} {
		code, _, errs := cli(t.Context(), strings.Fields(line)...)
		require.Equal(t, command.ExitInput, code, "%s: %s", line, errs)
		require.Contains(t, errs, says)
		require.Equal(t, 1, strings.Count(errs, "\n"), errs)
	}
	code, _, errs := cli(t.Context(), "--help")
	require.Equal(t, command.ExitOK, code)
	require.Contains(t, errs, "usage: service")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, _, errs = cli(ctx)
	require.Equal(t, command.ExitInterrupted, code)
	require.Equal(t, "service: interrupted\n", errs)
}
