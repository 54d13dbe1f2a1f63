package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// runsToChance counts the runs until the thread has another chance.
func runsToChance(t *testing.T, r *runs) (n int) {
	for n = 1; !r.chance(); n++ {
		require.Less(t, n, 2*runsMost)
	}
	require.False(t, r.alone.Load(), "calls wait for it")
	return n
}

// TestLateThreadLosesItsCalls: a thread that does not answer has fewer chances each time.
func TestLateThreadLosesItsCalls(t *testing.T) {
	var r runs
	for last := runsLeast; ; {
		for range lateMost - 1 {
			r.missed()
			require.False(t, r.alone.Load(), "it may wake up yet")
		}
		r.missed()
		require.True(t, r.alone.Load())
		n := runsToChance(t, &r)
		require.Equal(t, min(2*last, runsMost), n)
		if n == last {
			return
		}
		last = n
	}
}

// TestThreadThatAnswersKeepsItsCalls: being late now and then costs it nothing; being
// late as often as not costs it the calls.
func TestThreadThatAnswersKeepsItsCalls(t *testing.T) {
	var r runs
	for range 100 {
		for range flushAt / lateCosts {
			r.missed()
		}
		r.answered()
		require.False(t, r.alone.Load())
	}
	for range lateMost {
		r.missed()
	}
	require.Equal(t, 2*runsLeast, runsToChance(t, &r), "what was before is forgiven")
	for n := 0; !r.alone.Load(); n++ {
		require.Less(t, n, lateMost)
		for range flushAt {
			r.missed()
		}
		r.answered()
	}
}
