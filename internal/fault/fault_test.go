//go:build linux

package fault

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// memory returns so many pages, of which those from good on have a protection of their own.
func memory(t *testing.T, pages, good, protection int) []byte {
	t.Helper()
	mem, err := unix.Mmap(-1, 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
	for i := range mem {
		mem[i] = byte(i % 251)
	}
	if good < pages {
		require.NoError(t, unix.Mprotect(mem[good*page:], protection))
	}
	return mem
}

// TestCopies: all bytes are copied, from any place, and none beside them is written.
func TestCopies(t *testing.T) {
	const around = 32 << 10
	from, whole := memory(t, 4*around/page, 0, unix.PROT_READ), memory(t, 4*around/page, 0, unix.PROT_READ|unix.PROT_WRITE)
	for _, n := range []int{0, 1, 64, around - 1, around, around + 1, around + 63, around + 64, 2*around + 17} {
		for _, at := range []int{0, 1, 63} {
			for _, how := range []func(to, from []byte) (int, error){Copy, Give} {
				to := whole[page : page+n+1]
				clear(to)
				got, err := how(to[:n], from[at:])
				require.NoError(t, err)
				require.Equal(t, n, got)
				require.Equal(t, from[at:at+n], to[:n])
				require.Zero(t, to[n], "past the end")
			}
		}
	}
}

// TestUnreachable: the bytes before the first page that cannot be reached are copied, whichever side
// it is of, and the goroutine faults as before afterwards.
func TestUnreachable(t *testing.T) {
	const pages, good = 20, 13
	for name, protection := range map[string]int{"no access": unix.PROT_NONE, "read only": unix.PROT_READ} {
		for _, at := range []int{0, 1, 5000} {
			bad, fine := memory(t, pages, good, protection), memory(t, pages, pages, 0)
			for _, how := range []func(to, from []byte) (int, error){Copy, Give} {
				clear(bad[:good*page])
				n, err := how(bad[at:], fine)
				require.ErrorIs(t, err, syscall.EFAULT, name)
				require.Equal(t, good*page-at, n, name)
				require.Equal(t, fine[:n], bad[at:at+n], name)
				if protection == unix.PROT_READ {
					continue
				}
				n, err = how(fine, bad[at:])
				require.ErrorIs(t, err, syscall.EFAULT)
				require.Equal(t, good*page-at, n)
			}
			require.False(t, Writable(bad[at:]), name)
			require.Equal(t, protection == unix.PROT_READ, Try(func() { Read(bad[at:]) }), name)
			require.True(t, Try(func() { Read(bad[at : good*page]) }), name)
			require.True(t, Writable(bad[at:good*page]), name)
		}
	}
	whole := memory(t, 1, 1, 0)
	require.True(t, Writable(whole))
	require.Equal(t, memory(t, 1, 1, 0), whole, "a look changes nothing")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = Copy(whole, whole) }))
}

// TestTryIsForFaults: a panic of another kind stays one.
func TestTryIsForFaults(t *testing.T) {
	require.PanicsWithValue(t, "mine", func() { Try(func() { panic("mine") }) })
	require.Panics(t, func() { Try(func() { _ = make([]byte, 1)[len(t.Name()):] }) })
	require.True(t, Try(func() { Read(nil) }))
}

// BenchmarkCopy is what catching faults costs.
func BenchmarkCopy(b *testing.B) {
	to, from := make([]byte, 64), make([]byte, 64)
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			copy(to, from)
		}
	})
	b.Run("guarded", func(b *testing.B) {
		for b.Loop() {
			_, _ = Copy(to, from)
		}
	})
}
