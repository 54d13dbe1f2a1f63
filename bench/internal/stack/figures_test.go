package stack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// fixedPath is a path whose tests took these seconds a chunk, the same each way but for a factor.
func fixedPath(factor [2]float64) *stackPath {
	p := &stackPath{mode: Sync, memory: memoryHeap, points: map[int]*stackTimes{}}
	for size, took := range map[int]struct{ wall, cpu, memcpy float64 }{
		stackCall: {1e-6, 2e-6, 1e-9}, 4000: {4e-6, 5e-6, 1e-6}, 1_000_000: {100e-6, 300e-6, 99e-6},
	} {
		t := &stackTimes{memcpy: []float64{took.memcpy, took.memcpy, 9}}
		for d := range compare.Directions {
			t.wall[d] = []float64{1, took.wall * factor[d], took.wall * factor[d]}
			t.cpu[d] = []float64{took.cpu * factor[d], 0, took.cpu * factor[d]}
		}
		p.points[size] = t
	}
	return p
}

// TestCurve: each column of a curve follows from the medians of its own measurement.
func TestCurve(t *testing.T) {
	p := fixedPath([2]float64{1, 2})
	c := p.curve([]int{4000, 1_000_000}, 0, "h2d")
	require.Equal(t, []any{stackGo, Sync, memoryHeap, "h2d"}, []any{c.Path, c.Mode, c.Memory, c.Direction})
	require.InDelta(t, 1000, c.CallNS, 1e-6)
	for i, want := range []Point{{4000, 1, 1.25, 2, 0.25}, {1_000_000, 10, 0.3, 10, 0.01}} {
		got := c.Points[i]
		require.Equal(t, want.Size, got.Size)
		require.InDeltaSlice(t, []float64{want.GBs, want.CPUSPerGB, want.TheoryGBs, want.Software},
			[]float64{got.GBs, got.CPUSPerGB, got.TheoryGBs, got.Software}, 1e-9)
	}
	require.InDelta(t, 996/0.096, c.Hockney.RInf*1e3, 1)
	back := p.curve([]int{4000}, 1, "d2h")
	require.InDelta(t, 0.5, back.Points[0].GBs, 1e-9)
	require.InDelta(t, 2.5, back.Points[0].CPUSPerGB, 1e-9)
	require.Nil(t, back.Hockney)

	r := &Report{Curves: []Curve{c}}
	theory := r.Plot().Series[1]
	require.True(t, theory.Dashed)
	require.InDeltaSlice(t, []float64{2, 10}, theory.Y, 1e-9)
	require.InDelta(t, 1000, r.Near(Sync, 4000), 1e-6)
	require.InDelta(t, 1e3*c.Hockney.Rate(8000), r.Near(Sync, 8000), 1e-6)
}

// TestBesideCPU: processor time of C and of Go stand in columns of their own.
func TestBesideCPU(t *testing.T) {
	c := fixedPath([2]float64{2, 3})
	c.native = &stackNative{}
	rig := &stackRig{plan: Plan{Sizes: []int{4000}}, paths: []*stackPath{fixedPath([2]float64{1, 1}), c}}
	for _, p := range rig.paths {
		for d := range p.points[4000].cpu {
			p.points[4000].cpu[d][1] = 8
		}
	}
	r := &Report{Beside: rig.besideTable()}
	require.InDeltaSlice(t, []float64{4000, 8000, 5000, 10000}, []float64{r.Beside[0].GoNS, r.Beside[0].CNS, r.Beside[0].GoCPUNS, r.Beside[0].CCPUNS}, 1e-6)
	require.InDelta(t, 15000, r.Beside[1].CCPUNS, 1e-6)
	var b strings.Builder
	r.tableOfBeside(&b)
	require.Contains(t, b.String(), "4 kB   synchronous        h2d  4 µs   8 µs    2.00     5 µs    10 µs\n")
}

// TestGainTable: a gain is the time of one at a time over that of several, of the fastest tests.
func TestGainTable(t *testing.T) {
	at := func(seconds float64) *stackPath {
		p := &stackPath{points: map[int]*stackTimes{4000: {}}}
		for d := range compare.Directions {
			p.points[4000].wall[d] = []float64{9, seconds * float64(d+1)}
		}
		return p
	}
	rig := &stackRig{plan: Plan{Sizes: []int{4000}}, gains: []*stackGainTests{{2, at(4e-6), at(2e-6), at(1e-6)}}}
	list := rig.gainTable()
	require.Equal(t, []string{"h2d", "d2h"}, []string{list[0].Direction, list[1].Direction})
	require.InDelta(t, 1, list[0].SyncGBs, 1e-9)
	require.InDelta(t, 0.5, list[1].SyncGBs, 1e-9)
	require.InDeltaSlice(t, []float64{2, 2, 4}, []float64{float64(list[0].Depths[0].Depth), list[0].Depths[0].Futures, list[0].Depths[0].Together}, 1e-9)
}

// TestBudgets: splits of the same memory stand together, the largest chunk first; the round trip
// chooses the largest beside which n½ fits, and its findings turn at nine tenths of the best.
func TestBudgets(t *testing.T) {
	at := func(small, large float64) *stackPath {
		p := &stackPath{points: map[int]*stackTimes{4000: {}, 16000: {}}}
		for d := range compare.Directions {
			p.points[4000].wall[d], p.points[16000].wall[d] = []float64{9, small}, []float64{9, large}
		}
		return p
	}
	rig := &stackRig{plan: Plan{Sizes: []int{4000, 16000}}, gains: []*stackGainTests{
		{2, at(4e-6, 16e-6), at(9, 9), at(9, 9)}, {4, at(9, 9), at(2e-6, 9), at(1e-6, 9)},
	}}
	budgets := func(half float64) *Report {
		return &Report{Budgets: rig.budgetTable(func(string) *Curve { return &Curve{Hockney: &stat.Hockney{NHalf: half}} })}
	}
	r := budgets(12000)
	require.Equal(t, Budget{Bytes: 16000, Direction: "h2d", Splits: []Split{{16000, 1, 1}, {4000, 4, 4}}, Tuned: 1}, r.Budgets[0])
	require.Len(t, r.Budgets, 2)
	require.True(t, r.tunedFindings()[0].Same)
	var b strings.Builder
	r.tableOfBudgets(&b)
	require.Contains(t, b.String(), "16 kB         h2d  16 kB       1  1.00     25 %\n")
	require.Contains(t, b.String(), "16 kB         h2d   4 kB       4  4.00    100 %  by round trip\n")
	require.Equal(t, 1, budgets(12001).Budgets[0].Tuned, "no split has room for n½: the smallest chunk")
	r = budgets(0)
	require.Equal(t, 0, r.Budgets[0].Tuned)
	require.False(t, r.tunedFindings()[0].Same)
	r.Budgets[0].Splits[0].GBs, r.Budgets[1].Splits[0].GBs = 3.61, 3.61
	require.True(t, r.tunedFindings()[0].Same)
	r.Budgets[0].Splits[0].GBs = 3.59
	require.Equal(t, "within 10 % of the best split in 1 of 2 budgets", r.tunedFindings()[0].Why)
	require.Nil(t, (&Report{Budgets: []Budget{{Tuned: -1}}}).tunedFindings())
}

// TestCut: entries of a page each, six to a list, packets of 256 bytes.
func TestCut(t *testing.T) {
	require.Equal(t, []Cut{{1, 1, 1}, {1, 1, 16}, {2, 1, 17}, {7, 2, 112}, {256, 43, 4096}},
		[]Cut{cutOf(56), cutOf(4096), cutOf(4097), cutOf(7 * 4096), cutOf(1 << 20)})
	s := stackWaterfall(1<<20, trace.Waterfall{})
	require.Equal(t, cutOf(1<<20), s.Modelled)
	var b strings.Builder
	r := &Report{Waterfalls: []Waterfall{s, {Size: 5, Direction: "h2d"}}, Curves: []Curve{{
		Path: stackGo, Mode: Sync, Memory: memoryHeap, Direction: "h2d", Points: []Point{{Size: 4, TheoryGBs: 9}, {Size: 1 << 20, TheoryGBs: 2}},
	}}}
	r.addTheory()
	require.Equal(t, []int64{1 << 19, 0}, []int64{r.Waterfalls[0].TheoryNS, r.Waterfalls[1].TheoryNS})
	r.tableOfLayers(&b)
	require.Regexp(t, `1 MiB +h2d +524 µs .* 256 +43 +4096`, b.String())
}

// TestBufferFindings: each direction turns where the large buffer is twice as fast as the small one.
func TestBufferFindings(t *testing.T) {
	rates := func(small, large float64) *Report {
		r := &Report{}
		for _, direction := range compare.Directions {
			r.Curves = append(r.Curves, Curve{Path: stackGo, Mode: Sync, Memory: memoryHeap, Direction: direction,
				Points: []Point{{Size: 4 << 10, GBs: small}, {Size: 64 << 10, GBs: large}}})
			small *= 2
		}
		return r
	}
	list := rates(1, 3.99).bufferFindings()
	require.Equal(t, []bool{true, false}, []bool{list[0].Same, list[1].Same})
	require.Equal(t, "1000 to 3990 MB/s, 4.0 times, chunks of 4 and 64 KiB", list[0].Why)
	require.True(t, rates(1, 4).bufferFindings()[1].Same)
	require.Empty(t, rates(0, 4).bufferFindings())
}

// TestSlides: the table is that of the slides.
func TestSlides(t *testing.T) {
	require.Equal(t, []Slide{{4, 25, 42, 46}, {8, 50, 70, 72}, {16, 65, 0, 0}, {32, 85, 0, 0}, {64, 130, 0, 0}, {128, 190, 0, 0}}, Slides)
}

// shapes is a report whose findings are decided by these figures.
func shapes(gain, halfKiB, share float64, wrong int) *Report {
	r := &Report{Loose: []Loose{{Chunks: 7, Came: 7, Wrong: wrong}, {Chunks: 3, Came: 3}}}
	for _, direction := range compare.Directions {
		r.Curves = append(r.Curves, Curve{
			Path: stackGo, Mode: Sync, Memory: memoryHeap, Direction: direction, Hockney: &stat.Hockney{NHalf: halfKiB * 1024},
			Points: []Point{{Size: 4096, Software: 0.9}, {Size: 256 << 10, Software: share}, {Size: 1 << 20, Software: 0.04}},
		})
		g := Gain{Size: 4096, Direction: direction}
		for _, depth := range gainDepths {
			g.Depths = append(g.Depths, GainStep{depth, 0.5, gain})
		}
		r.Gains = append(r.Gains, g)
	}
	r.find()
	return r
}

// TestFindings: each result turns at its own bound.
func TestFindings(t *testing.T) {
	same := func(r *Report) (all []bool) {
		for _, f := range r.Findings {
			all = append(all, f.Same)
		}
		return all
	}
	each := func(gain, half, software, loose bool) []bool {
		return []bool{gain, half, software, gain, half, software, loose}
	}
	require.Equal(t, each(true, true, true, true), same(shapes(1.26, 128, 0.049, 1)))
	require.Equal(t, each(false, true, true, true), same(shapes(1.24, 512, 0.049, 1)))
	require.Equal(t, each(true, false, true, true), same(shapes(1.26, 127, 0.049, 1)))
	require.Equal(t, each(true, false, true, true), same(shapes(1.26, 513, 0.049, 1)))
	require.Equal(t, each(true, true, false, true), same(shapes(1.26, 256, 0.051, 1)))
	require.Equal(t, each(true, true, true, false), same(shapes(1.26, 256, 0.04, 0)))
	r := shapes(1.26, 256, 0.04, 2)
	require.Equal(t, "2 begun together: 1.26 times over all sizes, 1.26 with chunks of 4 KiB", r.Findings[0].Why)
	require.Equal(t, "256.0 KiB; less is better", r.Findings[1].Why)
	require.Equal(t, "from 256 KiB", r.Findings[2].Why)
	require.Equal(t, "10 of 10 chunks came, 2 of them wrong by their checksums; all were right in 1 of 2 runs", r.Findings[6].Why)
	r.Loose[0].Came, r.Loose[1].Came = 6, 4 // the amount of each run counts
	require.False(t, r.LooseFindings()[0].Same)
	require.Equal(t, "from 1 MiB", shapes(1, 1, 0.06, 0).Findings[2].Why)
}

// TestTableColumns: what the table prints are the report's figures, each in its column.
func TestTableColumns(t *testing.T) {
	r := &Report{Curves: []Curve{
		{Path: stackGo, Mode: Sync, Memory: memoryHeap, Direction: "h2d", CallNS: 900, Points: []Point{{Size: 4 << 10, GBs: 1.5, CPUSPerGB: 0.75, TheoryGBs: 3, Software: 0.25}}},
		{Path: stackGo, Mode: Overlapped, Memory: memoryHeap, Direction: "h2d", Points: []Point{{Size: 4 << 10, GBs: 2.5}}},
	}, Slides: Slides[:2]}
	var b strings.Builder
	r.Table(&b)
	require.Contains(t, b.String(), "a call takes 900 ns\n")
	require.Contains(t, b.String(), "4 KiB  1.50         3.00       50 %     0.750    25.0 %\n")
	require.Contains(t, b.String(), "4 KiB           25            42                    46       1500        2500\n")
	require.Contains(t, b.String(), "8 KiB           50            70                    72          –           –\n")
	require.NotContains(t, b.String(), cli.ReasonBusy)
	require.NotContains(t, b.String(), "WITHOUT FLOW CONTROL")
	r.Loose = []Loose{{Path: stackC, Mode: Overlapped, Size: 4 << 10, Chunks: 64, Came: 63, Wrong: 3, GBs: 1.25}}
	r.Table(&b)
	require.Contains(t, b.String(), "4 KiB     C  overlapped  1.25      64    63                          3\n")
}
