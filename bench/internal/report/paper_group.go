//go:build linux

package report

import (
	"context"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/groups"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
)

// groupItems are those of the spike-exchange report.
func groupItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	scaling, err := groupScaling(ctx, m)
	if err != nil {
		return nil, err
	}
	const processors = "processors of a Cray XE6 and a Blue Gene/Q"
	return []PaperItem{
		absent("Figures 1–3, 6", "sequence diagrams and setups", "drawings; docs/groups.md lists the algorithms by the report's numbers"),
		scaling,
		absent("Figures of strong scaling", "modifications on Lindgren and JUQUEEN", processors),
		absent("Figures of intervals", "mean and maximum for each step, spikes handled", processors+"; go run ./apps/spikes prints both for its own network"),
		catalogued("§ 4", "volume of a step", papers.FamilyExchange, "M21"),
		catalogued("Table of appendix A", "chance that all send to all", papers.FamilyExchange, "M29"),
		catalogued("Table of appendix B", "bytes received and produced", papers.FamilyExchange, "M30"),
	}, nil
}

// groupScaling is what the report says of the algorithms, on members of one machine.
func groupScaling(ctx context.Context, m *paperMachine) (PaperItem, error) {
	o := m.groups
	o.Rounds, o.Slice = m.rounds, m.slice
	r, err := o.Measure(ctx, func(int) cli.Progress { return cli.Progress{} })
	if err != nil {
		return PaperItem{}, err
	}
	m.bar.Step("groups")
	return groupItem(r, o.Transports), nil
}

// groupItem holds what was measured against the results of the report.
func groupItem(r *groups.Report, transports []string) PaperItem {
	item := PaperItem{
		Ref: "Results", Title: "which modification wins where, as far as one machine shows it", Label: r.Label + "; medians of rounds, ratios of the times of each round",
		Picture: "groups-steps.svg", plot: r.Draw(),
	}
	for _, row := range r.Rows {
		if row.Members != 8 {
			continue
		}
		what := row.Name + ", " + row.Transport + ", 8 members, " + cli.SizeText(row.Size)
		item.Rows = append(item.Rows, PaperRow{What: what, Unit: "µs a step", Measured: number(row.Rounds.Median)})
	}
	var all []cli.Finding
	for _, transport := range transports {
		for _, name := range []string{"send", "isend"} {
			ratio := r.Ratios(transport, 8, 64, "send-loop", name)
			all = append(all, r.Finding("the algorithm of 2009, send-loop, takes longer than "+name+" ("+transport+")", ratio, true))
		}
	}
	item.Findings = findings(append(all, r.Findings...))
	return item
}
