package cli

import (
	"fmt"
	"io"
	"math"
	"strings"

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
	// Result is "reached", "missed by N %" or "not measured: why".
	Result string `json:"result"`
}

// Results of a goal: the second goes on by how much, the third why.
const (
	ResultReached     = "reached"
	resultMissed      = "missed by "
	ResultNotMeasured = "not measured: "
)

// Decide fills in the result; a non-empty reason means that the value is worth nothing.
func (g Goal) Decide(reason string) Goal {
	met := g.Value >= g.Target
	if g.AtMost {
		met = g.Value <= g.Target
	}
	switch {
	case reason != "":
		g.Result, g.Value = ResultNotMeasured+reason, 0
	case met:
		g.Result = ResultReached
	default:
		g.Result = resultMissed + missedText(g.Value, g.Target)
	}
	return g
}

// Withhold has no goal of a report reached or missed if the report calls the machine busy.
func Withhold(goals []Goal, busy string) {
	for i, g := range goals {
		if busy != "" && g.Measured() {
			goals[i] = g.Decide(busy)
		}
	}
}

// missedText is how far a value is from its target, as a part of the target.
func missedText(value, target float64) string {
	if target == 0 {
		return fmt.Sprintf("%.3g", math.Abs(value))
	}
	digits, part := 0, 100*math.Abs(value-target)/target
	if part < 10 {
		digits = 1
	}
	return fmt.Sprintf("%.*f %%", digits, part)
}

// Measured is whether there is a figure.
func (g Goal) Measured() bool { return !strings.HasPrefix(g.Result, ResultNotMeasured) }

// WriteGoals writes a row for each goal.
func WriteGoals(w io.Writer, goals []Goal) {
	t := texttable.Numbers("goal", "measured", "target", "result")
	for _, g := range goals {
		value, target := "–", "–"
		if g.Measured() {
			value = fmt.Sprintf("%.3g", g.Value)
		}
		switch {
		case g.AtMost:
			target = fmt.Sprintf("≤ %.3g", g.Target)
		case g.Target != 0: // a goal that nothing here measures has none
			target = fmt.Sprintf("≥ %.3g", g.Target)
		}
		t.Add(g.ID+" "+g.What, value, target, g.Result)
	}
	t.Write(w)
}
