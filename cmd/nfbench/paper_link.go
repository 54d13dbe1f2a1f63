//go:build linux

package main

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/pkg/model"
)

// linkItems are those of the torus link: what is electrical is modelled.
func linkItems(context.Context, *paperMachine) ([]PaperItem, error) {
	return []PaperItem{
		catalogued("Efficiency of the link", "E1, E2, E3, E_T and bandwidths by FIFO depth", model.FamilyLink),
		linkCycles(),
		absent("Error rates of cables", "bits in error by length and rate", "cables and transceivers; nfbench and the tests inject the rates"),
		absent("Latencies between GPUs", "8.2, 16.8 and 17.4 µs", "a GPU, a card and InfiniBand"),
	}, nil
}

// linkCycles is the open question of the slides: how to suppress the wait W.
func linkCycles() PaperItem {
	item := PaperItem{Ref: "W must be suppressed (how?)", Title: "E3 with credits that count what was consumed", Label: "simulated cycle by cycle"}
	agrees, full := true, true
	for _, depth := range []int{512, 1024, 2048, 4096} {
		l := modelLink(depth)
		item.Rows = append(item.Rows,
			PaperRow{What: fmt.Sprintf("FIFO of %d words, classic", depth), Model: number(l.Formula), Measured: number(l.Classic), Note: "n·S/(n·S+W)"},
			PaperRow{What: fmt.Sprintf("FIFO of %d words, cumulative", depth), Model: number(1), Measured: number(l.Cumulative)})
		agrees = agrees && l.Classic > 0.99*l.Formula && l.Classic < 1.01*l.Formula
		full = full && l.Cumulative >= 0.99
	}
	item.Findings = []PaperFinding{
		shape("the simulation gives what the formula does, to 1 %", agrees, ""),
		shape("with credits that count what was consumed the wait vanishes at every depth", full, ""),
	}
	return item
}
