//go:build linux

package peers

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
)

// TestPeersOfTwoProcesses: a device of another process is held against its own goals, and
// libraries in C are measured like the others.
func TestPeersOfTwoProcesses(t *testing.T) {
	address := clitest.StartDevice(t)
	t.Setenv("PATH", clitest.FakeToolchain(t, clitest.FakePeer))
	var r Report
	clitest.Decode(t, clitest.MustRun(t, append(tinyPeers, "--address", address, "--output", "json", "--sizes", "1MiB")...), &r)
	require.Empty(t, r.NotMeasured)
	require.Len(t, r.Bulk, 3*(bulkSides+2+len(compare.NativeLibraries)+4))
	require.Len(t, r.Small, smallSides+len(compare.NativeLibraries)+1)
	require.Equal(t, compare.NameLineProcesses, r.Small[len(r.Small)-1].Peer)
	require.Equal(t, nameMPI, r.Small[smallSides].Peer)
	require.Equal(t, compare.DoesEcho, r.Small[smallSides].Does)
	require.InDelta(t, 10, r.Small[smallSides].P50Ns, 1, "batches of 100 that take 1000 ns")
	ids := map[string]int{}
	for _, g := range r.Goals {
		ids[g.ID]++
	}
	require.Equal(t, map[string]int{"T1": 1, "T1e": 1, "T2": 3, "T3": 2, "T4": 1, "T7": 8, "T8": 2, "T12": 4, "T19": 6}, ids)
	require.Len(t, r.Gifts, giftSides+3*2)
	require.Equal(t, []string{compare.NameHosts, compare.NameLineProcesses, compare.NameGift(64 << 10), compare.NameInPlace(nameIceoryx2, 64<<10)},
		[]string{r.Gifts[1].Peer, r.Gifts[2].Peer, r.Gifts[3].Peer, r.Gifts[4].Peer})
	for _, row := range r.Gifts {
		require.Positive(t, row.VsNFComms.Median, row.Peer)
		require.Positive(t, row.VsLimit.Median, row.Peer)
	}
}
