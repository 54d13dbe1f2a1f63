package latency

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Options are the flags of the command.
type Options struct {
	Batches, Batch, Size int
	short                bool
	plot                 string
}

// latencyRounds is how many rounds the batches of each configuration are taken
// in, so that all four see the same machine.
const latencyRounds = 10

func newLatency(c *cli.Flags) *cobra.Command {
	var o Options
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
				cli.Shorten(cmd.Flags().Changed, map[string]func(){"batches": func() { o.Batches = 1000 }})
			}
			if err := o.check(); err != nil {
				return err
			}
			return c.Measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (cli.Report, error) {
				r, err := Measure(ctx, dev, o, cmd.ErrOrStderr())
				if err == nil && o.plot != "" {
					err = r.draw().Save(o.plot)
				}
				return r, err
			})
		},
	}
	c.AddNode(cmd)
	f := cmd.Flags()
	f.IntVar(&o.Batches, "batches", 10000, "batches per configuration")
	f.IntVar(&o.Batch, "batch", 100, "messages per timed batch")
	f.IntVar(&o.Size, "size", compare.MessageSize, "bytes per message, 1 to 56")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: fewer batches")
	f.Var(plot.Output(&o.plot), "plot", "draw the percentiles to this SVG file")
	return cmd
}

// check refuses flags that make no sense.
func (o Options) check() error {
	switch {
	case o.Batches < 1:
		return cli.Usagef("--batches %d is less than 1", o.Batches)
	case o.Batch < 1:
		return cli.Usagef("--batch %d is less than 1", o.Batch)
	case o.Size < 1 || o.Size > compare.MessageSize:
		return cli.Usagef("--size %d is not 1 to %d bytes", o.Size, compare.MessageSize)
	}
	return nil
}

// Report is the JSON of the command.
type Report struct {
	cli.Header
	Batches int      `json:"batches"`
	Batch   int      `json:"batch"`
	Size    int      `json:"size"`
	Configs []Config `json:"configurations"`
	Ratios  []Ratio  `json:"ratios"`
	// PaperDirectUs is the average of the paper's predecessor, in µs.
	PaperDirectUs float64 `json:"paper_hardware_direct_us"`
	// Busy is why the figures are not to be trusted; empty if they are.
	Busy  string     `json:"busy"`
	Goals []cli.Goal `json:"goals"`
}

// Config is one of the four configurations.
type Config struct {
	Direction string `json:"direction"` // h2d or d2h
	Path      string `json:"path"`      // direct or indirect
	// Ns is nanoseconds per message; N counts batches.
	Ns stat.Stat `json:"ns"`
	// Percentiles are nanoseconds per message.
	Percentiles []stat.Percentile `json:"percentiles"`
	// WallS and CPUS are seconds over all batches; CPU is of this process with
	// the simulated device in it.
	WallS float64 `json:"wall_s"`
	CPUS  float64 `json:"cpu_s"`
}

// Ratio is indirect over direct for one direction.
type Ratio struct {
	Direction string  `json:"direction"`
	Mean      float64 `json:"mean"`
	P50       float64 `json:"p50"`
	// Paper is what the paper measured on hardware.
	Paper float64 `json:"paper_hardware"`
}

// The paper's figures.
const (
	PaperDirectUs = 14.66
	paperRatioH2D = 2
	paperRatioD2H = 1.73
)

// latencySide is one configuration under test.
type latencySide struct {
	direction, path string
	// begin makes ready for n messages; each moves one.
	begin func(ctx context.Context, n int) error
	each  func(ctx context.Context) error

	rec       *stat.Recorder
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
	cpu := cli.CPUTime()
	for range n {
		d, err := compare.Timed(func() error { return s.batch(ctx, batch) })
		if err != nil {
			return err
		}
		s.rec.Record(d)
		s.wall += d
	}
	s.cpu += cli.CPUTime() - cpu
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

// latencySides starts the device's ends: sinks to consume, floods to produce. Messages are from and
// to local; a transfer is from and to bulk, and is copied to or from local.
func latencySides(ctx context.Context, dev *nfcomms.Device, local, bulk []byte) ([]*latencySide, error) {
	var sinks [2]*compare.Program
	var floods [2]*compare.Producer
	for i := range 2 {
		var err error
		if sinks[i], err = compare.Start(ctx, dev, "sink", 1); err != nil {
			return nil, err
		}
		if floods[i], err = compare.NewProducer(ctx, dev); err != nil {
			return nil, err
		}
	}
	size := len(local)
	none := func(context.Context, int) error { return nil }
	sides := []*latencySide{
		{direction: "h2d", path: "direct", begin: none,
			each: func(ctx context.Context) error { return sinks[0].Chans[0].Send(ctx, local) }},
		{direction: "h2d", path: "indirect", begin: none,
			each: func(ctx context.Context) error {
				copy(bulk, local)
				return sinks[1].Chans[0].SendInd(ctx, bulk, size)
			}},
		{direction: "d2h", path: "direct",
			begin: func(ctx context.Context, n int) error { return floods[0].Messages(ctx, n, size) },
			each: func(ctx context.Context) error {
				_, err := floods[0].Ch.Receive(ctx, local)
				return err
			}},
		{direction: "d2h", path: "indirect",
			begin: func(ctx context.Context, n int) error { return floods[1].Transfers(ctx, n, size) },
			each: func(ctx context.Context) error {
				_, err := floods[1].Ch.ReceiveInd(ctx, bulk, size)
				copy(local, bulk)
				return err
			}},
	}
	for _, s := range sides {
		s.rec = stat.NewRecorder()
	}
	return sides, nil
}

// Measure runs the test; the device's processes end with the device.
func Measure(ctx context.Context, dev *nfcomms.Device, o Options, errw io.Writer) (*Report, error) {
	r := &Report{Header: cli.NewHeader("latency", dev), Batches: o.Batches, Batch: o.Batch,
		Size: o.Size, PaperDirectUs: PaperDirectUs}
	sides, err := latencySides(ctx, dev, compare.Buffer(o.Size), compare.Buffer(o.Size))
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress(errw, latencyRounds*len(sides), "latency")
	defer bar.Done()
	w := cli.NewWatch(cli.CPUTime())
	for round := range latencyRounds {
		n := o.Batches*(round+1)/latencyRounds - o.Batches*round/latencyRounds
		for _, s := range sides {
			if n > 0 {
				if err := s.round(ctx, n, o.Batch); err != nil {
					return nil, err
				}
			}
			bar.Step(s.direction + " " + s.path)
		}
	}
	r.Busy = w.Busy(cli.CPUTime(), nil)
	r.conclude(sides, o.Batch)
	return r, nil
}

func (r *Report) conclude(sides []*latencySide, batch int) {
	for _, s := range sides {
		r.Configs = append(r.Configs, Config{Direction: s.direction, Path: s.path,
			Ns: s.rec.Stat(batch), Percentiles: s.rec.Percentiles(batch), WallS: s.wall.Seconds(), CPUS: s.cpu.Seconds()})
	}
	for i, paper := range []float64{paperRatioH2D, paperRatioD2H} {
		direct, indirect := r.Configs[2*i], r.Configs[2*i+1]
		ratio := Ratio{Direction: direct.Direction, Paper: paper,
			Mean: indirect.Ns.Mean / direct.Ns.Mean, P50: indirect.Ns.P50 / direct.Ns.P50}
		r.Ratios = append(r.Ratios, ratio)
		r.Goals = append(r.Goals, cli.Goal{ID: "T8", What: ratio.Direction + " indirect : direct, median",
			Value: ratio.P50, Target: 1.3, AtMost: true}.Decide(r.Busy))
	}
}

// draw plots the percentiles of the four configurations, and beside each those of a normal distribution.
func (r *Report) draw() *plot.Plot {
	p := plot.PercentilePlot("Latency of a message, batches of "+strconv.Itoa(r.Batch), r.Header, "ns per message")
	p.Note += "; dashed: a normal distribution of the same median and 75th percentile"
	for _, c := range r.Configs {
		p.AddPercentiles(c.Direction+" "+c.Path, c.Percentiles)
	}
	p.AddTheory(normal)
	return p
}

// Places of percentiles on the axis of a plot: 1 over the part that exceeds them.
const median, quartile = 2, 4

// normal is a curve from its median on if messages take their times independently: batches of many are
// then normally distributed. The median and the 75th percentile give its deviation; nil without both. A
// curve above the line has a tail that such chance does not explain.
func normal(s plot.Series) []float64 {
	i := slices.Index(s.X, median)
	if i < 0 || i+1 == len(s.X) || s.X[i+1] != quartile {
		return nil
	}
	y := make([]float64, len(s.X)-i)
	for k, x := range s.X[i:] {
		y[k] = s.Y[i] + (s.Y[i+1]-s.Y[i])*math.Erfinv(1-2/x)/math.Erfinv(1-2.0/quartile)
	}
	return y
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
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
	cli.WriteGoals(w, r.Goals)
}

// Add adds the command.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newLatency(c)) }
