package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDecide(t *testing.T) {
	most := Goal{Value: 1, Target: 1, AtMost: true}
	require.Equal(t, resultReached, most.decide("").Result)
	most.Value = 1.01
	require.Equal(t, "missed by 1.0 %", most.decide("").Result)
	least := Goal{Value: 0.9, Target: 0.95}
	require.Equal(t, "missed by 5.3 %", least.decide("").Result)
	require.Equal(t, "missed by 0.25", Goal{Value: 0.25, AtMost: true}.decide("").Result)
	busy := least.decide("machine busy")
	require.Equal(t, "not measured: machine busy", busy.Result)
	require.Zero(t, busy.Value)
	var b strings.Builder
	writeGoals(&b, []Goal{busy, most.decide("")})
	require.Contains(t, b.String(), "not measured: machine busy")
	require.Contains(t, b.String(), "≥ 0.95")
	require.Contains(t, b.String(), "≤ 1")
}
