//go:build cgo

package telemetry_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"

	client_golang "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/telemetry"
)

// The listings of docs/telemetry.md that are no whole program, so that they compile.
var _ = []any{
	func(exporter sdktrace.SpanExporter) any {
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter),
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.NeverSample())))
		return provider
	},
	func(ch *nfcomms.Channel, tracer trace.Tracer) (any, any, error) {
		ctx := context.Background()
		{
			ctx, err := telemetry.ReceiveContext(ctx, ch) // the peer called SendContext
			ctx, span := tracer.Start(ctx, "answer")      // a child of the peer's span
			return ctx, span, err
		}
	},
	func(ctx context.Context, ch *nfcomms.Channel, tracer trace.Tracer) (any, any, error) {
		there, err := telemetry.ReceiveContext(ctx, ch)
		ctx, span := tracer.Start(ctx, "answer", trace.WithLinks(trace.LinkFromContext(there)))
		return ctx, span, err
	},
	func(address string) (any, any, error) {
		client, err := control.Dial(address, grpc.WithStatsHandler(otelgrpc.NewClientHandler()))
		server := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler()))
		return client, server, err
	},
	func(exporter metric.Exporter, reg client_golang.Gatherer) any {
		reader := metric.NewPeriodicReader(exporter, metric.WithProducer(prometheus.NewMetricProducer(prometheus.WithGatherer(reg))))
		return reader
	},
}

var listing = regexp.MustCompile("(?s)```go\n(.*?)```\n")

// flat is a text without the indentation of its lines.
func flat(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimSpace(line) + "\n")
	}
	return out.String()
}

// TestDocs: each listing of docs/telemetry.md stands in the example that runs, or above.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/telemetry.md")
	require.NoError(t, err)
	var sources string
	for _, name := range []string{"example_test.go", "docs_test.go"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		sources += flat(string(text))
	}
	all := listing.FindAllStringSubmatch(string(page), -1)
	require.Len(t, all, 6)
	for _, m := range all {
		require.Contains(t, sources, flat(m[1]))
	}
}
