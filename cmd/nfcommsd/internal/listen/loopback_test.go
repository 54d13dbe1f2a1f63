package listen

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// accept connects to a listener by connect, and returns the listener's end.
func accept(t *testing.T, address string, connect func(address string)) *net.TCPConn {
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	defer l.Close()
	connect(l.Addr().String())
	conn, err := l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// TestLoopbackUser: the kernel reports the user of the other end of a connection, of both
// families. It reports none once the process has closed that end.
func TestLoopbackUser(t *testing.T) {
	stay := func(address string) {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		uid, err := LoopbackUser(accept(t, address, stay))
		require.NoError(t, err, address)
		require.EqualValues(t, os.Geteuid(), uid, address)
	}
	mapped := accept(t, "[::]:0", func(address string) {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		stay("127.0.0.1:" + port)
	})
	uid, err := LoopbackUser(mapped)
	require.NoError(t, err)
	require.EqualValues(t, os.Geteuid(), uid)

	gone := accept(t, "127.0.0.1:0", func(address string) {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		conn.Close()
	})
	_, err = LoopbackUser(gone)
	require.Error(t, err)
}

// TestLoopbackUserOfAnother: a connection of another user is that user's.
func TestLoopbackUserOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		return // nobody else can be asked for
	}
	const nobody = 65534
	var cmd *exec.Cmd
	conn := accept(t, "127.0.0.1:0", func(address string) {
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		cmd = exec.CommandContext(t.Context(), "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port+"; read -u 3")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		require.NoError(t, cmd.Start())
	})
	uid, err := LoopbackUser(conn)
	require.NoError(t, err)
	require.EqualValues(t, nobody, uid)
	conn.Close()
	_ = cmd.Wait() // bash reports that it read nothing
}
