package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// TestPlaces: each contender has a place in a round, and none always follows the same.
func TestPlaces(t *testing.T) {
	for n := 1; n <= 12; n++ {
		follows := make(map[[2]int]int)
		for r := range n {
			seen := make([]bool, n)
			for i := range n {
				c := placed(r, i, n)
				require.False(t, seen[c], "%d of %d, round %d", c, n, r)
				seen[c] = true
				if i > 0 {
					follows[[2]int{placed(r, i-1, n), c}]++
				}
			}
		}
		for pair, times := range follows {
			require.LessOrEqual(t, times, 1+n%2, "%v of %d", pair, n)
		}
	}
}

// TestColdBuffers: buffers in turn are each used once before the first is used again, and no cache holds
// all of them.
func TestColdBuffers(t *testing.T) {
	for size, n := range map[int]int{56: 4096, 64 << 10: 1024, 1 << 20: 64, 16 << 20: 4, 1 << 30: 4} {
		require.Equal(t, n, ColdCount(size))
	}
	from, to := Buffers(8, 3), Buffers(8, 3)
	for i := range from {
		from[i][0], to[i][0] = byte(i+1), 0
	}
	c := memcpyOf("a", from, to)
	_, err := c.Run(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []byte{1, 2, 0}, []byte{to[0][0], to[1][0], to[2][0]})
	_, err = c.Run(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, byte(3), to[2][0])
	require.Equal(t, 1024, NewMemcpy(1024).Size)
}

// TestColdTransfers: transfers are of each buffer in turn.
func TestColdTransfers(t *testing.T) {
	dev, err := nfcomms.Open(t.Context(), "sim:")
	require.NoError(t, err)
	defer dev.Close()
	buffers := Buffers(4096, 3)
	c, err := ReceiveInd(t.Context(), dev, NameReceiveIndCold, 1, buffers...)
	require.NoError(t, err)
	require.Equal(t, NameReceiveIndCold, c.Name)
	_, err = c.Run(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 0, 7}, []byte{buffers[0][1], buffers[1][1], buffers[2][1]}, "flood gives zeros")
	require.NoError(t, c.Close())
	closed := Buffers(4096, 2)
	c, err = SendInd(t.Context(), dev, NameSendIndCold, 1, closed[0], closed[1][:0])
	require.NoError(t, err)
	_, err = c.Run(t.Context(), 1)
	require.NoError(t, err)
	_, err = c.Run(t.Context(), 1)
	require.Error(t, err, "the second buffer is too short for the size of the first")
	require.NoError(t, c.Close())
}
