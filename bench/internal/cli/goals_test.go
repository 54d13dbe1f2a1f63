package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecide(t *testing.T) {
	most := Goal{Value: 1, Target: 1, AtMost: true}
	require.Equal(t, ResultReached, most.Decide("").Result)
	most.Value = 1.01
	require.Equal(t, "missed by 1.0 %", most.Decide("").Result)
	least := Goal{Value: 0.9, Target: 0.95}
	require.Equal(t, "missed by 5.3 %", least.Decide("").Result)
	require.Equal(t, "missed by 0.25", Goal{Value: 0.25, AtMost: true}.Decide("").Result)
	busy := least.Decide("machine busy")
	require.Equal(t, "not measured: machine busy", busy.Result)
	require.Zero(t, busy.Value)
	var b strings.Builder
	WriteGoals(&b, []Goal{busy, most.Decide("")})
	require.Contains(t, b.String(), "not measured: machine busy")
	require.Contains(t, b.String(), "≥ 0.95")
	require.Contains(t, b.String(), "≤ 1")
}

// TestWithhold: a report that calls the machine busy has no goal that is reached or missed, and
// those that were not measured keep their reason.
func TestWithhold(t *testing.T) {
	goals := func() []Goal {
		return []Goal{Goal{Value: 1}.Decide(""), Goal{Value: 1, Target: 2}.Decide(""), Goal{}.Decide("no threads")}
	}
	results := func(all []Goal) (text []string) {
		for _, g := range all {
			text = append(text, g.Result)
		}
		return text
	}
	all := goals()
	Withhold(all, "")
	require.Equal(t, goals(), all)
	Withhold(all, ReasonBusy)
	require.Equal(t, []string{"not measured: machine busy", "not measured: machine busy", "not measured: no threads"}, results(all))
}
