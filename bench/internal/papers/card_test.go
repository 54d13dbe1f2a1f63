package papers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/papers"
)

// TestCard: counts are those of docs/protocol.md, and a capability never costs.
func TestCard(t *testing.T) {
	c := papers.NewCard(papers.Lanes{Generation: 3, Width: 8}, 256)
	pages := c.Send(papers.Wire{}, 1<<20)
	require.EqualValues(t, 256, pages.Entries)
	require.EqualValues(t, 43, pages.Lists)
	require.EqualValues(t, 45, pages.Down, "offer, lists, commit")
	require.EqualValues(t, 2+1, pages.Up, "ready, progress, done")
	require.EqualValues(t, 2, pages.Trips)
	require.InDelta(t, 0.00378, c.SlotShare(pages), 1e-5)

	one := c.Send(papers.Wire{}, 4096)
	require.Equal(t, []uint64{1, 1, 3, 1, 1}, []uint64{one.Entries, one.Lists, one.Down, one.Up, one.Trips})
	eager := c.Send(papers.Wire{Runs: true, Eager: 4, HostRings: true}, 64<<10)
	require.Equal(t, []uint64{1, 0, 1, 1, 1, 0}, []uint64{eager.Entries, eager.Lists, eager.Down, eager.Up, eager.Trips, eager.Reads})
	require.Equal(t, 800*time.Nanosecond, eager.Setup)
	require.InDelta(t, 9.1, float64(eager.Move)/1e3, 0.1, "64 KiB at 7.2 GB/s")

	wires := []papers.Wire{{}, {Runs: true}, {Runs: true, Eager: 4}, {Runs: true, Eager: 4, HostRings: true}}
	for _, bytes := range []uint64{1, 56, 4096, 4097, 64 << 10, 1 << 20, 1 << 30, 5 << 30} {
		last := time.Duration(1 << 62)
		for _, w := range wires { // each has what the one before has
			got := c.Send(w, bytes)
			require.LessOrEqual(t, got.Setup, last, "%d bytes, %+v", bytes, w)
			require.GreaterOrEqual(t, got.Share(), 0.0)
			last = got.Setup
		}
	}
}
