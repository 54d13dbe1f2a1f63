package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	layers "github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// scope is the name of the instrumentation.
const scope = "github.com/nfcomms/nfcomms/pkg/telemetry"

// lastTake bounds how long Close waits for the last calls.
const lastTake = time.Second

// Options is what Start traces. The zero value is valid.
type Options struct {
	// Name is the device's name in spans, the attribute nfcomms.device; empty for none.
	Name string
	// Every picks one call in so many, by chance; 0 means 64. With 1 each call of a request that is
	// traced has a span.
	Every int
	// Keep is how many calls wait for the next Interval, as that of trace.Options; 0 means 1024.
	Keep int
	// Interval is the time between two hand-overs of spans; 0 means 1 s.
	Interval time.Duration
	// Provider makes the spans, and its sampler decides which are recorded; nil means
	// otel.GetTracerProvider.
	Provider trace.TracerProvider
	// Meters makes nfcomms.call.duration, a histogram of the calls that are measured, whose exemplars
	// lead to their spans; nil means none.
	Meters metric.MeterProvider
}

// Tracing is a device whose calls are traced. Its methods are safe for concurrent use.
type Tracing struct {
	calls  *layers.Tracer
	tracer trace.Tracer
	times  metric.Float64Histogram // nil: none
	shared []attribute.KeyValue    // of all spans
	lost   atomic.Uint64
	stop   chan struct{}
	ended  sync.Once
	done   sync.WaitGroup
}

// Start begins to trace calls of a device that send or receive, as trace.Start does, and has the
// errors of that. A call's span is a child of the span in its context. It reaches the provider
// within Interval after the call has ended.
func Start(ctx context.Context, dev *nfcomms.Device, o Options) (*Tracing, error) {
	if o.Interval < 0 {
		return nil, fmt.Errorf("telemetry: interval %v: %w", o.Interval, nfcomms.ErrInvalid)
	}
	var times metric.Float64Histogram
	if o.Meters != nil {
		var err error
		if times, err = newTimes(o.Meters); err != nil {
			return nil, fmt.Errorf("telemetry: %w", err)
		}
	}
	calls, err := layers.Start(ctx, dev, layers.Options{Every: o.Every, Keep: o.Keep, Caller: callerOf})
	if err != nil {
		return nil, err
	}
	provider := o.Provider
	if provider == nil {
		provider = otel.GetTracerProvider()
	}
	t := &Tracing{calls: calls, tracer: provider.Tracer(scope), times: times, stop: make(chan struct{})}
	if o.Name != "" {
		t.shared = append(t.shared, attribute.String("nfcomms.device", o.Name))
	}
	t.done.Go(func() { t.run(cmp.Or(o.Interval, time.Second)) })
	return t, nil
}

// callerOf returns the span of a call's context, without an allocation.
func callerOf(ctx context.Context) any { return trace.SpanFromContext(ctx) }

// Lost returns how many sampled calls have no span, as they found no room within an Interval.
func (t *Tracing) Lost() uint64 { return t.lost.Load() }

// Close hands over the last spans and ends the tracing. It is idempotent. It does not flush the
// provider.
func (t *Tracing) Close() {
	t.ended.Do(func() { close(t.stop) })
	t.done.Wait()
}

// run hands spans over until Close.
func (t *Tracing) run(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for over := false; !over; {
		select {
		case <-t.stop:
			over = true
			t.calls.Close()
		case <-tick.C:
		}
		t.handOver()
	}
}

// handOver makes spans of the calls since the last time.
func (t *Tracing) handOver() {
	ctx, cancel := context.WithTimeout(context.Background(), lastTake)
	defer cancel()
	r := t.calls.Take(ctx)
	t.lost.Add(r.Lost)
	for i := range r.Spans {
		t.span(&r.Spans[i])
	}
}

// span makes the span of one call. Its layers follow each other in the order of their constants: a
// call that repeats some has the sum of each.
func (t *Tracing) span(call *layers.Span) {
	ctx := context.Background()
	if caller, ok := call.Caller.(trace.Span); ok {
		ctx = trace.ContextWithSpanContext(ctx, caller.SpanContext())
	}
	ctx, span := t.tracer.Start(ctx, "nfcomms "+call.Op, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(call.Start))
	if span.IsRecording() {
		span.SetAttributes(t.shared...)
		span.SetAttributes(attribute.Int64("nfcomms.target", int64(call.Target)), attribute.Int("nfcomms.bytes", call.Bytes))
		at := call.Start
		for layer, took := range call.Layers {
			if took > 0 {
				span.AddEvent(layers.Layer(layer).String(), trace.WithTimestamp(at), trace.WithAttributes(attribute.Int64("nfcomms.duration_ns", int64(took))))
			}
			at = at.Add(took)
		}
	}
	span.End(trace.WithTimestamp(call.Start.Add(call.Whole)))
	if t.times != nil {
		of := append([]attribute.KeyValue{attribute.String("nfcomms.operation", call.Op)}, t.shared...)
		t.times.Record(ctx, call.Whole.Seconds(), metric.WithAttributes(of...)) // the exemplar is the span of ctx
	}
}

// newTimes makes the histogram of measured calls. Its bounds are those of a call in memory and of one
// that waits: a quarter of a microsecond to a second, by four.
func newTimes(p metric.MeterProvider) (metric.Float64Histogram, error) {
	var bounds []float64
	for bound := 250e-9; bound < 2; bound *= 4 {
		bounds = append(bounds, bound)
	}
	return p.Meter(scope).Float64Histogram("nfcomms.call.duration", metric.WithUnit("s"),
		metric.WithDescription("Time of calls that were measured."), metric.WithExplicitBucketBoundaries(bounds...))
}
