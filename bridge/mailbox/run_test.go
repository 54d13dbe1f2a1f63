package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCallsRunUntilTheyMeet: calls that meet one another leave the island to its thread.
func TestCallsRunUntilTheyMeet(t *testing.T) {
	var r runs
	for range 10 * runsLeast {
		require.False(t, r.note(false), "nobody met anybody")
	}
	met := 0
	for i := 0; !r.note(i%runsShare == 0); i++ {
		met++
		require.Less(t, met, 2*runsLeast)
	}
	require.True(t, r.threaded.Load())
}

// TestLateThreadLosesItsCalls: a thread that does not answer has fewer chances each time.
func TestLateThreadLosesItsCalls(t *testing.T) {
	var r runs
	runsToChance := func() (n int) {
		for n = 1; !r.note(true); n++ {
			require.Less(t, n, 4*runsMost)
		}
		return n
	}
	last := runsToChance()
	for range 20 {
		for range lateMost - 1 {
			r.missed()
			require.True(t, r.threaded.Load(), "it may wake up yet")
		}
		r.missed()
		require.False(t, r.threaded.Load())
		n := runsToChance()
		require.Equal(t, min(2*last, runsMost), n)
		last = n
	}
	r.answered(flushAt)
	for range lateMost {
		r.missed()
	}
	require.Equal(t, 2*runsLeast, runsToChance(), "it had answered again")
}

// TestThreadIsTriedForAWhile: after enough answers calls try themselves again.
func TestThreadIsTriedForAWhile(t *testing.T) {
	var r runs
	r.threaded.Store(true)
	for n := flushAt; n < trialAt; n += flushAt {
		r.answered(flushAt)
		require.True(t, r.threaded.Load())
	}
	r.answered(flushAt)
	require.False(t, r.threaded.Load())
}
