package stack

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// options are the flags of the command.
type options struct {
	payload string
	sizes   []string
	depth   int
	tests   int
	plot    string
	falls   string
	short   bool
}

// Plan is what the flags ask for.
type Plan struct {
	Payload int   // bytes of a test, at least
	Sizes   []int // of chunks, ascending
	Depth   int
	Tests   int
}

const stackLong = `Where the time of a transfer goes: the measurement tree of the stack analysis,
{flow control on, off} x {C path, Go path} x {synchronous, overlapped} x {h2d,
d2h}, over chunks of 4 KiB to 64 MiB, with wall and CPU time.

Chunks go to loopback processes and come back; every byte is compared outside the
timed part, in groups of --depth, each chunk on a channel of its own. Synchronous
is one chunk after the other, overlapped a future for each, begun together one
SendStriped or ReceiveStriped. The two directions are timed apart. A table has
the gain of 2, 4 and 8 at once for chunks of up to 1 MiB. Another arranges these by
the memory in flight, window × chunk, and marks the split that the round trip chooses.
A chunk is also the buffer of the device process that takes it: the slides' designs with
buffers of 4 and of 72 KiB are chunks of 4 and of 64 KiB.
The line beside each figure is the theory: what one call costs, measured with 8
bytes, and after that as fast as memcpy of the same chunks. t0, r∞ and n½ are
Hockney's line through the points. The memory is the heap; regions of the device
and mapped memory are measured beside it, one chunk at a time.

The C path is a program over libnfcomms that is built with cc and moves the same
chunks in turn, in a process of its own: of sim: that has a device of its own.
What serves it without the kernel module is built by go where this module's source
is, and must be installed elsewhere. Without a compiler the report says so. There
overlapped is nfcomms_submit, then nfcomms_events.

Apart from what is timed some chunks of each size are traced, layer by layer, beside
that theory and the page entries, lists and packets that a card would have, which are
modelled. What that costs is measured with messages: two devices take turns, batch by
batch, of which one is traced, one call in 64.

Without flow control is no way to use a device: a device program of this benchmark
takes each chunk as soon as it is offered, and overwrites what its reader has yet to
read. Each chunk has a checksum, and may come out right if the reader is fast.

The slides' figures were measured on an FPGA board, in Java and C++.`

func newStack(c *cli.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "stack", Short: "The stack analysis: where the time of a transfer goes, by chunk size",
		Long: stackLong,
		Example: `  nfbench stack --short
  nfbench stack --plot stack.svg --waterfall layers.svg
  nfbench stack --address "sim:?islands=2&managers=2" --depth 8 --output json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.short {
				o.shorten(cmd.Flags().Changed)
			}
			plan, err := o.plan()
			if err != nil {
				return err
			}
			return c.Measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (cli.Report, error) {
				r, err := Measure(ctx, dev, plan, cli.NewProgress(cmd.ErrOrStderr(), (plan.Tests+1)*len(plan.Sizes), "stack"))
				if err == nil && o.plot != "" {
					err = r.Plot().Save(o.plot)
				}
				if err == nil && o.falls != "" {
					err = plot.SavePicture(o.falls, r.waterfallSVG())
				}
				return r, err
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.payload, "payload", "64MiB", "bytes moved each way in each test, at least")
	f.StringSliceVar(&o.sizes, "sizes",
		[]string{"4KiB", "16KiB", "64KiB", "256KiB", "1MiB", "4MiB", "16MiB", "64MiB"}, "chunk sizes")
	f.IntVar(&o.depth, "depth", 4, "transfers at once, where they overlap")
	f.IntVar(&o.tests, "tests", 5, "tests of each point")
	f.Var(plot.Output(&o.plot), "plot", "write the curves to this SVG file")
	f.Var(plot.Output(&o.falls), "waterfall", "write the layers of each size to this SVG file")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: less payload, fewer sizes and tests")
	return cmd
}

func (o *options) shorten(given func(string) bool) {
	cli.Shorten(given, map[string]func(){
		"payload": func() { o.payload = "2MiB" },
		"sizes":   func() { o.sizes = []string{"4KiB", "64KiB", "256KiB", "1MiB", "4MiB"} },
		"tests":   func() { o.tests = 2 },
	})
}

func (o options) plan() (p Plan, err error) {
	if p.Payload, err = cli.ParseSize(o.payload); err != nil {
		return p, err
	}
	if p.Sizes, err = cli.ParseSizes(o.sizes); err != nil {
		return p, err
	}
	slices.Sort(p.Sizes)
	p.Sizes = slices.Compact(p.Sizes)
	p.Depth, p.Tests = o.depth, o.tests
	switch {
	case p.Sizes[0] < 8:
		return p, cli.Usagef("--sizes: %s is less than 8 bytes, which is what a call costs", cli.SizeText(p.Sizes[0]))
	case p.Sizes[len(p.Sizes)-1] > 1<<30:
		return p, cli.Usagef("--sizes: %s is more than 1 GiB", cli.SizeText(p.Sizes[len(p.Sizes)-1]))
	case p.Depth < 2 || p.Depth > 64:
		return p, cli.Usagef("--depth %d is not 2 to 64", p.Depth)
	case p.Tests < 1:
		return p, cli.Usagef("--tests %d is not positive", p.Tests)
	}
	return p, nil
}

// Add adds the command.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newStack(c)) }
