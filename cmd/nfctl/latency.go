package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// latencyLayersRecord is the output of nfctl latency for one interval.
type latencyLayersRecord struct {
	Time   string `json:"time" doc:"the end of the interval, RFC 3339 in UTC"`
	Device string `json:"device" doc:"name of the device"`
	kindRecord
	Every      uint32            `json:"every" doc:"one call in so many is measured"`
	Lost       uint64            `json:"lost" doc:"calls that were measured and found no room"`
	Wrong      uint64            `json:"wrong" doc:"calls with stamps of the device that cannot be true"`
	ClockError *float64          `json:"clock_error_seconds" doc:"how far the comparison of the clocks may be off; null if the ways there and back count as equally long"`
	Operations []operationRecord `json:"operations" doc:"what the calls took, by operation; empty if there were none"`
}

// operationRecord is the waterfall of an operation.
type operationRecord struct {
	Operation string        `json:"operation" doc:"send, receive, send transfer or receive transfer"`
	Calls     uint64        `json:"calls" doc:"calls that were measured"`
	Bytes     uint64        `json:"bytes" doc:"bytes that they delivered"`
	Dominant  string        `json:"dominant" doc:"the layer that takes most of the time"`
	Whole     timesRecord   `json:"whole" doc:"from the call to its return"`
	Layers    []layerRecord `json:"layers" doc:"the layers that took any time, in the order of a call; their means add up to that of the whole"`
}

// timesRecord is a distribution of times.
type timesRecord struct {
	Mean float64 `json:"mean_seconds" doc:"the mean"`
	P50  float64 `json:"p50_seconds" doc:"half took no longer"`
	P99  float64 `json:"p99_seconds" doc:"99 % took no longer"`
	Max  float64 `json:"max_seconds" doc:"the longest"`
}

// layerRecord is what one layer takes.
type layerRecord struct {
	Layer string  `json:"layer" doc:"marshal, queue, pin, submit, device, pickup, target, dma, completion, wakeup or return"`
	Share float64 `json:"share_ratio" doc:"its part of the time of all calls together, 0 to 1"`
	timesRecord
}

// latencyOptions are the flags of nfctl latency.
type latencyOptions struct {
	every    uint32
	interval time.Duration
	length   time.Duration
	size     int
}

func (o latencyOptions) check() error {
	switch {
	case o.every == 0 || o.every > trace.MaxEvery:
		return usagef("--every %d is not 1 to %d", o.every, trace.MaxEvery)
	case o.interval < 10*time.Millisecond || o.interval > time.Hour:
		return usagef("--interval %v is not 10ms to 1h", o.interval)
	case o.length < 0:
		return usagef("--for %v is negative", o.length)
	case o.size < 0 || o.size > 1<<30:
		return usagef("--size %d is not 0 to 1 GiB", o.size)
	}
	return nil
}

func newLatency(a *app) *cobra.Command {
	var o latencyOptions
	cmd := &cobra.Command{
		Use: "latency [DEVICE]", GroupID: groupLook,
		Short: "Show where the time of calls goes, layer by layer",
		Long: `Show where the time of calls goes: of one call in so many each layer is
measured, from the API to the device and back, and summed up for each interval
until interrupted, or for the time of --for. The calls are those of the server's
process. A device of --device has none, so nfctl sends messages of 56 bytes and
transfers of --size bytes to its loopback service and back. As JSON each interval
is a line. DEVICE may be left out if there is only one.`,
		Example: `  nfctl latency --for 5s sim0
  nfctl --device sim: latency --for 5s
  nfctl latency --for 1s -o json | jq '.operations[] | {operation, dominant}'`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			limited, cancel := a.limited(ctx)
			name, err := onlyDevice(limited, c, args)
			cancel()
			if err != nil {
				return err
			}
			return a.latency(ctx, c, name, o)
		}),
	}
	f := cmd.Flags()
	f.Uint32Var(&o.every, "every", 64, "measure one call in so many")
	f.DurationVarP(&o.interval, "interval", "i", time.Second, "time between two tables")
	f.DurationVar(&o.length, "for", 0, "end after this time; 0 means when interrupted")
	f.IntVar(&o.size, "size", 64<<10, "bytes of the transfers to a device of --device")
	return cmd
}

// latency shows interval after interval.
func (a *app) latency(ctx context.Context, c *control.Client, name string, o latencyOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o.interval = cmp.Or(min(o.interval, o.length), o.interval)
	s, err := c.Diagnostics.WatchLatency(ctx, &nfcommsv1.WatchLatencyRequest{
		Name: name, Every: o.every, Interval: durationpb.New(o.interval),
	})
	if err != nil {
		return err
	}
	busy := make(chan error, 1)
	if a.opened != nil {
		go func() { busy <- exercise(ctx, a.opened, o.size); cancel() }()
	} else {
		busy <- nil
	}
	show := a.series()
	for passed := time.Duration(0); err == nil && (o.length == 0 || passed < o.length); passed += o.interval {
		var r *nfcommsv1.WatchLatencyResponse
		if r, err = s.Recv(); err == nil {
			err = show.print(latencyRecordOf(deviceID(name), o.every, r))
		}
	}
	cancel()
	if failed := <-busy; failed != nil && !errors.Is(failed, context.Canceled) {
		return failed
	}
	return err
}

// exercise sends messages and transfers to the loopback service and takes them back, until ctx ends.
func exercise(ctx context.Context, dev *nfcomms.Device, size int) error {
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	if err != nil {
		return err
	}
	defer ch.Close()
	message, data := make([]byte, nfcomms.MessageSize), make([]byte, size)
	for err == nil {
		if err = ch.Send(ctx, message); err == nil {
			_, err = ch.Receive(ctx, message)
		}
		if err == nil {
			err = ch.SendInd(ctx, data)
		}
		if err == nil {
			_, err = ch.ReceiveInd(ctx, data)
		}
	}
	return err
}

func latencyRecordOf(device string, every uint32, r *nfcommsv1.WatchLatencyResponse) latencyLayersRecord {
	x := latencyLayersRecord{
		Time: time.Now().UTC().Format(timeLayout), Device: device, kindRecord: kindRecord{deviceKind(r.GetDeviceKind())}, Every: every, Lost: r.GetLost(), Wrong: r.GetWrong(),
		ClockError: secondsOrNil(r.GetClockError()), Operations: []operationRecord{},
	}
	for _, w := range r.GetWaterfalls() {
		o := operationRecord{Operation: w.GetOperation(), Calls: w.GetCalls(), Bytes: w.GetBytes(), Whole: timesOf(w.GetWhole()), Layers: []layerRecord{}}
		for _, l := range w.GetLayers() {
			o.Layers = append(o.Layers, layerRecord{Layer: strings.TrimPrefix(word(l.GetLayer()), "layer_"), Share: l.GetShare(), timesRecord: timesOf(l.GetTimes())})
		}
		if len(o.Layers) > 0 {
			o.Dominant = slices.MaxFunc(o.Layers, func(a, b layerRecord) int { return cmp.Compare(a.Share, b.Share) }).Layer
		}
		x.Operations = append(x.Operations, o)
	}
	return x
}

func timesOf(t *nfcommsv1.Times) timesRecord {
	s := func(d *durationpb.Duration) float64 { return d.AsDuration().Seconds() }
	return timesRecord{Mean: s(t.GetMean()), P50: s(t.GetP50()), P99: s(t.GetP99()), Max: s(t.GetMax())}
}

// waterfallWidth is that of the bars, in characters.
const waterfallWidth = 40

// table draws the layers as a waterfall: each bar begins where the one before ends.
func (r latencyLayersRecord) table(p *printer) {
	again := p.again
	p.again = false
	if again {
		p.printf("\n")
	}
	clock := "clocks not compared: the ways there and back count as equally long"
	if r.ClockError != nil {
		clock = "clocks compared to ±" + secondsText(r.ClockError)
	}
	p.printf("%s  %s, %s, one call in %d, %s\n", r.Time, r.Device, kindText(r.Kind), r.Every, clock)
	if r.Lost > 0 || r.Wrong > 0 {
		p.printf("%d calls found no room, %d have stamps of the device that cannot be true\n", r.Lost, r.Wrong)
	}
	if len(r.Operations) == 0 {
		p.printf("no calls\n")
	}
	for _, o := range r.Operations {
		p.printf("\n%s: %s calls, %s, p50 %s, p99 %s, mean %s; most of it %s\n", o.Operation, units.Count(float64(o.Calls)),
			units.Bytes(float64(o.Bytes)), secondsText(&o.Whole.P50), secondsText(&o.Whole.P99), secondsText(&o.Whole.Mean), o.Dominant)
		o.waterfall(p)
	}
}

func (o operationRecord) waterfall(p *printer) {
	before := 0.0
	bars := make(map[string]string)
	for _, l := range o.Layers {
		first, last := int(before*waterfallWidth), int((before+l.Share)*waterfallWidth)
		bars[l.Layer] = strings.Repeat(" ", first) + strings.Repeat("█", max(1, last-first))
		before += l.Share
	}
	type row = layerRecord
	writeTable(p, []column[row]{
		{title: "LAYER", cell: func(l row) string { return l.Layer }},
		{title: "P50", right: true, cell: func(l row) string { return secondsText(&l.P50) }},
		{title: "P99", right: true, cell: func(l row) string { return secondsText(&l.P99) }},
		{title: "MEAN", right: true, cell: func(l row) string { return secondsText(&l.Mean) }},
		{title: "SHARE", right: true, cell: func(l row) string { return fmt.Sprintf("%.1f %%", 100*l.Share) }},
		{title: "WATERFALL", cell: func(l row) string { return bars[l.Layer] }, tint: func(l row) tint {
			if l.Layer == o.Dominant {
				return warn
			}
			return plainTint
		}},
	}, o.Layers)
}
