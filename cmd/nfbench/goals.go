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
	// Result is "met", "not met" or "not measured: why".
	Result string `json:"result"`
}

const (
	resultMet    = "met"
	resultNotMet = "not met"
)

// decide fills in the result; a non-empty reason means that the value is worth nothing.
func (g Goal) decide(reason string) Goal {
	met := g.Value >= g.Target
	if g.AtMost {
		met = g.Value <= g.Target
	}
	switch {
	case reason != "":
		g.Result, g.Value = "not measured: "+reason, 0
	case met:
		g.Result = resultMet
	default:
		g.Result = resultNotMet
	}
	return g
}

func (g Goal) measured() bool { return g.Result == resultMet || g.Result == resultNotMet }

func writeGoals(w io.Writer, goals []Goal) {
	t := texttable.Numbers("goal", "measured", "target", "result")
	for _, g := range goals {
		sign, value := "≥", "–"
		if g.AtMost {
			sign = "≤"
		}
		if g.measured() {
			value = fmt.Sprintf("%.3g", g.Value)
		}
		t.Add(g.ID+" "+g.What, value, fmt.Sprintf("%s %.3g", sign, g.Target), g.Result)
	}
	t.Write(w)
}
