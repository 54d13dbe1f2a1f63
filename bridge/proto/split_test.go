package proto

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// checkSplit walks all lists of a buffer and returns what is wrong with them.
func checkSplit(t require.TestingT, s Split) {
	next, sum := s.Address, uint64(0)
	for k := range s.Lists() {
		var g abi.Gather
		g.Entry[5] = 1 // stale
		n := s.Fill(k, &g)
		require.LessOrEqual(t, n, abi.ListEntries)
		require.Positive(t, n)
		require.Equal(t, sum, s.UpTo(k))
		for i, e := range g.Entry {
			if i >= n {
				require.Zero(t, e, "unused entry")
				continue
			}
			require.Equal(t, next, e.Address(), "no gap")
			require.LessOrEqual(t, e.Address()%abi.PageSize+uint64(e.Length()), uint64(abi.PageSize), "inside its page")
			next += uint64(e.Length())
			sum += uint64(e.Length())
		}
		require.Equal(t, s.Size-sum, g.Outstanding())
		require.Equal(t, uint16(k), g.Number())
		if k+1 < s.Lists() {
			require.Equal(t, abi.ListEntries, n, "only the last list is short")
		}
	}
	require.Equal(t, s.Size, sum)
	require.Equal(t, s.Size, s.UpTo(s.Lists()))
}

func TestSplit(t *testing.T) {
	for _, s := range []Split{
		{0x1000, 0}, {0x1fff, 0}, {0x1000, 1}, {0x1fff, 1}, {0x1fff, 2}, {0x1000, 4096}, {0x1001, 4096},
		{0x1000, 6 * 4096}, {0x1001, 6 * 4096}, {0x1000, 6*4096 + 1}, {0x1fff, 12 * 4096}, {1<<47 - 4096, 4096},
	} {
		checkSplit(t, s)
	}
	require.Zero(t, Split{0x1234, 0}.Lists())
	require.EqualValues(t, 1, Split{0x1000, 6 * 4096}.Lists())
	require.EqualValues(t, 2, Split{0x1001, 6 * 4096}.Lists())
	huge := Split{0x1000, 5 << 30}
	require.EqualValues(t, 5<<30/(6*4096)+1, huge.Lists())
}

func TestSplitProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkSplit(t, Split{
			Address: rapid.Uint64Range(0, 1<<47).Draw(t, "addr"),
			Size:    rapid.Uint64Range(0, 1<<20).Draw(t, "size"),
		})
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(uint64(0x1fff), uint32(1<<16))
	f.Fuzz(func(t *testing.T, addr uint64, size uint32) {
		checkSplit(t, Split{Address: addr % (1 << 47), Size: uint64(size % (4 << 20))})
	})
}
