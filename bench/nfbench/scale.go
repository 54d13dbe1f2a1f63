package main

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

	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// scaleOptions are the flags of the command.
type scaleOptions struct {
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

func newScale(c *common) *cobra.Command {
	var o scaleOptions
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
			r, err := o.measure(cmd.Context(), c.address, cmd.ErrOrStderr())
			if err == nil && o.plot != "" {
				err = r.draw().save(o.plot)
			}
			if err != nil {
				return err
			}
			return c.print(cmd.OutOrStdout(), r)
		},
	}
	f := cmd.Flags()
	f.IntSliceVar(&o.channels, "channels", []int{1, 1000, 10_000, 100_000, 1_000_000}, "numbers of open channels")
	f.IntSliceVar(&o.blocked, "blocked", []int{1, 100, 1000, 10_000}, "numbers of blocked senders")
	f.IntVar(&o.rounds, "rounds", 9, "interleaved rounds")
	f.DurationVar(&o.slice, "slice", 50*time.Millisecond, "time of each side in each round")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: fewer channels, senders and rounds")
	f.Var(output{&o.plot}, "plot", "draw the latencies to this SVG file")
	return cmd
}

func (o *scaleOptions) check(c *common, given func(string) bool) error {
	if o.short {
		shorten(given, map[string]func(){
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
			return usagef("--%s %v: want numbers from 1 to %d", flag, v.list, v.most)
		}
	}
	switch {
	case len(o.channels)+len(o.blocked) == 0:
		return usagef("--channels and --blocked are empty")
	case o.rounds < 1:
		return usagef("--rounds %d is less than 1", o.rounds)
	case o.slice <= 0:
		return usagef("--slice %v is not a positive time", o.slice)
	}
	return c.check()
}

// ScaleReport is the JSON of the command.
type ScaleReport struct {
	Header
	Rounds  int        `json:"rounds"`
	SliceMs float64    `json:"slice_ms"`
	Rows    []ScaleRow `json:"rows"`
	Goals   []Goal     `json:"goals"`
}

// What a row of ScaleReport counts.
const (
	scaleOpen    = "open channels"
	scaleBlocked = "blocked senders"
)

// ScaleRow is one number of channels or of senders.
type ScaleRow struct {
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
	Ns      Stat   `json:"ns"`
	OfAlone Spread `json:"of_alone"`
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
func (o *scaleOptions) measure(ctx context.Context, address string, errw io.Writer) (*ScaleReport, error) {
	alone, err := openLive(ctx, address)
	if err != nil {
		return nil, err
	}
	r := &ScaleReport{Header: newHeader("scale", alone.dev), Rounds: o.rounds, SliceMs: float64(o.slice) / float64(time.Millisecond)}
	bar := newProgress(errw, len(o.channels)+len(o.blocked), "scale")
	defer bar.done()
	for _, what := range []string{scaleOpen, scaleBlocked} {
		counts := o.channels
		if what == scaleBlocked {
			counts = o.blocked
		}
		for _, n := range counts {
			bar.step(fmt.Sprintf("%d %s", n, what))
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
func (o *scaleOptions) count(ctx context.Context, address string, alone *live, what string, n int) (row ScaleRow, err error) {
	row = ScaleRow{What: what, N: n}
	l, err := openLive(ctx, shapeFor(address, n))
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	before := memoryNow()
	begun := time.Now()
	p, err := start(ctx, l.dev, "hold", n)
	if err != nil {
		return row, err
	}
	if what == scaleBlocked {
		begun = time.Now()
		wait, err := blockSends(ctx, l.dev, p)
		if err != nil {
			return row, err
		}
		defer func() { err = errors.Join(err, wait()) }()
	}
	row.OpenNs = float64(time.Since(begun)) / float64(n)
	row.Bytes, row.HeapBytes = memoryNow().less(before, n)
	row.Threads = threads()
	err = row.latency(ctx, l, alone, o)
	return row, err
}

// latency lets the live channel and the one alone take turns.
func (row *ScaleRow) latency(ctx context.Context, l, alone *live, o *scaleOptions) error {
	t := &comparison{contenders: []*contender{l.send("beside"), alone.send("alone"), newMemcpy(smallMemcpy)}}
	if err := t.play(ctx, o.rounds, o.slice, func(string) {}); err != nil {
		return err
	}
	row.Ns, row.OfAlone, row.Busy = t.find("beside").samples.stat(smallBatch), t.ratio("beside", "alone"), t.busy
	return nil
}

// goals decides T11 for the most channels and the most senders.
func (r *ScaleReport) goals() (goals []Goal) {
	for _, row := range r.Rows {
		switch {
		case row.What == scaleOpen && row.N == scaleChannelsMost:
			reason := ""
			if row.Bytes < 0 {
				reason = "the system does not tell"
			}
			goals = append(goals, Goal{ID: "T11", What: "a million open channels, bytes each", Value: row.Bytes, Target: 1024, AtMost: true}.decide(reason))
		case row.What == scaleBlocked && row.N == scaleBlockedMost:
			goals = append(goals, Goal{ID: "T11", What: "10,000 blocked senders: a live channel's time : alone", Value: row.OfAlone.Median, Target: 1.2, AtMost: true}.decide(row.Busy))
		}
	}
	return goals
}

// draw plots the latencies.
func (r *ScaleReport) draw() *plot {
	p := &plot{title: "A live channel beside others", note: r.Device.Label + ", " + r.Machine.CPU,
		xLabel: "others", yLabel: "ns a message", name: countText, yLog: true}
	for _, row := range r.Rows {
		p.add("beside "+row.What+", p50", float64(row.N), row.Ns.P50)
		p.add("beside "+row.What+", p99", float64(row.N), row.Ns.P99)
	}
	return p
}

// table writes the report for people.
func (r *ScaleReport) table(w io.Writer) {
	r.Header.table(w)
	fmt.Fprintf(w, "%d rounds of %g ms a side; a message of 56 bytes on a live channel\n", r.Rounds, r.SliceMs)
	t := texttable.Numbers("", "n", "bytes each", "Go heap", "made in", "p50", "p99", "of alone (min..max)", "threads", "")
	for _, row := range r.Rows {
		t.Add(row.What, fmt.Sprint(row.N), fmt.Sprintf("%.0f", row.Bytes), fmt.Sprintf("%.0f", row.HeapBytes), units.Duration(row.OpenNs),
			units.Duration(row.Ns.P50), units.Duration(row.Ns.P99), times(row.OfAlone), fmt.Sprint(row.Threads), strings.TrimSpace(row.Busy))
	}
	t.Write(w)
	fmt.Fprintln(w)
	writeGoals(w, r.Goals)
}

// memory is what this process uses.
type memory struct{ all, heap float64 }

// collections bounds how often what is not used is looked for.
const collections = 8

// memoryNow gives back what is not used first. What pools, finalizers and goroutines that have ended
// held is free one collection later, so it goes on while there is less each time.
func memoryNow() memory {
	debug.FreeOSMemory()
	heap := heapBytes()
	for range collections {
		debug.FreeOSMemory()
		now := heapBytes()
		if now >= heap {
			break
		}
		heap = now
	}
	return memory{all: residentBytes(), heap: heap}
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
	p   *program
}

func openLive(ctx context.Context, address string) (*live, error) {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return nil, err
	}
	p, err := start(ctx, dev, "sink", 1)
	if err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	return &live{dev, p}, nil
}

func (l *live) close() error { return l.dev.Close() }

// send is a side that gives messages to the sink.
func (l *live) send(name string) *contender {
	msg := buffer(messageSize)
	return &contender{name: name, size: messageSize, batch: smallBatch, cpu: selfCPU,
		run: func(ctx context.Context, n int) (time.Duration, error) {
			start := time.Now()
			for range n {
				if err := l.p.chans[0].Send(ctx, msg); err != nil {
					return 0, err
				}
			}
			return time.Since(start), nil
		}}
}

// addScale adds the command.
func addScale(root *cobra.Command, c *common) { root.AddCommand(newScale(c)) }
