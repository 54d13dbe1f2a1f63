package prom

import (
	"context"
	"flag"
	"iter"
	"maps"
	"math"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/pkg/metrics"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestMain lets the tests with a Prometheus of their own run at once: each waits
// for it most of the time, five seconds alone until it knows its targets.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// root is the top of the tree.
const root = "../.."

const rules = root + "/deploy/prometheus/nfcomms.rules.yml"

// patience is a watchdog, not a measure.
const patience = 2 * time.Minute

// program returns a program of the Debian package.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := Program(root, name)
	require.NoError(t, err)
	return path
}

// promtool runs promtool on a file.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command(program(t, "promtool"), args...).CombinedOutput()
	require.NoError(t, err, "promtool %s\n%s", strings.Join(args, " "), out)
}

// serve starts a Prometheus that scrapes some targets and knows the rules.
func serve(t *testing.T, native bool, targets ...string) *Server {
	t.Helper()
	program(t, "prometheus")
	path, err := filepath.Abs(rules)
	require.NoError(t, err)
	s, err := Start(Options{Root: root, Dir: t.TempDir(), Targets: targets, Rules: []string{path}, Native: native})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

// until waits for an answer.
func until(t *testing.T, s *Server, expr string, ok func([]Sample) bool) []Sample {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	samples, err := s.Until(ctx, expr, ok)
	require.NoError(t, err)
	return samples
}

// some reports whether an answer holds a number.
func some(samples []Sample) bool {
	for _, s := range samples {
		if !math.IsNaN(s.Value) {
			return true
		}
	}
	return false
}

// exporter serves the metrics of two devices: "busy" is under load of every
// kind, "idle" is reset once by the returned function.
func exporter(t *testing.T) (address string, reset func()) {
	t.Helper()
	busy, idle := open(t), open(t)
	load(t, busy)
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics.NewCollector(func() iter.Seq2[string, *nfcomms.Device] {
		return maps.All(map[string]*nfcomms.Device{"busy": busy, "idle": idle})
	}, metrics.Options{Channels: true, Trace: 1}))
	srv := httptest.NewServer(metrics.Handler(metrics.HandlerOptions{Gatherer: reg}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://"), func() { require.NoError(t, idle.Reset(t.Context())) }
}

// open opens a device for the test.
func open(t *testing.T) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// loadPause leaves the processors to Prometheus and to other tests; a load is
// there at each scrape all the same.
const loadPause = 10 * time.Millisecond

// load keeps a device busy until the test ends: messages and transfers both
// ways, calls that fail, a sender and a transfer that wait.
func load(t *testing.T, dev *nfcomms.Device) {
	t.Helper()
	echo := run(t, dev, "loopback", 1)[0]
	silent := run(t, dev, "hold", 2)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	buf, data, held := make([]byte, 40), make([]byte, 100_000), make([]byte, 1<<20)
	wg.Go(func() { _ = silent[0].Send(ctx, []byte("waits")) })
	wg.Go(func() { _ = silent[1].SendInd(ctx, held, len(held)) })
	wg.Go(func() {
		over, cancel := context.WithCancel(ctx)
		cancel()
		for ctx.Err() == nil {
			for range 50 {
				_ = echo.Send(ctx, buf)
				_, _ = echo.Receive(ctx, buf)
			}
			_ = echo.SendInd(ctx, data, len(data))
			_, _ = echo.ReceiveInd(ctx, data, len(data))
			_ = echo.Send(over, buf)
			time.Sleep(loadPause)
		}
	})
}

// run starts a program and subscribes its ports.
func run(t *testing.T, dev *nfcomms.Device, name string, n int) []*nfcomms.Channel {
	t.Helper()
	p, err := dev.Start(t.Context(), nfcomms.Program{Name: name, Targets: n})
	require.NoError(t, err)
	var ports []*nfcomms.Channel
	for i := range n {
		ch, err := dev.Subscribe(t.Context(), p.First+nfcomms.Target(i))
		require.NoError(t, err)
		ports = append(ports, ch)
	}
	return ports
}
