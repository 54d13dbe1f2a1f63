package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShort: --short changes what the user left alone, and nothing else.
func TestShort(t *testing.T) {
	var r LatencyReport
	decode(t, mustRun(t, "latency", "--short", "--batch", "2", "--output", "json"), &r)
	require.Equal(t, []int{1000, 2}, []int{r.Batches, r.Batch})
	o := throughputOptions{tests: 15, payload: "1MB"}
	o.shorten(func(flag string) bool { return flag == "payload" })
	require.Equal(t, "1MB", o.payload)
	require.Equal(t, 3, o.tests)
	p := peersOptions{rounds: 9}
	p.shorten(func(flag string) bool { return flag == "rounds" })
	require.Equal(t, 9, p.rounds)
	require.NotZero(t, p.slice)
}
