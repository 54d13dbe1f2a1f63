//go:build cgo

package telemetry

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/telemetry"
)

// collector receives by OTLP, and keeps what came.
type collector struct {
	socket  string
	traces  consumertest.TracesSink
	metrics consumertest.MetricsSink
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{socket: t.TempDir() + "/otlp"}
	f := otlpreceiver.NewFactory()
	config := f.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"protocols": map[string]any{"grpc": map[string]any{"endpoint": c.socket, "transport": "unix"}},
	}).Unmarshal(config))
	settings := receiver.Settings{
		ID: component.NewID(f.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo: component.NewDefaultBuildInfo(),
	}
	traces, err := f.CreateTraces(t.Context(), settings, config, &c.traces)
	require.NoError(t, err)
	metrics, err := f.CreateMetrics(t.Context(), settings, config, &c.metrics)
	require.NoError(t, err)
	for _, r := range []component.Component{traces, metrics} { // one server of both
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	}
	return c
}

// TestCollector: the spans of calls and their histogram come to a collector by OTLP, below the span of
// the request, and each exemplar is one of those spans.
func TestCollector(t *testing.T) {
	ctx, c := t.Context(), startCollector(t)
	spans, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpoint("unix:"+c.socket), otlptracegrpc.WithInsecure())
	require.NoError(t, err)
	points, err := otlpmetricgrpc.New(ctx, otlpmetricgrpc.WithEndpoint("unix:"+c.socket), otlpmetricgrpc.WithInsecure())
	require.NoError(t, err)
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(points, sdkmetric.WithInterval(time.Hour))))

	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	calls, err := telemetry.Start(ctx, dev, telemetry.Options{Name: "nic0", Every: 1, Interval: time.Hour, Provider: provider, Meters: meters})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	request, span := provider.Tracer("test").Start(ctx, "request")
	require.NoError(t, ch.Send(request, []byte("hello")))
	_, err = ch.Receive(request, make([]byte, nfcomms.MessageSize))
	require.NoError(t, err)
	span.End()
	calls.Close()
	require.NoError(t, dev.Close())
	require.NoError(t, provider.Shutdown(ctx)) // what is left goes to the collector
	require.NoError(t, meters.Shutdown(ctx))

	came := make(map[pcommon.SpanID]ptrace.Span)
	for _, all := range c.traces.AllTraces() {
		for _, r := range all.ResourceSpans().All() {
			for _, s := range r.ScopeSpans().All() {
				for _, one := range s.Spans().All() {
					came[one.SpanID()] = one
				}
			}
		}
	}
	require.Len(t, came, 3)
	exemplars := 0
	for _, all := range c.metrics.AllMetrics() {
		m := all.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		require.Equal(t, "nfcomms.call.duration", m.Name())
		for _, p := range m.Histogram().DataPoints().All() {
			require.EqualValues(t, 1, p.Count())
			for _, e := range p.Exemplars().All() {
				exemplars++
				call := came[e.SpanID()]
				operation, _ := p.Attributes().Get("nfcomms.operation")
				require.Equal(t, "nfcomms "+operation.Str(), call.Name())
				require.Equal(t, pcommon.SpanID(span.SpanContext().SpanID()), call.ParentSpanID())
				require.Equal(t, e.TraceID(), call.TraceID())
				require.NotZero(t, call.Events().Len(), "its layers")
			}
		}
	}
	require.Equal(t, 2, exemplars)
}
