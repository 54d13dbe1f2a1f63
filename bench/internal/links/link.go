package links

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// LinkReport is what "link" prints.
type LinkReport struct {
	Command string      `json:"command"`
	Machine cli.Machine `json:"machine"`
	Label   string      `json:"label"`
	// Cycles of each run where a word takes one; RateGbitS of the line that the
	// running links are held to, 0: as fast as they are.
	Cycles    int         `json:"cycles"`
	RateGbitS float64     `json:"rate_gbit_s"`
	Flows     []LinkFlow  `json:"flows"`
	Running   []LinkTimed `json:"running"`
	// Sockets are links between processes.
	Sockets []LinkSocket `json:"sockets"`
}

// LinkFlow is one flow control into a FIFO of Depth words: efficiencies with frames
// and credits in both directions, of the report, its formula, the simulation of
// internal/model and the firmware's link over a wire that takes a word a cycle.
type LinkFlow struct {
	Flow      string  `json:"flow"`
	Depth     int     `json:"depth_words"`
	Paper     float64 `json:"paper,omitempty"`
	Formula   float64 `json:"formula"`
	Simulated float64 `json:"simulated"`
	Running   float64 `json:"running_by_cycles"`
	// MBs of the running one at 28 and 34 Gb/s on the line.
	MBs28 float64 `json:"mb_s_at_28_gbit_s"`
	MBs34 float64 `json:"mb_s_at_34_gbit_s"`
}

// LinkTimed is the firmware's link between two nodes of this process, measured by
// the clock, with words that are bad at a rate.
type LinkTimed struct {
	Flow      string  `json:"flow"`
	ErrorRate float64 `json:"error_rate"`
	MBs       float64 `json:"mb_s"`
	// CPUMBs is what a second of the processor carried, of all threads: they spin, and
	// on a busy machine it is what can be compared. MemcpyMBs and MemcpyCPUMBs are
	// those of memcpy of 4 KiB between 2 MiB and 2 MiB, just before, and NearCPUMBs of
	// memcpy whose source and destination are as near in the caches as the link's.
	CPUMBs       float64 `json:"cpu_mb_s"`
	MemcpyMBs    float64 `json:"memcpy_mb_s"`
	MemcpyCPUMBs float64 `json:"memcpy_cpu_mb_s"`
	NearCPUMBs   float64 `json:"near_memcpy_cpu_mb_s"`
	VsMemcpy     float64 `json:"vs_memcpy"`
	CPUVsMemcpy  float64 `json:"cpu_vs_memcpy"`
	CPUVsNear    float64 `json:"cpu_vs_near_memcpy"`
	Packets      uint64  `json:"packets"`
	Repeated     uint64  `json:"repeated"`
	// Errors that ends saw; ErrorBound is what they stay below, for each word,
	// at a confidence of 95 %.
	Errors     uint64  `json:"errors"`
	ErrorBound float64 `json:"error_bound"`
	RoundTripS float64 `json:"round_trip_s"`
	Window     int     `json:"window_words"`
	// Changed and Doubled must be zero.
	Changed uint64 `json:"changed"`
	Doubled uint64 `json:"doubled"`
}

// LinkOptions are the flags of the command of a link.
type LinkOptions struct {
	Cycles  int
	Time    time.Duration
	rate    float64
	Errors  []float64
	Threads int
	cables  []string
	plot    string
}

func newLink(c *cli.Flags) *cobra.Command {
	o := LinkOptions{}
	cmd := &cobra.Command{
		Use:   "link",
		Short: "A link of the fabric beside its report, model and simulation",
		Long: `Run the firmware's link between two nodes of this process, beside the figures of the
APEnet+ report, its formulas, and the simulation cycle by cycle.

First over a wire that takes one word a cycle and is as long as the report's: classic
flow control, which waits for credits, and cumulative credits, which do not. Data and
credits go both ways. Then by the clock, over memory, with words that are flipped,
lost and doubled at a rate; and over connections on loopback, as between processes,
beside the connection alone. Nothing electrical is here: rates of lines are modelled.`,
		Example: `  nfbench link
  nfbench link --rate 28 --errors 0,1e-5 --plot link.svg
  nfbench link --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := c.Check(); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			r, err := o.Run(cmd.Context())
			if err != nil {
				return err
			}
			if o.plot != "" {
				if err := r.Plot().Save(o.plot); err != nil {
					return err
				}
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Cycles, "cycles", 60000, "cycles of each run where a word takes one")
	f.DurationVar(&o.Time, "time", 300*time.Millisecond, "time of each run by the clock")
	f.Float64Var(&o.rate, "rate", 0, "Gb/s on the line, in 8b10b, that runs by the clock are held to; 0: no limit")
	f.Float64SliceVar(&o.Errors, "errors", []float64{0, 1e-6, 1e-5, 1e-4, 1e-3}, "parts of words that are bad, each way of being so")
	f.StringSliceVar(&o.cables, "cables", nil, "cables of the report whose upper bounds of errors are added to --errors: x+5m8.5, y+5m8.5, z+5m8.5, x+5m7, x+2m7")
	f.IntVar(&o.Threads, "threads", 2, "threads that the nodes run on, 1 to 3")
	f.Var(plot.Output(&o.plot), "plot", "write efficiencies by depth as SVG to this file")
	return cmd
}

// check refuses flags that make no sense.
func (o *LinkOptions) check() error {
	switch {
	case o.Cycles < 10000 || o.Cycles > 10_000_000:
		return cli.Usagef("--cycles %d is not 10000 to 10000000", o.Cycles)
	case o.Time < time.Millisecond || o.Time > time.Minute:
		return cli.Usagef("--time %v is not 1ms to 1m", o.Time)
	case !(o.rate == 0 || o.rate >= 0.1 && o.rate <= 1000):
		return cli.Usagef("--rate %g is not 0.1 to 1000, or 0", o.rate)
	case o.Threads < 1 || o.Threads > 3:
		return cli.Usagef("--threads %d is not 1 to 3", o.Threads)
	}
	for _, name := range o.cables {
		i := slices.IndexFunc(papers.Cables, func(c papers.Cable) bool { return c.Name == name })
		if i < 0 {
			return cli.Usagef("--cables %q is none of the report's", name)
		}
		o.Errors = append(o.Errors, papers.Cables[i].WordErrors())
	}
	for _, e := range o.Errors {
		if !(e >= 0 && e <= 1e-3) {
			return cli.Usagef("--errors %g is not 0 to 1e-3", e)
		}
	}
	return nil
}

// Run measures a link.
func (o *LinkOptions) Run(ctx context.Context) (*LinkReport, error) {
	r := &LinkReport{Command: "link", Machine: cli.ThisMachine(), Label: label, Cycles: o.Cycles, RateGbitS: o.rate}
	paper := map[int]float64{}
	for _, d := range []int{512, 1024, 2048, 4096} {
		paper[d] = map[int]float64{512: .595, 1024: .784, 2048: .862, 4096: .898}[d]
	}
	for _, classic := range []bool{true, false} {
		for _, depth := range []int{512, 1024, 2048, 4096} {
			f, err := o.flow(ctx, classic, depth)
			if err != nil {
				return nil, err
			}
			if classic {
				f.Paper = paper[depth]
			}
			r.Flows = append(r.Flows, *f)
		}
	}
	for _, rate := range o.Errors {
		clock, cpu := copyRate(o.Time/3, farPieces, farPieces)
		_, near := copyRate(o.Time/3, 1, nearPieces)
		t, err := o.timed(ctx, rate)
		if err != nil {
			return nil, err
		}
		t.MemcpyMBs, t.MemcpyCPUMBs = clock, cpu
		t.VsMemcpy, t.CPUVsMemcpy = t.MBs/clock, t.CPUMBs/cpu
		t.NearCPUMBs, t.CPUVsNear = near, t.CPUMBs/near
		r.Running = append(r.Running, *t)
	}
	var err error
	r.Sockets, err = o.sockets(ctx)
	return r, err
}

// flow runs one flow control and depth by cycles, beside formula and simulation.
func (o *LinkOptions) flow(ctx context.Context, classic bool, depth int) (*LinkFlow, error) {
	f := &LinkFlow{
		Flow: "cumulative", Depth: depth,
		Formula: papers.FrameEfficiency(papers.PacketWords) * papers.CreditEfficiency(papers.CreditPeriod),
	}
	config := papers.LinkConfig{
		Flow: papers.Cumulative, Depth: depth, Period: papers.CreditPeriod, Flight: papers.PaperFlight,
		ReadEvery: 1, Cycles: max(o.Cycles, 200_000), Framed: true, Duplex: true,
	}
	if classic {
		f.Flow, f.Formula, config.Flow = "classic", papers.LinkEfficiency(depth), papers.Classic
	}
	simulated, err := papers.SimulateLink(config)
	if err != nil {
		return nil, err
	}
	f.Simulated = simulated.Efficiency
	if f.Running, err = linkByCycles(ctx, classic, depth, o.Cycles); err != nil {
		return nil, err
	}
	f.MBs28 = papers.Code8b10b.Rate(28) * f.Running / 1e6
	f.MBs34 = papers.Code8b10b.Rate(34) * f.Running / 1e6
	return f, nil
}

// Table writes the report for people.
func (r *LinkReport) Table(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", r.Label)
	fmt.Fprintln(w, "a word a cycle, frames and credits both ways; rates of lines are modelled")
	t := texttable.Numbers("flow control", "FIFO", "paper", "formula", "simulated", "firmware", "MB/s at 28 Gb/s", "at 34 Gb/s")
	for _, f := range r.Flows {
		paper := ""
		if f.Paper > 0 {
			paper = fmt.Sprintf("%.3f", f.Paper)
		}
		t.Add(f.Flow, fmt.Sprintf("%d words", f.Depth), paper, fmt.Sprintf("%.3f", f.Formula), fmt.Sprintf("%.3f", f.Simulated),
			fmt.Sprintf("%.3f", f.Running), fmt.Sprintf("%.0f", f.MBs28), fmt.Sprintf("%.0f", f.MBs34))
	}
	t.Write(w)
	limit := "no limit"
	if r.RateGbitS > 0 {
		limit = fmt.Sprintf("held to %g Gb/s on the line", r.RateGbitS)
	}
	fmt.Fprintf(w, "\nby the clock, in one process, %s; memcpy is of 4 KiB, and near: as near in the caches as what the link copies\n", limit)
	t = texttable.Numbers("bad words", "MB/s", "of memcpy", "MB by a second of processor", "of memcpy", "of memcpy, near", "packets", "repeated", "errors seen", "below, 95 %", "round trip", "window")
	for _, l := range r.Running {
		t.Add(fmt.Sprintf("%.3g", l.ErrorRate), fmt.Sprintf("%.0f", l.MBs), fmt.Sprintf("%.2f", l.VsMemcpy),
			fmt.Sprintf("%.0f", l.CPUMBs), fmt.Sprintf("%.2f", l.CPUVsMemcpy), fmt.Sprintf("%.2f", l.CPUVsNear), fmt.Sprint(l.Packets), fmt.Sprint(l.Repeated), fmt.Sprint(l.Errors), fmt.Sprintf("%.1e", l.ErrorBound),
			time.Duration(l.RoundTripS*1e9).Round(100*time.Nanosecond).String(), fmt.Sprintf("%d words", l.Window))
	}
	t.Write(w)
	r.socketTable(w)
}

// Plot draws what the report has.
func (r *LinkReport) Plot() *plot.Plot {
	p := &plot.Plot{
		Title: "Efficiency of a link by the depth of its FIFOs", Note: r.Label + ", frames and credits both ways, a word a cycle; dashed: formula",
		XLabel: "words of each FIFO", YLabel: "payload words a cycle", Name: func(v float64) string { return fmt.Sprint(int(v)) },
	}
	for i, flow := range []string{"classic", "cumulative"} {
		formula := plot.Series{Name: flow + ", formula", Colour: plot.Palette[2*i], Dashed: true}
		running := plot.Series{Name: flow + ", firmware", Colour: plot.Palette[2*i]}
		simulated := plot.Series{Name: flow + ", simulated", Colour: plot.Palette[2*i+1]}
		for _, f := range r.Flows {
			if f.Flow != flow {
				continue
			}
			for s, y := range map[*plot.Series]float64{&formula: f.Formula, &running: f.Running, &simulated: f.Simulated} {
				s.X, s.Y = append(s.X, float64(f.Depth)), append(s.Y, y)
			}
			if i == 0 {
				p.XTicks = append(p.XTicks, float64(f.Depth))
			}
		}
		p.Series = append(p.Series, formula, running, simulated)
	}
	return p
}

// Add adds the commands of a link and of a fabric.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newLink(c), newFabric(c)) }
