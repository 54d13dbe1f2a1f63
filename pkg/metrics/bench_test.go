package metrics

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// BenchmarkScrape is one scrape of a device with many open channels: reading
// the counters, and with them shown in the text format over HTTP.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{1, 1000, 10_000} {
		dev := crowd(b, n)
		for _, c := range []struct {
			name string
			o    Options
		}{
			{"device", Options{}},
			{"bounded", Options{Channels: true}},
			{"every-channel", Options{Channels: true, MaxSeries: 1000 + (n+1)*channelSeries}},
		} {
			b.Run(fmt.Sprintf("channels=%d/%s", n, c.name), func(b *testing.B) {
				reg := prometheus.NewRegistry()
				reg.MustRegister(NewCollector(One("sim0", dev), c.o))
				h := Handler(HandlerOptions{Gatherer: reg})
				b.ReportAllocs()
				size := 0
				for b.Loop() {
					w := httptest.NewRecorder()
					h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
					size = w.Body.Len()
				}
				b.ReportMetric(float64(size), "page-B")
				all, err := reg.Gather()
				require.NoError(b, err)
				count := 0
				for _, f := range all {
					count += len(f.Metric)
				}
				b.ReportMetric(float64(count), "metrics")
			})
		}
	}
}

// BenchmarkStats is the reading alone.
func BenchmarkStats(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		dev := crowd(b, n)
		b.Run(fmt.Sprintf("channels=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dev.Stats()
			}
		})
	}
}

// crowd opens a device with n channels that were used.
func crowd(b *testing.B, n int) *nfcomms.Device {
	b.Helper()
	ctx := context.Background()
	dev, err := nfcomms.Open(ctx, fmt.Sprintf("sim:?channels=%d&managers=2", n+100))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, dev.Close()) })
	p, err := dev.Start(ctx, nfcomms.Program{Name: "loopback", Targets: n})
	require.NoError(b, err)
	msg := make([]byte, 8)
	for i := range n {
		ch, err := dev.Subscribe(ctx, p.First+nfcomms.Target(i))
		require.NoError(b, err)
		require.NoError(b, ch.Send(ctx, msg))
		_, err = ch.Receive(ctx, msg)
		require.NoError(b, err)
	}
	return dev
}
