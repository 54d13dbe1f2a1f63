package papers

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/internal/model"
)

// TestPublishedFigures holds every formula to what its paper prints, to the last digit that is
// printed. These are the figures that are not equal.
func TestPublishedFigures(t *testing.T) {
	other := map[Agreement][]float64{}
	for _, f := range Catalogue() {
		if f.Agreement != Equal {
			other[f.Agreement] = append(other[f.Agreement], f.Published)
		}
	}
	require.Equal(t, map[Agreement][]float64{
		WithinRounding: {1666, 2023, .784, 2195, 2665, 2414, 2931, 2514, 3060},
		FittedTo:       {526, 48},
		Different:      {1129, 616, 42},
	}, other)
}

// TestAgreement: half of the last digit is equal, less than one is within the paper's rounding if its
// rounded inputs give that, and a fitted figure that is off is different.
func TestAgreement(t *testing.T) {
	f := Figure{Published: 100, Step: 1, Model: 100.5}
	require.Equal(t, Equal, f.agreement())
	f.Model = 100.51
	require.Equal(t, Different, f.agreement())
	f.Rounded, f.Rounding = 99.1, "of x"
	require.Equal(t, WithinRounding, f.agreement())
	f.Rounded = 98.9
	require.Equal(t, Different, f.agreement())
	f.Fitted = true
	require.Equal(t, Different, f.agreement())
	f.Model = 99.6
	require.Equal(t, FittedTo, f.agreement())
}

// The probability of 8,192 members is so near 1 that its distance is what the
// report prints.
func TestCoverageNearOne(t *testing.T) {
	draws := float64(networkCells/(8<<10)) * synapses
	require.InDelta(t, 2e-10, 1-Coverage(networkCells, 8<<10, draws), 5e-11)
	require.InEpsilon(t, 0.00132, Coverage(networkCells, 16<<10, draws/2), 0.02)
	require.Zero(t, Coverage(10, 20, 1000))
}

func simulate(t require.TestingT, c LinkConfig) LinkResult {
	r, err := SimulateLink(c)
	require.NoError(t, err)
	require.LessOrEqual(t, r.MaxDepth, c.Depth, "the far FIFO overflowed")
	return r
}

func paperLink(flow FlowControl, depth int) LinkConfig {
	return LinkConfig{
		Flow: flow, Depth: depth, Period: CreditPeriod, Flight: PaperFlight,
		ReadEvery: 1, Cycles: 400_000,
	}
}

// TestSimulationAgreesWithFormulas: each factor alone, within 1 %.
func TestSimulationAgreesWithFormulas(t *testing.T) {
	for _, depth := range []int{512, 1024, 2048, 4096} {
		r := simulate(t, paperLink(Classic, depth))
		require.InEpsilon(t, FlowEfficiency(depth, PaperFlight.Wait(CreditPeriod)), r.Efficiency, 0.01, "E3 at %d", depth)
	}
	framed, duplex := paperLink(Cumulative, 4096), paperLink(Cumulative, 4096)
	framed.Framed, duplex.Duplex = true, true
	require.InEpsilon(t, FrameEfficiency(PacketWords), simulate(t, framed).Efficiency, 0.01)
	require.InEpsilon(t, CreditEfficiency(CreditPeriod), simulate(t, duplex).Efficiency, 0.01)
}

// TestProductOfFactors: with everything on the link is a little faster than
// E1·E2·E3, because what packets and credits cost overlaps with the waiting.
func TestProductOfFactors(t *testing.T) {
	for _, depth := range []int{512, 1024, 2048, 4096} {
		c := paperLink(Classic, depth)
		c.Framed, c.Duplex = true, true
		got := simulate(t, c).Efficiency
		require.Greater(t, got, LinkEfficiency(depth)*0.99)
		require.Less(t, got, LinkEfficiency(depth)*1.04)
	}
}

// TestCumulativeCreditsNeedNoWait answers the report's open question: at 512
// words W is gone.
func TestCumulativeCreditsNeedNoWait(t *testing.T) {
	require.GreaterOrEqual(t, simulate(t, paperLink(Cumulative, 512)).Efficiency, 0.99)
	classic := simulate(t, paperLink(Classic, 512)).Efficiency
	require.Less(t, classic, 0.65)
	// One packet and the time of a credit is what it takes, and less is not enough.
	enough := PacketWords + PaperFlight.Wait(CreditPeriod)
	require.GreaterOrEqual(t, simulate(t, paperLink(Cumulative, enough)).Efficiency, 0.99)
	require.Less(t, simulate(t, paperLink(Cumulative, enough-CreditPeriod-30)).Efficiency, 0.99)
}

// TestNoOverflow: whatever the distances, periods and readers, a FIFO never
// gets more than it holds, and a reader that is slower than the link sets the
// rate.
func TestNoOverflow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := LinkConfig{
			Flow:   FlowControl(rapid.IntRange(0, 1).Draw(t, "flow")),
			Depth:  rapid.IntRange(2*PacketWords, 16*PacketWords).Draw(t, "depth"),
			Period: rapid.IntRange(3, 300).Draw(t, "period"),
			Flight: Flight{
				Data:   rapid.IntRange(1, 400).Draw(t, "data"),
				Credit: rapid.IntRange(1, 400).Draw(t, "credit"),
				Local:  rapid.IntRange(0, 50).Draw(t, "local"),
			},
			Framed: rapid.Bool().Draw(t, "framed"), Duplex: rapid.Bool().Draw(t, "duplex"),
			ReadEvery: rapid.IntRange(1, 5).Draw(t, "read"),
			Cycles:    20_000,
		}
		c.Yellow = rapid.IntRange(0, c.Depth-2*PacketWords).Draw(t, "yellow")
		r := simulate(t, c)
		require.LessOrEqual(t, r.Resumed, c.Yellow)
		require.LessOrEqual(t, r.Efficiency, 1/float64(c.ReadEvery)+0.001)
	})
}

// TestNoOverflowAfterYellow: words that are still in the FIFO when a sender resumes take room. A slow
// reader leaves most of them there.
func TestNoOverflowAfterYellow(t *testing.T) {
	c := paperLink(Classic, 4096)
	c.Yellow, c.ReadEvery = 2048, 8
	require.InEpsilon(t, 1.0/8, simulate(t, c).Efficiency, 0.01)
}

// TestYellow: a stopped sender resumes when the FIFO has drained to T_YEL and not before. An empty
// FIFO leaves a slower reader without work, a T_YEL of two packets does not.
func TestYellow(t *testing.T) {
	for yellow, efficiency := range map[int]float64{0: 0.492, 512: 0.5, 2048: 0.5} {
		c := paperLink(Classic, 4096)
		c.Yellow, c.ReadEvery = yellow, 2
		r := simulate(t, c)
		require.LessOrEqual(t, r.Resumed, yellow)
		require.Greater(t, r.Resumed, yellow-CreditPeriod, "no later than the next credit")
		require.InDelta(t, efficiency, r.Efficiency, 0.001, "T_YEL of %d", yellow)
	}
}

func TestSlowReaderSetsTheRate(t *testing.T) {
	c := paperLink(Cumulative, 4096)
	c.ReadEvery = 4
	require.InEpsilon(t, 0.25, simulate(t, c).Efficiency, 0.01)
	require.InEpsilon(t, 1e9, LinkBandwidth(34, 4096, 1e9), 1e-9)
}

func TestBadLinks(t *testing.T) {
	good := paperLink(Classic, 512)
	for name, spoil := range map[string]func(*LinkConfig){
		"classic needs two packets":     func(c *LinkConfig) { c.Depth = 511 },
		"cumulative needs one":          func(c *LinkConfig) { c.Flow, c.Depth = Cumulative, 255 },
		"period of nothing but credits": func(c *LinkConfig) { c.Period = CreditWords },
		"no reader":                     func(c *LinkConfig) { c.ReadEvery = 0 },
		"nothing fits below T_RED":      func(c *LinkConfig) { c.Yellow = 1 },
		"a negative T_YEL":              func(c *LinkConfig) { c.Yellow = -1 },
		"no time":                       func(c *LinkConfig) { c.Cycles = 0 },
		"news from the future":          func(c *LinkConfig) { c.Flight.Credit = 0 },
	} {
		c := good
		spoil(&c)
		_, err := SimulateLink(c)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	require.Zero(t, FlowEfficiency(511, 145), "no packet fits below T_RED")
}

func TestPCIe(t *testing.T) {
	require.Equal(t, 24, TLP{HeaderDW: 4}.Overhead())
	require.Equal(t, 24, TLP{HeaderDW: 3, ECRC: true}.Overhead())
	require.Equal(t, 28, TLP{HeaderDW: 4, ECRC: true}.Overhead())
	require.InEpsilon(t, 7.877e9, Lanes{3, 8}.Rate(), 0.001)
	require.InEpsilon(t, 63.0e9, Lanes{5, 16}.Rate(), 0.001)
	require.InEpsilon(t, 0.914*1e9, Lanes{2, 2}.Payload(TLP{HeaderDW: 4}, 256), 0.001)
	require.Zero(t, Lanes{6, 4}.Rate())
	require.Zero(t, Lanes{3, 0}.Rate())
	for _, c := range []struct{ n, offset, payload, want uint64 }{
		{0, 0, 256, 0}, {1, 0, 256, 1}, {256, 0, 256, 1}, {256, 1, 256, 2}, {4096, 0, 256, 16}, {4096, 4000, 256, 17}, {1, 0, 0, 0},
	} {
		require.Equal(t, c.want, Packets(c.n, c.offset, c.payload), "%+v", c)
	}
}

// TestHockneyFindsTheLine: exact samples give the line back.
func TestHockneyFindsTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Hockney{
			T0:   rapid.Float64Range(1e-8, 1e-3).Draw(t, "t0"),
			Rate: rapid.Float64Range(1e6, 1e11).Draw(t, "rate"),
		}
		var samples []Sample
		for n := 64.0; n <= 64<<20; n *= 4 {
			samples = append(samples, Sample{n, want.Time(n)})
		}
		got, err := FitHockney(samples)
		require.NoError(t, err)
		require.InEpsilon(t, want.Rate, got.Rate, 0.01)
	})
}

func TestHockneyShapes(t *testing.T) {
	sync := Hockney{Rate: 457e6, T0: 256 << 10 / 457e6}
	require.InDelta(t, 256<<10, sync.Half(), 1)
	require.Greater(t, sync.Bandwidth(4<<20), 0.9*sync.Rate, "the slides: over 90 %% from 4 MB")
	for name, bad := range map[string][]Sample{
		"none": nil, "one": {{1, 1}}, "one size": {{8, 1}, {8, 2}}, "no time": {{1, 0}, {2, 1}}, "faster when larger": {{1, 2}, {1000, 1}},
	} {
		_, err := FitHockney(bad)
		require.ErrorIs(t, err, ErrConfig, name)
	}
	fit, err := FitHockney([]Sample{{1000, 1}, {2000, 2.1}})
	require.NoError(t, err)
	require.Zero(t, fit.T0, "no start-up before the start")
}

// TestMemories: an update in CLS is the paper's; one in slower memory takes longer, by all of the
// latency on one context, and by less on eight.
func TestMemories(t *testing.T) {
	require.Equal(t, PaperContexts, PaperContexts.In(model.Memories[0]))
	before := [2]int{}
	for _, mem := range model.Memories {
		for i, contexts := range []int{1, 8} {
			got, err := PaperContexts.In(mem).Simulate(8, contexts)
			require.NoError(t, err)
			require.Greater(t, got.Total(), before[i], "%s on %d", mem.Type, contexts)
			before[i] = got.Total()
		}
		one, _ := PaperContexts.In(mem).Simulate(8, 1)
		require.Equal(t, 8*(mem.Least+mem.Most), one.Sleep)
	}
	require.Less(t, before[1], before[0]/3)
}

// TestContextsHideLatency: the simulation agrees with the formula and with the
// published runs within 1 %.
func TestContextsHideLatency(t *testing.T) {
	for contexts, published := range map[int]int{1: 1129, 8: 616} {
		got, err := PaperContexts.Simulate(8, contexts)
		require.NoError(t, err)
		require.InEpsilon(t, published, got.Total(), 0.01, "%d contexts", contexts)
		require.InEpsilon(t, PaperContexts.Predict(8, contexts).Total(), got.Total(), 0.01)
	}
	last := math.MaxInt
	for contexts := 1; contexts <= 8; contexts *= 2 {
		got, err := PaperContexts.Simulate(64, contexts)
		require.NoError(t, err)
		require.LessOrEqual(t, got.Sleep, last, "more contexts sleep no longer")
		last = got.Sleep
	}
	_, err := PaperContexts.Simulate(0, 1)
	require.ErrorIs(t, err, ErrConfig)
	_, err = PaperContexts.Simulate(1, 0)
	require.ErrorIs(t, err, ErrConfig)
}

func TestEveryFamilyHasFigures(t *testing.T) {
	seen := map[Family]int{}
	for _, f := range Catalogue() {
		seen[f.Family]++
		require.NotEmpty(t, f.Row)
		require.NotEmpty(t, f.Formula)
		require.Positive(t, f.Step)
	}
	for _, f := range Families() {
		require.Positive(t, seen[f], f)
	}
	require.Len(t, seen, len(Families()))
}

// TestReportedFigures: the report's tables are as printed.
func TestReportedFigures(t *testing.T) {
	rows := map[string][]float64{}
	for _, f := range ReportedFigures() {
		require.NotEmpty(t, f.What)
		require.NotEmpty(t, f.Unit)
		require.Equal(t, f.Row == "A12", f.Bound)
		rows[f.Row] = append(rows[f.Row], f.Value)
	}
	require.Equal(t, map[string][]float64{
		"A6":  {8.2, 16.8, 17.4, 10, 128},
		"A12": {7.04e-11, 8.12e-11, 7.04e-10, 9.80e-13, 2.46e-14},
		"A31": {1.5, 2.2},
		"A33": {2.4, 1.5, 0.15, 1.6, 80},
		"A34": {2.2, 2.2},
		"A35": {1.5},
	}, rows)
	require.Equal(t, "< 2.46e-14", ReportedFigures()[9].Text())
	require.Equal(t, "8.2", ReportedFigures()[0].Text())
}

// TestCables: a word of 128 bits is bad 128 times as often as a bit, where both are rare.
func TestCables(t *testing.T) {
	require.Equal(t, Cable{"z+5m8.5", "Z+, 5 m, 8.5 Gb/s", 7.04e-10}, Cables[2])
	for _, c := range Cables {
		require.InEpsilon(t, 128*c.BitErrors, c.WordErrors(), 1e-6, c.Name)
	}
	require.InDelta(t, 1-math.Pow(0.9, 128), Cable{BitErrors: 0.1}.WordErrors(), 1e-9)
}

func TestGenerations(t *testing.T) {
	require.InDelta(t, 56.4e9/8*128/130, Generations[2].Rate(), 1)
	require.InDelta(t, 5.714e-9, Generations[0].Cycle(), 1e-12)
}
