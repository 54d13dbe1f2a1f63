package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
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

// options are the flags of the command.
type options struct {
	channels []int
	blocked  []int
	rounds   int
	slice    time.Duration
	short    bool
	plot     string
}

// Limits of the flags, the largest that an embedded device can have.
const (
	scaleChannelsMost = 1_000_000
	scaleBlockedMost  = 10_000
)

const scaleLong = `Measure what channels cost that do nothing, up to a million open ones, and senders
that are blocked, up to ten thousand.

Bytes each are the growth of this process's memory over the channels, the simulated
device included, and of the Go heap alone; few channels tell nothing of either. The
latency is that of a message of 56 bytes on another channel of the same device, per
message from batches of 100, in turns with the same on a device that has no other
channel: "of alone" is the time over that one's, round by round.

Blocked senders each wait in a Send on a channel of their own whose target never
reads. Threads are the process's while they wait.`

func newScale(c *cli.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "A million open channels, ten thousand blocked senders",
		Long:  scaleLong,
		Example: `  nfbench scale --short
  nfbench scale --channels 1,100000,1000000 --blocked 10000 --plot scale.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c, cmd.Flags().Changed); err != nil {
				return err
			}
			r, err := o.measure(cmd.Context(), c.Address, cmd.ErrOrStderr())
			if err == nil && o.plot != "" {
				err = r.draw().Save(o.plot)
			}
			if err != nil {
				return err
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.channels, "channels", []int{1, 1000, 10_000, 100_000, 1_000_000}, "numbers of open channels")
	f.IntSliceVar(&o.blocked, "blocked", []int{1, 100, 1000, 10_000}, "numbers of blocked senders")
	f.IntVar(&o.rounds, "rounds", 9, "interleaved rounds")
	f.DurationVar(&o.slice, "slice", 50*time.Millisecond, "time of each side in each round")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: fewer channels, senders and rounds")
	f.Var(plot.Output(&o.plot), "plot", "draw the latencies to this SVG file")
	return cmd
}

func (o *options) check(c *cli.Flags, given func(string) bool) error {
	if o.short {
		cli.Shorten(given, map[string]func(){
			"channels": func() { o.channels = []int{1, 1000, 50_000} },
			"blocked":  func() { o.blocked = []int{1, 1000} },
			"rounds":   func() { o.rounds = 3 },
			"slice":    func() { o.slice = 20 * time.Millisecond },
		})
	}
	for flag, v := range map[string]struct {
		list []int
		most int
	}{"channels": {o.channels, scaleChannelsMost}, "blocked": {o.blocked, scaleBlockedMost}} {
		if len(v.list) > 0 && (slices.Min(v.list) < 1 || slices.Max(v.list) > v.most) {
			return cli.Usagef("--%s %v: want numbers from 1 to %d", flag, v.list, v.most)
		}
	}
	switch {
	case len(o.channels)+len(o.blocked) == 0:
		return cli.Usagef("--channels and --blocked are empty")
	case o.rounds < 1:
		return cli.Usagef("--rounds %d is less than 1", o.rounds)
	case o.slice <= 0:
		return cli.Usagef("--slice %v is not a positive time", o.slice)
	}
	return c.Check()
}

// Report is the JSON of the command.
type Report struct {
	cli.Header
	Rounds  int        `json:"rounds"`
	SliceMs float64    `json:"slice_ms"`
	Rows    []Row      `json:"rows"`
	Goals   []cli.Goal `json:"goals"`
}

// Subjects of a row of ScaleReport.
const (
	scaleOpen    = "open channels"
	scaleBlocked = "blocked senders"
)

// Row is one number of channels or of senders.
type Row struct {
	What string `json:"what"`
	N    int    `json:"n"`
	// Bytes and HeapBytes are what each one costs: of the process, and of its Go
	// heap; -1 if the system does not report it.
	Bytes     float64 `json:"bytes_each"`
	HeapBytes float64 `json:"heap_bytes_each"`
	// OpenNs is the time to make one: to subscribe, or until it is blocked.
	OpenNs float64 `json:"make_ns_each"`
	// Ns is of a message on a live channel; OfAlone is that over a device's without
	// other channels.
	Ns      stat.Stat   `json:"ns"`
	OfAlone stat.Spread `json:"of_alone"`
	// Threads is of this process meanwhile; -1 if unknown.
	Threads int    `json:"threads"`
	Busy    string `json:"busy,omitempty"`
}

// shapeFor is an address whose device has room for n channels, if the user named no
// options.
func shapeFor(address string, n int) string {
	if address != "sim:" {
		return address
	}
	return fmt.Sprintf("sim:?channels=%d", n+scaleSpare)
}

// scaleSpare is room for the live channel and the device's own services.
const scaleSpare = 1000

// measure does all counts, each on a device of its own.
func (o *options) measure(ctx context.Context, address string, errw io.Writer) (*Report, error) {
	alone, err := openLive(ctx, address)
	if err != nil {
		return nil, err
	}
	r := &Report{Header: cli.NewHeader("scale", alone.dev), Rounds: o.rounds, SliceMs: float64(o.slice) / float64(time.Millisecond)}
	bar := cli.NewProgress(errw, len(o.channels)+len(o.blocked), "scale")
	defer bar.Done()
	for _, what := range []string{scaleOpen, scaleBlocked} {
		counts := o.channels
		if what == scaleBlocked {
			counts = o.blocked
		}
		for _, n := range counts {
			bar.Step(fmt.Sprintf("%d %s", n, what))
			row, err := o.count(ctx, address, alone, what, n)
			if err != nil {
				return nil, errors.Join(fmt.Errorf("%d %s: %w", n, what, err), alone.close())
			}
			r.Rows = append(r.Rows, row)
		}
	}
	r.Goals = r.goals()
	return r, alone.close()
}

// count measures one number.
func (o *options) count(ctx context.Context, address string, alone *live, what string, n int) (row Row, err error) {
	row = Row{What: what, N: n}
	l, err := openLive(ctx, shapeFor(address, n))
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	before := memoryNow()
	begun := time.Now()
	p, err := compare.Start(ctx, l.dev, "hold", n)
	if err != nil {
		return row, err
	}
	if what == scaleBlocked {
		begun = time.Now()
		wait, err := compare.BlockSends(ctx, l.dev, p)
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, wait()) }()
	}
	row.OpenNs = float64(time.Since(begun)) / float64(n)
	row.Bytes, row.HeapBytes = memoryNow().less(before, n)
	row.Threads = cli.Threads()
	err = row.latency(ctx, l, alone, o)
	return row, err
}

// latency lets the live channel and the one alone take turns.
func (row *Row) latency(ctx context.Context, l, alone *live, o *options) error {
	t := &compare.Comparison{Contenders: []*compare.Contender{l.send("beside"), alone.send("alone"), compare.NewMemcpy(compare.SmallMemcpy)}}
	if err := t.Play(ctx, o.rounds, o.slice, func(string) {}); err != nil {
		return err
	}
	row.Ns, row.OfAlone, row.Busy = t.Find("beside").Samples.Stat(compare.SmallBatch), t.Ratio("beside", "alone"), t.Busy
	return nil
}

// goals decides T11 for the most channels and the most senders, unless the machine was busy.
func (r *Report) goals() (goals []cli.Goal) {
	for _, row := range r.Rows {
		switch {
		case row.What == scaleOpen && row.N == scaleChannelsMost:
			reason := ""
			if row.Bytes < 0 {
				reason = "the system does not tell"
			}
			goals = append(goals, cli.Goal{ID: "T11", What: "a million open channels, bytes each", Value: row.Bytes, Target: 1024, AtMost: true}.Decide(reason))
		case row.What == scaleBlocked && row.N == scaleBlockedMost:
			goals = append(goals, cli.Goal{ID: "T11", What: "10,000 blocked senders: a live channel's time : alone", Value: row.OfAlone.Median, Target: 1.2, AtMost: true}.Decide(row.Busy))
		}
	}
	for _, row := range r.Rows {
		cli.Withhold(goals, row.Busy)
	}
	return goals
}

// draw plots the latencies.
func (r *Report) draw() *plot.Plot {
	p := &plot.Plot{Title: "A live channel beside others", Note: r.Device.Label + ", " + r.Machine.CPU,
		XLabel: "others", YLabel: "ns a message", Name: plot.CountText, YLog: true}
	for _, row := range r.Rows {
		p.Add("beside "+row.What+", p50", float64(row.N), row.Ns.P50)
		p.Add("beside "+row.What+", p99", float64(row.N), row.Ns.P99)
	}
	return p
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
	fmt.Fprintf(w, "%d rounds of %g ms a side; a message of 56 bytes on a live channel\n", r.Rounds, r.SliceMs)
	t := texttable.Numbers("", "n", "bytes each", "Go heap", "made in", "p50", "p99", "of alone (min..max)", "threads", "")
	for _, row := range r.Rows {
		t.Add(row.What, fmt.Sprint(row.N), fmt.Sprintf("%.0f", row.Bytes), fmt.Sprintf("%.0f", row.HeapBytes), units.Duration(row.OpenNs),
			units.Duration(row.Ns.P50), units.Duration(row.Ns.P99), stat.Times(row.OfAlone), fmt.Sprint(row.Threads), strings.TrimSpace(row.Busy))
	}
	t.Write(w)
	fmt.Fprintln(w)
	cli.WriteGoals(w, r.Goals)
}

// memory is what this process uses.
type memory struct{ all, heap float64 }

// collections bounds how often what is not used is looked for.
const collections = 8

// memoryNow gives back what is not used first. Memory of pools, finalizers and goroutines that have ended
// is free one collection later, so it goes on while there is less each time.
func memoryNow() memory {
	debug.FreeOSMemory()
	heap := cli.HeapBytes()
	for range collections {
		debug.FreeOSMemory()
		now := cli.HeapBytes()
		if now >= heap {
			break
		}
		heap = now
	}
	return memory{all: cli.ResidentBytes(), heap: heap}
}

// less is the growth since before, for each of n.
func (m memory) less(before memory, n int) (all, heap float64) {
	all, heap = (m.all-before.all)/float64(n), (m.heap-before.heap)/float64(n)
	if m.all < 0 {
		all = -1
	}
	return max(all, -1), heap
}

// live is a device with a channel that is used.
type live struct {
	dev *nfcomms.Device
	p   *compare.Program
}

func openLive(ctx context.Context, address string) (*live, error) {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	p, err := compare.Start(ctx, dev, "sink", 1)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &live{dev, p}, nil
}

func (l *live) close() error { return l.dev.Close() }

// send is a side that gives messages to the sink.
func (l *live) send(name string) *compare.Contender {
	msg := compare.Buffer(compare.MessageSize)
	return &compare.Contender{Name: name, Size: compare.MessageSize, Batch: compare.SmallBatch, CPU: compare.SelfCPU,
		Run: func(ctx context.Context, n int) (time.Duration, error) {
			start := time.Now()
			for range n {
				if err := l.p.Chans[0].Send(ctx, msg); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		}}
}

// Add adds the command.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newScale(c)) }
