package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// firstOfCrowd is the first of the user ids that one user has in its user
// namespaces; nobody else on a machine has them.
const firstOfCrowd = 1 << 30

// as connects to a UNIX socket as another user, who is in one group. The kernel
// keeps the ids of each thread apart: this one takes those, and ends with them.
// Without root it connects as itself. It waits for a place in a full backlog.
func as(ctx context.Context, uid, gid int, path string) (net.Conn, error) {
	type answer struct {
		conn net.Conn
		err  error
	}
	came := make(chan answer)
	go func() {
		if os.Geteuid() == 0 {
			runtime.LockOSThread() // and never unlocked: the thread ends with this goroutine
			if err := become(uid, gid); err != nil {
				came <- answer{err: err}
				return
			}
		}
		conn, err := fdpass.Dial(ctx, "unix", path)
		if err != nil {
			came <- answer{err: err}
			return
		}
		came <- answer{conn: conn}
	}()
	a := <-came
	return a.conn, a.err
}

// become changes the ids of the calling thread alone.
func become(uid, gid int) error {
	for _, call := range [][4]uintptr{
		{syscall.SYS_SETGROUPS, 0, 0, 0},
		{syscall.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{syscall.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, errno := syscall.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
			return errno
		}
	}
	return nil
}

// clientOf returns a client of a UNIX socket as another user.
func clientOf(t testing.TB, uid, gid int, path string) *control.Client {
	c, err := control.Dial("unix://"+path, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
		return as(ctx, uid, gid, path)
	}))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// crowdViewer are the flags that give the group of the attackers a role, as an
// operator gives one to a group.
func crowdViewer() []string {
	return []string{"--socket-mode", "0666", "--roles-viewer", fmt.Sprintf("gid:%d", attacker)}
}

// overTLS starts a daemon that serves on TCP as well. It returns its address and
// the authority of its clients, of whom "chief" is an admin.
func overTLS(t testing.TB, args ...string) (p *process, address string, ca *testcert.Authority) {
	ca, address = testcert.New(t), freePort(t)
	files := certificates(t, t.TempDir(), ca.Issue(t, "server", ""), ca)
	args = append(append(files, "--tcp-address", address, "--roles-admin", "cn:chief,uid:0"), args...)
	return start(t, args...), address, ca
}

// stranger makes a handshake without a certificate.
func stranger(address string, config *tls.Config) {
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return
	}
	_, _ = conn.Read(make([]byte, 1)) // TLS 1.3 says then that a certificate was needed
	conn.Close()
}
