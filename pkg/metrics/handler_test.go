package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// ask makes one request of a handler.
func ask(t *testing.T, h http.Handler, method, path string, header ...string) (status int, body string, answer http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Result().Body)
	require.NoError(t, err)
	return w.Code, string(b), w.Result().Header
}

func TestHandler(t *testing.T) {
	_, dev := newFake(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(One("dev0", dev), Options{}))
	var ready error
	h := Handler(HandlerOptions{
		Gatherer: reg,
		Ready:    func(context.Context) error { return ready },
	})
	for _, c := range []struct {
		method, path string
		status       int
		text         string
	}{
		{"GET", "/metrics", 200, `nfcomms_device_state{device="dev0",state="ready"} 1`},
		{"GET", "/healthz", 200, "ok"},
		{"HEAD", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ok"},
		{"GET", "/", 200, "/metrics"},
		{"GET", "/other", 404, ""},
		{"POST", "/metrics", 405, ""},
		{"GET", "/debug/pprof/", 404, ""},
	} {
		status, body, _ := ask(t, h, c.method, c.path)
		require.Equal(t, c.status, status, c.path)
		require.Contains(t, body, c.text, c.path)
	}
	ready = errors.New("device dev0: fault")
	status, body, header := ask(t, h, "GET", "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "device dev0: fault\n", body)
	require.Equal(t, "no-store", header.Get("Cache-Control"))
	status, _, _ = ask(t, h, "GET", "/healthz")
	require.Equal(t, http.StatusOK, status, "the process still lives")
}

// TestHandlerNative: a scraper that asks for protobuf gets native histograms.
func TestHandlerNative(t *testing.T) {
	_, dev := newFake(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(One("dev0", dev), Options{}))
	_, body, header := ask(t, Handler(HandlerOptions{Gatherer: reg}), "GET", "/metrics", "Accept",
		"application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	require.Contains(t, header.Get("Content-Type"), "protobuf")
	require.Contains(t, body, "nfcomms_transfer_duration_seconds")
}

// TestHandlerOpenMetrics: a scraper that asks for OpenMetrics gets it.
func TestHandlerOpenMetrics(t *testing.T) {
	_, dev := newFake(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(One("dev0", dev), Options{}))
	_, body, header := ask(t, Handler(HandlerOptions{Gatherer: reg}), "GET", "/metrics", "Accept", "application/openmetrics-text;version=1.0.0")
	require.Contains(t, header.Get("Content-Type"), "application/openmetrics-text")
	require.Contains(t, body, "nfcomms_messages_total{")
	require.True(t, strings.HasSuffix(body, "# EOF\n"))
}

func TestHandlerPprof(t *testing.T) {
	h := Handler(HandlerOptions{Gatherer: prometheus.NewRegistry(), Pprof: true})
	for path, text := range map[string]string{
		"/debug/pprof/":                  "goroutine",
		"/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/cmdline":           "",
		"/":                              "/debug/pprof/",
	} {
		status, body, _ := ask(t, h, "GET", path)
		require.Equal(t, http.StatusOK, status, path)
		require.Contains(t, body, text)
	}
}

// TestHandlerShares: scrapes at the same time share one gathering.
func TestHandlerShares(t *testing.T) {
	var gathering, gathered atomic.Int32
	h := Handler(HandlerOptions{Gatherer: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		if gathering.Add(1) > 1 {
			t.Error("two gatherings at once")
		}
		defer gathering.Add(-1)
		gathered.Add(1)
		for range 100 {
			runtime.Gosched()
		}
		return nil, nil
	})})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if status, body, _ := ask(t, h, "GET", "/metrics"); status != http.StatusOK {
					t.Error(status, body)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, gathered.Load())
}
