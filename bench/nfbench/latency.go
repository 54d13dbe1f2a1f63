package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// latencyOptions are the flags of the command.
type latencyOptions struct {
	batches, batch, size int
	short                bool
	plot                 string
}

// latencyRounds is how many rounds the batches of each configuration are taken
// in, so that all four see the same machine.
const latencyRounds = 10

func newLatency(c *common) *cobra.Command {
	var o latencyOptions
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "The paper's latency test: producer, consumer, batches of 100",
		Long: `The latency test of the paper: one producer, one consumer, messages of 56 bytes,
timed per batch of 100, 10,000 batches, after a warm-up batch that is not
recorded. Single messages are not timed: consumption is atomic and the next send
overlaps with the end of the one before.

Four configurations: {h2d, d2h} x {direct, indirect}. As in the paper, indirect
includes one more copy between the transfer's memory and memory of the process:
here the host's end copies each message between its transfer buffer and a local
array, inside the timed part. The configurations take turns, each round after a
warm-up batch of its own.

Figures are nanoseconds per message from batch times, on the device at --address;
the paper's ratios were measured on hardware and stand in their own column.`,
		Example: `  nfbench latency
  nfbench latency --batches 1000 --size 8
  nfbench latency --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.short {
				shorten(cmd.Flags().Changed, map[string]func(){"batches": func() { o.batches = 1000 }})
			}
			if err := o.check(); err != nil {
				return err
			}
			return c.measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (report, error) {
				r, err := latency(ctx, dev, o, cmd.ErrOrStderr())
				if err == nil && o.plot != "" {
					err = r.draw().save(o.plot)
				}
				return r, err
			})
		},
	}
	c.addNode(cmd)
	f := cmd.Flags()
	f.IntVar(&o.batches, "batches", 10000, "batches per configuration")
	f.IntVar(&o.batch, "batch", 100, "messages per timed batch")
	f.IntVar(&o.size, "size", messageSize, "bytes per message, 1 to 56")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: fewer batches")
	f.Var(output{&o.plot}, "plot", "draw the percentiles to this SVG file")
	return cmd
}

func (o latencyOptions) check() error {
	switch {
	case o.batches < 1:
		return usagef("--batches %d is less than 1", o.batches)
	case o.batch < 1:
		return usagef("--batch %d is less than 1", o.batch)
	case o.size < 1 || o.size > messageSize:
		return usagef("--size %d is not 1 to %d bytes", o.size, messageSize)
	}
	return nil
}

// LatencyReport is the JSON of the command.
type LatencyReport struct {
	Header
	Batches int             `json:"batches"`
	Batch   int             `json:"batch"`
	Size    int             `json:"size"`
	Configs []LatencyConfig `json:"configurations"`
	Ratios  []LatencyRatio  `json:"ratios"`
	// PaperDirectUs is the average of the paper's predecessor, in µs.
	PaperDirectUs float64 `json:"paper_hardware_direct_us"`
	// Busy is why the figures are not to be trusted; empty if they are.
	Busy  string `json:"busy"`
	Goals []Goal `json:"goals"`
}

// LatencyConfig is one of the four configurations.
type LatencyConfig struct {
	Direction string `json:"direction"` // h2d or d2h
	Path      string `json:"path"`      // direct or indirect
	// Ns is nanoseconds per message; N counts batches.
	Ns Stat `json:"ns"`
	// Percentiles are nanoseconds per message.
	Percentiles []Percentile `json:"percentiles"`
	// WallS and CPUS are seconds over all batches; CPU is of this process with
	// the simulated device in it.
	WallS float64 `json:"wall_s"`
	CPUS  float64 `json:"cpu_s"`
}

// LatencyRatio is indirect over direct for one direction.
type LatencyRatio struct {
	Direction string  `json:"direction"`
	Mean      float64 `json:"mean"`
	P50       float64 `json:"p50"`
	// Paper is what the paper measured on hardware.
	Paper float64 `json:"paper_hardware"`
}

// The paper's figures.
const (
	paperDirectUs = 14.66
	paperRatioH2D = 2
	paperRatioD2H = 1.73
)

// latencySide is one configuration under test.
type latencySide struct {
	direction, path string
	// begin makes ready for n messages; each moves one.
	begin func(ctx context.Context, n int) error
	each  func(ctx context.Context) error

	rec       *recorder
	wall, cpu time.Duration
}

// round times n batches after one that is not recorded.
func (s *latencySide) round(ctx context.Context, n, batch int) error {
	if err := s.begin(ctx, (n+1)*batch); err != nil {
		return err
	}
	if err := s.batch(ctx, batch); err != nil {
		return err
	}
	cpu := cpuTime()
	for range n {
		d, err := timed(func() error { return s.batch(ctx, batch) })
		if err != nil {
			return err
		}
		s.rec.record(d)
		s.wall += d
	}
	s.cpu += cpuTime() - cpu
	return nil
}

func (s *latencySide) batch(ctx context.Context, n int) error {
	for range n {
		if err := s.each(ctx); err != nil {
			return fmt.Errorf("%s %s: %w", s.direction, s.path, err)
		}
	}
	return nil
}

// latencySides starts the device's ends: sinks to consume, floods to produce.
func latencySides(ctx context.Context, dev *nfcomms.Device, size int) ([]*latencySide, error) {
	var sinks [2]*program
	var floods [2]*producer
	for i := range 2 {
		var err error
		if sinks[i], err = start(ctx, dev, "sink", 1); err != nil {
			return nil, err
		}
		if floods[i], err = newProducer(ctx, dev); err != nil {
			return nil, err
		}
	}
	local, bulk := buffer(size), buffer(size)
	none := func(context.Context, int) error { return nil }
	sides := []*latencySide{
		{direction: "h2d", path: "direct", begin: none,
			each: func(ctx context.Context) error { return sinks[0].chans[0].Send(ctx, local) }},
		{direction: "h2d", path: "indirect", begin: none,
			each: func(ctx context.Context) error {
				copy(bulk, local)
				return sinks[1].chans[0].SendInd(ctx, bulk, size)
			}},
		{direction: "d2h", path: "direct",
			begin: func(ctx context.Context, n int) error { return floods[0].messages(ctx, n, size) },
			each: func(ctx context.Context) error {
				_, err := floods[0].ch.Receive(ctx, local)
				return err
			}},
		{direction: "d2h", path: "indirect",
			begin: func(ctx context.Context, n int) error { return floods[1].transfers(ctx, n, size) },
			each: func(ctx context.Context) error {
				_, err := floods[1].ch.ReceiveInd(ctx, bulk, size)
				copy(local, bulk)
				return err
			}},
	}
	for _, s := range sides {
		s.rec = newRecorder()
	}
	return sides, nil
}

// latency runs the test; the device's processes end with the device.
func latency(ctx context.Context, dev *nfcomms.Device, o latencyOptions, errw io.Writer) (*LatencyReport, error) {
	r := &LatencyReport{Header: newHeader("latency", dev), Batches: o.batches, Batch: o.batch,
		Size: o.size, PaperDirectUs: paperDirectUs}
	sides, err := latencySides(ctx, dev, o.size)
	if err != nil {
		return nil, err
	}
	bar := newProgress(errw, latencyRounds*len(sides), "latency")
	defer bar.done()
	w := newWatch(cpuTime())
	for round := range latencyRounds {
		n := o.batches*(round+1)/latencyRounds - o.batches*round/latencyRounds
		for _, s := range sides {
			if n > 0 {
				if err := s.round(ctx, n, o.batch); err != nil {
					return nil, err
				}
			}
			bar.step(s.direction + " " + s.path)
		}
	}
	r.Busy = w.busy(cpuTime(), nil)
	r.conclude(sides, o.batch)
	return r, nil
}

func (r *LatencyReport) conclude(sides []*latencySide, batch int) {
	for _, s := range sides {
		r.Configs = append(r.Configs, LatencyConfig{Direction: s.direction, Path: s.path,
			Ns: s.rec.stat(batch), Percentiles: s.rec.percentiles(batch), WallS: s.wall.Seconds(), CPUS: s.cpu.Seconds()})
	}
	for i, paper := range []float64{paperRatioH2D, paperRatioD2H} {
		direct, indirect := r.Configs[2*i], r.Configs[2*i+1]
		ratio := LatencyRatio{Direction: direct.Direction, Paper: paper,
			Mean: indirect.Ns.Mean / direct.Ns.Mean, P50: indirect.Ns.P50 / direct.Ns.P50}
		r.Ratios = append(r.Ratios, ratio)
		r.Goals = append(r.Goals, Goal{ID: "T8", What: ratio.Direction + " indirect : direct, median",
			Value: ratio.P50, Target: 1.3, AtMost: true}.decide(r.Busy))
	}
}

// draw plots the percentiles of the four configurations.
func (r *LatencyReport) draw() *plot {
	p := percentilePlot("Latency of a message, batches of "+strconv.Itoa(r.Batch), r.Header, "ns per message")
	for _, c := range r.Configs {
		p.addPercentiles(c.Direction+" "+c.Path, c.Percentiles)
	}
	return p
}

// table writes the report for people.
func (r *LatencyReport) table(w io.Writer) {
	r.Header.table(w)
	fmt.Fprintf(w, "%d batches of %d messages of %d bytes; per message, from batch times (%s)\n",
		r.Batches, r.Batch, r.Size, r.Device.Label)
	t := texttable.Numbers("", "mean", "± sd", "p50", "p99", "min", "max", "wall", "CPU")
	for _, c := range r.Configs {
		t.Add(c.Direction+" "+c.Path, units.Duration(c.Ns.Mean), units.Duration(c.Ns.SD), units.Duration(c.Ns.P50), units.Duration(c.Ns.P99),
			units.Duration(c.Ns.Min), units.Duration(c.Ns.Max), units.Duration(c.WallS*1e9), units.Duration(c.CPUS*1e9))
	}
	t.Write(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("indirect : direct", "mean", "median", "paper (hardware)")
	for _, ratio := range r.Ratios {
		t.Add(ratio.Direction, fmt.Sprintf("%.2f", ratio.Mean), fmt.Sprintf("%.2f", ratio.P50), fmt.Sprintf("%.2f", ratio.Paper))
	}
	t.Write(w)
	fmt.Fprintf(w, "Direct message, paper (hardware): %.2f µs on average.\n\n", r.PaperDirectUs)
	writeGoals(w, r.Goals)
}

// addLatency adds the command.
func addLatency(root *cobra.Command, c *common) { root.AddCommand(newLatency(c)) }
