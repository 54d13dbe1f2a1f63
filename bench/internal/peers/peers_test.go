package peers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bench/internal/clitest"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

var tinyPeers = []string{"peers", "--rounds", "1", "--slice", "1ms", "--sizes", "64KiB,100000",
	"--idle", "1ms", "--blocked", "50"}

func TestPeersJSON(t *testing.T) {
	t.Setenv("PATH", "") // no libraries in C: they take their time
	var r Report
	clitest.Decode(t, clitest.MustRun(t, append(tinyPeers, "--output", "json")...), &r)
	clitest.RequireHeader(t, "peers", r.Header)
	require.Len(t, r.Small, smallSides)
	require.Len(t, r.Bulk, 2*(bulkSides+farSides))
	require.Equal(t, []string{compare.NameFarDirect, compare.NameFarStaged}, []string{r.Bulk[bulkSides].Peer, r.Bulk[bulkSides+1].Peer})
	for _, row := range append(r.Small, r.Bulk...) {
		require.Positive(t, row.Ops, row.Peer)
		require.Positive(t, row.Ns.Median, row.Peer)
		require.Positive(t, row.VsNFComms.Median, row.Peer)
		require.LessOrEqual(t, row.P50Ns, row.P99Ns, row.Peer)
	}
	require.Equal(t, 50, r.Blocked.Sends)
	ids := map[string]int{}
	for _, g := range r.Goals {
		ids[g.ID]++
		require.NotEmpty(t, g.Result)
	}
	require.Equal(t, map[string]int{"T1": 1, "T1e": 1, "T3": 2, "T4": 1, "T5": 4, "T8": 2, "T12": 4}, ids)
}

func TestPeersTable(t *testing.T) {
	t.Setenv("PATH", "")
	out := clitest.MustRun(t, tinyPeers...)
	for _, want := range []string{compare.NameMemcpy, compare.NameChan, compare.NamePipe, compare.NameUnix, compare.NameMangos, compare.NameGRPC, compare.NameSend, compare.NameReceive, compare.NameEcho, compare.NameCall,
		compare.NameSendInd, compare.NameReceiveInd, "simulated device", "blocked sends", "T12"} {
		require.Contains(t, out, want)
	}
}

func TestPeersShort(t *testing.T) {
	p := options{rounds: 9}
	p.shorten(func(flag string) bool { return flag == "rounds" })
	require.Equal(t, 9, p.rounds)
	require.NotZero(t, p.slice)
}

// TestNativePeers: each library in C that is installed has its rows in each command,
// beside those that do the same.
func TestNativePeers(t *testing.T) {
	t.Setenv("PATH", clitest.FakeToolchain(t, clitest.FakePeer))
	var r Report
	clitest.Decode(t, clitest.MustRun(t, append(tinyPeers, "--output", "json")...), &r)
	require.Empty(t, r.NotMeasured)
	const copies = 4
	require.Len(t, r.Small, smallSides+len(compare.NativeLibraries)+1)
	require.Len(t, r.Bulk, 2*(bulkSides+farSides+len(compare.NativeLibraries)+copies))
	line := r.Small[len(r.Small)-1]
	require.Equal(t, []string{compare.NameLineThreads, compare.DoesLimit}, []string{line.Peer, line.Does})
	for _, row := range append(r.Small, r.Bulk...) {
		require.Positive(t, row.VsLimit.Median, row.Peer)
	}
	require.InDelta(t, 1, line.VsLimit.Median, 1e-9)
	for i, l := range compare.NativeLibraries {
		small, bulk := r.Small[smallSides+i], r.Bulk[bulkSides+farSides+i]
		require.Equal(t, l.Name+" in C, other process", small.Peer)
		require.Equal(t, compare.DoesEcho, small.Does)
		require.InDelta(t, 10, small.Ns.Median, 1e-9)
		require.Equal(t, compare.DoesWord, bulk.Does)
		require.InDelta(t, 1000, bulk.Ns.Median, 1e-9)
		require.Positive(t, bulk.CPUNs.Median)
	}
}

// TestLimits: a row for each limit, once for a message and once for each size, and none where there is no
// compiler.
func TestLimits(t *testing.T) {
	tiny := []string{"limits", "--rounds", "1", "--slice", "1ms", "--sizes", "64KiB,100000", "--output", "json"}
	t.Setenv("PATH", clitest.FakeToolchain(t, clitest.FakePeer))
	var r LimitsReport
	clitest.Decode(t, clitest.MustRun(t, tiny...), &r)
	require.Empty(t, r.NotMeasured)
	var names []string
	for _, l := range r.Limits {
		names = append(names, l.Name)
		if strings.Contains(l.Name, " in C") {
			want := 1000.0 // for a batch
			if strings.Contains(l.Name, "cache line") {
				want /= compare.SmallBatch
			}
			require.InDelta(t, want, l.Ns.Median, 1e-9, l.Name)
		}
	}
	bulk := []string{compare.NameMemcpy, compare.NameMemcpyCold, compare.NameCopyOne, compare.NameCopyTwo,
		compare.NameCopyOneCold, compare.NameCopyTwoCold, compare.NameRead}
	small := []string{compare.NameMemcpy, compare.NameLineThreads, compare.NameLineProcesses, compare.NameFutex, compare.NamePin}
	require.Equal(t, append(small, append(bulk, bulk...)...), names)

	t.Setenv("PATH", "")
	r = LimitsReport{}
	clitest.Decode(t, clitest.MustRun(t, tiny...), &r)
	require.Len(t, r.NotMeasured, 2)
	require.Len(t, r.Limits, 5, "memcpy needs no compiler")
}

// TestPeersTheory: beside three points and more is Hockney's line, here through all of them.
func TestPeersTheory(t *testing.T) {
	r := &Report{}
	for _, n := range []int{1000, 2000, 4000} { // 5 µs and a byte each ns
		r.Bulk = append(r.Bulk, Row{Peer: "a", Size: n, Ns: stat.Spread{Median: 5000 + float64(n)}})
	}
	r.Bulk = append(r.Bulk, Row{Peer: "b", Size: 1000, Ns: stat.Spread{Median: 1}})
	p := r.draw()
	require.Len(t, p.Series, 3, "one point has no line")
	require.InDeltaSlice(t, []float64{6, 7, 9}, p.Series[2].Y, 1e-6)
	require.True(t, p.Series[2].Dashed)
}
