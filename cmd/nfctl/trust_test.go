package main

import (
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// TestWhoMayServe: root, this user and the one of --server-user.
func TestWhoMayServe(t *testing.T) {
	for name, c := range map[string]struct {
		user string
		uid  uint32
		want bool
	}{
		"root": {"", 0, true}, "own": {"", uint32(os.Geteuid()), true}, "another": {"", 4711, false},
		"named": {"4711", 4711, true}, "not the named": {"4711", 4712, false}, "any": {anyUser, 4712, true},
		"no such service": {serviceUser, 4711, false},
	} {
		trusts, err := (server{serverUser: c.user}).trusts()
		require.NoError(t, err, name)
		require.Equal(t, c.want, trusts(c.uid), name)
	}
	_, err := (server{serverUser: "nobody-of-that-name"}).trusts()
	require.ErrorContains(t, err, "--server-user")
}

// TestAnotherUserServes: nothing is sent to the server of another user, and the error names that user.
func TestAnotherUserServes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	came := make(chan int, 8)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n, _ := conn.Read(make([]byte, 1))
			came <- n
			conn.Close()
		}
	}()
	require.ErrorIs(t, probeUnix(t.Context(), path, func(uint32) bool { return false }), os.ErrPermission)
	require.Zero(t, <-came, "not a byte")
	err = probeUnix(t.Context(), path, func(uint32) bool { return false })
	require.ErrorContains(t, err, "serves at "+path)
	require.Equal(t, exitDenied, exitCode(t.Context(), err))
	require.NoError(t, probeUnix(t.Context(), path, nil))
}

// TestTheUsersOwnSocket is where XDG_RUNTIME_DIR says, but for root.
func TestTheUsersOwnSocket(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	if os.Geteuid() == 0 {
		require.Empty(t, control.UserSocket())
		require.Equal(t, control.DefaultAddress, control.Address())
		return
	}
	path := filepath.Join(dir, "nfcomms", "nfcommsd.sock")
	require.Equal(t, path, control.UserSocket())
	require.Equal(t, control.DefaultAddress, control.Address(), "nobody made it")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, "unix://"+path, control.Address())
	t.Setenv("XDG_RUNTIME_DIR", "")
	require.Empty(t, control.UserSocket())
}

// TestLetIn names the group that the administrator chose, of the socket or else of its folder.
func TestLetIn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, os.Mkdir(dir, 0o750))
	path := filepath.Join(dir, "s")
	own, err := user.LookupGroupId(strconv.Itoa(os.Getegid()))
	require.NoError(t, err)
	join := "sudo usermod -aG " + own.Name + " USER, then log in again"
	require.Equal(t, join, letIn(path, "USER"), "the folder's")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.Contains(t, letIn(path, "USER"), path+" has mode 0600, which keeps all groups out")
	require.NoError(t, os.Chmod(path, 0o660))
	require.Equal(t, join, letIn(path, "USER"))
	require.Contains(t, letIn("/nowhere/at/all", "USER"), socketGroup)
	require.Equal(t, "4711471", groupName(4711471))
}
