//go:build cgo

package hosts

import (
	"bytes"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

const allSeals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL

// meshNode is the first of two nodes of this process, whose hosts have no channels to the other.
type meshNode struct{ mesh.Fabric }

func (*meshNode) Reach(abi.Node, uint64, *firmware.Bus, int) (Attached, abi.Status) {
	return nil, abi.ErrNoTarget
}

func (*meshNode) Joints(uint64) (*firmware.Joints, error) { return nil, bridge.ErrNotSupported }

func (*meshNode) Leave() {}

// shareNode serves a device of a node, clients being whatever users are given.
func shareNode(t *testing.T, u users) (path string, f *meshNode) {
	t.Helper()
	m, err := mesh.Open(mesh.Config{Side: [3]int{2, 1, 1}, Threads: 1})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	f = &meshNode{mesh.Fabric{Mesh: m}}
	s, status := New(Options{
		Device: firmware.Config{LogFD: -1, Shared: 8}, Memory: 1 << 30, UserHosts: 4, UserMemory: 1 << 30, Logger: slog.New(slog.DiscardHandler),
	})
	require.Equal(t, abi.OK, status)
	s.peerOf = u.peerOf
	s.Join(f, m.Node(0))
	return serve(t, s), f
}

// own is the user of this process.
var own = uint32(os.Geteuid())

// attachAs is a client that said hello.
func (u users) attachAs(t *testing.T, path string, uid uint32) *net.UnixConn {
	t.Helper()
	c := u.dial(t, path, uid)
	require.Equal(t, abi.OK, hello(t, c))
	return c
}

// askWindow asks for a window.
func askWindow(t *testing.T, c *net.UnixConn, fd int, at, size uint64, access bridge.WindowAccess) shmwire.Message {
	t.Helper()
	return answer(t, c, shmwire.Message{Kind: shmwire.Window, Address: at, Size: size, Epoch: uint32(access)}, fd)
}

// mapped counts what this process maps of memory of clients.
func mapped(t *testing.T) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), "memfd:client")
}

// TestWindowsOfClients: others reach just the bytes, in just the way, until it is revoked.
func TestWindowsOfClients(t *testing.T) {
	const size = 5 * abi.PageSize
	u := make(users, 1)
	path, f := shareNode(t, u)
	c, fd := u.attachAs(t, path, own), memory(t, size, allSeals)
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(mem)) }()
	before := mapped(t)
	m := askWindow(t, c, fd, 5000, 9000, bridge.WindowWrite)
	require.NoError(t, m.Err())
	require.Equal(t, shmwire.AddressOf(f.Mesh.Node(0)), m.Size)
	w := bridge.FabricWindow{Key: m.Address}
	require.NoError(t, f.Put(t.Context(), w, 0, bytes.Repeat([]byte{1}, 9000)))
	require.ErrorIs(t, f.Put(t.Context(), w, 9000, []byte{1}), bridge.ErrRange)
	require.ErrorIs(t, f.Get(t.Context(), w, 0, make([]byte, 1)), bridge.ErrNotSupported)
	require.Equal(t, append(append(make([]byte, 5000), bytes.Repeat([]byte{1}, 9000)...), make([]byte, size-14000)...), mem)
	require.NoError(t, unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, size))
	require.NoError(t, f.Put(t.Context(), w, 1, []byte{2}))
	require.Equal(t, []byte{0, 2}, mem[5000:5002])

	other := u.attachAs(t, path, own)
	for _, key := range []uint64{0, m.Address + 1, m.Address} {
		require.Equal(t, abi.ErrInvalid, ask(t, other, shmwire.Message{Kind: shmwire.Revoke, Address: key}), "it is not its")
	}
	require.NoError(t, f.Put(t.Context(), w, 0, []byte{3}))
	require.Equal(t, abi.OK, ask(t, c, shmwire.Message{Kind: shmwire.Revoke, Address: m.Address}))
	require.Equal(t, abi.ErrInvalid, ask(t, c, shmwire.Message{Kind: shmwire.Revoke, Address: m.Address}))
	require.ErrorIs(t, f.Put(t.Context(), w, 0, []byte{4}), bridge.ErrNotSubscribed)
	require.Equal(t, byte(3), mem[5000])
	require.Equal(t, before, mapped(t))
}

// TestForeignWindows: what makes no sense is refused, and leaves nothing.
func TestForeignWindows(t *testing.T) {
	const size, both = 3 * abi.PageSize, bridge.WindowRead | bridge.WindowWrite
	u := make(users, 1)
	path, _ := shareNode(t, u)
	c, good := u.attachAs(t, path, own), memory(t, size, allSeals)
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	require.NoError(t, err)
	defer plain.Close()
	require.NoError(t, plain.Truncate(size))
	fixed := memory(t, size, allSeals|unix.F_SEAL_WRITE)
	before := mapped(t)
	for name, r := range map[string]struct {
		fd       int
		at, size uint64
		access   bridge.WindowAccess
		want     abi.Status
	}{
		"unsealed":          {memory(t, size, 0), 0, 1, both, abi.ErrInvalid},
		"may shrink":        {memory(t, size, unix.F_SEAL_GROW|unix.F_SEAL_SEAL), 0, 1, both, abi.ErrInvalid},
		"a file of a disk":  {int(plain.Fd()), 0, 1, both, abi.ErrInvalid},
		"empty":             {memory(t, 0, allSeals), 0, 1, both, abi.ErrInvalid},
		"no bytes":          {good, 0, 0, both, abi.ErrInvalid},
		"no access":         {good, 0, 1, 0, abi.ErrInvalid},
		"another access":    {good, 0, 1, 4, abi.ErrInvalid},
		"negative access":   {good, 0, 1, -1, abi.ErrInvalid},
		"past the end":      {good, 1, size, both, abi.ErrInvalid},
		"far beyond":        {good, math.MaxUint64, 2, both, abi.ErrInvalid},
		"all there is":      {good, 2, math.MaxUint64, both, abi.ErrInvalid},
		"not to be written": {fixed, 0, size, bridge.WindowWrite, abi.ErrInvalid},
		"only read":         {fixed, 0, size, bridge.WindowRead, abi.OK},
	} {
		m := askWindow(t, c, r.fd, r.at, r.size, r.access)
		require.EqualValues(t, r.want, m.Status, name)
	}
	require.Equal(t, before+1, mapped(t))
	require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Window, Size: 1, Epoch: 1})) // no descriptor
	ended(t, c)
	require.Equal(t, before, mapped(t), "its windows end with it")

	alone := dial(t, share(t, 1))
	require.Equal(t, abi.OK, hello(t, alone))
	m := askWindow(t, alone, good, 0, 1, both)
	require.EqualValues(t, abi.ErrNotSupported, m.Status, "there is no fabric")
}

// TestWindowsAreBounded: a client has so many windows and bytes, a user's have so many together,
// and those of others have theirs.
func TestWindowsAreBounded(t *testing.T) {
	u := make(users, 1)
	path, f := shareNode(t, u)
	large := memory(t, bridge.HostWindowBytes+1, allSeals)
	window := func(c *net.UnixConn, size uint64) error {
		m := askWindow(t, c, large, 0, size, bridge.WindowRead)
		return m.Err()
	}
	const mallory = 1 << 31
	greedy := u.attachAs(t, path, mallory)
	require.ErrorContains(t, window(greedy, bridge.HostWindowBytes+1), "a process has")
	for range bridge.HostWindows {
		require.NoError(t, window(greedy, 1))
	}
	require.ErrorIs(t, window(greedy, 1), bridge.ErrNoMemory)
	whole := u.attachAs(t, path, mallory)
	require.NoError(t, window(whole, bridge.HostWindowBytes))
	require.ErrorContains(t, window(whole, 1), "a process has")
	more := u.attachAs(t, path, mallory)
	require.NoError(t, window(more, bridge.HostWindowBytes-bridge.HostWindows))
	require.ErrorContains(t, window(more, 1), "the clients of this user")

	good := u.attachAs(t, path, own)
	m := askWindow(t, good, large, 0, bridge.HostWindowBytes/2, bridge.WindowRead)
	require.NoError(t, m.Err())
	require.NoError(t, f.Get(t.Context(), bridge.FabricWindow{Key: m.Address}, 0, make([]byte, 10)))
	require.NoError(t, more.CloseWrite())
	ended(t, more)
	require.NoError(t, window(u.attachAs(t, path, mallory), 1))
}
