package control

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// Bounds of WatchLatency.
const (
	latencyInterval = time.Second // of a request that names none
	latencyShortest = 10 * time.Millisecond
	latencyLongest  = time.Hour
	latencyKept     = 1 << 14 // calls of an interval
)

// WatchLatency streams the time of calls by layer, until the client leaves.
func (v diagnosticService) WatchLatency(req *nfcommsv1.WatchLatencyRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchLatencyResponse]) error {
	d, err := v.s.named("name", req.GetName())
	if err != nil {
		return err
	}
	interval, err := latencyOf(req)
	if err != nil {
		return err
	}
	dev, err := d.use()
	if err != nil {
		return err
	}
	ctx := stream.Context()
	t, err := trace.Start(ctx, dev, trace.Options{Every: int(req.GetEvery()), Keep: latencyKept})
	if err != nil {
		return err
	}
	defer t.Close()
	due := time.NewTicker(interval)
	defer due.Stop()
	for {
		select {
		case <-due.C:
			if err := stream.Send(latency(t.Take(ctx), d.kind())); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-d.ctx.Done():
			return v.s.unlisted(d.id, ErrNotOpen)
		case <-v.s.done:
			return ErrShutdown
		}
	}
}

// latencyOf returns the interval of a request whose numbers are within their bounds.
func latencyOf(req *nfcommsv1.WatchLatencyRequest) (time.Duration, error) {
	if req.GetEvery() > trace.MaxEvery {
		return 0, invalid("every", "one call in %d, at most %d", req.GetEvery(), trace.MaxEvery)
	}
	if req.GetInterval() == nil {
		return latencyInterval, nil
	}
	interval := req.GetInterval().AsDuration()
	if interval < latencyShortest || interval > latencyLongest || req.GetInterval().CheckValid() != nil {
		return 0, invalid("interval", "%v is not %v to %v", interval, latencyShortest, latencyLongest)
	}
	return interval, nil
}

// latency is what was measured in an interval, of a device of this kind.
func latency(t trace.Result, kind nfcommsv1.Device_Kind) *nfcommsv1.WatchLatencyResponse {
	r := &nfcommsv1.WatchLatencyResponse{Lost: t.Lost, Wrong: t.Wrong, DeviceKind: kind}
	if t.ClockKnown {
		r.ClockError = durationpb.New(t.ClockError)
	}
	for _, w := range t.Waterfalls() {
		m := &nfcommsv1.Waterfall{Operation: w.Op, Calls: uint64(w.Calls), Bytes: w.Bytes, Whole: times(w.Whole)}
		for _, l := range w.Layers {
			m.Layers = append(m.Layers, &nfcommsv1.LayerTimes{Layer: nfcommsv1.Layer(l.Layer + 1), Times: times(l.Times), Share: l.Share})
		}
		r.Waterfalls = append(r.Waterfalls, m)
	}
	return r
}

func times(t trace.Times) *nfcommsv1.Times {
	return &nfcommsv1.Times{Mean: durationpb.New(t.Mean), P50: durationpb.New(t.P50), P99: durationpb.New(t.P99), Max: durationpb.New(t.Max)}
}
