//go:build cgo

package hosts

import (
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// by is the user of the next connection, which makes a request before it changes.
type by struct{ atomic.Uint32 }

func (b *by) peerOf(c syscall.Conn) (fdpass.Peer, error) {
	p, err := fdpass.PeerOf(c)
	p.UID = b.Load()
	return p, err
}

// first connects as a user, and returns the answer to a first request.
func (b *by) first(t *testing.T, path string, uid uint32, k shmwire.Kind) (*net.UnixConn, shmwire.Message) {
	b.Store(uid)
	defer b.Store(0)
	c := dial(t, path)
	return c, answer(t, c, shmwire.Message{Kind: k})
}

// TestShare: the clients of a share have its limits together, of whatever users. The part of a client
// that ended is free again. The device's own socket is not bounded by it.
func TestShare(t *testing.T) {
	const all, mib = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL, 1 << 20
	var u by
	device := shareAs(t, 4, u.peerOf)
	path := filepath.Join(t.TempDir(), "s")
	enter := func(path string, uid uint32) (*net.UnixConn, error) {
		c, m := u.first(t, path, uid, shmwire.Hello)
		return c, m.Err()
	}
	require.NoError(t, shmwire.OpenShare(t.Context(), device, path, 0o666, shmwire.Limits{Clients: 2, Channels: 64, Memory: 4 * mib}))
	root, err := enter(path, 0)
	require.NoError(t, err)
	other, err := enter(path, 1001)
	require.NoError(t, err)
	_, err = enter(path, 0)
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorContains(t, err, "this share of the device has as many clients as it gets (2)")
	_, err = enter(device, 1001)
	require.NoError(t, err)

	fd := memory(t, 3*mib, all)
	grant := func(c *net.UnixConn) error {
		m := answer(t, c, shmwire.Message{Kind: shmwire.Map, Address: 16 * mib, Size: 3 * mib}, fd)
		return m.Err()
	}
	require.NoError(t, grant(root))
	require.ErrorIs(t, grant(other), bridge.ErrNoMemory)
	require.ErrorContains(t, grant(other), "the clients of this share of the device may map 4194304 bytes together")
	require.NoError(t, root.CloseWrite())
	ended(t, root)
	require.NoError(t, grant(other), "what one had is free for the next")
	_, err = enter(path, 0)
	require.NoError(t, err)

	for path, uid := range map[string]uint32{path: 1001, device: 0} {
		_, m := u.first(t, path, uid, shmwire.Unshare)
		require.ErrorContains(t, m.Err(), "only root and the user of the device process")
	}
	require.NoError(t, shmwire.CloseShare(t.Context(), path))
	ended(t, other)
	require.NoFileExists(t, path)
	require.NoError(t, shmwire.CloseShare(t.Context(), path))
}

// TestShareRefused: a share is made by the device's own user, at the device's own socket alone, of
// limits that a client can have, and of a socket that listens.
func TestShareRefused(t *testing.T) {
	var u by
	device := shareAs(t, 2, u.peerOf)
	good := shmwire.Limits{Clients: 1, Channels: 64}
	dir := t.TempDir()
	open := func(at string, uid uint32, l shmwire.Limits) error {
		u.Store(uid)
		defer u.Store(0)
		path := filepath.Join(dir, "refused")
		defer func() { require.NoFileExists(t, path) }()
		return shmwire.OpenShare(t.Context(), at, path, 0o600, l)
	}
	require.NoError(t, shmwire.OpenShare(t.Context(), device, filepath.Join(dir, "s"), 0o600, good))
	for _, from := range []struct {
		at  string
		uid uint32
	}{{device, 1001}, {filepath.Join(dir, "s"), 0}} {
		require.ErrorContains(t, open(from.at, from.uid, good), "only root and the user of the device process may do that")
	}
	for _, l := range []shmwire.Limits{{}, {Clients: 3}, {Clients: 2, Channels: 31}, {Clients: 2, Processes: 1}, {Clients: 1, Channels: 1<<16 + 1}} {
		require.ErrorIs(t, open(device, 0, l), bridge.ErrInvalid, "%+v", l)
	}
	files, err := net.Listen("unix", filepath.Join(dir, "stream"))
	require.NoError(t, err)
	defer files.Close()
	stream, err := files.(*net.UnixListener).File()
	require.NoError(t, err)
	defer stream.Close()
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	for _, f := range []*os.File{stream, null} {
		m := shmwire.Message{Kind: shmwire.Share, Address: 1 << 48}
		require.Equal(t, abi.ErrInvalid, ask(t, dial(t, device), m, int(f.Fd())))
	}
	require.NoError(t, shmwire.OpenShare(t.Context(), device, filepath.Join(dir, "t"), 0o600, good))
	require.ErrorIs(t, open(device, 0, good), bridge.ErrBusy, "there are as many as places")
}

// TestShareOfADeviceThatHasGone: its socket is replaced by one of the next device; one that is served
// is left alone.
func TestShareOfADeviceThatHasGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	limits := shmwire.Limits{Clients: 1}
	t.Run("first", func(t *testing.T) {
		device := share(t, 1)
		require.NoError(t, shmwire.OpenShare(t.Context(), device, path, 0o600, limits))
		before, err := os.Stat(path)
		require.NoError(t, err)
		require.NoError(t, shmwire.OpenShare(t.Context(), device, path, 0o600, limits))
		after, err := os.Stat(path)
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
		require.Equal(t, abi.OK, hello(t, dial(t, path)))
	})
	require.NoError(t, shmwire.OpenShare(t.Context(), share(t, 1), path, 0o600, limits))
	require.Equal(t, abi.OK, hello(t, dial(t, path)))
}
