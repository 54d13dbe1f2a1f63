//go:build linux

package report

import (
	"context"
	"fmt"
	"math"

	"github.com/nfcomms/nfcomms/bench/internal/links"
	"github.com/nfcomms/nfcomms/internal/model"
)

// linkItems are those of the torus link: what is electrical is modelled.
func linkItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	r, err := (&links.LinkOptions{Cycles: m.cycles, Time: m.slice, Errors: []float64{0}, Threads: 2}).Run(ctx)
	if err != nil {
		return nil, err
	}
	return []PaperItem{
		catalogued("Efficiency of the link", "E1, E2, E3, E_T and bandwidths by FIFO depth", model.FamilyLink),
		linkFlows(r),
		absent("Error rates of cables", "bits in error by length and rate", "cables and transceivers; nfbench link injects the rates"),
		absent("Latencies between GPUs", "8.2, 16.8 and 17.4 µs", "a GPU, a card and InfiniBand"),
	}, nil
}

// linkFlows is the table of E_T, and the open question of the slides: how to suppress
// the wait W.
func linkFlows(r *links.LinkReport) PaperItem {
	item := PaperItem{
		Ref: "W must be suppressed (how?)", Title: "E_T by FIFO depth, and with credits that count what was consumed",
		Label: "the firmware's link, a word a cycle", Picture: "link-depth.svg", plot: r.Plot(),
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
		shape("with credits that count what was consumed nothing but frames is lost, at every depth", full > 0.98, "%.3f of that at least", full),
	}
	return item
}
