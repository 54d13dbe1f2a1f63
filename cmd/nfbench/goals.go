package main

import (
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/internal/texttable"
)

// Goal is one of the project's targets and whether this run met it. Goals are
// reported; they never change the exit code.
type Goal struct {
	// ID and What name the goal.
	ID   string `json:"id"`
	What string `json:"what"`
	// Value was measured; Target is what it is held against, AtMost says in
	// which direction.
	Value  float64 `json:"value"`
	Target float64 `json:"target"`
	AtMost bool    `json:"at_most"`
	// Verdict is "met", "not met" or "not measured: why".
	Verdict string `json:"verdict"`
}

const (
	verdictMet    = "met"
	verdictNotMet = "not met"
)

// judge decides; a non-empty reason means that the value is worth nothing.
func (g Goal) judge(reason string) Goal {
	met := g.Value >= g.Target
	if g.AtMost {
		met = g.Value <= g.Target
	}
	switch {
	case reason != "":
		g.Verdict, g.Value = "not measured: "+reason, 0
	case met:
		g.Verdict = verdictMet
	default:
		g.Verdict = verdictNotMet
	}
	return g
}

func (g Goal) measured() bool { return g.Verdict == verdictMet || g.Verdict == verdictNotMet }

func writeGoals(w io.Writer, goals []Goal) {
	t := texttable.Numbers("goal", "measured", "target", "verdict")
	for _, g := range goals {
		sign, value := "≥", "–"
		if g.AtMost {
			sign = "≤"
		}
		if g.measured() {
			value = fmt.Sprintf("%.3g", g.Value)
		}
		t.Add(g.ID+" "+g.What, value, fmt.Sprintf("%s %.3g", sign, g.Target), g.Verdict)
	}
	t.Write(w)
}
