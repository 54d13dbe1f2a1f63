package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// runsToChance counts the runs until the thread has another chance, and takes it.
func runsToChance(t *testing.T, r *runs) (n int) {
	for n = 1; !r.chance(); n++ {
		require.Less(t, n, 2*runsMost)
	}
	for range meetings {
		require.True(t, r.alone.Load(), "nobody waits for a thread that may sleep yet")
		r.meet()
	}
	require.False(t, r.alone.Load(), "calls wait for it")
	return n
}

// TestThreadThatSleepsOnKeepsNobodyWaiting: calls that met the thread long ago do not
// count.
func TestThreadThatSleepsOnKeepsNobodyWaiting(t *testing.T) {
	var r runs
	for range lateMost {
		r.missed()
	}
	for range 3 {
		for range meetings - 1 {
			r.meet()
		}
		for !r.chance() {
			require.True(t, r.alone.Load())
		}
	}
	require.True(t, r.alone.Load())
}

// TestLateThreadLosesItsCalls: a thread that does not answer has fewer chances each time.
func TestLateThreadLosesItsCalls(t *testing.T) {
	var r runs
	for last := runsLeast; ; {
		for range lateMost - 1 {
			r.missed()
			require.False(t, r.alone.Load(), "it may come yet")
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

// TestMeasuredCallsHaveExactRuns: runs are exact while a call of the island is measured.
func TestMeasuredCallsHaveExactRuns(t *testing.T) {
	var h half
	h.mailbox = &mailbox{runs: new(runs)}
	h.measure(nil)
	require.Zero(t, h.mailbox.runs.measured.Load())
	h.measure(new(stamp.Record))
	require.EqualValues(t, 1, h.mailbox.runs.measured.Load())
	h.over()
	h.over() // of a call that nobody measures
	require.Zero(t, h.mailbox.runs.measured.Load())
}

// TestReports: a slot is reported once, and not where the island watches, or wants no reports.
func TestReports(t *testing.T) {
	for _, c := range []struct{ news, number, set, watched, want uint64 }{
		{news: 8, number: 4, want: 8},
		{news: 8, number: 4, set: 9, want: 9},
		{news: 8, number: 4, set: 1, watched: 3, want: 9},
		{news: 8, number: 4, set: 1, watched: 4, want: 1},
		{set: 1, want: 1},
	} {
		b := &mailbox{line: &wire.IslandLine{News: c.set, Watched: c.watched}, news: c.news, number: c.number}
		b.reportLocked()
		require.Equal(t, c.want, b.line.News, "%+v", c)
	}
}
