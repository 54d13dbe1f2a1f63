//go:build linux

package report

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/nfcomms/nfcomms/bench/internal/links"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
)

var linkDecisions = []PaperDecision{
	{
		"PCI Express 2.0 with 8 lanes carries 4+4 GB/s in one place and 5 GB/s in another.",
		"5 GB/s are 8 lanes of 5 GT/s with their code, 4 GB/s what 8b10b leaves. 4 is compared.",
	},
	{
		"A sender stops at T_RED, which has no figure.",
		"One packet less than the FIFO gives all four E3 of the table, and no other whole number of packets does.",
	},
	{
		"34 Gb/s and a FIFO of 4,096 words give 3060 MB/s, with E_T at 0.898.",
		"0.898 gives 3053, and 0.90 gives 3060: E_T was rounded once more.",
	},
}

// linkItems are those of the torus link: what is electrical is modelled.
func linkItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	r, err := (&links.LinkOptions{Cycles: m.cycles, Time: m.slice, Errors: []float64{0}, Threads: 2}).Run(ctx)
	if err != nil {
		return nil, err
	}
	return []PaperItem{
		catalogued("Efficiency of the link", "E1, E2, E3, E_T and bandwidths by FIFO depth", papers.FamilyLink),
		linkFlows(r),
		reported("Error rates of cables", "bits in error by length and rate", "cables and transceivers; nfbench link injects rates", "A12"),
		reported("Latencies between GPUs", "peer to peer, staged, InfiniBand", "a GPU, a card and InfiniBand; nfbench peers has both ways for an emulated processor's memory", "A6"),
		reported("The card's memory paths", "reads, writes and translations", "a GPU and the card", "A31", "A33", "A34", "A35"),
	}, nil
}

// linkFlows is the table of E_T, and the open question of the slides: how to suppress
// the wait W.
func linkFlows(r *links.LinkReport) PaperItem {
	item := PaperItem{
		Ref: "W must be suppressed (how?)", Title: "E_T by FIFO depth, and with credits that count what was consumed",
		Label: r.Label + ": the firmware's link, a word a cycle", Picture: "link-depth.svg", plot: r.Plot(),
	}
	agrees, full := 0.0, 1.0
	for _, f := range r.Flows {
		row := PaperRow{
			What: fmt.Sprintf("FIFO of %d words, %s", f.Depth, f.Flow), Model: number(f.Formula), Measured: number(f.Running),
			Note: fmt.Sprintf("simulated cycle by cycle: %.3f", f.Simulated),
		}
		if f.Paper > 0 {
			row.Paper = number(f.Paper)
			agrees = max(agrees, math.Abs(f.Running/f.Paper-1))
		} else {
			full = min(full, f.Running/f.Formula)
		}
		item.Rows = append(item.Rows, row)
	}
	item.Findings = []PaperFinding{
		shape("the classic flow control waits for credits as in the table, to 5 %", agrees < 0.05, "%.1f %% off at most", 100*agrees),
		shape("with credits that count what was consumed hardly more than frames is lost (to 2 %), at every depth", full > 0.98, "%.3f of that at least", full),
	}
	return item
}

// reported is an item that cannot be had here, with what the report measured in some rows.
func reported(ref, title, why string, rows ...string) PaperItem {
	item := absent(ref, title, why)
	for _, f := range papers.ReportedFigures() {
		if !slices.Contains(rows, f.Row) {
			continue
		}
		row := PaperRow{What: f.What, Unit: f.Unit, Paper: number(f.Value)}
		if f.Bound {
			row.Note = "upper bound"
		}
		item.Rows = append(item.Rows, row)
	}
	return item
}
