package control_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestAFullBacklogIsWaitedFor: while others flood the socket of a server a call
// waits for room, where the kernel says at once that there is none.
func TestAFullBacklogIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}))
	require.NoError(t, syscall.Listen(fd, 0))
	var flood []net.Conn
	for err == nil { // until there is no room
		var conn net.Conn
		if conn, err = net.Dial("unix", path); err == nil {
			flood = append(flood, conn)
		}
	}
	require.ErrorIs(t, err, syscall.EAGAIN)
	c, err := control.Dial("unix://" + path)
	require.NoError(t, err)
	defer c.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := c.Versions.GetVersion(background(t), &nfcommsv1.GetVersionRequest{})
		answered <- err
	}()
	srv, gs := control.New(control.Options{}), grpc.NewServer()
	srv.Register(gs)
	f := os.NewFile(uintptr(fd), path)
	l, err := net.FileListener(f)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	served := make(chan error, 1)
	select {
	case err := <-answered:
		require.NoError(t, err, "answered by nobody")
	default: // nobody serves yet
	}
	go func() { served <- gs.Serve(l) }()
	require.NoError(t, <-answered)
	for _, conn := range flood {
		conn.Close() // the server waits for their handshakes
	}
	require.NoError(t, srv.Shutdown(background(t)))
	gs.Stop()
	require.NoError(t, <-served)
}
