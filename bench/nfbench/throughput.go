package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// throughputOptions are the flags of the command.
type throughputOptions struct {
	payload string
	sizes   []string
	targets string
	tests   int
	direct  int
	plot    string
	short   bool
}

// throughputPlan is what the flags ask for.
type throughputPlan struct {
	payload int
	sizes   []int
	targets []int
	tests   int
	direct  int
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

Rates are mean ± one standard deviation over the tests. CPU time is of the whole
process, the simulated device included, over both directions. t0, r∞ and n½ are
Hockney's line through the points; start-up costs less than 5 % from n95. The
paper's figures were measured on hardware.`

func newThroughput(c *common) *cobra.Command {
	var o throughputOptions
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
			return c.measure(cmd, func(ctx context.Context, dev *nfcomms.Device) (report, error) {
				r, err := throughput(ctx, dev, plan, cmd.ErrOrStderr())
				if err == nil && o.plot != "" {
					err = r.plot().save(o.plot)
				}
				return r, err
			})
		},
	}
	c.addNode(cmd)
	f := cmd.Flags()
	f.StringVar(&o.payload, "payload", "100MB", "bytes moved each way in each test")
	f.StringSliceVar(&o.sizes, "sizes",
		[]string{"4KiB", "16KiB", "64KiB", "256KiB", "1MB", "2MB", "4MB", "8MB", "14MB", "20MB"}, "message sizes")
	f.StringVar(&o.targets, "targets", "1,8", "numbers of device processes")
	f.IntVar(&o.tests, "tests", 15, "tests of each point (the paper: 150)")
	f.IntVar(&o.direct, "direct", 100000, "direct messages each way in each test")
	f.Var(output{&o.plot}, "plot", "write the curves to this SVG file")
	f.BoolVar(&o.short, "short", false, "a look in a few seconds: less payload, fewer sizes and tests")
	return cmd
}

func (o *throughputOptions) shorten(given func(string) bool) {
	shorten(given, map[string]func(){
		"payload": func() { o.payload = "16MB" },
		"sizes":   func() { o.sizes = []string{"4KiB", "64KiB", "256KiB", "1MB", "4MB"} },
		"tests":   func() { o.tests = 3 },
		"direct":  func() { o.direct = 20_000 },
	})
}

// maxTargets bounds --targets.
const maxTargets = 64

func (o throughputOptions) plan() (p throughputPlan, err error) {
	if p.payload, err = parseSize(o.payload); err != nil {
		return p, err
	}
	if p.sizes, err = parseSizes(o.sizes); err != nil {
		return p, err
	}
	slices.Sort(p.sizes)
	p.sizes = slices.Compact(p.sizes)
	if top := p.sizes[len(p.sizes)-1]; top > p.payload {
		return p, usagef("--sizes: %s is more than the payload of %s", sizeText(top), sizeText(p.payload))
	}
	for _, s := range strings.Split(o.targets, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 || n > maxTargets {
			return p, usagef("--targets: %q is not a number from 1 to %d", s, maxTargets)
		}
		p.targets = append(p.targets, n)
	}
	slices.Sort(p.targets)
	p.targets = slices.Compact(p.targets)
	p.tests, p.direct = o.tests, o.direct
	switch {
	case p.tests < 1:
		return p, usagef("--tests %d is less than 1", p.tests)
	case p.direct < 1:
		return p, usagef("--direct %d is less than 1", p.direct)
	}
	return p, nil
}

// ThroughputReport is the JSON of the command.
type ThroughputReport struct {
	Header
	Payload int               `json:"payload"`
	Tests   int               `json:"tests"`
	Points  []ThroughputPoint `json:"points"`
	Curves  []ThroughputCurve `json:"curves"`
	Direct  []DirectRate      `json:"direct"`
	// PeakRatio is the best indirect rate over the direct rate, per direction.
	PeakRatio []PeakRatio `json:"peak_indirect_over_direct"`
	// Busy is why the figures are not to be trusted; empty if they are.
	Busy  string `json:"busy"`
	Goals []Goal `json:"goals"`
}

// ThroughputPoint is one size in one configuration. Statistics are over tests.
type ThroughputPoint struct {
	Direction string `json:"direction"`
	Targets   int    `json:"targets"`
	Size      int    `json:"size"`
	GBs       Stat   `json:"gb_s"`
	GbitS     Stat   `json:"gbit_s"`
	// MemcpyGBs is the copy of the same messages in the same tests.
	MemcpyGBs Stat `json:"memcpy_gb_s"`
	// OverMemcpy is the rate over memcpy's of the same test.
	OverMemcpy Spread `json:"over_memcpy"`
	// WallS is the mean time of a test in seconds.
	WallS float64 `json:"wall_s"`
	// CPUSPerGB is CPU seconds per GB moved, both directions together.
	CPUSPerGB float64 `json:"cpu_s_per_gb"`
	// VerifiedBytes went to the device, came back and were compared with what
	// was sent, after each test; Verified means that these are all that moved.
	VerifiedBytes int  `json:"verified_bytes"`
	Verified      bool `json:"verified"`
}

// ThroughputCurve is one configuration over all sizes.
type ThroughputCurve struct {
	Direction string   `json:"direction"`
	Targets   int      `json:"targets"`
	PeakGbitS float64  `json:"peak_gbit_s"`
	PeakSize  int      `json:"peak_size"`
	Hockney   *Hockney `json:"hockney,omitempty"`
	// PaperGbitS was measured on hardware; zero where the paper has no figure.
	PaperGbitS float64 `json:"paper_hardware_gbit_s,omitempty"`
	PaperNote  string  `json:"paper_hardware_note,omitempty"`
}

// DirectRate is the rate of 56-byte messages, over tests.
type DirectRate struct {
	Direction string `json:"direction"`
	MbitS     Stat   `json:"mbit_s"`
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

// table writes the report for people.
func (r *ThroughputReport) table(w io.Writer) {
	r.Header.table(w)
	fmt.Fprintf(w, "Payload %s each way, %d tests a point, %s (%s)\n",
		sizeText(r.Payload), r.Tests, r.verification(), r.Device.Label)
	t := texttable.Numbers("", "message", "Gb/s", "± sd", "GB/s", "memcpy GB/s", "x memcpy (min..max)", "wall", "CPU s/GB")
	for _, p := range r.Points {
		t.Add(configText(p.Direction, p.Targets), sizeText(p.Size),
			fmt.Sprintf("%.2f", p.GbitS.Mean), fmt.Sprintf("%.2f", p.GbitS.SD), fmt.Sprintf("%.2f", p.GBs.Mean),
			fmt.Sprintf("%.2f", p.MemcpyGBs.Mean), times(p.OverMemcpy), units.Duration(p.WallS*1e9), fmt.Sprintf("%.3f", p.CPUSPerGB))
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
	writeGoals(w, r.Goals)
}

// verification returns how much of what moved was compared.
func (r *ThroughputReport) verification() string {
	bytes, all := 0, len(r.Points) > 0
	for _, p := range r.Points {
		bytes += p.VerifiedBytes
		all = all && p.Verified
	}
	if !all {
		return "NOT every byte verified"
	}
	return fmt.Sprintf("every byte verified after each test, %d in all", bytes)
}

func (r *ThroughputReport) curves(w io.Writer) {
	t := texttable.Numbers("", "peak Gb/s", "at", "t0", "r∞ GB/s", "n½", "n95", "paper (hardware) Gb/s", "")
	for _, c := range r.Curves {
		row := []string{configText(c.Direction, c.Targets), fmt.Sprintf("%.2f", c.PeakGbitS),
			sizeText(c.PeakSize), "–", "–", "–", "–", "–", c.PaperNote}
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

// configText names a configuration.
func configText(direction string, targets int) string {
	if targets == 1 {
		return direction + ", 1 target"
	}
	return fmt.Sprintf("%s, %d targets", direction, targets)
}

func kib(bytes float64) string { return fmt.Sprintf("%.1f KiB", bytes/1024) }

// addThroughput adds the command.
func addThroughput(root *cobra.Command, c *common) { root.AddCommand(newThroughput(c)) }
