package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// options are the flags of the command.
type options struct {
	rounds int
	slice  time.Duration
	sizes  []string
	// libraries are those in C.
	libraries []string
	idle      time.Duration
	blocked   int
	short     bool
	plot      string
}

const peersLong = `Compare NFComms with what one would use instead, all interleaved in one run.

Small: 56-byte messages, timed per batch of 100. The Go channel is a ping-pong
between two goroutines. Pipes, UNIX socket, mangos (a pair of the Scalability
Protocols) and gRPC are round trips to another process, a child of this run.
Send is one message with its ack, Send+Receive a message and its echo, Call a
question and its answer.
Bulk: memcpy is Go's copy of the same bytes on one core. The others move them to
the other process and wait for a word back (gRPC in messages of at most 1 MiB).
SendInd and ReceiveInd move one transfer at a time on one target. Each of these
three is there twice: from and to the same buffer each time, which caches keep, and
with buffers in turn, 64 MiB of them or more, which decides the goals. Before all that,
messages a millisecond apart find the device asleep, beside two processes in C that
sleep in turn.

The libraries in C of --libraries join the same rounds where they are installed: a
program of two processes is built, and each slice has a run of it. Where one is
missing or fails the others go on, and the report says why. Their calls send when
the bytes are in a queue, ours when the far end took them: "what" says what an
operation is, and rows with the same word are alike.

Over a device of another process ("--address shm:PATH") transfers also go from and
to memory of Alloc, which needs no second copy. There memory of each size is also given
to another process, which reads and writes a word and gives it back. It stands beside
the echo of a message between the same two processes, and iceoryx2 with memory in place.

Each figure is the median of the rounds with min..max. CPU time is of all
processes that take part, the simulated device included. p50 and p99 are per
operation, from batch times. "time / nfcomms" is the time of the row over the
time of Send (small) or SendInd (bulk) of the same round. "time / limit" is over
what the machine allows, measured in C in the same round: a cache line handed there
and back between two threads (small; over a shared device two processes), and the
fastest memcpy of one or two threads (bulk), each with the same buffers or with
buffers in turn as the row. "nfbench limits" shows all limits.

All goals say "not measured: machine busy" when other programs used more than a
quarter of the machine, or memcpy itself varied more than twofold.`

func newPeers(c *cli.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "peers",
		Short: "Compare with memcpy, Go channels, pipes, UNIX sockets, gRPC and libraries in C",
		Long:  peersLong,
		Example: `  nfbench peers
  nfbench peers --rounds 21 --sizes 64KiB,1MiB
  nfbench peers --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.short {
				o.shorten(cmd.Flags().Changed)
			}
			sizes, err := o.check()
			if err != nil {
				return err
			}
			return c.Measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (cli.Report, error) {
				r, err := peers(ctx, dev, o, sizes, cmd.ErrOrStderr())
				if err == nil && o.plot != "" {
					err = r.draw().Save(o.plot)
				}
				return r, err
			})
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.rounds, "rounds", 9, "interleaved rounds")
	f.DurationVar(&o.slice, "slice", 100*time.Millisecond, "time of each side in each round")
	f.StringSliceVar(&o.sizes, "sizes", []string{"64KiB", "1MiB", "16MiB"}, "bulk transfer sizes")
	f.StringSliceVar(&o.libraries, "libraries", compare.NativeNames(), "libraries in C to compare with, where they are installed")
	f.DurationVar(&o.idle, "idle", 2*time.Second, "time to watch the idle device")
	f.IntVar(&o.blocked, "blocked", 10000, "sends to block while threads are counted")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: fewer rounds and sizes")
	f.Var(plot.Output(&o.plot), "plot", "draw the times over the sizes to this SVG file")
	return cmd
}

func (o *options) shorten(given func(string) bool) {
	cli.Shorten(given, map[string]func(){
		"rounds":  func() { o.rounds = 3 },
		"slice":   func() { o.slice = 40 * time.Millisecond },
		"sizes":   func() { o.sizes = []string{"64KiB", "1MiB"} },
		"idle":    func() { o.idle = time.Second },
		"blocked": func() { o.blocked = 2000 },
	})
}

func (o options) check() ([]int, error) {
	switch {
	case o.rounds < 1:
		return nil, cli.Usagef("--rounds %d is less than 1", o.rounds)
	case o.slice <= 0:
		return nil, cli.Usagef("--slice %v is not a positive time", o.slice)
	case o.idle <= 0:
		return nil, cli.Usagef("--idle %v is not a positive time", o.idle)
	case o.blocked < 1:
		return nil, cli.Usagef("--blocked %d is less than 1", o.blocked)
	}
	if err := compare.CheckNatives("libraries", o.libraries); err != nil {
		return nil, err
	}
	return cli.ParseSizes(o.sizes)
}

// Report is the JSON of the command.
type Report struct {
	cli.Header
	Rounds  int     `json:"rounds"`
	SliceMs float64 `json:"slice_ms"`
	// Batch is the number of small messages per timed batch.
	Batch   int        `json:"batch"`
	Small   []Row      `json:"small"`
	Bulk    []Row      `json:"bulk"`
	Gifts   []Row      `json:"gifts,omitempty"`
	Idle    Idle       `json:"idle"`
	Blocked Blocked    `json:"blocked"`
	Rest    Rest       `json:"rest"`
	Goals   []cli.Goal `json:"goals"`
	// NotMeasured says which peers are not there, and why.
	NotMeasured []string `json:"not_measured,omitempty"`

	busy string // of any comparison
}

// Row is one side of a comparison. Spreads are over rounds.
type Row struct {
	Peer string `json:"peer"`
	// Does is what an operation is; compare rows of one word.
	Does string `json:"does"`
	// Size is in bytes.
	Size int `json:"size"`
	Ops  int `json:"ops"`
	// Ns and CPUNs are wall and CPU nanoseconds per operation.
	Ns    stat.Spread `json:"ns"`
	CPUNs stat.Spread `json:"cpu_ns"`
	// P50Ns and P99Ns are nanoseconds per operation from batch times.
	P50Ns float64 `json:"p50_ns"`
	P99Ns float64 `json:"p99_ns"`
	// GBs is the rate in GB/s.
	GBs stat.Spread `json:"gb_s"`
	// Allocs is heap objects per operation in this process.
	Allocs float64 `json:"allocs"`
	// VsNFComms is this row's time over that of Send (small) or SendInd (bulk).
	VsNFComms stat.Spread `json:"time_over_nfcomms"`
	// VsLimit is this row's time over that of its limit in C; 0: there is no compiler.
	VsLimit stat.Spread `json:"time_over_limit"`
}

// draw plots the median time of every peer over the size, and beside it the line t0 + n/r∞ through its
// points where there are three of them.
func (r *Report) draw() *plot.Plot {
	p := &plot.Plot{Title: "One operation beside its peers", Note: r.Device.Label + ", " + r.Machine.CPU,
		XLabel: "bytes", YLabel: "µs; dashed: t0 + n/r∞", YLog: true}
	for _, row := range append(slices.Clone(r.Small), r.Bulk...) {
		p.Add(row.Peer, float64(row.Size), row.Ns.Median/1e3)
	}
	p.AddTheory(line)
	return p
}

// line is Hockney's through the points of a curve, where that is one of rising times; nil if it is not.
func line(s plot.Series) []float64 {
	if len(s.X) < 3 {
		return nil
	}
	ns := make([]float64, len(s.Y))
	for i, us := range s.Y {
		ns[i] = us * 1e3
	}
	h := stat.FitHockney(s.X, ns)
	if h == nil || h.T0 <= 0 {
		return nil
	}
	y := make([]float64, len(s.X))
	for i, n := range s.X {
		y[i] = n / h.Rate(n) / 1e3
	}
	return y
}

// beside are the programs in C of a run.
type beside struct {
	others compare.Natives
	limits *compare.Limits
}

// peers runs everything: idle device, blocked sends, small, each bulk size.
func peers(ctx context.Context, dev *nfcomms.Device, o options, sizes []int, errw io.Writer) (*Report, error) {
	r := &Report{
		Header: cli.NewHeader("peers", dev), Rounds: o.rounds, Batch: compare.SmallBatch,
		SliceMs: float64(o.slice) / float64(time.Millisecond),
	}
	b := beside{compare.NewNatives(ctx, o.libraries), compare.NewLimits(ctx)}
	r.NotMeasured = append(b.others.Missing(), b.limits.Missing()...)
	n := len(b.others.There())
	sides := smallSides + n + 1 + (bulkSides+farSides+n+len(b.limits.Copies(1)))*len(sizes)
	if shared(dev) {
		sides += giftSides + (1+len(b.others.InPlace(1)))*len(sizes)
	}
	bar := cli.NewProgress(errw, 3+o.rounds*sides, "idle device")
	defer bar.Done()
	err := r.run(ctx, dev, o, sizes, b, bar)
	if err = errors.Join(err, b.others.Remove(), b.limits.Remove()); err != nil {
		return nil, err
	}
	cli.Withhold(r.Goals, r.busy)
	return r, nil
}

// run measures one thing after the other.
func (r *Report) run(ctx context.Context, dev *nfcomms.Device, o options, sizes []int, b beside, bar cli.Progress) (err error) {
	if r.Idle, err = measureIdle(ctx, o.idle); err != nil {
		return err
	}
	bar.Step("blocked sends")
	if r.Blocked, err = measureBlocked(ctx, dev, o.blocked); err != nil {
		return err
	}
	bar.Step("a device at rest")
	if r.Rest, err = measureRest(ctx, dev, o.rounds); err != nil {
		return err
	}
	bar.Step("small messages")
	c, err := compare.StartChild(ctx)
	if err != nil {
		return err
	}
	err = r.compare(ctx, dev, c, o, sizes, b, bar)
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

// compare runs the comparisons and computes the goals.
func (r *Report) compare(ctx context.Context, dev *nfcomms.Device, c *compare.Child, o options, sizes []int, b beside, bar cli.Progress) error {
	r.Goals = append(r.idleGoals(), r.Rest.goal())
	small, err := newSmall(ctx, dev, c)
	for _, p := range b.others.There() {
		small.Contenders = append(small.Contenders, p.Contender("echo", compare.DoesEcho, compare.MessageSize, compare.SmallBatch))
	}
	small.Contenders = append(small.Contenders, b.limits.Line(shared(dev))...)
	if err == nil {
		err = small.Play(ctx, o.rounds, o.slice, bar.Step)
	}
	if err = errors.Join(err, small.Close()); err != nil {
		return err
	}
	r.busy = small.Busy
	r.Small, r.NotMeasured = rows(small, compare.NameSend, lines), append(r.NotMeasured, small.Failed...)
	r.Goals = append(r.Goals, smallGoals(small)...)
	if shared(dev) {
		r.Goals = append(r.Goals, sharedSmallGoals(small)...)
	}
	for _, size := range sizes {
		if err := r.compareBulk(ctx, dev, c, o, size, b, bar); err != nil {
			return fmt.Errorf("%s: %w", cli.SizeText(size), err)
		}
	}
	if shared(dev) {
		return r.compareGifts(ctx, dev, o, sizes, b, bar)
	}
	return nil
}

// compareBulk compares transfers of one size.
func (r *Report) compareBulk(ctx context.Context, dev *nfcomms.Device, c *compare.Child, o options, size int, b beside, bar cli.Progress) error {
	bulk, err := newBulk(ctx, dev, c, size)
	for _, p := range b.others.There() {
		bulk.Contenders = append(bulk.Contenders, p.Contender("take", compare.DoesWord, size, 1))
	}
	bulk.Contenders = append(bulk.Contenders, b.limits.Copies(size)...)
	if err == nil {
		err = bulk.Play(ctx, o.rounds, o.slice, func(s string) { bar.Step(cli.SizeText(size) + ", " + s) })
	}
	if err = errors.Join(err, bulk.Close()); err != nil {
		return err
	}
	r.busy = cmp.Or(r.busy, bulk.Busy)
	r.Bulk, r.NotMeasured = append(r.Bulk, rows(bulk, compare.NameSendInd, compare.CopiesBeside)...), append(r.NotMeasured, bulk.Failed...)
	if shared(dev) {
		r.Goals = append(r.Goals, sharedBulkGoals(bulk, size)...)
	} else {
		r.Goals = append(r.Goals, bulkGoals(bulk, size)...)
	}
	return nil
}

// Add adds the commands.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newPeers(c), newLimits(c)) }

// lines names the limit of a message: the one that takes part.
func lines(string) []string { return []string{compare.NameLineThreads, compare.NameLineProcesses} }

// rows lists what a comparison found. limits names those of a row.
func rows(t *compare.Comparison, reference string, limits func(row string) []string) []Row {
	rows := make([]Row, 0, len(t.Contenders))
	for _, c := range t.Contenders {
		s := c.Samples.Stat(c.Batch)
		row := Row{
			Peer: c.Name, Does: c.Does, Size: c.Size, Ns: stat.SpreadOf(c.Ns()), CPUNs: c.CPUNs(),
			P50Ns: s.P50, P99Ns: s.P99, Allocs: c.Allocs(), VsNFComms: t.Ratio(c.Name, reference),
			VsLimit: t.OverLimit(c.Name, limits(c.Name)...),
		}
		rates := make([]float64, len(c.Rounds))
		for i, r := range c.Rounds {
			row.Ops += r.Ops
			rates[i] = cli.GBs(c.Size*r.Ops, r.Timed)
		}
		row.GBs = stat.SpreadOf(rates)
		rows = append(rows, row)
	}
	return rows
}
