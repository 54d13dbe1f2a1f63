//go:build cgo

package hosts

import (
	"context"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const clientMemory = 16 << 20

// share serves a device with room for some clients, and returns its socket.
func share(t *testing.T, places int) string { return shareAs(t, places, fdpass.PeerOf) }

// shareAs is share with clients of whatever user peerOf says.
func shareAs(t *testing.T, places int, peerOf func(syscall.Conn) (fdpass.Peer, error)) string {
	return serve(t, serverAs(t, places, peerOf))
}

// serverAs is the server of shareAs.
func serverAs(t *testing.T, places int, peerOf func(syscall.Conn) (fdpass.Peer, error)) *Server {
	s, status := New(Options{
		Device: firmware.Config{LogFD: -1, Shared: places}, Memory: clientMemory, Logger: slog.New(slog.DiscardHandler),
		UserHosts: 2, UserMemory: clientMemory + 1<<20,
	})
	require.Equal(t, abi.OK, status)
	s.peerOf = peerOf
	return s
}

// serve has a server accept clients at a socket, until the test ends.
func serve(t *testing.T, s *Server) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: path, Net: shmwire.Network})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		s.Close()
	})
	return path
}

func dial(t *testing.T, path string) *net.UnixConn {
	c, err := fdpass.Dial(context.Background(), shmwire.Network, path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// ask makes a request and returns the status of its answer.
func ask(t *testing.T, c *net.UnixConn, m shmwire.Message, files ...int) abi.Status {
	t.Helper()
	return abi.Status(answer(t, c, m, files...).Status)
}

func answer(t *testing.T, c *net.UnixConn, m shmwire.Message, files ...int) shmwire.Message {
	t.Helper()
	require.NoError(t, shmwire.Send(c, &m, files...))
	answer, got, err := shmwire.Receive(c, func(a *shmwire.Message) int {
		if a.Kind == shmwire.Hello && a.Status == 0 {
			return 2
		}
		return 0
	})
	require.NoError(t, err)
	for _, fd := range got {
		_ = syscall.Close(fd)
	}
	require.Equal(t, m.Kind, answer.Kind)
	return answer
}

func hello(t *testing.T, c *net.UnixConn) abi.Status {
	return ask(t, c, shmwire.Message{Kind: shmwire.Hello})
}

// ended requires that the server hangs up.
func ended(t *testing.T, c *net.UnixConn) {
	t.Helper()
	b := make([]byte, shmwire.Size)
	for {
		if n, err := c.Read(b); err != nil || n == 0 {
			return
		}
	}
}

// memory returns memory of a client.
func memory(t *testing.T, size int64, seals int) int {
	fd, err := unix.MemfdCreate("client", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, unix.Ftruncate(fd, size))
	if seals != 0 {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		require.NoError(t, err)
	}
	return fd
}

// TestPlaces: there are so many and no more, and one that is left is free again.
func TestPlaces(t *testing.T) {
	path := share(t, 2)
	first, second := dial(t, path), dial(t, path)
	require.Equal(t, abi.OK, hello(t, first))
	require.Equal(t, abi.OK, hello(t, second))
	third := dial(t, path)
	require.Equal(t, abi.ErrBusy, hello(t, third))
	ended(t, third)
	require.NoError(t, first.CloseWrite())
	ended(t, first) // the device has forgotten it
	require.Equal(t, abi.OK, hello(t, dial(t, path)))
}

// TestWords: what is no request ends the connection, and nobody else's.
func TestWords(t *testing.T) {
	path := share(t, 2)
	good := dial(t, path)
	require.Equal(t, abi.OK, hello(t, good))
	for _, b := range [][]byte{
		{}, []byte("GET / HTTP/1.1\r\n\r\n"), make([]byte, shmwire.Size), make([]byte, 100000),
		append([]byte("NSHM\x02\x00\x01\x00"), make([]byte, 30)...), append([]byte("NSHM\x01\x00\x02\x00"), make([]byte, 24)...),
	} {
		c := dial(t, path)
		_, err := c.Write(b)
		require.NoError(t, err)
		ended(t, c)
	}
	old := dial(t, path)
	_, err := old.Write(append([]byte("NSHM\x00\x00\x01\x00"), make([]byte, 24)...))
	require.NoError(t, err)
	b := make([]byte, 100)
	n, err := old.Read(b)
	require.NoError(t, err)
	m, err := shmwire.Parse(b[:n])
	require.NoError(t, err, "it says its version")
	require.EqualValues(t, abi.ErrABI, m.Status)

	again := dial(t, path)
	require.Equal(t, abi.OK, hello(t, again))
	require.NoError(t, shmwire.Send(again, &shmwire.Message{Kind: shmwire.Hello}))
	ended(t, again)
	require.Equal(t, abi.OK, ask(t, good, shmwire.Message{Kind: shmwire.Fence}))
}

// TestMemory: only memory that keeps its size is mapped, within bounds, and is given back
// as it was given.
func TestMemory(t *testing.T) {
	const all = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	const mib = 1 << 20
	c := dial(t, share(t, 1))
	require.Equal(t, abi.OK, hello(t, c))
	pipe := make([]int, 2)
	require.NoError(t, syscall.Pipe2(pipe, syscall.O_CLOEXEC))
	defer syscall.Close(pipe[0])
	defer syscall.Close(pipe[1])
	zero, err := os.OpenFile("/dev/zero", os.O_RDWR, 0)
	require.NoError(t, err)
	defer zero.Close()
	plain, err := os.Create(filepath.Join(t.TempDir(), "plain"))
	require.NoError(t, err)
	defer plain.Close()
	require.NoError(t, plain.Truncate(mib))
	good := memory(t, mib, all)
	for _, r := range []struct {
		name          string
		address, size uint64
		fd            int
		status        abi.Status
	}{
		{"unsealed", mib, mib, memory(t, mib, 0), abi.ErrInvalid},
		{"may shrink", mib, mib, memory(t, mib, unix.F_SEAL_GROW|unix.F_SEAL_SEAL), abi.ErrInvalid},
		{"a pipe", mib, mib, pipe[0], abi.ErrInvalid},
		{"a device", mib, mib, int(zero.Fd()), abi.ErrInvalid},
		{"a file of a disk", mib, mib, int(plain.Fd()), abi.ErrInvalid},
		{"not to be written", mib, mib, memory(t, mib, all|unix.F_SEAL_WRITE), abi.ErrInvalid},
		{"not to be written from now on", mib, mib, memory(t, mib, all|unix.F_SEAL_FUTURE_WRITE), abi.ErrInvalid},
		{"said too long", mib, 2 * mib, good, abi.ErrInvalid},
		{"said too short", mib, mib / 2, good, abi.ErrInvalid},
		{"empty", mib, 0, memory(t, 0, all), abi.ErrInvalid},
		{"askew", mib + 1, mib, good, abi.ErrInvalid},
		{"past the end", math.MaxUint64 - 4095, mib, good, abi.ErrInvalid},
		{"too much", mib, 2 * clientMemory, memory(t, 2*clientMemory, all), abi.ErrNoMemory},
		{"good", mib, mib, good, abi.OK},
		{"twice", mib, mib, good, abi.ErrInvalid},
		{"across", mib / 2, mib, good, abi.ErrInvalid},
		{"the rest", 64 * mib, clientMemory - mib, memory(t, clientMemory-mib, all), abi.OK},
		{"one more", 2 * mib, mib, good, abi.ErrNoMemory},
	} {
		require.Equal(t, r.status, ask(t, c, shmwire.Message{Kind: shmwire.Map, Address: r.address, Size: r.size}, r.fd), r.name)
	}
	for _, u := range []struct {
		address, size uint64
		status        abi.Status
	}{{0, mib, abi.ErrInvalid}, {mib, 4096, abi.ErrInvalid}, {0, math.MaxUint64, abi.ErrInvalid}, {mib, mib, abi.OK}, {mib, mib, abi.ErrInvalid}} {
		require.Equal(t, u.status, ask(t, c, shmwire.Message{Kind: shmwire.Unmap, Address: u.address, Size: u.size}))
	}
	require.Equal(t, abi.OK, ask(t, c, shmwire.Message{Kind: shmwire.Map, Address: mib, Size: mib}, good))
	require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Map, Address: 4 * mib, Size: mib})) // no descriptor
	ended(t, c)
}

// TestSilence: thousands who say nothing keep nobody out.
func TestSilence(t *testing.T) {
	path := share(t, 1)
	var silent []*net.UnixConn
	for range 3000 {
		c, err := fdpass.Dial(context.Background(), shmwire.Network, path)
		require.NoError(t, err)
		if silent = append(silent, c); len(silent) > 2*silentMost { // of this process, too
			_ = silent[0].Close()
			silent = silent[1:]
		}
	}
	c := dial(t, path)
	require.NoError(t, c.SetDeadline(time.Now().Add(time.Minute)))
	require.Equal(t, abi.OK, hello(t, c))
	for _, s := range silent {
		_ = s.Close()
	}
}

// TestGoneBeforeTheAnswer: a client that closes before it has its answer leaves nothing.
func TestGoneBeforeTheAnswer(t *testing.T) {
	path := share(t, 2)
	require.Equal(t, abi.OK, hello(t, dial(t, path))) // what comes with the first is there
	before := descriptors(t)
	for range 20 {
		c := dial(t, path)
		require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Hello}))
		require.NoError(t, c.Close())
	}
	require.Eventually(t, func() bool { return descriptors(t) <= before }, time.Minute, time.Millisecond)
}

func descriptors(t *testing.T) int {
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// users are those of the next connections.
type users chan uint32

func (u users) peerOf(c syscall.Conn) (fdpass.Peer, error) {
	p, err := fdpass.PeerOf(c)
	p.UID = <-u
	return p, err
}

// dial connects as a user.
func (u users) dial(t *testing.T, path string, uid uint32) *net.UnixConn {
	u <- uid
	return dial(t, path)
}

// TestUserIsBounded: a user gets so many places and so much memory, others get theirs, and
// the device's own user has no bound but the device's.
func TestUserIsBounded(t *testing.T) {
	const all, mib = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL, 1 << 20
	u := make(users, 1)
	path := shareAs(t, 6, u.peerOf)
	as := func(uid uint32) *net.UnixConn {
		c := u.dial(t, path, uid)
		require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Hello}))
		return c
	}
	take := func(c *net.UnixConn) error {
		m, files, err := shmwire.Receive(c, func(m *shmwire.Message) int { return map[bool]int{true: 2}[m.Status == 0] })
		require.NoError(t, err)
		for _, fd := range files {
			_ = syscall.Close(fd)
		}
		return m.Err()
	}
	mallory, too := as(1<<31), (*net.UnixConn)(nil)
	require.NoError(t, take(mallory))
	too = as(1<<31 + 1) // an id that nobody knows, either: the same user for all that is known
	require.NoError(t, take(too))
	err := take(as(1<<31 + 2))
	require.ErrorIs(t, err, bridge.ErrBusy)
	require.ErrorContains(t, err, "as many clients of the device as a user gets (2)")

	grant := func(c *net.UnixConn, at, size uint64) error {
		m := answer(t, c, shmwire.Message{Kind: shmwire.Map, Address: at, Size: size}, memory(t, int64(size), all))
		return m.Err()
	}
	require.NoError(t, grant(mallory, mib, clientMemory))
	err = grant(mallory, 64*mib, mib)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.ErrorContains(t, err, "a client may map 16777216 bytes")
	require.NoError(t, grant(too, mib, mib))
	err = grant(too, 4*mib, mib)
	require.ErrorIs(t, err, bridge.ErrNoMemory)
	require.ErrorContains(t, err, "the clients of this user may map 17825792 bytes together")
	require.Equal(t, abi.OK, ask(t, too, shmwire.Message{Kind: shmwire.Unmap, Address: mib, Size: mib}))
	require.NoError(t, grant(too, 4*mib, mib), "it was given back")
	require.NoError(t, mallory.CloseWrite())
	ended(t, mallory)
	require.NoError(t, grant(too, 8*mib, 4*mib), "what died gave it back as well")

	for range 5 { // root has what is left, and is refused by the device's bound
		require.NoError(t, take(as(0)))
	}
	require.ErrorContains(t, take(as(0)), "no place for another client")
}

// TestPodsAreUsers: clients whose user ids nobody knows are counted by their control group. A pod that has
// all that a user gets takes nothing from another one.
func TestPodsAreUsers(t *testing.T) {
	u := make(users, 1)
	s := serverAs(t, 6, u.peerOf)
	var now atomic.Pointer[string] // the pod of the next connection
	s.groupOf = func(pid int32) string {
		assert.EqualValues(t, os.Getpid(), pid)
		return *now.Load()
	}
	path := serve(t, s)
	enter := func(pod string) abi.Status {
		now.Store(&pod)
		return hello(t, u.dial(t, path, 1<<31))
	}
	for _, pod := range []string{"/kubepods/a", "/kubepods/b"} {
		require.Equal(t, abi.OK, enter(pod))
		require.Equal(t, abi.OK, enter(pod))
		require.Equal(t, abi.ErrBusy, enter(pod), "it has two")
	}
}

// TestSilenceOfOthers: silent connections of one user end those of no other.
func TestSilenceOfOthers(t *testing.T) {
	u := make(users, 1)
	path := shareAs(t, 1, u.peerOf)
	slow := u.dial(t, path, 0)
	for range 4 * silentMost {
		u.dial(t, path, 1<<31)
	}
	require.NoError(t, slow.SetDeadline(time.Now().Add(time.Minute)))
	require.Equal(t, abi.OK, hello(t, slow))
}

// TestSilenceIsBounded: a connection that is ended for another is forgotten at once, not when its
// goroutine finds that.
func TestSilenceIsBounded(t *testing.T) {
	s := Server{open: make(map[*net.UnixConn]*deviceShare)}
	for range 2 * silentMost {
		require.True(t, s.enter(new(net.UnixConn), origin{owner: "x"}))
		require.LessOrEqual(t, len(s.silent), silentMost)
	}
}

// TestNoFabric: what only a node knows is refused by a device that is none, and the connection
// stays open; what is no request ends it.
func TestNoFabric(t *testing.T) {
	c := dial(t, share(t, 1))
	require.Equal(t, abi.OK, hello(t, c))
	for _, k := range []shmwire.Kind{shmwire.State, shmwire.Route, shmwire.Cut, shmwire.Test, shmwire.Accesses} {
		require.Equal(t, abi.ErrNotSupported, ask(t, c, shmwire.Message{Kind: k, Address: math.MaxUint64, Size: math.MaxUint64}))
	}
	require.Equal(t, abi.OK, ask(t, c, shmwire.Message{Kind: shmwire.Fence}))
	require.NoError(t, shmwire.Send(c, &shmwire.Message{Kind: shmwire.Accesses + 1}))
	ended(t, c)
}

// attaching is a handler of log lines that is called once a client is attached.
type attaching struct {
	slog.Handler
	called func()
}

func (a attaching) Enabled(context.Context, slog.Level) bool { return true }
func (a attaching) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a attaching) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "client attached" {
		a.called()
	}
	return nil
}

// TestCloseAsAClientAttaches: the server ends although a client got its answer, and is not waited for
// yet.
func TestCloseAsAClientAttaches(t *testing.T) {
	s := serverAs(t, 1, fdpass.PeerOf)
	closed := make(chan struct{})
	s.log = slog.New(attaching{slog.DiscardHandler, func() {
		go func() { s.Close(); close(closed) }()
		for ended := false; !ended; {
			s.mu.Lock()
			ended = s.ended
			s.mu.Unlock()
		}
	}})
	client, server := pairOf(t)
	defer client.Close()
	s.accept(server, nil)
	require.Equal(t, abi.OK, hello(t, client))
	ended(t, client)
	<-closed
}

// pairOf returns a client's connection and the server's.
func pairOf(t *testing.T) (client, server *net.UnixConn) {
	l, err := net.ListenUnix(shmwire.Network, &net.UnixAddr{Name: filepath.Join(t.TempDir(), "s"), Net: shmwire.Network})
	require.NoError(t, err)
	defer l.Close()
	client = dial(t, l.Addr().String())
	server, err = l.AcceptUnix()
	require.NoError(t, err)
	return client, server
}
