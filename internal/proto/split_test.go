package proto

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// checkSplit walks all lists of a buffer and returns what is wrong with them.
func checkSplit(t require.TestingT, s Split) {
	next, sum := s.Address, uint64(0)
	for k := range s.Lists() {
		var g wire.Gather
		g.Entry[5] = 1 // stale
		length := s.Fill(k, &g)
		require.Equal(t, s.Runs, length&wire.ListRuns != 0)
		n := length & wire.ListCountMask
		require.LessOrEqual(t, n, wire.ListEntries)
		require.Positive(t, n)
		require.Equal(t, sum, s.UpTo(k))
		for i, e := range g.Entry {
			if i >= n {
				require.Zero(t, e, "unused entry")
				continue
			}
			address, bytes := e.Address(), uint64(e.Length())
			if s.Runs {
				address, bytes = e.RunAddress(), min(e.RunLength(), s.Size-sum)
				require.Less(t, e.RunLength()-bytes, uint64(abi.PageSize), "cut in its last page")
			} else {
				require.LessOrEqual(t, address%abi.PageSize+bytes, uint64(abi.PageSize), "inside its page")
			}
			require.Equal(t, next, address, "no gap")
			next += bytes
			sum += bytes
		}
		require.Equal(t, s.Size-sum, g.Outstanding())
		require.Equal(t, uint16(k), g.Number())
		if k+1 < s.Lists() {
			require.True(t, n == wire.ListEntries || s.Most > 0 && (next-s.Address+s.head())%s.Most == 0, "only the last list is short")
		}
	}
	require.Equal(t, s.Size, sum)
	require.Equal(t, s.Size, s.UpTo(s.Lists()))
}

func TestSplit(t *testing.T) {
	for _, s := range []Split{
		{Address: 0x1000}, {Address: 0x1fff}, {Address: 0x1000, Size: 1}, {Address: 0x1fff, Size: 1}, {Address: 0x1fff, Size: 2},
		{Address: 0x1000, Size: 4096}, {Address: 0x1001, Size: 4096}, {Address: 0x1000, Size: 6 * 4096},
		{Address: 0x1001, Size: 6 * 4096}, {Address: 0x1000, Size: 6*4096 + 1}, {Address: 0x1fff, Size: 12 * 4096},
		{Address: 1<<47 - 4096, Size: 4096},
	} {
		checkSplit(t, s)
		s.Runs = true
		checkSplit(t, s)
		s.Most = 2 * abi.PageSize
		checkSplit(t, s)
	}
	require.EqualValues(t, 3, Split{Address: 0x1000, Size: 4*4096 + 1, Runs: true, Most: 8192}.Lists())
	require.Zero(t, Split{Address: 0x1234}.Lists())
	require.EqualValues(t, 1, Split{Address: 0x1000, Size: 6 * 4096}.Lists())
	require.EqualValues(t, 2, Split{Address: 0x1001, Size: 6 * 4096}.Lists())
	huge := Split{Address: 0x1000, Size: 5 << 30}
	require.EqualValues(t, 5<<30/(6*4096)+1, huge.Lists())
}

func TestSplitOfRuns(t *testing.T) {
	const run = wire.RunPages * abi.PageSize // 256 MiB
	for _, c := range []struct{ address, size, lists, entries uint64 }{
		{0x7f0000001fff, 64 << 10, 1, 1}, {0x1000, run, 1, 1}, {0x1001, run, 1, 2}, {0x1fff, 6*run - 0xfff, 1, 6},
		{0x1fff, 6*run - 0xffe, 2, 1}, {0x1000, 5 << 30, 4, 2}, {runsEnd - 1<<40, 1 << 40, 683, 4},
	} {
		s := Split{Address: c.address, Size: c.size, Runs: true}
		checkSplit(t, s)
		require.Equal(t, c.lists, s.Lists(), c)
		require.Equal(t, c.entries, uint64(s.Fill(s.Lists()-1, new(wire.Gather))&wire.ListCountMask), c)
	}
}

// TestSplitAsAgreed: runs are for devices that know them, and for addresses that they can name.
func TestSplitAsAgreed(t *testing.T) {
	l := Layout{Hello: wire.Hello{Capabilities: wire.CapRuns}}
	require.True(t, l.Split(runsEnd-4096, 4096).Runs)
	require.False(t, l.Split(runsEnd-4096, 4097).Runs)
	require.False(t, l.Split(runsEnd+1, 1).Runs)
	require.False(t, l.Split(1<<63, 1<<63).Runs)
	l.Hello.Capabilities = wire.CapLoad
	require.False(t, l.Split(4096, 4096).Runs)
}

// TestSplitIsEager: one entry is enough for what a page has, and without entries nothing is eager.
func TestSplitIsEager(t *testing.T) {
	page := Split{Address: 0x1000, Size: abi.PageSize}
	require.True(t, page.IsEager(1))
	require.False(t, page.IsEager(0))
	require.False(t, Split{Address: 0x1001, Size: abi.PageSize}.IsEager(1))
}

func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSplit(t, Split{
			Address: rapid.Uint64Range(0, 1<<47).Draw(t, "addr"),
			Size:    rapid.Uint64Range(0, 1<<20).Draw(t, "size"),
			Runs:    rapid.Bool().Draw(t, "runs"),
			Most:    rapid.Uint64Range(0, 8).Draw(t, "most") * abi.PageSize,
		})
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(uint64(0x1fff), uint32(1<<16), true)
	f.Fuzz(func(t *testing.T, addr uint64, size uint32, runs bool) {
		checkSplit(t, Split{Address: addr % (1 << 47), Size: uint64(size % (4 << 20)), Runs: runs})
	})
}
