package main

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// pingRecord is the output of nfctl ping.
type pingRecord struct {
	Device string `json:"device" doc:"name of the device"`
	kindRecord
	Sent      int           `json:"sent" doc:"round trips begun"`
	Answered  int           `json:"answered" doc:"round trips that came back"`
	RoundTrip latencyRecord `json:"round_trip" doc:"from the server to the firmware and back, by the server's clock"`
	Total     latencyRecord `json:"total" doc:"from nfctl over the server to the firmware and back, by nfctl's clock"`
	Inside    latencyRecord `json:"inside" doc:"from taking the message to answering it, by the device's clock; times longer than the round trip do not count"`
}

// latencyRecord is a distribution of times. Without times all are 0.
type latencyRecord struct {
	Min  float64 `json:"min_seconds" doc:"the shortest"`
	Mean float64 `json:"mean_seconds" doc:"the mean"`
	P50  float64 `json:"p50_seconds" doc:"half took no longer"`
	P90  float64 `json:"p90_seconds" doc:"90 % took no longer"`
	P99  float64 `json:"p99_seconds" doc:"99 % took no longer"`
	P999 float64 `json:"p999_seconds" doc:"99.9 % took no longer"`
	Max  float64 `json:"max_seconds" doc:"the longest"`
}

// pingOptions are the flags of nfctl ping.
type pingOptions struct {
	count    int
	interval time.Duration
}

func newPing(a *app) *cobra.Command {
	var o pingOptions
	cmd := &cobra.Command{
		Use: "ping [DEVICE]", GroupID: groupLook,
		Short: "Measure round trips to the firmware of a device",
		Long: `Measure round trips to the firmware of a device, which the server makes for us:
each is a message to the time service and its answer. DEVICE may be left out if
there is only one. --timeout bounds each round trip. Percentiles have three
digits.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			if o.count < 0 || o.interval < 0 {
				return usagef("--count and --interval must not be negative")
			}
			limited, cancel := a.limited(ctx)
			name, err := onlyDevice(limited, c, args)
			cancel()
			if err != nil {
				return err
			}
			return a.ping(ctx, c, name, o)
		}),
	}
	cmd.Flags().IntVarP(&o.count, "count", "c", 10, "number of round trips; 0 means until interrupted")
	cmd.Flags().IntVarP(&o.count, "n", "n", 10, "as --count")
	_ = cmd.Flags().MarkHidden("n") // as it was called first; it fails for a flag that is not there
	cmd.Flags().DurationVarP(&o.interval, "interval", "i", 100*time.Millisecond, "time between two round trips; 0 means none")
	return cmd
}

// ping makes round trips and prints what they took, also when it is interrupted
// or one fails.
func (a *app) ping(ctx context.Context, c *control.Client, name string, o pingOptions) error {
	p := newPinger()
	var failed error
	for i := 0; (o.count == 0 || i < o.count) && failed == nil; i++ {
		if i > 0 && !pause(ctx, o.interval) {
			break
		}
		failed = a.pingOnce(ctx, c, name, p)
	}
	if p.sent == 1 && failed != nil {
		return failed // nothing to report
	}
	return errors.Join(a.print(p.record(deviceID(name))), failed, ctx.Err())
}

// pause waits; false if the context ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (a *app) pingOnce(ctx context.Context, c *control.Client, name string, p *pinger) error {
	limited, cancel := a.limited(ctx)
	defer cancel()
	p.sent++
	begin := time.Now()
	r, err := c.Diagnostics.PingDevice(limited, &nfcommsv1.PingDeviceRequest{Name: name})
	if err != nil {
		return err
	}
	return p.add(r, time.Since(begin))
}

// pinger collects round trips.
type pinger struct {
	sent, answered           int
	kind                     nfcommsv1.Device_Kind // as the last answer has it
	roundTrip, total, inside *hdrhistogram.Histogram
}

// maxLatency is the longest time that a histogram distinguishes, in ns.
const maxLatency = int64(time.Hour)

func newPinger() *pinger {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(1, maxLatency, 3) }
	return &pinger{roundTrip: h(), total: h(), inside: h()}
}

// add counts one round trip.
func (p *pinger) add(r *nfcommsv1.PingDeviceResponse, total time.Duration) error {
	p.answered++
	p.kind = r.GetDeviceKind()
	err := errors.Join(observe(p.roundTrip, r.GetRoundTrip().AsDuration()), observe(p.total, total))
	// The device's clock is the device's word, and may be a coarse one.
	held := r.GetDeviceSendNs() - r.GetDeviceReceiveNs()
	if held > uint64(r.GetRoundTrip().AsDuration()) {
		return err
	}
	return errors.Join(err, observe(p.inside, time.Duration(held)))
}

func observe(h *hdrhistogram.Histogram, d time.Duration) error {
	return h.RecordValue(min(max(int64(d), 0), maxLatency))
}

func (p *pinger) record(device string) pingRecord {
	return pingRecord{
		Device: device, kindRecord: kindRecord{deviceKind(p.kind)}, Sent: p.sent, Answered: p.answered,
		RoundTrip: latencyOf(p.roundTrip), Total: latencyOf(p.total), Inside: latencyOf(p.inside),
	}
}

func latencyOf(h *hdrhistogram.Histogram) latencyRecord {
	if h.TotalCount() == 0 {
		return latencyRecord{}
	}
	at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1e9 }
	return latencyRecord{
		Min: float64(h.Min()) / 1e9, Mean: h.Mean() / 1e9, Max: float64(h.Max()) / 1e9,
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9),
	}
}

// namedLatency is a row of the table.
type namedLatency struct {
	name string
	latencyRecord
}

func (r pingRecord) table(p *printer) {
	p.printf("%s, %s: %d of %d round trips answered\n", r.Device, kindText(r.Kind), r.Answered, r.Sent)
	if r.Answered == 0 {
		return
	}
	var columns []column[namedLatency]
	columns = append(columns, column[namedLatency]{title: "PATH", cell: func(l namedLatency) string { return l.name }})
	for _, c := range []struct {
		title string
		value func(namedLatency) float64
	}{
		{"MIN", func(l namedLatency) float64 { return l.Min }},
		{"MEAN", func(l namedLatency) float64 { return l.Mean }},
		{"P50", func(l namedLatency) float64 { return l.P50 }},
		{"P90", func(l namedLatency) float64 { return l.P90 }},
		{"P99", func(l namedLatency) float64 { return l.P99 }},
		{"P99.9", func(l namedLatency) float64 { return l.P999 }},
		{"MAX", func(l namedLatency) float64 { return l.Max }},
	} {
		columns = append(columns, column[namedLatency]{title: c.title, right: true, cell: func(l namedLatency) string {
			v := c.value(l)
			return secondsText(&v)
		}})
	}
	writeTable(p, columns, []namedLatency{
		{"server to firmware and back", r.RoundTrip},
		{"nfctl to firmware and back", r.Total},
		{"inside the firmware", r.Inside},
	})
}
