package stack

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

var tinyStack = []string{"stack", "--payload", "64KiB", "--sizes", "4KiB,16KiB,8000", "--depth", "2", "--tests", "1"}

// TestStackJSON: with the C path, which is really built and run.
func TestStackJSON(t *testing.T) {
	svg := filepath.Join(t.TempDir(), "stack.svg")
	var r Report
	clitest.Decode(t, clitest.MustRun(t, append(tinyStack, "--output", "json", "--plot", svg, "--waterfall", svg+".layers")...), &r)
	clitest.RequireHeader(t, "stack", r.Header)
	require.Equal(t, []int{64 << 10, 2, 1}, []int{r.Payload, r.Depth, r.Tests})
	require.Empty(t, r.Absent)
	require.Contains(t, []int{12, 14}, len(r.Curves), "three modes of Go and two of C on the heap, regions and, where there is mmap, mapped memory")
	for i, c := range r.Curves {
		require.Equal(t, i >= len(r.Curves)-4, c.Path == stackC)
		require.Positive(t, c.CallNS)
		require.Len(t, c.Points, 3)
		for i, p := range c.Points {
			require.Equal(t, []int{4096, 8000, 16384}[i], p.Size)
			require.Positive(t, p.GBs)
			require.Positive(t, p.CPUSPerGB)
			require.Positive(t, p.TheoryGBs)
			require.Positive(t, p.Software)
			require.LessOrEqual(t, p.Software, 1.0)
		}
	}
	require.Len(t, r.Gains, 6)
	for i, g := range r.Gains {
		require.Equal(t, compare.Directions[i%2], g.Direction)
		require.Positive(t, g.SyncGBs)
		require.Len(t, g.Depths, len(gainDepths))
		for _, s := range g.Depths {
			require.Positive(t, s.Futures)
			require.Positive(t, s.Together)
		}
	}
	require.Len(t, r.Waterfalls, 6)
	for i, f := range r.Waterfalls {
		require.Equal(t, compare.Directions[i%2], f.Direction)
		require.Positive(t, f.Calls)
		mean := int64(0)
		for _, l := range f.Layers {
			mean += l.Mean
		}
		require.InDelta(t, f.Whole.Mean, mean, float64(len(f.Layers)))
	}
	require.Equal(t, []int{64, 100}, []int{r.Tracing.Every, r.Tracing.Batch})
	require.GreaterOrEqual(t, r.Tracing.Batches, 2*tracingSlice, "each device was traced once")
	require.Len(t, r.Tracing.Rows, 2)
	for i, row := range r.Tracing.Rows {
		require.Equal(t, compare.Directions[i], row.Direction)
		require.Positive(t, row.UntracedNS)
		require.Positive(t, row.TracedNS)
		require.Positive(t, row.Ratio)
	}
	require.Len(t, r.Goals, 2)
	require.Len(t, r.Beside, 2*2*3)
	for _, b := range r.Beside {
		require.Positive(t, b.GoNS)
		require.Positive(t, b.CNS)
		require.Positive(t, b.GoCPUNS)
		require.Positive(t, b.CCPUNS)
	}
	require.Len(t, r.Loose, 2*6)
	require.Len(t, r.Slides, 6)
	text, err := os.ReadFile(svg)
	require.NoError(t, err)
	layers, err := os.ReadFile(svg + ".layers")
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(layers, new(struct{})))
	for _, want := range []string{">wake-up<", ">4 KiB h2d<", "simulated device", "<title>submit "} {
		require.Contains(t, string(layers), want)
	}
	require.Len(t, layerColours, trace.Layers)
	for _, want := range []string{"h2d, synchronous<", "d2h, overlapped<", "d2h, overlapped, C<", "simulated device"} {
		require.Contains(t, string(text), want)
	}
}

// TestStackTable: without a compiler.
func TestStackTable(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	out := clitest.MustRun(t, tinyStack...)
	for _, want := range []string{
		"every byte compared", "with flow control, Go, overlapped, d2h, memory: heap", "memory: region", "theory GB/s", "begun together, d2h", "Gain of depth", "8 begun together", "Where the time of a chunk goes",
		"not measured: what has no flow control: build program: no C compiler", "Another machine: the slides", "980", "190", "not measured: the C path: not installed: there is no cc (Debian: gcc, libc6-dev)",
		"software takes less than 5 %", "\nTracing one call in 64, messages of 56 bytes", "T18 h2d 56 B, one call in 64 traced",
	} {
		require.Contains(t, out, want)
	}
}

// TestStackGain: depth gains where it does so over all sizes, and not where one size was lucky.
func TestStackGain(t *testing.T) {
	gain := func(size int, futures, together float64) Gain {
		g := Gain{Size: size, Direction: compare.Directions[0]}
		for _, depth := range gainDepths {
			g.Depths = append(g.Depths, GainStep{depth, futures, together})
		}
		return g
	}
	r := &Report{Gains: []Gain{gain(4096, 0.2, 0.9), gain(65536, 0.3, 0.8), gain(1<<20, 0.8, 1.3)}}
	best := r.bestGain(compare.Directions[0])
	require.Less(t, best.mean, stackGains)
	require.Equal(t, 1<<20, best.size)
	require.Zero(t, r.bestGain(compare.Directions[1]))
	r.Gains = []Gain{gain(4096, 1.5, 8), gain(65536, 1, 3), gain(1<<20, 0.9, 0.9)}
	best = r.bestGain(compare.Directions[0])
	require.Equal(t, "2 begun together", best.what)
	require.InDelta(t, 2.78, best.mean, 0.01)
	require.Equal(t, []float64{8, 4096}, []float64{best.most, float64(best.size)})
}

// TestTracingRow: what two devices differ by does not count, only what each takes more when traced.
func TestTracingRow(t *testing.T) {
	fast, slow := [2][]float64{{100, 90, 5000}, {102, 102, 102}}, [2][]float64{{300}, {303, 303, 1}}
	row := tracingRow(compare.Directions[1], fast, slow)
	require.Equal(t, TracingRow{compare.Directions[1], 200, 202.5, row.Ratio}, row)
	require.InDelta(t, 1.015, row.Ratio, 0.0001)

	r := &Report{Tracing: Tracing{Every: 64, Batch: 100, Batches: 3, Rows: []TracingRow{{compare.Directions[0], 200, 206, 1.03}, row}}}
	text := func() string {
		var b strings.Builder
		r.lineOfTracing(&b)
		return b.String()
	}
	require.Contains(t, text(), "3 batches of 100: h2d 200 ns → 206 ns (+3.0 %), d2h 200 ns → 202 ns (+1.5 %)")
	goals := r.Tracing.goals()
	require.Equal(t, []string{"missed by 1.0 %", cli.ResultReached}, []string{goals[0].Result, goals[1].Result})
	r.Tracing.NotMeasured = cli.ReasonBusy
	require.Contains(t, text(), "100: not measured: machine busy")
	require.Equal(t, "not measured: machine busy", r.Tracing.goals()[0].Result)
	r.Tracing.Rows = nil
	require.Len(t, r.Tracing.goals(), 2)
}

func TestStackRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--depth", "1"}, {"--depth", "65"}, {"--tests", "0"}, {"--sizes", "4"}, {"--sizes", "2GiB"}, {"--payload", "much"},
	} {
		require.Equal(t, cli.ExitUsage, cli.Run(t.Context(), cli.Root(Add), append([]string{"stack"}, args...), os.Stdout, os.Stderr), args)
	}
}
