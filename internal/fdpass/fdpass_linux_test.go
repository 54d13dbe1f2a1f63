package fdpass

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// link connects two sockets.
func link(t *testing.T, network string) (client, server *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen(network, path)
	require.NoError(t, err)
	defer l.Close()
	client, err = Dial(t.Context(), network, path)
	require.NoError(t, err)
	c, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		client.Close()
		c.Close()
	})
	return client, c.(*net.UnixConn)
}

// pair makes a reader and the other end of its socket.
func pair(t *testing.T) (*net.UnixConn, *Reader) {
	t.Helper()
	a, b := link(t, "unix")
	return a, NewReader(b)
}

// send writes bytes with n descriptors.
func send(t *testing.T, c *net.UnixConn, text string, n int) {
	t.Helper()
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	var files []int
	for range n {
		files = append(files, int(f.Fd()))
	}
	require.NoError(t, Send(c, []byte(text), files...))
}

// TestFill collects the descriptors of a message that comes in pieces.
func TestFill(t *testing.T) {
	c, r := pair(t)
	send(t, c, "ab", 2)
	send(t, c, "cde", 1)
	var s Set
	p := make([]byte, 4)
	require.NoError(t, r.Fill(p, &s))
	require.Equal(t, "abcd", string(p))
	require.NoError(t, s.Bad)
	require.Len(t, s.Files, 3)
	kept := s.Files[0]
	s.Close()
	require.Empty(t, s.Files)
	require.ErrorIs(t, syscall.Close(kept), syscall.EBADF)
}

func TestTooMany(t *testing.T) {
	c, r := pair(t)
	send(t, c, "a", Max)
	send(t, c, "b", 1)
	var s Set
	require.NoError(t, r.Fill(make([]byte, 1), &s))
	require.Len(t, s.Files, Max)
	require.NoError(t, r.Fill(make([]byte, 1), &s))
	require.ErrorIs(t, s.Bad, syscall.EINVAL)
	require.Empty(t, s.Files)
}

// TestEnds tells an end between two messages from one inside.
func TestEnds(t *testing.T) {
	c, r := pair(t)
	send(t, c, "ab", 0)
	require.NoError(t, c.CloseWrite())
	var s Set
	require.ErrorIs(t, r.Fill(make([]byte, 3), &s), io.ErrUnexpectedEOF)
	require.ErrorIs(t, r.Fill(make([]byte, 3), &s), io.EOF)
	require.NoError(t, CutOff(nil))
	require.Equal(t, io.ErrUnexpectedEOF, CutOff(io.EOF))
}

// TestReceive: a packet and its descriptors, a long one cut, and the end.
func TestReceive(t *testing.T) {
	c, s := link(t, "unixpacket")
	send(t, c, "abc", 2)
	send(t, c, "defg", 0)
	send(t, c, "x", Max+1)
	p := make([]byte, 3)
	n, came, err := Receive(s, p)
	require.NoError(t, err)
	require.Equal(t, "abc", string(p[:n]))
	require.NoError(t, came.Bad)
	require.Len(t, came.Files, 2)
	for _, fd := range came.Files {
		flags, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
		require.EqualValues(t, syscall.FD_CLOEXEC, flags, "a child would inherit it")
	}
	came.Close()
	n, came, err = Receive(s, p)
	require.NoError(t, err)
	require.Equal(t, "def", string(p[:n]))
	require.Empty(t, came.Files)
	_, came, err = Receive(s, p)
	require.NoError(t, err)
	require.ErrorIs(t, came.Bad, syscall.EINVAL)
	require.Empty(t, came.Files)
	require.NoError(t, c.Close())
	_, _, err = Receive(s, p)
	require.ErrorIs(t, err, io.EOF)
}

// TestLost: where this process may open no more descriptors the message says so,
// and those that came are closed with the rest.
func TestLost(t *testing.T) {
	c, s := link(t, "unixpacket")
	send(t, c, "a", 8)
	var was syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &was))
	next, err := syscall.Dup(0)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(next))
	tight := syscall.Rlimit{Cur: uint64(next) + 3, Max: was.Max}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &tight))
	n, came, err := Receive(s, make([]byte, 1))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &was))
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.ErrorIs(t, came.Bad, syscall.EMFILE)
	require.Less(t, len(came.Files), 8)
	came.Close()
}

// TestPeerOf: the kernel identifies the peer.
func TestPeerOf(t *testing.T) {
	_, s := link(t, "unix")
	p, err := PeerOf(s)
	require.NoError(t, err)
	require.Equal(t, Peer{int32(os.Getpid()), uint32(os.Getuid()), uint32(os.Getgid())}, p)
	require.NoError(t, s.Close())
	_, err = PeerOf(s)
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestProcessOf: what is returned is of the process that connected, and waits for its end.
func TestProcessOf(t *testing.T) {
	_, s := link(t, "unix")
	f, err := ProcessOf(s)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.SetReadDeadline(time.Unix(1, 0)))
	raw, err := f.SyscallConn()
	require.NoError(t, err)
	require.ErrorIs(t, raw.Read(func(uintptr) bool { return false }), os.ErrDeadlineExceeded, "this process lives")
	fd, err := openProcess(s) // as with an older kernel
	require.NoError(t, err)
	require.NoError(t, syscall.Close(fd))
	require.NoError(t, s.Close())
	_, err = ProcessOf(s)
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestAFullBacklogIsWaitedFor: a flood of connections delays Dial, and does not
// make it say that there is no server. The end of its context ends the delay, and is its error.
func TestAFullBacklogIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 0))
	for err == nil { // until there is no room
		var c net.Conn
		if c, err = net.Dial("unix", path); err == nil {
			defer c.Close()
		}
	}
	require.ErrorIs(t, err, syscall.EAGAIN)
	got := make(chan error, 1)
	go func() {
		c, err := Dial(t.Context(), "unix", path)
		if err == nil {
			c.Close()
		}
		got <- err
	}()
	taken, _, err := syscall.Accept(fd)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(taken))
	require.NoError(t, <-got)
	late, cancel := context.WithTimeout(t.Context(), 10*crowdPause)
	defer cancel()
	_, err = Dial(late, "unix", path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	gone, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := Dial(gone, "unix", path)
		got <- err
	}()
	cancel()
	require.ErrorIs(t, <-got, context.Canceled)
}

// TestNobodyServes: what is no full backlog is said at once.
func TestNobodyServes(t *testing.T) {
	_, err := Dial(t.Context(), "unix", filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestInterruptIsUndone: once the end of a context interrupts nothing any more, no
// deadline is left, however late the end of the context was noticed.
func TestInterruptIsUndone(t *testing.T) {
	a, b := link(t, "unix")
	for range 1000 {
		ctx, cancel := context.WithCancel(t.Context())
		undo := Interrupt(ctx, a.SetDeadline)
		cancel()
		undo()
		_, err := b.Write([]byte{1})
		require.NoError(t, err)
		_, err = a.Read(make([]byte, 1))
		require.NoError(t, err)
	}
}
