//go:build cgo

package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/metrics"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// background ends with the test, or before that if something hangs.
func background(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// openSim opens a simulated device.
func openSim(t *testing.T) *nfcomms.Device {
	t.Helper()
	dev, err := nfcomms.Open(background(t), "sim:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// recorder returns a provider that keeps the spans which a sampler chooses.
func recorder(t *testing.T, sampler sdktrace.Sampler) (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	p := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithSampler(sampler))
	t.Cleanup(func() { require.NoError(t, p.Shutdown(context.Background())) })
	return p, kept
}

// exchange sends and receives a message and a transfer.
func exchange(ctx context.Context, t *testing.T, ch *nfcomms.Channel) {
	t.Helper()
	data := make([]byte, 4096)
	require.NoError(t, ch.Send(ctx, data[:8]))
	_, err := ch.Receive(ctx, data)
	require.NoError(t, err)
	require.NoError(t, ch.SendInd(ctx, data))
	_, err = ch.ReceiveInd(ctx, data)
	require.NoError(t, err)
}

// TestSpans: each call has a span below that of its caller, whose events are its layers.
func TestSpans(t *testing.T) {
	dev := openSim(t)
	p, kept := recorder(t, sdktrace.AlwaysSample())
	tr, err := telemetry.Start(background(t), dev, telemetry.Options{Name: "nic0", Every: 1, Interval: time.Hour, Provider: p})
	require.NoError(t, err)
	ch, err := dev.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	ctx, parent := p.Tracer("test").Start(background(t), "request")
	exchange(ctx, t, ch)
	exchange(background(t), t, ch)
	require.Empty(t, kept.GetSpans(), "an hour has not passed")
	tr.Close()
	tr.Close()
	spans := kept.GetSpans()
	require.Len(t, spans, 8)
	for i, name := range []string{"nfcomms send", "nfcomms receive", "nfcomms send transfer", "nfcomms receive transfer"} {
		s := spans[i]
		require.Equal(t, name, s.Name)
		require.Equal(t, parent.SpanContext().SpanID(), s.Parent.SpanID())
		require.Equal(t, parent.SpanContext().TraceID(), s.SpanContext.TraceID())
		require.Equal(t, trace.SpanKindClient, s.SpanKind)
		require.Equal(t, []int64{8, 8, 4096, 4096}[i], attributeOf(s.Attributes, "nfcomms.bytes").AsInt64())
		require.Equal(t, "nic0", attributeOf(s.Attributes, "nfcomms.device").AsString())
		require.False(t, spans[i+4].Parent.IsValid(), "a call without a parent begins a trace")
		var sum int64
		for _, e := range s.Events {
			require.Equal(t, s.StartTime.Add(time.Duration(sum)), e.Time, "%s begins when the one before ends", e.Name)
			sum += attributeOf(e.Attributes, "nfcomms.duration_ns").AsInt64()
		}
		require.EqualValues(t, s.EndTime.Sub(s.StartTime), sum)
		require.Positive(t, sum)
	}
}

func attributeOf(all []attribute.KeyValue, key attribute.Key) attribute.Value {
	for _, a := range all {
		if a.Key == key {
			return a.Value
		}
	}
	return attribute.Value{}
}

// TestSamplersDecide: the provider's sampler decides, calls beyond Keep are counted, and Interval hands
// spans over.
func TestSamplersDecide(t *testing.T) {
	dev := openSim(t)
	p, kept := recorder(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	tr, err := telemetry.Start(background(t), dev, telemetry.Options{Every: 1, Keep: 6, Interval: time.Hour, Provider: p})
	require.NoError(t, err)
	ch, err := dev.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	exchange(background(t), t, ch)
	exchange(background(t), t, ch)
	tr.Close()
	require.Empty(t, kept.GetSpans())
	require.EqualValues(t, 2, tr.Lost())

	all, _ := recorder(t, sdktrace.AlwaysSample())
	ctx, parent := all.Tracer("test").Start(background(t), "request")
	tr, err = telemetry.Start(background(t), dev, telemetry.Options{Every: 1, Interval: time.Millisecond, Provider: p})
	require.NoError(t, err)
	defer tr.Close()
	exchange(background(t), t, ch)
	exchange(ctx, t, ch)
	require.Eventually(t, func() bool { return len(kept.GetSpans()) == 4 }, time.Minute, time.Millisecond)
	for _, s := range kept.GetSpans() {
		require.Equal(t, parent.SpanContext().SpanID(), s.Parent.SpanID())
	}
}

// TestExemplars: calls that are measured are in a histogram, and its exemplars are their spans, if those
// are recorded.
func TestExemplars(t *testing.T) {
	dev := openSim(t)
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { require.NoError(t, meters.Shutdown(context.Background())) }()
	p, kept := recorder(t, sdktrace.ParentBased(sdktrace.NeverSample()))
	all, _ := recorder(t, sdktrace.AlwaysSample())
	tr, err := telemetry.Start(background(t), dev, telemetry.Options{Name: "nic0", Every: 1, Interval: time.Hour, Provider: p, Meters: meters})
	require.NoError(t, err)
	ch, err := dev.Subscribe(background(t), nfcomms.Loopback)
	require.NoError(t, err)
	ctx, _ := all.Tracer("test").Start(background(t), "request")
	exchange(background(t), t, ch)
	exchange(ctx, t, ch)
	tr.Close()
	spans := make(map[string]bool)
	for _, s := range kept.GetSpans() {
		id, of := s.SpanContext.SpanID(), s.SpanContext.TraceID()
		spans[string(of[:])+string(id[:])] = true
	}
	require.Len(t, spans, 4)
	var got metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(background(t), &got))
	m := got.ScopeMetrics[0].Metrics[0]
	require.Equal(t, "nfcomms.call.duration", m.Name)
	points := m.Data.(metricdata.Histogram[float64]).DataPoints
	require.Len(t, points, 4, "one for each operation")
	for _, point := range points {
		require.EqualValues(t, 2, point.Count)
		require.Positive(t, point.Sum)
		device, _ := point.Attributes.Value("nfcomms.device")
		require.Equal(t, "nic0", device.AsString())
		require.Len(t, point.Exemplars, 1, "a call without a request has no span that is kept")
		e := point.Exemplars[0]
		require.True(t, spans[string(e.TraceID)+string(e.SpanID)])
	}
}

func TestStartRefuses(t *testing.T) {
	dev := openSim(t)
	_, err := telemetry.Start(background(t), dev, telemetry.Options{Interval: -1})
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
	_, err = telemetry.Start(background(t), dev, telemetry.Options{Every: -1})
	require.ErrorIs(t, err, nfcomms.ErrInvalid)
	tr, err := telemetry.Start(background(t), dev, telemetry.Options{}) // of the global provider, which records nothing
	require.NoError(t, err)
	tr.Close()
}

// TestContextTravels: the span of one host is the parent at another one, over a channel between them.
func TestContextTravels(t *testing.T) {
	ctx := background(t)
	dev := openSim(t)
	p, _ := recorder(t, sdktrace.AlwaysSample())
	l, err := dev.Listen(ctx, "mail")
	require.NoError(t, err)
	near, err := dev.Dial(ctx, "mail")
	require.NoError(t, err)
	far, err := l.Accept(ctx)
	require.NoError(t, err)
	spanned, span := p.Tracer("test").Start(ctx, "request")
	for _, from := range []context.Context{spanned, ctx} {
		done := make(chan error, 1)
		go func() { done <- telemetry.SendContext(from, near) }()
		got, err := telemetry.ReceiveContext(ctx, far)
		require.NoError(t, err)
		require.NoError(t, <-done)
		there := trace.SpanContextFromContext(got)
		if from == ctx {
			require.False(t, there.IsValid())
			continue
		}
		require.True(t, there.IsRemote())
		require.True(t, there.IsSampled())
		require.Equal(t, span.SpanContext().SpanID(), there.SpanID())
		require.Equal(t, span.SpanContext().TraceID(), there.TraceID())
	}
	for _, text := range []string{"", "hello", "NFCt\x00 of a wrong size that is longer than a header"} {
		done := make(chan error, 1)
		go func() { done <- near.Send(ctx, []byte(text)) }()
		got, err := telemetry.ReceiveContext(ctx, far)
		require.ErrorIs(t, err, telemetry.ErrNoHeader)
		require.Equal(t, ctx, got)
		require.NoError(t, <-done)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, telemetry.SendContext(ended, near), nfcomms.ErrWithdrawn)
	_, err = telemetry.ReceiveContext(ended, far)
	require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
}

// TestControlPlane: a message through a control plane server is one trace, from the client's request
// over gRPC to the call of the device.
func TestControlPlane(t *testing.T) {
	ctx := background(t)
	dev := openSim(t)
	p, kept := recorder(t, sdktrace.AlwaysSample())
	tr, err := telemetry.Start(ctx, dev, telemetry.Options{Every: 1, Interval: time.Hour, Provider: p})
	require.NoError(t, err)
	o := []otelgrpc.Option{otelgrpc.WithTracerProvider(p), otelgrpc.WithPropagators(propagation.TraceContext{})}
	srv := control.New(control.Options{})
	require.NoError(t, srv.Attach("nic0", dev))
	gs := grpc.NewServer(grpc.StatsHandler(otelgrpc.NewServerHandler(o...)))
	srv.Register(gs)
	l := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()
	c, err := control.Dial("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(o...)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	require.NoError(t, err)
	name := control.ChannelName("nic0", nfcomms.Loopback)
	_, err = c.Channels.OpenChannel(ctx, &nfcommsv1.OpenChannelRequest{Name: name})
	require.NoError(t, err)
	kept.Reset()
	request, span := p.Tracer("test").Start(ctx, "request")
	require.NoError(t, c.Send(request, name, []byte("hello")))
	span.End()
	require.NoError(t, c.Close())
	require.NoError(t, srv.Shutdown(ctx))
	gs.Stop()
	require.NoError(t, <-served)
	tr.Close()

	below := make(map[trace.SpanID]tracetest.SpanStub) // by the parent
	for _, s := range kept.GetSpans() {
		below[s.Parent.SpanID()] = s
	}
	var names []string
	for s := below[trace.SpanID{}]; s.Name != ""; s = below[s.SpanContext.SpanID()] {
		require.Equal(t, span.SpanContext().TraceID(), s.SpanContext.TraceID())
		names = append(names, s.Name)
	}
	const method = "nfcomms.v1.MessageService/SendMessage"
	require.Equal(t, []string{"request", method, method, "nfcomms send"}, names)
}

// TestHandler: records whose context has a span carry its ids, others do not.
func TestHandler(t *testing.T) {
	p, _ := recorder(t, sdktrace.AlwaysSample())
	ctx, span := p.Tracer("test").Start(context.Background(), "request")
	defer span.End()
	var b bytes.Buffer
	log := slog.New(telemetry.NewHandler(slog.NewJSONHandler(&b, nil))).With("a", 1)
	log.InfoContext(ctx, "x")
	log.WithGroup("g").InfoContext(ctx, "y")
	log.Info("z")
	d := json.NewDecoder(&b)
	next := func() (r map[string]any) {
		require.NoError(t, d.Decode(&r))
		require.EqualValues(t, 1, r["a"])
		return r
	}
	r := next()
	require.Equal(t, span.SpanContext().TraceID().String(), r["trace_id"])
	require.Equal(t, span.SpanContext().SpanID().String(), r["span_id"])
	require.Contains(t, next()["g"], "trace_id")
	require.NotContains(t, next(), "trace_id")
}

// TestMetricsBridge: the metrics of a device pass to OpenTelemetry by the bridge from Prometheus.
func TestMetricsBridge(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics.NewCollector(metrics.One("nic0", openSim(t)), metrics.Options{}))
	reader := sdkmetric.NewManualReader(sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(reg))))
	p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	defer func() { require.NoError(t, p.Shutdown(context.Background())) }()
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(background(t), &all))
	names := make(map[string]bool)
	for _, s := range all.ScopeMetrics {
		for _, m := range s.Metrics {
			names[m.Name] = true
		}
	}
	require.True(t, names["nfcomms_messages_total"])
	require.True(t, names["nfcomms_message_duration_seconds"])
}
