package throughput

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// options are the flags of the command.
type options struct {
	payload string
	sizes   []string
	targets string
	tests   int
	direct  int
	plot    string
	short   bool
	sums    bool
}

// Plan is what the flags ask for.
type Plan struct {
	Payload int
	Sizes   []int
	Targets []int
	Tests   int
	Direct  int
	// Checksums: each test moves the payload once more, with checksums of both ends.
	Checksums bool
}

const throughputLong = `The throughput test of the paper: a payload of 100 MB moves one way as messages
whose size rises stepwise to 20 MB, in four configurations: {h2d, d2h} x {1, 8}
device processes. The paper took 150 tests of each point: --tests 150.

The device's processes run the loopback program. With one, each message is one
SendInd and then one ReceiveInd. With eight, groups of eight messages go out by
SendStriped, one chunk of known position to each process, and come back by
ReceiveStriped. The two directions are timed apart, in the calls alone.

After each test, outside the timed part, every byte that came back is compared
with what was sent, which differs from place to place and from test to test; of
direct messages the device's count and the bytes received are. A byte that
differs ends the run with exit code 1 and no report. The memcpy beside it copies
the same messages of the same payload in the same test, on one core.

With --checksums each test moves its payload a second time, with the CRC32C of
both ends compared before each commit. The last three columns have that rate, by
what part it is less, and its CPU time.

Rates are mean ± one standard deviation over the tests. CPU time is of the whole
process, the simulated device included, over both directions. t0, r∞ and n½ are
Hockney's line through the points; start-up costs less than 5 % from n95. The
paper's figures were measured on hardware.`

func newThroughput(c *cli.Flags) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "throughput",
		Short: "The paper's throughput test: 100 MB, messages up to 20 MB",
		Long:  throughputLong,
		Example: `  nfbench throughput
  nfbench throughput --tests 150 --plot throughput.svg
  nfbench throughput --targets 1,2,4,8 --sizes 64KiB,1MiB --output json`,
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
				r, err := Measure(ctx, dev, plan, cmd.ErrOrStderr())
				if err == nil && o.plot != "" {
					err = r.Plot().Save(o.plot)
				}
				return r, err
			})
		},
	}
	c.AddNode(cmd)
	f := cmd.Flags()
	f.StringVar(&o.payload, "payload", "100MB", "bytes moved each way in each test")
	f.StringSliceVar(&o.sizes, "sizes",
		[]string{"4KiB", "16KiB", "64KiB", "256KiB", "1MB", "2MB", "4MB", "8MB", "14MB", "20MB"}, "message sizes")
	f.StringVar(&o.targets, "targets", "1,8", "numbers of device processes")
	f.IntVar(&o.tests, "tests", 15, "tests of each point (the paper: 150)")
	f.IntVar(&o.direct, "direct", 100000, "direct messages each way in each test")
	f.Var(plot.Output(&o.plot), "plot", "write the curves to this SVG file")
	f.BoolVar(&o.sums, "checksums", false, "move each payload with checksums, too")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: less payload, fewer sizes and tests")
	return cmd
}

func (o *options) shorten(given func(string) bool) {
	cli.Shorten(given, map[string]func(){
		"payload": func() { o.payload = "16MB" },
		"sizes":   func() { o.sizes = []string{"4KiB", "64KiB", "256KiB", "1MB", "4MB"} },
		"tests":   func() { o.tests = 3 },
		"direct":  func() { o.direct = 20_000 },
	})
}

// maxTargets bounds --targets.
const maxTargets = 64

func (o options) plan() (p Plan, err error) {
	if p.Payload, err = cli.ParseSize(o.payload); err != nil {
		return p, err
	}
	if p.Sizes, err = cli.ParseSizes(o.sizes); err != nil {
		return p, err
	}
	slices.Sort(p.Sizes)
	p.Sizes = slices.Compact(p.Sizes)
	if top := p.Sizes[len(p.Sizes)-1]; top > p.Payload {
		return p, cli.Usagef("--sizes: %s is more than the payload of %s", cli.SizeText(top), cli.SizeText(p.Payload))
	}
	for _, s := range strings.Split(o.targets, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > maxTargets {
			return p, cli.Usagef("--targets: %q is not a number from 1 to %d", s, maxTargets)
		}
		p.Targets = append(p.Targets, n)
	}
	slices.Sort(p.Targets)
	p.Targets = slices.Compact(p.Targets)
	p.Tests, p.Direct, p.Checksums = o.tests, o.direct, o.sums
	switch {
	case p.Tests < 1:
		return p, cli.Usagef("--tests %d is less than 1", p.Tests)
	case p.Direct < 1:
		return p, cli.Usagef("--direct %d is less than 1", p.Direct)
	}
	return p, nil
}

// Report is the JSON of the command.
type Report struct {
	cli.Header
	Payload int          `json:"payload"`
	Tests   int          `json:"tests"`
	Points  []Point      `json:"points"`
	Curves  []Curve      `json:"curves"`
	Direct  []DirectRate `json:"direct"`
	// PeakRatio is the best indirect rate over the direct rate, per direction.
	PeakRatio []PeakRatio `json:"peak_indirect_over_direct"`
	// Busy is why the figures are not to be trusted; empty if they are.
	Busy  string     `json:"busy"`
	Goals []cli.Goal `json:"goals"`
}

// Point is one size in one configuration. Statistics are over tests.
type Point struct {
	Direction string    `json:"direction"`
	Targets   int       `json:"targets"`
	Size      int       `json:"size"`
	GBs       stat.Stat `json:"gb_s"`
	GbitS     stat.Stat `json:"gbit_s"`
	// MemcpyGBs is the copy of the same messages in the same tests.
	MemcpyGBs stat.Stat `json:"memcpy_gb_s"`
	// OverMemcpy is the rate over memcpy's of the same test.
	OverMemcpy stat.Spread `json:"over_memcpy"`
	// SummedGBs is the rate with checksums in the same tests, and SumCost the part by which it is
	// less, test by test; absent if nobody asked.
	SummedGBs *stat.Stat   `json:"checksums_gb_s,omitempty"`
	SumCost   *stat.Spread `json:"checksums_cost,omitempty"`
	// SumCPUSPerGB is CPUSPerGB with checksums.
	SumCPUSPerGB float64 `json:"checksums_cpu_s_per_gb,omitempty"`
	// WallS is the mean time of a test in seconds.
	WallS float64 `json:"wall_s"`
	// CPUSPerGB is CPU seconds per GB moved, both directions together.
	CPUSPerGB float64 `json:"cpu_s_per_gb"`
	// VerifiedBytes went to the device, came back and were compared with what
	// was sent, after each test; Verified means that these are all that moved.
	VerifiedBytes int  `json:"verified_bytes"`
	Verified      bool `json:"verified"`
}

// Curve is one configuration over all sizes.
type Curve struct {
	Direction string        `json:"direction"`
	Targets   int           `json:"targets"`
	PeakGbitS float64       `json:"peak_gbit_s"`
	PeakSize  int           `json:"peak_size"`
	Hockney   *stat.Hockney `json:"hockney,omitempty"`
	// PaperGbitS was measured on hardware; zero where the paper has no figure.
	PaperGbitS float64 `json:"paper_hardware_gbit_s,omitempty"`
	PaperNote  string  `json:"paper_hardware_note,omitempty"`
}

// DirectRate is the rate of 56-byte messages, over tests.
type DirectRate struct {
	Direction string    `json:"direction"`
	MbitS     stat.Stat `json:"mbit_s"`
	// PaperMbitS was measured on hardware.
	PaperMbitS float64 `json:"paper_hardware_mbit_s"`
}

// PeakRatio compares the best transfer rate with the message rate.
type PeakRatio struct {
	Direction string  `json:"direction"`
	Ratio     float64 `json:"ratio"`
	Paper     float64 `json:"paper_hardware"`
}

// The paper's throughput figures.
const (
	paperDirectMbitS = 114.3
	paperPeakRatio   = 268
)

var paperCurves = map[string]struct {
	gbitS float64
	note  string
}{
	"h2d 1": {7.8, "flat from 2 MB"},
	"h2d 8": {20, "at 2 MB, rising again above 8 MB"},
	"d2h 1": {9, "above 8 MB"},
	"d2h 8": {22, "above 8 MB, fluctuating below"},
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
	fmt.Fprintf(w, "Payload %s each way, %d tests a point, %s (%s)\n",
		cli.SizeText(r.Payload), r.Tests, r.Verification(), r.Device.Label)
	t := texttable.Numbers("", "message", "Gb/s", "± sd", "GB/s", "memcpy GB/s", "x memcpy (min..max)", "wall", "CPU s/GB", "checksums GB/s", "cost (min..max)", "CPU s/GB")
	for _, p := range r.Points {
		rate, cost, cpu := "–", "–", "–"
		if p.SummedGBs != nil {
			rate = fmt.Sprintf("%.2f", p.SummedGBs.Mean)
			cost = fmt.Sprintf("%.0f %% (%.0f..%.0f)", 100*p.SumCost.Median, 100*p.SumCost.Min, 100*p.SumCost.Max)
			cpu = fmt.Sprintf("%.3f", p.SumCPUSPerGB)
		}
		t.Add(ConfigText(p.Direction, p.Targets), cli.SizeText(p.Size),
			fmt.Sprintf("%.2f", p.GbitS.Mean), fmt.Sprintf("%.2f", p.GbitS.SD), fmt.Sprintf("%.2f", p.GBs.Mean),
			fmt.Sprintf("%.2f", p.MemcpyGBs.Mean), stat.Times(p.OverMemcpy), units.Duration(p.WallS*1e9), fmt.Sprintf("%.3f", p.CPUSPerGB), rate, cost, cpu)
	}
	t.Write(w)
	fmt.Fprintln(w)
	r.curves(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("direct, 56 B", "Mb/s", "± sd", "paper (hardware) Mb/s")
	for _, d := range r.Direct {
		t.Add(d.Direction, fmt.Sprintf("%.1f", d.MbitS.Mean), fmt.Sprintf("%.1f", d.MbitS.SD), fmt.Sprintf("%.1f", d.PaperMbitS))
	}
	t.Write(w)
	fmt.Fprintln(w)
	t = texttable.Numbers("peak indirect : direct", "ratio", "paper (hardware)")
	for _, p := range r.PeakRatio {
		t.Add(p.Direction, fmt.Sprintf("%.0f", p.Ratio), fmt.Sprintf("up to %.0f", p.Paper))
	}
	t.Write(w)
	fmt.Fprintln(w)
	cli.WriteGoals(w, r.Goals)
}

// Verification returns how much of what moved was compared.
func (r *Report) Verification() string {
	bytes, all := 0, len(r.Points) > 0
	for _, p := range r.Points {
		bytes += p.VerifiedBytes
		all = all && p.Verified
	}
	if !all {
		return "NOT every byte verified"
	}
	return fmt.Sprintf("every byte verified after each test, %d bytes in all", bytes)
}

func (r *Report) curves(w io.Writer) {
	t := texttable.Numbers("", "peak Gb/s", "at", "t0", "r∞ GB/s", "n½", "n95", "paper (hardware) Gb/s", "")
	for _, c := range r.Curves {
		row := []string{ConfigText(c.Direction, c.Targets), fmt.Sprintf("%.2f", c.PeakGbitS),
			cli.SizeText(c.PeakSize), "–", "–", "–", "–", "–", c.PaperNote}
		if h := c.Hockney; h != nil {
			row[3], row[4] = units.Duration(h.T0), fmt.Sprintf("%.2f", h.RInf)
			row[5], row[6] = kib(h.NHalf), kib(h.N95)
		}
		if c.PaperGbitS > 0 {
			row[7] = fmt.Sprintf("%.1f", c.PaperGbitS)
		}
		t.Add(row...)
	}
	t.Write(w)
}

// ConfigText names a configuration.
func ConfigText(direction string, targets int) string {
	if targets == 1 {
		return direction + ", 1 target"
	}
	return fmt.Sprintf("%s, %d targets", direction, targets)
}

func kib(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/1024) }

// Add adds the command.
func Add(root *cobra.Command, c *cli.Flags) { root.AddCommand(newThroughput(c)) }
