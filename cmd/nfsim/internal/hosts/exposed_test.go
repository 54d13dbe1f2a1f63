//go:build cgo

package hosts

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// fetched returns what a client gets for a key: whether it is the memory of a file.
func fetched(t *testing.T, c *net.UnixConn, key uint64, is int) bool {
	t.Helper()
	require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Fetch, Address: key}))
	m, files, err := shmwire.Receive(c, func(m *shmwire.Message) int {
		if m.Status != 0 {
			return 0
		}
		return 1
	})
	require.NoError(t, err)
	if m.Status != 0 {
		require.Equal(t, abi.ErrInvalid, abi.Status(m.Status))
		return false
	}
	defer syscall.Close(files[0])
	require.NoError(t, shmwire.CheckMemory(files[0], m.Size))
	var got, want unix.Stat_t
	require.NoError(t, unix.Fstat(files[0], &got))
	require.NoError(t, unix.Fstat(is, &want))
	require.Equal(t, want.Ino, got.Ino)
	return true
}

// TestExposed: memory that a client maps is another's by its key, for as long as the client maps it, is
// there, and exposes not too many others.
func TestExposed(t *testing.T) {
	const size, at = 2 * abi.PageSize, 1 << 20
	path := share(t, 3)
	client := func() *net.UnixConn {
		c := dial(t, path)
		require.Equal(t, abi.OK, hello(t, c))
		return c
	}
	a, b := client(), client()
	fd := memory(t, size, allSeals)
	expose := func(address, bytes uint64, fd int) shmwire.Message {
		return answer(t, a, shmwire.Message{Kind: shmwire.Expose, Address: address, Size: bytes}, fd)
	}
	m := expose(at, size, fd)
	require.Error(t, m.Err(), "it is not mapped")
	require.Equal(t, abi.OK, ask(t, a, shmwire.Message{Kind: shmwire.Map, Address: at, Size: size}, fd))
	m = expose(at, size/2, fd)
	require.Error(t, m.Err())
	m = expose(at, size, memory(t, size, 0))
	require.Error(t, m.Err(), "unsealed")
	first := expose(at, size, fd)
	require.NoError(t, first.Err())
	require.True(t, fetched(t, b, first.Address, fd))
	require.True(t, fetched(t, a, first.Address, fd))
	require.False(t, fetched(t, b, first.Address+1, fd))
	require.False(t, fetched(t, b, 0, fd))
	var last shmwire.Message
	for range shmwire.Exposures {
		require.True(t, fetched(t, b, first.Address, fd))
		last = expose(at, size, fd)
		require.NoError(t, last.Err())
	}
	require.False(t, fetched(t, b, first.Address, fd), "it was exposed too long ago")
	require.True(t, fetched(t, b, last.Address, fd))
	require.Equal(t, abi.OK, ask(t, a, shmwire.Message{Kind: shmwire.Unmap, Address: at, Size: size}))
	require.False(t, fetched(t, b, last.Address, fd), "it is not mapped any more")

	require.Equal(t, abi.OK, ask(t, a, shmwire.Message{Kind: shmwire.Map, Address: at, Size: size}, fd))
	last = expose(at, size, fd)
	require.True(t, fetched(t, b, last.Address, fd))
	require.NoError(t, a.CloseWrite())
	ended(t, a)
	require.False(t, fetched(t, b, last.Address, fd), "its client has gone")
	c := client()
	require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Expose, Address: at, Size: size})) // no descriptor
	ended(t, c)
}
