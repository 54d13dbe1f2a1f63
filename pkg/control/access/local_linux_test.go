package access

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// another starts the test binary as a client, as another user where that is
// possible, and returns what it printed and the ids it ran under.
func another(t *testing.T, address string, groups ...uint32) (string, Local) {
	who := Local{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	cmd := exec.CommandContext(deadline(t), "/proc/self/exe")
	cmd.Env = append(os.Environ(), probeEnv+"="+address)
	if os.Geteuid() == 0 {
		who.UID, who.GID = 65534, 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: who.UID, Gid: who.GID, Groups: groups}}
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out)), who
}

// TestAnotherUser: the user of the other process decides.
func TestAnotherUser(t *testing.T) {
	authorizer := NewAuthorizer(NewPolicy(), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{}), authorizer)

	out, who := another(t, address)
	require.Contains(t, out, codes.PermissionDenied.String())
	require.Contains(t, out, fmt.Sprintf("uid %d gid %d", who.UID, who.GID))

	authorizer.SetPolicy(granting(t, Viewer, fmt.Sprintf("uid:%d", who.UID)))
	out, _ = another(t, address)
	require.Equal(t, "OK", out)
	authorizer.SetPolicy(granting(t, Viewer, fmt.Sprintf("gid:%d", who.GID)))
	out, _ = another(t, address)
	require.Equal(t, "OK", out)
	authorizer.SetPolicy(granting(t, Admin, fmt.Sprintf("uid:%d", who.UID+1)))
	out, _ = another(t, address)
	require.Contains(t, out, codes.PermissionDenied.String())
}

// TestSupplementaryGroups: more groups than the first guess has room for.
func TestSupplementaryGroups(t *testing.T) {
	l, err := net.Listen("unix", socket(t))
	require.NoError(t, err)
	defer l.Close()
	var groups []uint32
	if os.Geteuid() == 0 {
		for g := range uint32(100) {
			groups = append(groups, 5000+g)
		}
	} else {
		own, err := os.Getgroups()
		require.NoError(t, err)
		for _, g := range own {
			groups = append(groups, uint32(g))
		}
	}
	require.NoError(t, os.Chmod(l.Addr().String(), 0o666))
	met := make(chan Local, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			close(met)
			return
		}
		defer conn.Close()
		_, info, err := LocalCredentials(Limits{}).ServerHandshake(conn)
		if err != nil {
			close(met)
			return
		}
		met <- info.(Local)
	}()
	_, who := another(t, "unix://"+l.Addr().String(), groups...)
	got, ok := <-met
	require.True(t, ok)
	require.Equal(t, who.UID, got.UID)
	require.Equal(t, who.GID, got.GID)
	require.ElementsMatch(t, groups, got.Groups)
}

func TestLocalCredentialsOnTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	there, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	here, err := l.Accept()
	require.NoError(t, err)
	defer here.Close()
	_, _, err = LocalCredentials(Limits{}).ServerHandshake(here)
	require.ErrorContains(t, err, "local credentials on a tcp connection")
	_, _, err = LocalCredentials(Limits{}).ClientHandshake(t.Context(), "", here)
	require.ErrorContains(t, err, "for servers")
}

// TestPerUserLimit: a user at its limit is refused, and let in again once one
// of its connections is closed.
func TestPerUserLimit(t *testing.T) {
	ctx := deadline(t)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{Connections: 2}), NewAuthorizer(granting(t, Viewer, me()), Methods(), nil))
	first, second, third := local(t, address), local(t, address), local(t, address)
	require.NoError(t, check(ctx, first))
	require.NoError(t, check(ctx, second))
	require.Equal(t, codes.Unavailable, status.Code(check(ctx, third)))
	require.NoError(t, check(ctx, first), "the others are not disturbed")
	if os.Geteuid() == 0 {
		out, _ := another(t, address)
		require.Contains(t, out, codes.PermissionDenied.String(), "another user gets in")
	}

	require.NoError(t, second.Close())
	require.Eventually(t, func() bool { return check(ctx, third) == nil }, watchdog, 1e7)
}
