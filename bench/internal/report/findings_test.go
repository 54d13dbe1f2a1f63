//go:build linux

package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/bench/internal/hmf"
	"github.com/nfcomms/nfcomms/bench/internal/latency"
	"github.com/nfcomms/nfcomms/bench/internal/links"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/bench/internal/stack"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/bench/internal/throughput"
)

// results are those of an item's findings: s for the same, d for different, – for not measured.
func results(i PaperItem) (text string) {
	for _, f := range i.Findings {
		text += map[string]string{cli.ShapeSame: "s", cli.ShapeDiffers: "d", cli.ShapeUnknown: "–"}[f.Result]
	}
	return text
}

// cells are the three figures of an item's row, –1 where there is none.
func cells(r PaperRow) [3]float64 {
	var all [3]float64
	for i, v := range []*float64{r.Paper, r.Model, r.Measured} {
		if all[i] = -1; v != nil {
			all[i] = *v
		}
	}
	return all
}

// TestTable2: figures are of their configuration, ratios are medians, and the bounds are 1.5 and 2.5.
func TestTable2(t *testing.T) {
	report := func(h2d, d2h float64) *latency.Report {
		return &latency.Report{
			Configs: []latency.Config{{Direction: "h2d", Path: "direct", Ns: stat.Stat{Mean: 3000}}, {Direction: "h2d", Path: "indirect", Ns: stat.Stat{Mean: 5000}}},
			Ratios:  []latency.Ratio{{Direction: "h2d", Mean: 9, P50: h2d, Paper: 2}, {Direction: "d2h", Mean: 9, P50: d2h, Paper: 1.73}},
		}
	}
	item := latencyItem(report(2, 1.7))
	require.Equal(t, [3]float64{14.66, -1, 3}, cells(item.Rows[0]))
	require.Equal(t, [3]float64{-1, -1, 5}, cells(item.Rows[1]))
	require.Equal(t, [3]float64{2, -1, 2}, cells(item.Rows[2]))
	require.Equal(t, [3]float64{1.73, -1, 1.7}, cells(item.Rows[3]))
	require.Equal(t, "2.00 times; less is better", item.Findings[0].Why)
	require.Equal(t, "ss", results(item))
	require.Equal(t, "ds", results(latencyItem(report(1.49, 1.51))))
	require.Equal(t, "sd", results(latencyItem(report(2.49, 2.51))))
	busy := report(2, 2)
	busy.Busy = cli.ReasonBusy
	require.Equal(t, "––", results(latencyItem(busy)))
}

// TestFigure4: each finding looks at its own points of its own direction.
func TestFigure4(t *testing.T) {
	report := func(small, large, larger, many float64) *throughput.Report {
		r := &throughput.Report{}
		for i, direction := range compare.Directions {
			at := func(targets, size int, rate float64) {
				if i == 1 { // the other direction shows all shapes
					rate = map[int]float64{4 << 10: 1, 2e6: 10, 20e6: 10}[size] * float64(targets)
				}
				r.Points = append(r.Points, throughput.Point{Direction: direction, Targets: targets, Size: size, GbitS: stat.Stat{Mean: rate}})
			}
			at(1, 4<<10, small)
			at(1, 2e6, large)
			at(1, 20e6, larger)
			at(8, 2e6, many)
			at(8, 4<<10, 1)
			r.Direct = append(r.Direct, throughput.DirectRate{Direction: direction, PaperMbitS: 114.3, MbitS: stat.Stat{Mean: 50 + float64(i)}})
			r.Curves = append(r.Curves, throughput.Curve{Direction: direction, Targets: 1, PeakGbitS: 10, PaperGbitS: 7.8, Hockney: &stat.Hockney{RInf: 2}})
			r.PeakRatio = append(r.PeakRatio, throughput.PeakRatio{Direction: direction, Ratio: 99, Paper: 268})
		}
		return r
	}
	item := throughputItem(report(1, 10, 10, 21))
	require.Equal(t, "ssssss", results(item))
	require.Equal(t, [3]float64{114.3, -1, 50}, cells(item.Rows[0]))
	require.Equal(t, [3]float64{7.8, 16, 10}, cells(item.Rows[2]))
	require.Contains(t, item.Rows[2].Note, "here: the highest point; model: fitted to these points")
	require.Equal(t, [3]float64{268, -1, 99}, cells(item.Rows[4]))
	require.Equal(t, "dsssss", results(throughputItem(report(6.7, 10, 10, 21))))
	require.Equal(t, "sdssss", results(throughputItem(report(1, 10, 12.6, 21))))
	require.Equal(t, "sdssss", results(throughputItem(report(1, 10, 7.9, 21))))
	require.Equal(t, "ssdsss", results(throughputItem(report(1, 10, 12, 19))))
	require.Equal(t, "least over most: 0.79", throughputItem(report(1, 10, 7.9, 21)).Findings[1].Why)
	require.Equal(t, "h2d: one process: the rate at 2 MB is over 1.5 times that at 4 KiB", item.Findings[0].What)
	require.Equal(t, "10.0 times", item.Findings[0].Why)
	require.Equal(t, "h2d: eight processes carry over twice as much as one at 2 MB", item.Findings[2].What)
}

// TestRingItems: rows of the report and of this machine are of the same ring.
func TestRingItems(t *testing.T) {
	item := initItem([]float64{100, 200, 329})
	require.Equal(t, [3]float64{106.169, -1, 100}, cells(item.Rows[0]))
	require.InDeltaSlice(t, []float64{4.2486, 4.0018}, []float64{*item.Rows[1].Paper, *item.Rows[1].Measured}, 1e-4)
	require.Equal(t, "s", results(item))
	require.Equal(t, "d", results(initItem([]float64{100, 200, 331})))
	require.Equal(t, "d", results(initItem([]float64{100, 221, 300})), "the one between costs more")
	require.Equal(t, "d", results(initItem([]float64{100, 99, 98})), "the time does not grow")

	here := func(net float64) hmf.Row {
		return hmf.Row{Ring: 24989, NetKiB: net, GrossKiB: net + 1, MS: stat.Stat{Mean: 5, SD: 0.5}}
	}
	one := oneItem([]hmf.Row{here(100), here(149), here(120)})
	require.Equal(t, "s", results(one))
	require.Equal(t, "d", results(oneItem([]hmf.Row{here(100), here(151), here(120)})))
	require.Equal(t, "one pair, ring of 24989", one.Rows[0].What)
	require.Equal(t, PaperRow{What: "one pair, ring of 24989, deviation", Unit: "ms a package", Paper: number(0.0189712), Measured: number(0.5)}, one.Rows[1])
	require.Equal(t, "one pair, ring of 49999 (here 24989)", one.Rows[4].What)
	for i, want := range [][3]float64{{0.92466, -1, 5}, {0.0189712, -1, 0.5}, {8651829, -1, 101}, {7570350, -1, 100}} {
		require.Equal(t, want, cells(one.Rows[i]))
	}
}

// TestBuildsItem: two builds are held against each other by their best packages; one is none.
func TestBuildsItem(t *testing.T) {
	builds := func(best float64) []hmf.Row {
		return []hmf.Row{{Name: "O0", MS: stat.Stat{Mean: 30, Min: best}}, {Name: "O3", MS: stat.Stat{Mean: 20, Min: 1}}}
	}
	item := buildsItem(builds(9.9), nil)
	require.Equal(t, "s", results(item))
	require.Equal(t, [3]float64{0.9383918, -1, 30}, cells(item.Rows[0]))
	require.Equal(t, [3]float64{0.92466, -1, 20}, cells(item.Rows[1]))
	require.Equal(t, "d", results(buildsItem(builds(10.1), nil)))
	require.Equal(t, "d", results(buildsItem(builds(0.09), nil)))
	require.Equal(t, "there is no cc", buildsItem(builds(1)[:1], []string{"not measured: there is no cc"}).Absent)
}

// TestPairsItem: the first row is held against the last.
func TestPairsItem(t *testing.T) {
	three := 9.8e6 // 10 GB/s are 9,765,625 KiB/s
	pairs := func(net, mean, sd float64) PaperItem {
		rows := make([]hmf.Row, len(hmf.PaperMulti))
		rows[0] = hmf.Row{Pairs: 1, NetKiB: 100e6, MS: stat.Stat{Mean: 10, SD: 1}}
		rows[2] = hmf.Row{GrossKiB: three}
		rows[len(rows)-1] = hmf.Row{Pairs: 6, NetKiB: net, MS: stat.Stat{Mean: mean, SD: sd}}
		return multiItem(rows)
	}
	require.Equal(t, "ssss", results(pairs(111e6, 12, 1.4)))
	require.Equal(t, "dsss", results(pairs(109e6, 12, 1.4)))
	require.Equal(t, "sdss", results(pairs(111e6, 9, 1)))
	require.Equal(t, "ssds", results(pairs(111e6, 12, 1.3)))
	three = 9.7e6
	require.Equal(t, "sssd", results(pairs(111e6, 12, 1.4)))
	require.Equal(t, [3]float64{10, -1, 9.9328}, cells(pairs(101e6, 11, 1.2).Rows[20]))
	item := pairs(101e6, 11, 1.2)
	require.Equal(t, [3]float64{4.234499, -1, 11}, cells(item.Rows[16]))
	require.InDeltaSlice(t, []float64{102.4, 103.424}, []float64{item.plot.Series[0].Y[0], item.plot.Series[0].Y[4]}, 1e-9)
	require.InDelta(t, 10.588, item.plot.Series[1].Y[4], 1e-3)
}

// TestLinkFlows: the classic flow control agrees to 5 %, the other loses 2 % at most.
func TestLinkFlows(t *testing.T) {
	flows := func(classic, cumulative float64) PaperItem {
		return linkFlows(&links.LinkReport{Label: "simulated nodes", Flows: []links.LinkFlow{
			{Flow: "classic", Depth: 512, Paper: 0.595, Formula: 0.594, Simulated: 0.6, Running: classic},
			{Flow: "cumulative", Depth: 512, Formula: 0.9, Simulated: 0.91, Running: cumulative},
		}})
	}
	require.Equal(t, "ss", results(flows(0.6, 0.9)))
	require.Equal(t, "ds", results(flows(0.63, 0.9)))
	require.Equal(t, "ds", results(flows(0.56, 0.9)))
	require.Equal(t, "sd", results(flows(0.6, 0.88)))
	item := flows(0.6, 0.9)
	require.Equal(t, [3]float64{0.595, 0.594, 0.6}, cells(item.Rows[0]))
	require.Equal(t, [3]float64{-1, 0.9, 0.9}, cells(item.Rows[1]))
	require.Equal(t, "simulated cycle by cycle: 0.600", item.Rows[0].Note)
	require.Equal(t, "simulated nodes: the firmware's link, a word a cycle", item.Label)
}

// TestStackSweep: rates are wall time of their mode, in MB/s, and each step must be faster.
func TestStackSweep(t *testing.T) {
	report := func(rate map[int]float64) *stack.Report {
		r := &stack.Report{Slides: stack.Slides, Findings: []stack.Finding{{What: "a", Same: true, Why: "b"}}}
		for _, mode := range []string{stack.Sync, stack.Overlapped} {
			for _, direction := range compare.Directions {
				c := stack.Curve{Path: "Go", Mode: mode, Memory: "heap", Direction: direction, Hockney: &stat.Hockney{NHalf: 2048}}
				for _, s := range stack.Slides {
					c.Points = append(c.Points, stack.Point{Size: s.KiB << 10, GBs: rate[s.KiB] * map[string]float64{stack.Sync: 1, stack.Overlapped: 2}[mode]})
				}
				r.Curves = append(r.Curves, c)
			}
		}
		return r
	}
	rates := map[int]float64{4: 1, 8: 2, 16: 3, 32: 4, 64: 5, 128: 6}
	item := stackSweep(report(rates))
	require.Equal(t, "ss", results(item))
	for i, want := range [][3]float64{{25, -1, 1000}, {46, -1, 2000}, {50, -1, 2000}, {72, -1, 4000}, {65, -1, 3000}} {
		require.Equal(t, want, cells(item.Rows[i]))
	}
	require.Equal(t, [3]float64{256, -1, 2}, cells(item.Rows[8]))
	require.Equal(t, [3]float64{4096, 2304, 18}, cells(item.Rows[9]))
	require.Equal(t, "4 KiB, synchronous, h2d", item.Rows[0].What, "that is the rate of Report.Near")
	require.Contains(t, item.Label, "wall time, by Go")
	rates[64] = 4
	require.Equal(t, "ds", results(stackSweep(report(rates))))
}

// TestStackLoose: rows name their language and share of wrong chunks. The data may come out right,
// which is another result than the slides'.
func TestStackLoose(t *testing.T) {
	loose := func(wrong int) PaperItem {
		return stackLoose(&stack.Report{
			Loose: []stack.Loose{{Path: "Go", Mode: stack.Sync, Size: 4096, Chunks: 8, Came: 8, Wrong: wrong}, {Path: "C", Mode: stack.Overlapped, Size: 4096, Chunks: 8, Came: 8, Wrong: wrong}},
		})
	}
	item := loose(2)
	require.Equal(t, "1 same", item.Shapes())
	require.Equal(t, "16 of 16 chunks came, 4 of them wrong by their checksums; all were right in 0 of 2 runs", item.Findings[0].Why)
	require.Equal(t, []string{"Go, chunks of 4 KiB, synchronous: wrong", "C, chunks of 4 KiB, overlapped: wrong"}, []string{item.Rows[0].What, item.Rows[1].What})
	require.Equal(t, [3]float64{-1, -1, 25}, cells(item.Rows[0]))
	require.Equal(t, "d", results(loose(0)))
	require.Equal(t, "no compiler", stackLoose(&stack.Report{Absent: []string{"no compiler"}}).Absent)
}

// TestStackLanguages: a row is what C takes longer in microseconds, of one chunk at a time, and the
// last size decides. The work of libnfcomms without a kernel module is said where there is none.
func TestStackLanguages(t *testing.T) {
	r := &stack.Report{Beside: []stack.Beside{
		{Mode: stack.Sync, Direction: "h2d", Size: 4096, GoNS: 1000, CNS: 3500},
		{Mode: stack.Overlapped, Direction: "h2d", Size: 4096, GoNS: 1, CNS: 2},
		{Mode: stack.Sync, Direction: "h2d", Size: 1 << 20, GoNS: 100e3, CNS: 104e3},
	}}
	r.Device.Driver = "sim"
	item := stackLanguages(r)
	require.Equal(t, "s", results(item))
	require.Equal(t, []PaperRow{{What: "4 KiB h2d", Unit: "µs", Measured: number(2.5)}, {What: "1 MiB h2d", Unit: "µs", Measured: number(4)}}, item.Rows)
	require.Contains(t, item.Label, "; without the kernel module libnfcomms makes the memory")
	r.Device.Driver, r.Beside[2].CNS = "dev", 94e3
	require.Equal(t, "d", results(stackLanguages(r)))
	require.NotContains(t, stackLanguages(r).Label, "without the kernel module")
	r.Busy = cli.ReasonBusy
	require.Equal(t, "–", results(stackLanguages(r)))
}

// TestGroupItem: the algorithm of 2009 is held against two others; a ratio that was not measured is
// no result.
func TestGroupItem(t *testing.T) {
	row := func(name string, us float64) groups.Row {
		return groups.Row{Name: name, Transport: "mesh", Members: 8, Size: 64, Rounds: stat.Spread{Median: us}, ByRound: []float64{us}}
	}
	item := groupItem(&groups.Report{
		Rows:     []groups.Row{row("send-loop", 7), row("isend", 8), row("send", 6), {Members: 16}},
		Findings: []cli.Finding{cli.FindingOf("a", 2, true), cli.FindingOf("b", 2, false)},
	}, []string{"mesh", "shm"})
	require.Equal(t, "sd––sd", results(item))
	require.Equal(t, []string{"1.17 times", "0.88 times"}, []string{item.Findings[0].Why, item.Findings[1].Why})
	require.Equal(t, PaperFinding{What: "the algorithm of 2009, send-loop, takes longer than isend (shm)", Result: cli.ShapeUnknown, Why: "not in this run"}, item.Findings[3])
	require.Equal(t, PaperFinding{What: "a", Result: cli.ShapeSame, Why: "2.00 times"}, item.Findings[4])
	require.Len(t, item.Rows, 3)
	require.Equal(t, [3]float64{-1, -1, 7}, cells(item.Rows[0]))
}

// TestPrinted: a paper's figure has the digits that the paper prints, and a formula's one digit more.
func TestPrinted(t *testing.T) {
	for want, v := range map[string]float64{"0.9999999998": 0.9999999998, "23559.07": 23559.07, "8651829": 8651829, "7.04e-11": 7.04e-11, "0.0189712": 0.0189712, "14.66": 14.66, "1": 1} {
		require.Equal(t, want, printed(&v))
	}
	require.Equal(t, "–", printed(nil))
	for _, row := range []struct {
		model, step float64
		want        string
	}{{45.46, 1, "45.5"}, {3051.51, 1, "3051.5"}, {0.98461, 0.001, "0.9846"}, {526, 1, "526"}, {1, 1e-10, "1"}, {7.877, 1, "7.9"}, {2304, 0, "2304"}, {0.12345, 0, "0.123"}} {
		require.Equal(t, row.want, PaperRow{Model: number(row.model), Step: row.step}.Modelled())
	}
	require.Equal(t, "–", PaperRow{Step: 1}.Modelled())
	ratio := catalogued("a", "b", papers.FamilyExchange, "M29").Rows[0]
	require.Equal(t, []string{"23559.07", "23559.068"}, []string{printed(ratio.Paper), ratio.Modelled()})
	require.Equal(t, "4.2486 4.104 4.0109", strings.Join(everyOther(initItem([]float64{1, 2, 3}).Rows), " "))
}

// everyOther is what a paper prints in the second row, the fourth …
func everyOther(rows []PaperRow) (texts []string) {
	for i := 1; i < len(rows); i += 2 {
		texts = append(texts, printed(rows[i].Paper))
	}
	return texts
}

// TestAgreement: figures that differ from a paper's are not called the same.
func TestAgreement(t *testing.T) {
	contexts := catalogued("a", "b", papers.FamilyContexts)
	require.Equal(t, "1 same, 1 fitted, 1 differs", contexts.Shapes())
	require.Equal(t, "3 of 8; 8 updates on 1 context: 1129 beside 1126, 8 updates on 8 contexts: 616 beside 614, … of which asleep: 42 beside 40", contexts.Findings[2].Why)
	for item, rows := range map[string][]PaperRow{"pcie": pciExpress().Rows, "share": messageShare().Rows} { // each of its own paper
		require.Len(t, rows, map[string]int{"pcie": 2, "share": 1}[item])
	}
	require.Equal(t, [3]float64{1.4, 1.3671875, -1}, cells(messageShare().Rows[0]))
	link := catalogued("a", "b", papers.FamilyLink)
	require.Equal(t, "1 same, 1 within the paper's rounding", link.Shapes())
	require.Equal(t, []string{"20 of 29", "9 of 29"}, []string{link.Findings[0].Why, link.Findings[1].Why})
	require.InDeltaSlice(t, []float64{3060, 3051.51}, []float64{*link.Rows[18].Paper, *link.Rows[18].Model}, 1e-3)
	require.Contains(t, link.Rows[18].Note, "rounding of E_T to 0.90; 0.898 gives 3053")
	require.Equal(t, "1 same", catalogued("a", "b", papers.FamilyExchange, "M21").Shapes())
}
