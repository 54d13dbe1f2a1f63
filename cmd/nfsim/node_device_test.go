//go:build cgo

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPatienceWithDevices: a new host waits for a device to which a way leads, whose
// threads may have no processor, and not as long for a way.
func TestPatienceWithDevices(t *testing.T) {
	const step = 100 * time.Millisecond
	waits := func(way func(after time.Duration) bool) time.Duration {
		begin := time.Now()
		p := patient(begin)
		for after := step; ; after += step {
			if p.over(begin.Add(after), way(after)) {
				return after
			}
		}
	}
	require.Equal(t, showTime+step, waits(func(time.Duration) bool { return true }))
	require.Equal(t, wayTime+step, waits(func(time.Duration) bool { return false }))
	require.Equal(t, wayTime+step+500*time.Millisecond, waits(func(after time.Duration) bool { return after <= 500*time.Millisecond }))
	require.Equal(t, showTime+step, waits(func(after time.Duration) bool { return after > wayTime/2 }), "links came up")
}
