//go:build linux

package report

import (
	"context"
	"fmt"
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
	for _, measure := range []func(context.Context, *paperMachine) (PaperItem, error){ringInit, ringOne, ringMulti} {
		item, err := measure(ctx, m)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		m.bar.Step(item.Ref)
	}
	return append(items,
		absent("Figure 4.2", "builds to debug and to optimise", "two builds of one C program; the ring here is Go, of which there is one"),
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
	item := PaperItem{Ref: "Figure 4.1, table A.4.1", Title: "making the ring", Label: ringLabel}
	w := cli.NewWatch(cli.CPUTime())
	var each []float64
	for _, paper := range hmf.PaperInit {
		var samples []float64
		for range m.rings {
			if err := ctx.Err(); err != nil {
				return item, err
			}
			d, _, err := hmf.InitTimes(ctx, ringOptions(m), paper.Ring/m.shrink)
			if err != nil {
				return item, err
			}
			samples = append(samples, float64(d)/1e6)
		}
		mean := stat.Summarise(samples).Mean
		each = append(each, 1e3*mean/float64(paper.Ring))
		item.Rows = append(item.Rows,
			PaperRow{What: fmt.Sprintf("%d packets", paper.Ring), Unit: "ms", Paper: number(paper.MS.Mean), Measured: number(mean)},
			PaperRow{What: fmt.Sprintf("%d packets, each", paper.Ring), Unit: "µs", Paper: number(1e3 * paper.MS.Mean / float64(paper.Ring)), Measured: number(each[len(each)-1])})
	}
	first, last := each[0], each[len(each)-1]
	item.Findings = []PaperFinding{shape("the time grows with the size; a packet of a larger ring costs no more", last < 1.1*first, "%.2f µs, %.2f µs a packet", first, last)}
	return trust(item, w.Busy(cli.CPUTime(), nil)), nil
}

func ringOne(ctx context.Context, m *paperMachine) (PaperItem, error) {
	item := PaperItem{Ref: "Table A.4.2", Title: "one pair, 1,000 packets of 8 KiB", Label: ringLabel}
	w, own := cli.NewWatch(cli.CPUTime()), 0.0
	var net []float64
	for _, paper := range hmf.PaperOne {
		row, err := ringOptions(m).PairsAtOnce(ctx, 1, paper.Ring/m.shrink, paper.Packet, "")
		if err != nil {
			return item, err
		}
		own += row.CPUS
		net = append(net, row.NetKiB)
		item.Rows = append(item.Rows, ringRows(paper, row)...)
	}
	s := stat.Summarise(net)
	item.Findings = append(item.Findings, shape("the size of the ring hardly matters (within 1.5 times)", s.Max < 1.5*s.Min, "%.2f times", s.Max/s.Min))
	return trust(item, w.Busy(cli.CPUTime()+seconds(own), nil)), nil
}

func ringMulti(ctx context.Context, m *paperMachine) (PaperItem, error) {
	item := PaperItem{
		Ref: "Figures 4.3–4.5, table A.4.3", Title: "several pairs at once", Label: ringLabel,
		Picture: "ring-pairs.svg", plot: &plot.Plot{
			Title: "Pairs of processes, each with a ring of its own", Note: ringLabel + ", " + cli.CPUModel() + "; the paper's machine had 8 CPUs",
			XLabel: "pairs", YLabel: "GB/s net", Name: plot.CountText,
		},
	}
	w, own := cli.NewWatch(cli.CPUTime()), 0.0
	var rows []hmf.Row
	for _, paper := range hmf.PaperMulti {
		row, err := ringOptions(m).PairsAtOnce(ctx, paper.Pairs, hmf.Presets["hackomat"]/m.shrink, paper.Packet, paper.Name)
		if err != nil {
			return item, err
		}
		own += row.CPUS
		rows = append(rows, row)
		item.Rows = append(item.Rows, ringRows(paper, row)...)
		item.plot.Add("here", float64(paper.Pairs), row.NetKiB*1024/1e9)
		item.plot.Add("the paper's machine", float64(paper.Pairs), paper.NetKiB*1024/1e9)
	}
	few, many := rows[0], rows[len(rows)-1]
	item.Findings = []PaperFinding{
		shape("more pairs carry more together (the paper: on 8 processors)", many.NetKiB > few.NetKiB, "6 pairs over one: %.2f", many.NetKiB/few.NetKiB),
		shape("the time of a package grows with the pairs", many.MS.Mean > few.MS.Mean, "%.1f times", many.MS.Mean/few.MS.Mean),
		shape("its spread grows faster than its mean", hmf.Relative(many) > hmf.Relative(few), "%.1f times", hmf.Relative(many)/hmf.Relative(few)),
	}
	return trust(item, w.Busy(cli.CPUTime()+seconds(own), nil)), nil
}

// ringRows are a row of the report and its counterpart.
func ringRows(paper, here hmf.Row) []PaperRow {
	name := fmt.Sprintf("%s, ring of %d", paper.Name, paper.Ring)
	return []PaperRow{
		{What: name, Unit: "ms a package", Paper: number(paper.MS.Mean), Measured: number(here.MS.Mean)},
		{What: name, Unit: "its deviation", Paper: number(paper.MS.SD), Measured: number(here.MS.SD)},
		{What: name, Unit: "KiB/s gross", Paper: number(paper.GrossKiB), Measured: number(here.GrossKiB)},
		{What: name, Unit: "KiB/s net", Paper: number(paper.NetKiB), Measured: number(here.NetKiB)},
	}
}
