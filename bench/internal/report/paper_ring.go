//go:build linux

package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/hmf"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

var ringDecisions = []PaperDecision{
	{
		"No memory fences are needed: three weeks without an error.",
		"They were not needed on that processor by that compiler. The ring publishes with release and looks with acquire (docs/ring.md).",
	},
	{
		"The row of six pairs in table A.4.3 has its columns in another order.",
		"It stands here in the order of the other rows.",
	},
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// ringItems are those of the HMF Transmitter report.
func ringItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	var items []PaperItem
	for _, measure := range []func(context.Context, *paperMachine) (PaperItem, error){ringInit, ringOne, ringBuilds, ringMulti} {
		item, err := measure(ctx, m)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		m.bar.Step(item.Ref)
	}
	return append(items,
		absent("Heads of size 2, 3 and 5", "strings of positions", "held by go test ./pkg/ring -run Trace"),
	), nil
}

// ringOptions are those of the report: packets of 8 KiB, 7 KiB of them pulses.
func ringOptions(m *paperMachine) *hmf.Options {
	return &hmf.Options{
		Ring: hmf.Presets["hackomat"], Packet: 8 << 10, Payload: 7 << 10, Packages: m.packages, PerPackage: 1000,
		Verify: "flag", Access: "place", Wait: "adaptive", Spoil: -1,
	}
}

const ringLabel = "measured between processes of one machine, no device"

func ringInit(ctx context.Context, m *paperMachine) (PaperItem, error) {
	w := cli.NewWatch(cli.CPUTime())
	var means []float64 // milliseconds, by ring
	for _, paper := range hmf.PaperInit {
		var samples []float64
		for range m.rings {
			if err := ctx.Err(); err != nil {
				return PaperItem{}, err
			}
			d, _, err := hmf.InitTimes(ctx, ringOptions(m), paper.Ring/m.shrink)
			if err != nil {
				return PaperItem{}, err
			}
			samples = append(samples, float64(d)/1e6)
		}
		means = append(means, stat.Summarise(samples).Mean)
	}
	return trust(initItem(means), w.Busy(cli.CPUTime(), nil)), nil
}

// initItem holds the milliseconds of making each of the report's rings against its table.
func initItem(means []float64) PaperItem {
	item := PaperItem{Ref: "Figure 4.1, table A.4.1", Title: "making the ring", Label: ringLabel}
	var each []float64
	for i, paper := range hmf.PaperInit {
		each = append(each, 1e3*means[i]/float64(paper.Ring))
		item.Rows = append(item.Rows,
			PaperRow{What: fmt.Sprintf("%d packets", paper.Ring), Unit: "ms", Paper: number(paper.MS.Mean), Measured: number(means[i])},
			PaperRow{What: fmt.Sprintf("%d packets, each", paper.Ring), Unit: "µs", Paper: number(math.Round(1e7*paper.MS.Mean/float64(paper.Ring)) / 1e4), Measured: number(each[i])})
	}
	most := slices.Max(each[1:])
	item.Findings = []PaperFinding{shape("the time grows with the size; a packet of a larger ring costs no more (to 10 %)",
		slices.IsSorted(means) && most < 1.1*each[0], "%.2f µs, at most %.2f µs a packet", each[0], most)}
	return item
}

func ringOne(ctx context.Context, m *paperMachine) (PaperItem, error) {
	return ringPairs(ctx, m, hmf.PaperOne, oneItem)
}

func ringMulti(ctx context.Context, m *paperMachine) (PaperItem, error) {
	return ringPairs(ctx, m, hmf.PaperMulti, multiItem)
}

// ringPairs measures the counterpart of each row of a table, and has them concluded on.
func ringPairs(ctx context.Context, m *paperMachine, papers []hmf.Row, conclude func([]hmf.Row) PaperItem) (PaperItem, error) {
	w, own := cli.NewWatch(cli.CPUTime()), 0.0
	var rows []hmf.Row
	for _, paper := range papers {
		size := paper.Ring
		if paper.Pairs > 1 { // several of the larger ones do not fit into the memory of a small machine
			size = hmf.Presets["hackomat"]
		}
		row, err := ringOptions(m).PairsAtOnce(ctx, paper.Pairs, size/m.shrink, paper.Packet, paper.Name)
		if err != nil {
			return PaperItem{}, err
		}
		own += row.CPUS
		rows = append(rows, row)
	}
	return trust(conclude(rows), w.Busy(cli.CPUTime()+seconds(own), nil)), nil
}

// oneItem holds one pair on each ring against the report's.
func oneItem(rows []hmf.Row) PaperItem {
	item := PaperItem{Ref: "Table A.4.2", Title: "one pair, 1,000 packets of 8 KiB", Label: ringLabel}
	var net []float64
	for i, row := range rows {
		net = append(net, row.NetKiB)
		item.Rows = append(item.Rows, ringRows(hmf.PaperOne[i], row)...)
	}
	s := stat.Summarise(net)
	item.Findings = []PaperFinding{shape("the size of the ring hardly matters (within 1.5 times)", s.Max < 1.5*s.Min, "%.2f times", s.Max/s.Min)}
	return item
}

// ringBuilds measures the ring in C, built to debug and to optimise.
func ringBuilds(ctx context.Context, m *paperMachine) (PaperItem, error) {
	o := ringOptions(m)
	o.Ring /= m.shrink
	w := cli.NewWatch(cli.CPUTime())
	rows, missing, err := o.Builds(ctx, "O0", "O3")
	if err != nil {
		return PaperItem{}, err
	}
	own := 0.0
	for _, row := range rows {
		own += row.CPUS
	}
	return trust(buildsItem(rows, missing), w.Busy(cli.CPUTime()+seconds(own), nil)), nil
}

// buildsItem holds the two builds, if there are two, against the report's.
func buildsItem(rows []hmf.Row, missing []string) PaperItem {
	const ref, title = "Figure 4.2", "builds to debug and to optimise"
	if len(rows) < 2 {
		return absent(ref, title, strings.TrimPrefix(strings.Join(missing, "; "), cli.ResultNotMeasured))
	}
	item := PaperItem{Ref: ref, Title: title + ", 1,000 packets of 8 KiB", Label: ringLabel + ": the ring in C"}
	for i, paper := range []hmf.Row{hmf.PaperDebug[0], hmf.PaperOne[0]} {
		item.Rows = append(item.Rows, PaperRow{What: rows[i].Name, Unit: "ms a package", Paper: number(paper.MS.Mean), Measured: number(rows[i].MS.Mean)})
	}
	ratio := hmf.BuildRatio(rows)
	item.Findings = []PaperFinding{shape("the compiler takes no work away: neither is faster by orders of magnitude (ten times)", ratio < hmf.BuildBound, "%.2f times, best packages", ratio)}
	return item
}

// ringTarget is the rate that suffices for HMF, in GB/s.
const ringTarget = 10

// multiItem holds several pairs against the report's.
func multiItem(rows []hmf.Row) PaperItem {
	item := PaperItem{
		Ref: "Figures 4.3–4.5, table A.4.3", Title: "several pairs at once, in the paper on 8 processors", Label: ringLabel,
		Picture: "ring-pairs.svg", plot: &plot.Plot{
			Title: "Pairs of processes, each with a ring of its own", Note: ringLabel + ", " + cli.CPUModel() + "; the paper's machine had 8 CPUs",
			XLabel: "pairs", YLabel: "GB/s net", Name: plot.CountText,
		},
	}
	for i, row := range rows {
		paper := hmf.PaperMulti[i]
		item.Rows = append(item.Rows, ringRows(paper, row)...)
		item.plot.Add("here", float64(paper.Pairs), row.NetKiB*1024/1e9)
		item.plot.Add("the paper's machine", float64(paper.Pairs), paper.NetKiB*1024/1e9)
	}
	three := rows[slices.IndexFunc(hmf.PaperMulti, func(r hmf.Row) bool { return r.Pairs == 3 })].GrossKiB * 1024 / 1e9
	item.Rows = append(item.Rows, PaperRow{What: "what suffices for HMF, beside 3 pairs", Unit: "GB/s gross", Paper: number(ringTarget), Measured: number(three)})
	item.Findings = append(findings(hmf.PairFindings(rows)),
		shape("three pairs carry the 10 GB/s that suffice for HMF", three >= ringTarget, "%.1f GB/s gross", three))
	return item
}

// ringRows are a row of the report and its counterpart.
func ringRows(paper, here hmf.Row) []PaperRow {
	name := fmt.Sprintf("%s, ring of %d", paper.Name, paper.Ring)
	if here.Ring != paper.Ring {
		name += fmt.Sprintf(" (here %d)", here.Ring)
	}
	return []PaperRow{
		{What: name, Unit: "ms a package", Paper: number(paper.MS.Mean), Measured: number(here.MS.Mean)},
		{What: name + ", deviation", Unit: "ms a package", Paper: number(paper.MS.SD), Measured: number(here.MS.SD)},
		{What: name, Unit: "KiB/s gross", Paper: number(paper.GrossKiB), Measured: number(here.GrossKiB)},
		{What: name, Unit: "KiB/s net", Paper: number(paper.NetKiB), Measured: number(here.NetKiB)},
	}
}
