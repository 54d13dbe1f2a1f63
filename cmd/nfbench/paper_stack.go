//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/pkg/model"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

var stackDecisions = []PaperDecision{{
	"The slides have 2 lanes in one place and 4 in another, for the same 1 GB/s.",
	"PCI Express 2.0 carries 500 MB/s a lane: 1 GB/s are 2 lanes.",
}}

// stackItems are those of the stack analysis.
func stackItems(ctx context.Context, m *paperMachine) ([]PaperItem, error) {
	r, err := m.bulk(ctx)
	if err != nil {
		return nil, err
	}
	return []PaperItem{
		catalogued("PCI Express", "packets, lanes, shares", model.FamilyPath),
		absent("C++ reference", "980, 430, 100 and 80 MB/s", "a vendor's library on its board; CPU time and wall time stand apart in nfbench throughput"),
		trust(stackSweep(r), r.Busy),
		trust(stackLine(r), r.Busy),
		absent("Without flow control", "right amount, wrong data", "no device can be used so: a transfer starts when its target has given memory; nfbench stack shows it between two goroutines"),
		absent("Java beside C++", "difference of their times over the chunk size", "the C library opens devices of the kernel module; there is none here to compare on"),
	}, nil
}

// stackSweep is the table of chunk sizes.
func stackSweep(r *ThroughputReport) PaperItem {
	item := PaperItem{Ref: "Java with flow control", Title: "bandwidth over the chunk size, synchronous", Label: "measured, " + r.Device.Label + ", wall time"}
	rises := true
	last := 0.0
	for _, j := range slides {
		got := r.rate(directions[0], 1, j.KiB<<10) / 8 * 1e3
		rises = rises && got > last
		last = got
		item.Rows = append(item.Rows, PaperRow{What: fmt.Sprintf("%d KiB", j.KiB), Unit: "MB/s", Paper: number(j.Sync), Measured: number(got)})
	}
	few, many := r.rate(directions[0], 1, 8<<10), r.rate(directions[0], 8, 8<<10)
	item.Findings = []PaperFinding{
		shape("a larger chunk is faster, at each step", rises, ""),
		shape("asynchronous beats synchronous (8 KiB: 70 over 50 MB/s); here: eight targets at once over one", many > few, "%.2f times", many/few),
	}
	return item
}

// stackLine is what the slides say of the shape of the curve.
func stackLine(r *ThroughputReport) PaperItem {
	item := PaperItem{Ref: "Without flow control, Java and C++", Title: "half of the bandwidth, nine tenths of it, and the share of software", Label: "measured, " + r.Device.Label + ", with flow control"}
	for _, c := range r.Curves {
		if c.Targets != 1 || c.Hockney == nil {
			continue
		}
		half, tenths, share := c.Hockney.NHalf/1024, 9*c.Hockney.NHalf/1024, c.Hockney.N95/1024
		item.Rows = append(item.Rows,
			PaperRow{What: c.Direction + ": half of the rate from", Unit: "KiB", Paper: number(256), Measured: number(half)},
			PaperRow{What: c.Direction + ": 90 % of the rate from", Unit: "KiB", Paper: number(4096), Model: number(9 * 256), Measured: number(tenths), Note: "nine times as much by Hockney's line"},
			PaperRow{What: c.Direction + ": software under 5 % from", Unit: "KiB", Paper: number(256), Measured: number(share), Note: "here all of the start-up counts as software"})
		item.Findings = append(item.Findings, shape(c.Direction+": half of the rate takes chunks of some 256 KiB (128 to 512)", half >= 128 && half <= 512, "%.1f KiB; less is better", half))
	}
	return item
}
