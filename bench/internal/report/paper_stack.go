//go:build linux

package report

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/bench/internal/stack"
)

var stackDecisions = []PaperDecision{{
	"The slides have 2 lanes in one place and 4 in another, for the same 1 GB/s.",
	"PCI Express 2.0 carries 500 MB/s a lane: 1 GB/s are 2 lanes.",
}}

// stackItems are those of the stack analysis.
func stackItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	plan := stack.Plan{Payload: m.payload / 4, Sizes: slices.Clone(m.chunks), Depth: 4, Tests: m.tests}
	for i := range stack.Slides {
		plan.Sizes = append([]int{stack.Slides[len(stack.Slides)-1-i].KiB << 10}, plan.Sizes...)
	}
	r, err := stack.Measure(ctx, m.dev, plan, cli.Progress{})
	if err != nil {
		return nil, err
	}
	m.bar.Step("stack")
	return []PaperItem{
		pciExpress(),
		absent("C++ reference", "980, 430, 100 and 80 MB/s", "a vendor's library on its board; CPU time and wall time stand apart in nfbench stack"),
		trust(stackSweep(r), r.Busy),
		stackLoose(r),
		stackLanguages(r),
	}, nil
}

// pciExpress is what the slides say of packets and lanes.
func pciExpress() PaperItem {
	return catalogued("PCI Express", "packets and lanes", papers.FamilyPath, "F7", "F3")
}

// stackSweep is the table of chunk sizes, and the shape of its curve.
func stackSweep(r *stack.Report) PaperItem {
	item := PaperItem{
		Ref: "With flow control, Java and C++", Title: "bandwidth over the chunk size", Label: "measured, " + r.Device.Label + ", wall time, by Go",
		Picture: "stack-chunks.svg", plot: r.Plot(),
	}
	row := func(kib int, mode string, paper float64) {
		item.Rows = append(item.Rows, PaperRow{What: fmt.Sprintf("%d KiB, %s, h2d", kib, mode), Unit: "MB/s", Paper: number(paper), Measured: number(r.Near(mode, kib<<10))})
	}
	rises, last := true, 0.0
	for _, s := range r.Slides {
		row(s.KiB, stack.Sync, s.Sync)
		if s.Async > 0 {
			row(s.KiB, stack.Overlapped, s.Async)
		}
		rises = rises && r.Near(stack.Sync, s.KiB<<10) > last
		last = r.Near(stack.Sync, s.KiB<<10)
	}
	for _, direction := range compare.Directions {
		h := r.At(stack.Sync, direction).Hockney
		if h == nil {
			continue
		}
		item.Rows = append(item.Rows,
			PaperRow{What: direction + ": half of the rate from", Unit: "KiB", Paper: number(256), Measured: number(h.NHalf / 1024)},
			PaperRow{What: direction + ": 90 % of the rate from", Unit: "KiB", Paper: number(4096), Model: number(9 * 256), Measured: number(9 * h.NHalf / 1024), Note: "nine times as much by Hockney's line"})
	}
	item.Findings = []PaperFinding{shape("a larger chunk is faster, at each step", rises, "")}
	for _, f := range r.Findings[:len(r.Findings)-len(r.LooseFindings())-len(r.BesideFindings())] {
		item.Findings = append(item.Findings, shape(f.What, f.Same, "%s", f.Why))
	}
	return item
}

// stackLoose shows how often data are wrong without flow control.
func stackLoose(r *stack.Report) PaperItem {
	const ref, title = "Without flow control", "right amount, wrong data"
	if len(r.Loose) == 0 {
		return absent(ref, title, strings.Join(r.Absent, "; "))
	}
	item := PaperItem{Ref: ref, Title: title, Label: "measured, " + r.Device.Label + ": by a device program of the benchmark that overruns its buffers"}
	for _, l := range r.Loose {
		item.Rows = append(item.Rows, PaperRow{
			What: fmt.Sprintf("%s, chunks of %s, %s: wrong", l.Path, cli.SizeText(l.Size), l.Mode), Unit: "%", Measured: number(100 * float64(l.Wrong) / float64(l.Chunks)),
		})
	}
	for _, f := range r.LooseFindings() {
		item.Findings = append(item.Findings, shape(f.What, f.Same, "%s", f.Why))
	}
	return item
}

// stackLanguages is what a chunk takes longer by calls of C, through libnfcomms, than by those of Go.
func stackLanguages(r *stack.Report) PaperItem {
	const ref, title = "Java beside C++", "difference of their times over the chunk size"
	if len(r.Beside) == 0 {
		return absent(ref, title, strings.Join(r.Absent, "; "))
	}
	item := PaperItem{Ref: ref, Title: title, Label: "measured, " + r.Device.Label + ": C by libnfcomms, less Go"}
	if r.Device.Driver != "dev" {
		item.Label += "; without the kernel module libnfcomms makes the memory of each transfer present first"
	}
	for _, b := range r.Beside {
		if b.Mode == stack.Sync {
			item.Rows = append(item.Rows, PaperRow{What: cli.SizeText(b.Size) + " " + b.Direction, Unit: "µs", Measured: number((b.CNS - b.GoNS) / 1e3)})
		}
	}
	for _, f := range r.BesideFindings() {
		item.Findings = append(item.Findings, shape(f.What, f.Same, "%s", f.Why))
	}
	return trust(item, r.Busy)
}
