//go:build linux

package shm

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// blocks returns how many bytes of a file there are.
func blocks(t *testing.T, fd int) int64 {
	t.Helper()
	var s unix.Stat_t
	require.NoError(t, unix.Fstat(fd, &s))
	return s.Blocks * 512
}

// TestCoverIsSparse: of memory that is kept from a device that does not answer, what was used is
// copied, and no page is made that nobody touched, whatever its user protected.
func TestCoverIsSparse(t *testing.T) {
	const size, huge = 1 << 30, 2 << 20
	a, err := newArena(size)
	require.NoError(t, err)
	m := arenas{list: []*arena{a}}
	defer m.end()
	first, ok := a.take(size/abi.PageSize - 10)
	require.True(t, ok)
	require.Zero(t, first)
	mem := a.bytes(0, size)
	for _, at := range []int{0, 5*huge - 1, 300 << 20, size - 11*abi.PageSize, size - abi.PageSize} {
		mem[at] = byte(at>>20) + 1
	}
	before := blocks(t, a.fd)
	old, err := unix.Dup(a.fd) // as the device has it
	require.NoError(t, err)
	defer unix.Close(old)
	require.NoError(t, unix.Mprotect(mem[300<<20:301<<20], unix.PROT_NONE))

	copied, err := m.cover()
	require.NoError(t, err)
	require.LessOrEqual(t, copied, uint64(before))
	require.Equal(t, before, blocks(t, old))
	require.LessOrEqual(t, blocks(t, a.fd), before)
	for _, at := range []int{0, 5*huge - 1, 300 << 20, size - 11*abi.PageSize} {
		require.Equal(t, byte(at>>20)+1, mem[at], at)
	}
	_, err = unix.Pwrite(old, []byte{0xff}, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, mem[0], "the device has another")
}
