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

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/telemetry"
)

// BenchmarkCost sends batches of messages by two devices in turn, of which one is traced, and reports
// by how much its median is above the other's. The devices change places half way.
func BenchmarkCost(b *testing.B) {
	for _, c := range []struct {
		name  string
		every int
	}{{"none", 0}, {"every64", 64}, {"every1", 1}} {
		b.Run(c.name, func(b *testing.B) { cost(b, c.every) })
	}
}

// batch is the number of messages that are timed together.
const batch = 100

func cost(b *testing.B, every int) {
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	ctx, span := provider.Tracer("bench").Start(context.Background(), "request")
	defer span.End()
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
	var took [2][]time.Duration // plain, traced
	b.ReportAllocs()
	b.ResetTimer()
	for place := range channels {
		var tr *telemetry.Tracing
		if every > 0 {
			var err error
			tr, err = telemetry.Start(ctx, devices[place], telemetry.Options{Every: every, Provider: provider})
			require.NoError(b, err)
		}
		for range max(1, b.N/4/batch) {
			took[1] = append(took[1], exchangeBatch(ctx, b, channels[place]))
			took[0] = append(took[0], exchangeBatch(ctx, b, channels[1-place]))
		}
		if tr != nil {
			tr.Close()
		}
	}
	b.StopTimer()
	for i := range took {
		slices.Sort(took[i])
	}
	plain, traced := took[0][len(took[0])/2], took[1][len(took[1])/2]
	b.ReportMetric(100*(float64(traced)/float64(plain)-1), "%")
	b.ReportMetric(float64(plain)/batch/2, "ns/message")
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
