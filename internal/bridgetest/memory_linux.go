package bridgetest

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// BadMemory returns size bytes of mapped memory. The page of byte good and all that follow cannot be
// reached, in the way of a kind: "truncated file", "no access" or "read only". Each byte before has
// the value 7 times its offset.
func BadMemory(t *testing.T, kind string, size, good int) []byte {
	t.Helper()
	page := os.Getpagesize()
	whole, first := (size+page-1)/page*page, good/page*page
	fd, err := unix.MemfdCreate("bad", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Ftruncate(fd, int64(whole)))
	mem, err := unix.Mmap(fd, 0, whole, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(mem)) })
	for i := range mem {
		mem[i] = byte(i * 7)
	}
	switch kind {
	case "truncated file":
		require.NoError(t, unix.Ftruncate(fd, int64(first)))
	case "no access":
		require.NoError(t, unix.Mprotect(mem[first:], unix.PROT_NONE))
	case "read only":
		require.NoError(t, unix.Mprotect(mem[first:], unix.PROT_READ))
	default:
		require.FailNow(t, "no such kind: "+kind)
	}
	return mem[:size]
}

// Arguments of protect.
const (
	noAccess  = unix.PROT_NONE
	readWrite = unix.PROT_READ | unix.PROT_WRITE
)

// protect makes memory of mapMemory inaccessible, or accessible again.
func protect(mem []byte, access int) error { return unix.Mprotect(mem, access) }

// mapMemory maps n bytes of zeroed memory outside the Go heap.
func mapMemory(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, readWrite, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
}

func unmapMemory(mem []byte) error { return unix.Munmap(mem) }
