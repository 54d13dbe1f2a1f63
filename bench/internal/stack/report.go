package stack

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
)

// Report is the output of nfbench stack.
type Report struct {
	cli.Header
	Payload int `json:"payload"` // bytes each way in each test, at least
	Depth   int `json:"depth"`
	Tests   int `json:"tests"`
	// Curves are the leaves of the tree with flow control.
	Curves []Curve `json:"curves"`
	// Beside are the same chunks by calls of C and of Go.
	Beside []Beside `json:"c_beside_go"`
	// Gains are what depth is worth, up to 1 MiB.
	Gains []Gain `json:"gains"`
	// Budgets are the same tests by the memory that was in flight.
	Budgets []Budget `json:"budgets"`
	// Waterfalls say where the time goes, and ClockErrorNS how far pick-up and completion may be off.
	Waterfalls   []Waterfall `json:"waterfalls"`
	ClockErrorNS float64     `json:"clock_error_ns"`
	// Tracing is what it costs to know that.
	Tracing Tracing `json:"tracing"`
	// Loose are the leaves without, by a device program that exists here alone.
	Loose []Loose `json:"without_flow_control"`
	// Absent is what the tree has and this run does not.
	Absent []string `json:"absent"`
	// TouchNS is what the first write to a page costs; 0 where it was not measured.
	TouchNS  float64    `json:"first_touch_ns_per_page"`
	Slides   []Slide    `json:"slides"`
	Findings []Finding  `json:"findings"`
	Busy     string     `json:"busy,omitempty"`
	Goals    []cli.Goal `json:"goals"`
}

// Curve is one leaf at all sizes.
type Curve struct {
	Path      string        `json:"path"` // whose calls: Go, or C
	Mode      string        `json:"mode"`
	Memory    string        `json:"memory"`
	Direction string        `json:"direction"`
	CallNS    float64       `json:"call_ns"` // of 8 bytes: what software costs
	Points    []Point       `json:"points"`
	Hockney   *stat.Hockney `json:"hockney"`
}

// Point is one leaf at one size.
type Point struct {
	Size      int     `json:"size"`
	GBs       float64 `json:"gb_s"`         // median, by wall time
	CPUSPerGB float64 `json:"cpu_s_per_gb"` // of the process, a simulated device included
	TheoryGBs float64 `json:"theory_gb_s"`
	Software  float64 `json:"software_share"` // of the time, 0 to 1
}

// Loose is what came of no flow control.
type Loose struct {
	Path   string  `json:"path"`
	Mode   string  `json:"mode"`
	Size   int     `json:"size"`
	Chunks int     `json:"chunks"`
	Came   int     `json:"came_chunks"`
	Wrong  int     `json:"wrong_chunks"` // found by their checksums
	GBs    float64 `json:"gb_s"`
}

// Slide is a row of the slides' table, in MB/s; 0: the slides have none.
type Slide struct {
	KiB     int     `json:"kib"`
	Sync    float64 `json:"sync_mb_s"`
	Channel float64 `json:"byte_channel_mb_s"`
	Async   float64 `json:"asynchronous_channel_mb_s"`
}

// Finding is a shape that the slides state.
type Finding struct {
	What string `json:"what"`
	Same bool   `json:"same"` // here, too
	Why  string `json:"why"`
}

func found(what string, same bool, format string, args ...any) Finding {
	return Finding{what, same, fmt.Sprintf(format, args...)}
}

// Slides is the slides' table, Java with flow control, on an FPGA board.
var Slides = []Slide{{4, 25, 42, 46}, {8, 50, 70, 72}, {16, 65, 0, 0}, {32, 85, 0, 0}, {64, 130, 0, 0}, {128, 190, 0, 0}}

// stackShare is the share of software below which it does not count.
const stackShare = 0.05

// stackGains is what is more than two equal things differ by on a busy machine.
const stackGains = 1.25

// conclude turns tests into the report, and makes the tests without flow control.
func (r *Report) conclude(ctx context.Context, rig *stackRig, touch float64) error {
	r.TouchNS, r.Slides = touch*1e9, Slides
	r.addLoose(ctx, rig)
	if err := ctx.Err(); err != nil {
		return err
	}
	r.Absent = []string{}
	if rig.native.missing != "" {
		r.Absent = append(r.Absent, "the C path: "+rig.native.missing)
	}
	if rig.overrun.missing != "" {
		r.Absent = append(r.Absent, "what has no flow control: "+rig.overrun.missing)
	}
	for _, p := range rig.paths {
		if p.native != nil && p.native.missing != "" {
			continue
		}
		for d, direction := range compare.Directions {
			r.Curves = append(r.Curves, p.curve(rig.plan.Sizes, d, direction))
		}
	}
	r.addTheory()
	r.Gains = rig.gainTable()
	r.Budgets = rig.budgetTable(func(direction string) *Curve { return r.At(Sync, direction) })
	r.Beside = rig.besideTable()
	r.find()
	return nil
}

// curve is one direction of a path.
func (p *stackPath) curve(sizes []int, d int, direction string) Curve {
	call := stat.Summarise(p.points[stackCall].wall[d]).P50
	c := Curve{Path: p.language(), Mode: p.mode, Memory: p.memory, Direction: direction, CallNS: call * 1e9}
	var size, ns []float64
	for _, n := range sizes {
		t := p.points[n]
		wall, copied := stat.Summarise(t.wall[d]).P50, stat.Summarise(t.memcpy).P50
		c.Points = append(c.Points, Point{
			Size: n, GBs: float64(n) / wall / 1e9, CPUSPerGB: stat.Summarise(t.cpu[d]).P50 / float64(n) * 1e9,
			TheoryGBs: float64(n) / (call + copied) / 1e9, Software: min(1, call/wall),
		})
		size, ns = append(size, float64(n)), append(ns, wall*1e9)
	}
	c.Hockney = stat.FitHockney(size, ns)
	return c
}

// At finds the curve of Go and of the heap.
func (r *Report) At(mode, direction string) *Curve {
	for i := range r.Curves {
		if c := &r.Curves[i]; c.Path == stackGo && c.Mode == mode && c.Direction == direction && c.Memory == memoryHeap {
			return c
		}
	}
	return nil
}

// find holds the shapes of the slides against these.
func (r *Report) find() {
	for _, direction := range compare.Directions {
		one := r.At(Sync, direction)
		if best := r.bestGain(direction); best.size > 0 {
			r.Findings = append(r.Findings, found(direction+": overlapped beats synchronous (8 KiB: 70 over 50 MB/s)", best.mean > stackGains,
				"%s: %.2f times over all sizes, %.2f with chunks of %s", best.what, best.mean, best.most, cli.SizeText(best.size)))
		}
		if h := one.Hockney; h != nil {
			half := h.NHalf / 1024
			r.Findings = append(r.Findings, found(direction+": half of the rate takes chunks of some 256 KiB (128 to 512)",
				half >= 128 && half <= 512, "%.1f KiB; less is better", half))
		}
		below := 0
		for i := len(one.Points) - 1; i >= 0 && one.Points[i].Software < stackShare; i-- {
			below = one.Points[i].Size
		}
		text := "nowhere here"
		if below > 0 {
			text = "from " + cli.SizeText(below)
		}
		r.Findings = append(r.Findings, found(direction+": software takes less than 5 % from 256 KiB on", below > 0 && below <= 256<<10, "%s", text))
	}
	r.Findings = slices.Concat(r.Findings, r.bufferFindings(), r.tunedFindings(), r.BesideFindings(), r.LooseFindings())
}

// Chunks that fit the device's buffers in the slides' two designs: of 4 KiB, and of 72 KiB.
const (
	bufferSmall = 4 << 10
	bufferLarge = 64 << 10
)

// bufferFindings compares device buffers by the largest chunk that fits each: a loopback process
// has a buffer as large as the chunk.
func (r *Report) bufferFindings() (list []Finding) {
	for _, direction := range compare.Directions {
		small, large := r.near(Sync, direction, bufferSmall), r.near(Sync, direction, bufferLarge)
		if small > 0 && large > 0 {
			list = append(list, found(direction+": a device buffer of 72 KiB for one of 4 KiB at least doubles the rate (25 to 130 MB/s)",
				large >= 2*small, "%s to %s MB/s, %.1f times, chunks of 4 and 64 KiB", mbText(small), mbText(large), large/small))
		}
	}
	return list
}

// LooseFindings says what came of no flow control, where that was measured.
func (r *Report) LooseFindings() []Finding {
	if len(r.Loose) == 0 {
		return nil
	}
	wrong, came, chunks, right, amount := 0, 0, 0, 0, true
	for _, l := range r.Loose {
		wrong, came, chunks = wrong+l.Wrong, came+l.Came, chunks+l.Chunks
		amount = amount && l.Came == l.Chunks
		if l.Wrong == 0 {
			right++
		}
	}
	return []Finding{found("without flow control the amount is right and the data are wrong", amount && wrong > 0,
		"%d of %d chunks came, %d of them wrong by their checksums; all were right in %d of %d runs", came, chunks, wrong, right, len(r.Loose))}
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	r.Header.Table(w)
	fmt.Fprintf(w, "%s each way in a test, %d tests, every byte compared; %d chunks in a group\n", cli.SizeText(r.Payload), r.Tests, r.Depth)
	if r.Busy != "" {
		fmt.Fprintf(w, "not to be trusted: %s\n", r.Busy)
	}
	for _, c := range r.Curves {
		fmt.Fprintf(w, "\nwith flow control, %s, %s, %s, memory: %s; a call takes %s\n", c.Path, c.Mode, c.Direction, c.Memory, units.Duration(c.CallNS))
		t := texttable.Numbers("chunk", "GB/s", "theory GB/s", "of theory", "CPU s/GB", "software")
		for _, p := range c.Points {
			t.Add(cli.SizeText(p.Size), fmt.Sprintf("%.2f", p.GBs), fmt.Sprintf("%.2f", p.TheoryGBs), fmt.Sprintf("%.0f %%", 100*p.GBs/p.TheoryGBs),
				fmt.Sprintf("%.3f", p.CPUSPerGB), fmt.Sprintf("%.1f %%", 100*p.Software))
		}
		t.Write(w)
		if h := c.Hockney; h != nil {
			fmt.Fprintf(w, "t0 %s, r∞ %.2f GB/s, n½ %.1f KiB\n", units.Duration(h.T0), h.RInf, h.NHalf/1024)
		}
	}
	r.tableOfBeside(w)
	r.tableOfGains(w)
	r.tableOfBudgets(w)
	r.tableOfLayers(w)
	r.lineOfTracing(w)
	r.tableOfLoose(w)
	r.tableOfSlides(w)
}

// tableOfSlides writes the slides' figures beside ours, and what follows.
func (r *Report) tableOfSlides(w io.Writer) {
	fmt.Fprintln(w, "\nAnother machine: the slides, Java with flow control on an FPGA board, MB/s; sizes that were not measured here are on Hockney's line")
	t := texttable.Numbers("chunk", "synchronous", "byte channel", "asynchronous channel", "here, h2d", "overlapped")
	for _, s := range r.Slides {
		t.Add(cli.SizeText(s.KiB<<10), mbText(s.Sync), mbText(s.Channel), mbText(s.Async),
			mbText(r.Near(Sync, s.KiB<<10)), mbText(r.Near(Overlapped, s.KiB<<10)))
	}
	t.Write(w)
	fmt.Fprintln(w, "C++ there: overlapped 980 and synchronous 430 MB/s of CPU time, synchronous 100 and with its own engine 80 MB/s of wall time")
	if r.TouchNS > 0 {
		fmt.Fprintf(w, "the first write to a page costs %s, which no figure above has in it\n", units.Duration(r.TouchNS))
	}
	for _, a := range r.Absent {
		fmt.Fprintf(w, "not measured: %s\n", a)
	}
	fmt.Fprintln(w)
	for _, f := range r.Findings {
		result := map[bool]string{true: "here, too", false: "not here"}[f.Same]
		fmt.Fprintf(w, "%s: %s; %s\n", f.What, result, f.Why)
	}
	fmt.Fprintln(w)
	cli.WriteGoals(w, r.Goals)
}

// Near is the rate of h2d at a size in MB/s, on Hockney's line where it was not measured; 0
// without a line.
func (r *Report) Near(mode string, size int) float64 {
	return r.near(mode, compare.Directions[0], size)
}

func (r *Report) near(mode, direction string, size int) float64 {
	c := r.At(mode, direction)
	for _, p := range c.Points {
		if p.Size == size {
			return p.GBs * 1e3
		}
	}
	if c.Hockney == nil {
		return 0
	}
	return c.Hockney.Rate(float64(size)) * 1e3
}

func mbText(v float64) string {
	if v == 0 || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf("%.0f", v)
}

// Plot draws the curves of the heap, and the theory beside each.
func (r *Report) Plot() *plot.Plot {
	p := &plot.Plot{
		Title:  fmt.Sprintf("Transfers by chunk size, %s", r.Device.Label),
		Note:   fmt.Sprintf("%s on %s. Medians of wall time; dashed: a call, then memcpy", r.Device.Address, r.Machine.CPU),
		XLabel: "chunk", YLabel: "GB/s",
	}
	for _, c := range r.Curves {
		if c.Memory != memoryHeap {
			continue
		}
		colour := plot.Palette[len(p.Series)/2%len(plot.Palette)]
		s, theory := plot.Series{Name: c.Direction + ", " + c.Mode, Colour: colour}, plot.Series{Colour: colour, Dashed: true}
		if c.Path != stackGo {
			s.Name += ", " + c.Path
		}
		for _, pt := range c.Points {
			s.X, s.Y = append(s.X, float64(pt.Size)), append(s.Y, pt.GBs)
			theory.X, theory.Y = append(theory.X, float64(pt.Size)), append(theory.Y, pt.TheoryGBs)
		}
		p.XTicks = s.X
		p.Series = append(p.Series, s, theory)
	}
	return p
}
