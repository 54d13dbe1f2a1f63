//go:build cgo

package telemetry_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	layers "github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
	"github.com/nfcomms/nfcomms/pkg/telemetry"
)

// BenchmarkCost sends batches of messages by two devices in turn, of which one is traced, and reports
// by how much it is above the other. The devices change places half way, and others take theirs, as
// the place in memory counts. Of the batches of a pair the tenth percentile counts, as other processes
// disturb most on a busy machine; of pairs and places the median.
func BenchmarkCost(b *testing.B) {
	for _, c := range []struct {
		name  string
		every int
	}{{"none", 0}, {"never", layers.MaxEvery}, {"every64", 64}, {"every1", 1}} {
		b.Run(c.name, func(b *testing.B) { cost(b, c.every) })
	}
}

const (
	batch = 50 // messages there and back that are timed together
	pairs = 8
)

func cost(b *testing.B, every int) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	ctx, span := provider.Tracer("bench").Start(context.Background(), "request")
	defer span.End()
	defer func() { require.NoError(b, provider.Shutdown(context.Background())) }()
	b.ReportAllocs()
	b.ResetTimer()
	var above, plain []float64
	for range pairs {
		took := pairCost(ctx, b, every, provider)
		for place := range took {
			t := &took[place]
			for i := range t {
				slices.Sort(t[i])
			}
			at := len(t[0]) / 10
			plain = append(plain, float64(t[0][at])/batch/2)
			above = append(above, float64(t[1][at])/batch/2-plain[len(plain)-1])
		}
	}
	slices.Sort(above)
	slices.Sort(plain)
	b.ReportMetric(above[pairs], "ns-more")
	b.ReportMetric(plain[pairs], "ns/message")
	b.ReportMetric(100*above[pairs]/plain[pairs], "%")
}

// pairCost returns what the batches of two devices took in both places: of the plain one, and of the
// traced one.
func pairCost(ctx context.Context, b *testing.B, every int, provider trace.TracerProvider) (took [2][2][]time.Duration) {
	var devices [2]*nfcomms.Device
	var channels [2]*nfcomms.Channel
	for i := range devices {
		dev, err := nfcomms.Open(ctx, "sim:")
		require.NoError(b, err)
		defer dev.Close()
		channels[i], err = dev.Subscribe(ctx, nfcomms.Loopback)
		require.NoError(b, err)
		devices[i] = dev
	}
	for place := range channels {
		var tr *telemetry.Tracing
		if every > 0 {
			var err error
			tr, err = telemetry.Start(ctx, devices[place], telemetry.Options{Every: every, Provider: provider})
			require.NoError(b, err)
		}
		for range max(1, b.N/4/batch/pairs) {
			took[place][1] = append(took[place][1], exchangeBatch(ctx, b, channels[place]))
			took[place][0] = append(took[place][0], exchangeBatch(ctx, b, channels[1-place]))
		}
		if tr != nil {
			tr.Close()
		}
	}
	return took
}

func exchangeBatch(ctx context.Context, b *testing.B, ch *nfcomms.Channel) time.Duration {
	var msg [nfcomms.MessageSize]byte
	begin := time.Now()
	for range batch {
		if err := ch.Send(ctx, msg[:]); err != nil {
			b.Fatal(err)
		}
		if _, err := ch.Receive(ctx, msg[:]); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(begin)
}
