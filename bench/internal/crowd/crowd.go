package crowd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/load"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// options are the flags of the command.
type options struct {
	counts []int
	loads  []int
	sizes  []string
	shape  string
	procs  int
	rounds int
	slice  time.Duration
	plot   string
	short  bool

	bytes []int // sizes, parsed
}

// Peers of the n callers.
const (
	shapeProcesses = "processes" // a process for each channel
	shapePorts     = "ports"     // one process with n ports
)

// crowdMost bounds the callers: each has two channels or three.
const crowdMost = 10_000

func newCrowd(c *cli.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "crowd",
		Short: "Many callers at once, on a quiet machine and on a busy one",
		Long: `Measure n callers on n channels: messages of 56 bytes and transfers, to the device and
from it, beside n pairs of goroutines over unbuffered Go channels, and beside n UNIX
sockets with an answer of one byte, interleaved in the same run.

A row tells the rate of all callers together, the time of one call (p50, p99, p99.9;
a sample of the calls), the fastest and the slowest caller's share of the mean, and CPU
time for each operation of this process, the simulated device included. "of Go channels"
is the rate over that of the Go channel pairs of the same round.

--load k runs k other processes beside it that compute without end; --procs 1 gives this
program one processor (GOMAXPROCS), and "taskset -c 0 nfbench crowd" gives all of it one.

--shape processes has a process on the device for each channel, ports one process with
n ports; with either, what comes from the device comes from n processes.`,
		Example: `  nfbench crowd
  nfbench crowd --counts 1,64,1000 --load 0,1,2 --sizes 56
  nfbench crowd --procs 1 --shape ports --plot crowd.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return withContexts(c, slices.Max(o.counts)*(2+2*len(o.bytes))).Measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (cli.Report, error) {
				return crowd(ctx, dev, o, cmd.ErrOrStderr())
			})
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.counts, "counts", []int{1, 2, 8, 64, 1000}, "callers, up to 10,000")
	f.IntSliceVar(&o.loads, "load", []int{0}, "busy processes beside it")
	f.StringSliceVar(&o.sizes, "sizes", []string{"56", "4KiB", "64KiB"}, "sizes of transfers")
	f.StringVar(&o.shape, "shape", shapeProcesses, "what takes: processes or ports")
	f.IntVar(&o.procs, "procs", 0, "processors of this program (GOMAXPROCS); 0: all")
	f.IntVar(&o.rounds, "rounds", 3, "interleaved rounds")
	f.DurationVar(&o.slice, "slice", 200*time.Millisecond, "time of each side in each round")
	f.Var(plot.Output(&o.plot), "plot", "draw the rates to this SVG file")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: fewer counts, sizes and rounds")
	return cmd
}

// check parses the flags; given holds which of them the user set.
func (o *options) check(given func(string) bool) (err error) {
	if o.short {
		o.shorten(given)
	}
	switch {
	case len(o.counts) == 0 || slices.Min(o.counts) < 1 || slices.Max(o.counts) > crowdMost:
		return cli.Usagef("--counts %v: want numbers from 1 to %d", o.counts, crowdMost)
	case len(o.loads) == 0 || slices.Min(o.loads) < 0 || slices.Max(o.loads) > 4*runtime.NumCPU():
		return cli.Usagef("--load %v: want numbers from 0 to %d, four for each processor", o.loads, 4*runtime.NumCPU())
	case o.shape != shapeProcesses && o.shape != shapePorts:
		return cli.Usagef("--shape %q is neither %s nor %s", o.shape, shapeProcesses, shapePorts)
	case o.procs < 0 || o.procs > 1024:
		return cli.Usagef("--procs %d is not 0 to 1024", o.procs)
	case o.rounds < 1:
		return cli.Usagef("--rounds %d is less than 1", o.rounds)
	case o.slice <= 0:
		return cli.Usagef("--slice %v is not a positive time", o.slice)
	}
	o.bytes, err = cli.ParseSizes(o.sizes)
	return err
}

func (o *options) shorten(given func(string) bool) {
	cli.Shorten(given, map[string]func(){
		"counts": func() { o.counts = []int{1, 8, 64} },
		"sizes":  func() { o.sizes = []string{"56", "64KiB"} },
		"rounds": func() { o.rounds = 1 },
		"slice":  func() { o.slice = 50 * time.Millisecond },
	})
}

// Contexts of an island: of the default shape, and at most.
const (
	contextsDefault = 8 * 8
	contextsMost    = 64 * 64
	contextsSpare   = 16 // for the device's own services
)

// Report is the JSON of the command.
type Report struct {
	cli.Header
	Rounds  int     `json:"rounds"`
	SliceMs float64 `json:"slice_ms"`
	Shape   string  `json:"shape"`
	// Procs is GOMAXPROCS during the run.
	Procs int        `json:"gomaxprocs"`
	Rows  []Row      `json:"rows"`
	Goals []cli.Goal `json:"goals"`
}

// Row is one kind of call by a number of callers under a load.
type Row struct {
	Call string `json:"call"`
	// Size is in bytes.
	Size    int `json:"size"`
	Callers int `json:"callers"`
	Load    int `json:"load"`
	// Skipped is why the row was not measured; all that follows is zero then.
	Skipped string `json:"skipped,omitempty"`
	// Rate is operations a second of all callers, over the rounds; the ratio is
	// this rate over that of Go channel pairs in the same round.
	Rate          stat.Spread `json:"ops_per_s"`
	OfGoChannels  stat.Spread `json:"of_go_channels"`
	P50Ns         float64     `json:"p50_ns"`
	P99Ns         float64     `json:"p99_ns"`
	P999Ns        float64     `json:"p999_ns"`
	BestOverMean  float64     `json:"best_over_mean"`
	WorstOverMean float64     `json:"worst_over_mean"`
	CPUNsPerOp    float64     `json:"cpu_ns_per_op"`
	busy          string
}

// crowd measures every count under every load.
func crowd(ctx context.Context, dev *nfcomms.Device, o options, errw io.Writer) (cli.Report, error) {
	if o.procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(o.procs))
	}
	r := &Report{Header: cli.NewHeader("crowd", dev), Rounds: o.rounds, Shape: o.shape,
		SliceMs: float64(o.slice) / float64(time.Millisecond), Procs: runtime.GOMAXPROCS(0)}
	sides := len(crowdCalls(o.bytes))
	bar := cli.NewProgress(errw, len(o.loads)*len(o.counts)*o.rounds*sides, "crowd")
	defer bar.Done()
	for _, beside := range o.loads {
		busy, err := load.Start(ctx, beside)
		if err == nil {
			err = r.underLoad(ctx, dev, o, beside, bar)
			err = errors.Join(err, busy.Stop())
		}
		if err != nil {
			return nil, err
		}
	}
	r.Goals = r.goals()
	if o.plot != "" {
		return r, r.draw().Save(o.plot)
	}
	return r, nil
}

// underLoad measures every count while load processes compute.
func (r *Report) underLoad(ctx context.Context, dev *nfcomms.Device, o options, load int, bar cli.Progress) error {
	w, first := cli.NewWatch(cli.CPUTime()), len(r.Rows)
	for _, n := range o.counts {
		rows, err := measureCrowd(ctx, dev, o, n, load, bar)
		if err != nil {
			return fmt.Errorf("%d callers: %w", n, err)
		}
		r.Rows = append(r.Rows, rows...)
	}
	// The processes of the load are ours as well.
	busy := w.Busy(cli.CPUTime()+time.Duration(load)*time.Since(w.Start), nil)
	for i := range r.Rows[first:] {
		r.Rows[first+i].busy = busy
	}
	return nil
}

// The wanted ratios to Go channel pairs, by callers: on a quiet machine and on a
// busy one.
var crowdWanted = []struct {
	call        string
	callers     int
	quiet, busy float64
}{
	{compare.NameSend, 1, 0.9, 0.8}, {compare.NameSend, 8, 0.8, 0.7}, {compare.NameSend, 64, 0.6, 0.6}, {compare.NameSend, 1000, 0.4, 0.35},
	{compare.NameSendInd, 1, 0.6, 0.6}, {compare.NameSendInd, 8, 0.5, 0.5}, {compare.NameSendInd, 64, 0.4, 0.4}, {compare.NameSendInd, 1000, 0.25, 0.25},
}

// goals holds the rows against what is wanted; if the machine was busy with one of them, no goal is
// reached or missed.
func (r *Report) goals() (goals []cli.Goal) {
	for _, row := range r.Rows {
		if row.Size != compare.MessageSize || row.Skipped != "" {
			continue
		}
		for _, w := range crowdWanted {
			if w.call != row.Call || w.callers != row.Callers {
				continue
			}
			target := w.quiet
			if row.Load > 0 || r.Procs == 1 {
				target = w.busy
			}
			goals = append(goals, cli.Goal{ID: "T6", What: fmt.Sprintf("%s, 56 B, %d callers, load %d : Go channel pairs", row.Call, row.Callers, row.Load),
				Value: row.OfGoChannels.Median, Target: target}.Decide(row.busy))
		}
		goals = append(goals, row.goals()...)
	}
	goals = append(goals, r.bulkGoals()...)
	for _, row := range r.Rows {
		cli.Withhold(goals, row.busy)
	}
	return goals
}

// bulkGoals holds transfers of 4 KiB and 64 KiB by many callers against those by
// one.
func (r *Report) bulkGoals() (goals []cli.Goal) {
	wanted := map[int]float64{8: 1.2, 64: 1.2, 1000: 0.7}
	for _, row := range r.Rows {
		target, many := wanted[row.Callers]
		if !many || row.Skipped != "" || row.Size != 4<<10 && row.Size != 64<<10 {
			continue
		}
		one := slices.IndexFunc(r.Rows, func(of Row) bool {
			return of.Callers == 1 && of.Call == row.Call && of.Size == row.Size && of.Load == row.Load && of.Rate.Median > 0
		})
		if one >= 0 {
			goals = append(goals, cli.Goal{ID: "T6b", What: fmt.Sprintf("%s, %s, %d callers, load %d : one caller", row.Call, cli.SizeText(row.Size), row.Callers, row.Load),
				Value: row.Rate.Median / r.Rows[one].Rate.Median, Target: target}.Decide(row.busy))
		}
	}
	return goals
}

// goals holds a row of Send against the limits of its p99 and of its fairness.
func (row Row) goals() (goals []cli.Goal) {
	if row.Call != compare.NameSend {
		return nil
	}
	what := fmt.Sprintf("%s, %d callers, load %d: ", row.Call, row.Callers, row.Load)
	if row.Callers == 1 && row.Load > 0 {
		goals = append(goals, cli.Goal{ID: "T13", What: what + "p50 in µs", Value: row.P50Ns / 1e3, Target: 1, AtMost: true}.Decide(row.busy))
	}
	p99, share := 0.0, 0.0
	switch {
	case row.Callers <= 8:
		p99 = 5e3
	case row.Callers == 64:
		p99, share = 1e6, 2
	case row.Callers == 1000:
		p99, share = 15e6, 5
	}
	if p99 > 0 {
		goals = append(goals, cli.Goal{ID: "T6", What: what + "p99 in µs", Value: row.P99Ns / 1e3, Target: p99 / 1e3, AtMost: true}.Decide(row.busy))
	}
	if share > 0 {
		goals = append(goals, cli.Goal{ID: "T6", What: what + "best caller : mean", Value: row.BestOverMean, Target: share, AtMost: true}.Decide(row.busy))
	}
	return goals
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
	fmt.Fprintf(w, "%d rounds of %v ms a side, shape %s, GOMAXPROCS %d\n", r.Rounds, r.SliceMs, r.Shape, r.Procs)
	t := texttable.Numbers("", "callers", "load", "M op/s", "of Go channels", "p50", "p99", "p99.9", "best", "worst", "CPU/op")
	for _, row := range r.Rows {
		name := row.Call + ", " + cli.SizeText(row.Size)
		if row.Skipped != "" {
			t.Add(name, fmt.Sprint(row.Callers), fmt.Sprint(row.Load), "not measured: "+row.Skipped)
			continue
		}
		t.Add(name, fmt.Sprint(row.Callers), fmt.Sprint(row.Load), fmt.Sprintf("%.3f", row.Rate.Median/1e6),
			fmt.Sprintf("%.2f", row.OfGoChannels.Median), units.Duration(row.P50Ns), units.Duration(row.P99Ns), units.Duration(row.P999Ns),
			fmt.Sprintf("%.2f", row.BestOverMean), fmt.Sprintf("%.2f", row.WorstOverMean), units.Duration(row.CPUNsPerOp))
	}
	t.Write(w)
	fmt.Fprintln(w)
	cli.WriteGoals(w, r.Goals)
}

// draw plots the rates of each kind of call over the number of callers, and beside them what a caller has
// alone, times the callers, up to the number of processors.
func (r *Report) draw() *plot.Plot {
	p := &plot.Plot{Title: "Many callers at once", Note: r.Device.Label + ", " + r.Machine.CPU, XLabel: "callers", YLabel: "M operations a second; dashed beside a curve: one caller times processors", Name: plot.CountText}
	for _, row := range r.Rows {
		if row.Skipped == "" {
			name := fmt.Sprintf("%s, %s, load %d", strings.TrimPrefix(row.Call, "nfcomms "), cli.SizeText(row.Size), row.Load)
			p.Add(name, float64(row.Callers), row.Rate.Median/1e6).Dashed = row.Load > 0
		}
	}
	p.AddTheory(r.scaled)
	return p
}

// scaled is the rate of one caller, times as many as have a processor each; nil if one was not measured,
// and under load.
func (r *Report) scaled(s plot.Series) []float64 {
	if len(s.X) < 2 || s.X[0] != 1 || s.Dashed {
		return nil
	}
	y := make([]float64, len(s.X))
	for i, callers := range s.X {
		y[i] = s.Y[0] * min(callers, float64(r.Procs))
	}
	return y
}

// Add adds the command.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newCrowd(c)) }

// withContexts is c with an address whose device runs n processes at the same time,
// if the user named no options.
func withContexts(c *cli.Flags, n int) *cli.Flags {
	at := *c
	if n += contextsSpare; c.Address == "sim:" && n > contextsDefault {
		at.Address = "sim:?microengines=64&contexts=64"
		islands := 1
		for islands*contextsMost < n {
			islands *= 2
		}
		if islands > 1 {
			at.Address += fmt.Sprintf("&islands=%d&managers=%d", islands, max(8, islands))
		}
	}
	return &at
}
