//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestGive: all bytes come, from any place, and none beside them is written.
func TestGive(t *testing.T) {
	a, err := newArena(1)
	require.NoError(t, err)
	defer a.release()
	const around = 32 << 10
	from := make([]byte, 4*around)
	for i := range from {
		from[i] = byte(i % 251)
	}
	for _, n := range []int{0, 1, 64, around - 1, around, around + 1, around + 63, around + 64, 2*around + 17} {
		for _, at := range []int{0, 1, 63} {
			to := a.bytes(abi.PageSize, n+1)
			clear(to)
			give(to[:n], from[at:at+n])
			require.Equal(t, from[at:at+n], to[:n])
			require.Zero(t, to[n], "past the end")
		}
	}
}
