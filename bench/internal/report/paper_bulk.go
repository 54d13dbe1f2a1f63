//go:build linux

package report

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/latency"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/bench/internal/throughput"
)

var bulkDecisions = []PaperDecision{
	{
		"§5.1 has a direct message take twice as long as a transfer from the host, and a transfer 1.73 times as long as a direct message the other way.",
		"The first sentence is the wrong way round: a transfer is a direct message and more, and the conclusion calls it significantly slower. Here a transfer over a message is held against 2 and 1.73.",
	},
	{
		"The 9 most significant bits of the hash are said to choose one of 2,048 sketches.",
		"9 bits choose one of 512. 2,048 need 11, which is what apps/pcsa takes.",
	},
	{
		"2,048 sketches are said to give an average error of 1.78 %.",
		"0.78/√2048 is 1.72 %, and that is what the estimate is held against.",
	},
	{
		"A cycle of 600 MHz is said to take 1.6 ns.",
		"It takes 1.67 ns: the 128 ns of an update are 77 cycles of that length.",
	},
	{
		"Peaks of 20, 22, 30 and 35 Gb/s appear.",
		"35 is the earlier version, 20 and 22 are the plateaus of figure 4 for eight processes, 30 stands in the conclusion alone. Figure 4's are compared.",
	},
}

// bulkItems are those of the bulk-transfer paper.
func bulkItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	table2, err := bulkLatency(ctx, m)
	if err != nil {
		return nil, err
	}
	figure4, err := bulkThroughput(ctx, m)
	if err != nil {
		return nil, err
	}
	return []PaperItem{
		absent("Figures 1–3, 5", "structure, sequence of a transfer, 2-opt", "drawings; ARCHITECTURE.md and docs/protocol.md describe what stands for them here"),
		absent("Table 1", "latencies of the card's memories", "properties of that card, and the table is missing in the text"),
		messageShare(), table2, figure4,
		absent("Table 3", "travelling salesman on CPU, GPU and card", "the numbers are missing in the text; go run ./apps/tsp runs it beside the CPU"),
		catalogued("Figure 6", "counting distinct packets: cycles of 8 updates on 1 and 8 contexts", papers.FamilyContexts),
		absent("§5.3.2", "distinct packets of a capture, 1.02 % off", "the capture is not public; go run ./apps/pcsa counts one that is made up"),
	}, nil
}

// messageShare is what a message uses of the largest packet of PCI Express.
func messageShare() PaperItem {
	return catalogued("§3", "a message in a packet", papers.FamilyPath, "N14")
}

func bulkLatency(ctx context.Context, m *paperMachine) (PaperItem, error) {
	r, err := latency.Measure(ctx, m.dev, latency.Options{Batches: m.batches, Batch: 100, Size: compare.MessageSize}, io.Discard)
	if err != nil {
		return PaperItem{}, err
	}
	m.bar.Step("latency")
	return latencyItem(r), nil
}

// latencyItem holds what was measured against the ratios of the text.
func latencyItem(r *latency.Report) PaperItem {
	item := PaperItem{
		Ref: "Table 2", Title: "latency of 56 bytes; the table's numbers are missing in the text, its ratios are not",
		Label: "measured, " + r.Device.Label,
	}
	for _, c := range r.Configs {
		row := PaperRow{What: c.Direction + " " + c.Path, Unit: "µs", Measured: number(c.Ns.Mean / 1e3)}
		if c.Direction == compare.Directions[0] && c.Path == "direct" {
			row.Paper, row.Note = number(latency.PaperDirectUs), "of the paper before, which this one quotes"
		}
		item.Rows = append(item.Rows, row)
	}
	for _, ratio := range r.Ratios {
		item.Rows = append(item.Rows, PaperRow{
			What: ratio.Direction + " indirect : direct", Paper: number(ratio.Paper), Measured: number(ratio.P50), Note: "medians",
		})
		item.Findings = append(item.Findings, shape(
			ratio.Direction+": a small transfer costs a message and about as much again (1.5 to 2.5 times)",
			ratio.P50 >= 1.5 && ratio.P50 <= 2.5, "%.2f times; less is better", ratio.P50))
	}
	return trust(item, r.Busy)
}

// sizes are those of figure 4.
func (m *paperMachine) sizes() []int {
	sizes := []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10}
	for _, s := range []int{1e6, 2e6, 4e6, 8e6, 14e6, 20e6} {
		sizes = append(sizes, s/m.shrink)
	}
	slices.Sort(sizes)
	return sizes
}

func bulkThroughput(ctx context.Context, m *paperMachine) (PaperItem, error) {
	r, err := throughput.Measure(ctx, m.dev, throughput.Plan{
		Payload: m.payload, Sizes: m.sizes(), Targets: []int{1, 8}, Tests: m.tests, Direct: m.direct,
	}, io.Discard)
	if err != nil {
		return PaperItem{}, err
	}
	m.bar.Step("throughput")
	return throughputItem(r), nil
}

// throughputItem holds what was measured against the curves of the figure.
func throughputItem(r *throughput.Report) PaperItem {
	item := PaperItem{
		Ref: "Figure 4", Title: fmt.Sprintf("throughput over the message size, %s each way", cli.SizeText(r.Payload)),
		Label: "measured, " + r.Device.Label + ", " + r.Verification(), Picture: "bulk-figure4.svg", plot: r.Plot(),
	}
	for _, d := range r.Direct {
		item.Rows = append(item.Rows, PaperRow{What: d.Direction + ", direct messages", Unit: "Mb/s", Paper: number(d.PaperMbitS), Measured: number(d.MbitS.Mean)})
	}
	for _, c := range r.Curves {
		row := PaperRow{What: throughput.ConfigText(c.Direction, c.Targets) + ", plateau", Unit: "Gb/s", Paper: number(c.PaperGbitS), Measured: number(c.PeakGbitS), Note: "paper: " + c.PaperNote + "; here: the highest point"}
		if c.Hockney != nil {
			row.Model = number(8 * c.Hockney.RInf)
			row.Note += "; model: fitted to these points, r∞ of Hockney's line"
		}
		item.Rows = append(item.Rows, row)
	}
	for _, p := range r.PeakRatio {
		item.Rows = append(item.Rows, PaperRow{What: p.Direction + ", peak indirect : direct", Paper: number(p.Paper), Measured: number(p.Ratio), Note: "paper: at the most"})
	}
	for _, direction := range compare.Directions {
		few, least := r.Rate(direction, 1, 4<<10), r.Flatness(direction, 1, 2e6)
		large, many := r.Rate(direction, 1, 2e6), r.Rate(direction, 8, 2e6)
		item.Findings = append(item.Findings,
			shape(direction+": one process: the rate at 2 MB is over 1.5 times that at 4 KiB", large > 1.5*few, "%.1f times", large/few),
			shape(direction+": one process: flat from 2 MB (within 20 %)", least > 0.8, "least over most: %.2f", least),
			shape(direction+": eight processes carry over twice as much as one at 2 MB", many > 2*large, "%.2f times", many/large))
	}
	return trust(item, r.Busy)
}

// agreements are the results of a catalogued item, in their order.
var agreements = []struct {
	of           papers.Agreement
	what, result string
}{
	{papers.Equal, "the formula gives the printed figure, to its last digit", cli.ShapeSame},
	{papers.WithinRounding, "the formula gives it from what the paper has rounded", cli.ShapeRounded},
	{papers.FittedTo, "constants were chosen to give it, which shows nothing", cli.ShapeFitted},
	{papers.Different, "the formula gives another figure", cli.ShapeDiffers},
}

// catalogued is an item whose figures a formula gives: all of a family, or those of
// some rows of it.
func catalogued(ref, title string, family papers.Family, rows ...string) PaperItem {
	item := PaperItem{Ref: ref, Title: title}
	all, by := 0, make(map[papers.Agreement][]string)
	for _, f := range papers.Catalogue() {
		if f.Family != family || len(rows) > 0 && !slices.Contains(rows, f.Row) {
			continue
		}
		note := f.Formula
		if f.Agreement == papers.WithinRounding {
			note += "; rounding " + f.Rounding
		}
		item.Rows = append(item.Rows, PaperRow{
			What: f.What, Unit: f.Unit, Paper: number(f.Published), Model: number(f.Model), Step: f.Step, Note: note,
		})
		all++
		by[f.Agreement] = append(by[f.Agreement], fmt.Sprintf("%s: %g beside %.4g", f.What, f.Published, f.Model))
	}
	for _, a := range agreements {
		n := len(by[a.of])
		if n == 0 {
			continue
		}
		f := PaperFinding{What: a.what, Result: a.result, Why: fmt.Sprintf("%d of %d", n, all)}
		if a.of == papers.Different {
			f.Why += "; " + strings.Join(by[a.of], ", ")
		}
		item.Findings = append(item.Findings, f)
	}
	return item
}
