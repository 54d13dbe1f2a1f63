package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
)

// limitOptions are the flags of the command.
type limitOptions struct {
	rounds int
	slice  time.Duration
	sizes  []string
}

func newLimits(c *cli.Flags) *cobra.Command {
	var o limitOptions
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Limits of this machine: cache lines, wake-ups, page pins and copies, in C",
		Long: `Measure the limits of every channel on this machine, by programs in C that do nothing
else, all interleaved in one run: a cache line that is handed there and back
between two threads or two processes, each pinned to a processor of its own; a wake-up
there and back by futexes; a page that is pinned and read; memcpy by one thread and by
two, from and to the same buffers each time and with buffers in turn, 64 MiB of them or
more; and process_vm_readv. No device takes part.

"nfbench peers" measures the limit of each row in the same round.`,
		Example: `  nfbench limits
  nfbench limits --sizes 64KiB --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sizes, err := o.check(c)
			if err != nil {
				return err
			}
			r, err := o.run(cmd.Context(), sizes, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.rounds, "rounds", 9, "interleaved rounds")
	f.DurationVar(&o.slice, "slice", 100*time.Millisecond, "time of each limit in each round")
	f.StringSliceVar(&o.sizes, "sizes", []string{"64KiB", "1MiB", "16MiB"}, "bytes of a copy")
	return cmd
}

func (o *limitOptions) check(c *cli.Flags) ([]int, error) {
	err := c.Check()
	switch {
	case err != nil:
		return nil, err
	case o.rounds < 1:
		return nil, cli.Usagef("--rounds %d is less than 1", o.rounds)
	case o.slice <= 0:
		return nil, cli.Usagef("--slice %v is not a positive time", o.slice)
	}
	return cli.ParseSizes(o.sizes)
}

// LimitsReport is the JSON of "limits".
type LimitsReport struct {
	Command string      `json:"command"`
	Machine cli.Machine `json:"machine"`
	Rounds  int         `json:"rounds"`
	SliceMs float64     `json:"slice_ms"`
	Limits  []Limit     `json:"limits"`
	// Busy is why the figures are not to be trusted; empty: they are.
	Busy        string   `json:"busy,omitempty"`
	NotMeasured []string `json:"not_measured,omitempty"`
}

// Limit is what one of them took. Spreads are over rounds.
type Limit struct {
	Name string `json:"name"`
	Size int    `json:"size"` // bytes
	Ops  int    `json:"ops"`
	// Ns and CPUNs are wall and CPU nanoseconds per operation, GBs the rate in GB/s.
	Ns    stat.Spread `json:"ns"`
	CPUNs stat.Spread `json:"cpu_ns"`
	GBs   stat.Spread `json:"gb_s"`
	P99Ns float64     `json:"p99_ns"`
}

// run measures the small limits, then those of each size.
func (o *limitOptions) run(ctx context.Context, sizes []int, errw io.Writer) (r *LimitsReport, err error) {
	l := compare.NewLimits(ctx)
	defer func() { err = errors.Join(err, l.Remove()) }()
	r = &LimitsReport{Command: "limits", Machine: cli.ThisMachine(), Rounds: o.rounds,
		SliceMs: float64(o.slice) / float64(time.Millisecond), NotMeasured: l.Missing()}
	all := []*compare.Comparison{{Contenders: append([]*compare.Contender{compare.NewMemcpy(compare.SmallMemcpy)}, l.Small()...)}}
	for _, size := range sizes {
		all = append(all, &compare.Comparison{Contenders: append([]*compare.Contender{compare.NewMemcpy(size), compare.NewMemcpyCold(size)}, l.Bulk(size)...)})
	}
	steps := 0
	for _, t := range all {
		steps += o.rounds * len(t.Contenders)
	}
	bar := cli.NewProgress(errw, steps, "limits")
	defer bar.Done()
	for _, t := range all {
		if err := errors.Join(t.Play(ctx, o.rounds, o.slice, bar.Step), t.Close()); err != nil {
			return nil, err
		}
		r.Busy, r.NotMeasured = cmp.Or(r.Busy, t.Busy), append(r.NotMeasured, t.Failed...)
		for _, row := range rows(t, "", func(string) []string { return nil }) {
			r.Limits = append(r.Limits, Limit{row.Peer, row.Size, row.Ops, row.Ns, row.CPUNs, row.GBs, row.P99Ns})
		}
	}
	return r, nil
}

// Table writes the report for people.
func (r *LimitsReport) Table(w io.Writer) {
	fmt.Fprintf(w, "Limits of the machine, %s; %d rounds of %g ms each; median (min..max)\n", r.Machine.Text(), r.Rounds, r.SliceMs)
	t := texttable.Numbers("", "size", "time", "(min..max)", "p99", "CPU", "GB/s")
	for _, l := range r.Limits {
		rate := ""
		if l.Size > compare.MessageSize {
			rate = fmt.Sprintf("%.2f", l.GBs.Median)
		}
		t.Add(l.Name, units.Exact(uint64(l.Size)), units.Duration(l.Ns.Median), units.Duration(l.Ns.Min)+".."+units.Duration(l.Ns.Max),
			units.Duration(l.P99Ns), units.Duration(l.CPUNs.Median), rate)
	}
	t.Write(w)
	for _, text := range r.NotMeasured {
		fmt.Fprintln(w, text)
	}
	if r.Busy != "" {
		fmt.Fprintln(w, "Not to be trusted:", r.Busy)
	}
}
