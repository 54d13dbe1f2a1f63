package metrics

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
)

// counting returns a handler, and the number of times that it gathered.
func counting(t *testing.T) (http.Handler, *atomic.Int32) {
	var n atomic.Int32
	reg := prometheus.NewRegistry()
	reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gathered"}, func() float64 { return float64(n.Add(1)) }))
	return Handler(HandlerOptions{Gatherer: reg}), &n
}

// TestOnePageASecond: a page is rendered once for all requests within its second, whatever queries
// they have.
func TestOnePageASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := counting(t)
		for i := range 100 {
			_, body, _ := ask(t, h, "GET", fmt.Sprintf("/metrics?name[]=%d", i))
			require.Contains(t, body, "gathered 1\n")
		}
		require.EqualValues(t, 1, n.Load())
		time.Sleep(pageTime)
		_, body, _ := ask(t, h, "GET", "/metrics")
		require.Contains(t, body, "gathered 2\n")
	})
}

// TestPagesAreFew: clients cannot make a handler keep more than the forms that there are.
func TestPagesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &answers{render: http.NotFoundHandler(), kept: make(map[form]*answer)}
		for i := range 1000 {
			for _, encoding := range []string{"", "gzip", "gzip;q=0", "gzip;q=1", "br", fmt.Sprint(i)} {
				ask(t, s, "GET", "/metrics", "Accept", fmt.Sprintf("text/plain;version=%d;escaping=%d", i, i), "Accept-Encoding", encoding)
			}
		}
		require.Len(t, s.kept, 2)
		time.Sleep(pageTime)
		ask(t, s, "GET", "/metrics")
		require.Len(t, s.kept, 1, "old pages go")
	})
}

// TestPagesAreCompressed: a client that takes gzip gets it.
func TestPagesAreCompressed(t *testing.T) {
	h, _ := counting(t)
	_, body, header := ask(t, h, "GET", "/metrics", "Accept-Encoding", "deflate, gzip;q=0.5")
	require.Equal(t, "gzip", header.Get("Content-Encoding"))
	unpacked, err := gzip.NewReader(strings.NewReader(body))
	require.NoError(t, err)
	text, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	require.Contains(t, string(text), "gathered 1\n")
	_, body, header = ask(t, h, "GET", "/metrics", "Accept-Encoding", "gzip;q=0")
	require.Empty(t, header.Get("Content-Encoding"))
	require.Contains(t, body, "gathered 2\n")
}

// TestSlowGather: requests wait for a gathering no longer than a scraper does, and all of them
// together begin one.
func TestSlowGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int32
		ready := make(chan struct{})
		h := Handler(HandlerOptions{Gatherer: prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
			begun.Add(1)
			<-ready
			return nil, nil
		})})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				status, _, _ := ask(t, h, "GET", "/metrics")
				require.Equal(t, http.StatusServiceUnavailable, status)
			})
		}
		all.Wait()
		require.EqualValues(t, 1, begun.Load())
		close(ready)
		synctest.Wait()
		status, _, _ := ask(t, h, "GET", "/metrics")
		require.Equal(t, http.StatusOK, status)
	})
}
