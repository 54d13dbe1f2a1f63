package access

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// ranges are owners over a file of their own and two users.
func ranges(t *testing.T, text string) *owners {
	o := newOwners()
	o.file = filepath.Join(t.TempDir(), "subuid")
	require.NoError(t, os.WriteFile(o.file, []byte(text), 0o644))
	users := map[string]uint32{"alice": 1000, "bob": 1001}
	o.known = func(uid uint32) bool { return uid == 0 || uid == 1000 || uid == 1001 }
	o.id = func(name string) (uint32, bool) {
		id, ok := users[name]
		return id, ok
	}
	return o
}

// TestUserIDsOfNamespaces: those that /etc/subuid gives to a user are the user's,
// and those that nobody knows are one caller.
func TestUserIDsOfNamespaces(t *testing.T) {
	o := ranges(t, "bob:165536:65536\nalice:100000:65536\n# no range\nnobody-here:900000:10\n1002:1000000:10\nbob:x:1\nbob:5:0\n")
	for uid, want := range map[uint32]string{
		0: "uid 0", 1000: "uid 1000", 1001: "uid 1001", 4711: others, 99_999: others, 100_000: "uid 1000", 165_535: "uid 1000",
		165_536: "uid 1001", 231_071: "uid 1001", 231_072: others, 900_005: others, 1_000_009: "uid 1002", 1_000_010: others, 1<<32 - 1: others,
	} {
		require.Equal(t, want, o.of(uid), "%d", uid)
	}
	require.NoError(t, os.WriteFile(o.file, []byte("bob:100000:10\n"), 0o644))
	require.Equal(t, "uid 1001", o.of(100_000), "the file is read again")
	require.NoError(t, os.Remove(o.file))
	require.Equal(t, others, o.of(100_000))
	for uid := range uint32(2 * mostSeen) {
		o.of(uid)
	}
	require.LessOrEqual(t, len(o.seen), mostSeen)
}

// TestOwner: a user id that the policy names is a caller of its own.
func TestOwner(t *testing.T) {
	g := NewAuthorizer(granting(t, Viewer, "uid:100001"), Methods(), nil)
	g.owners = ranges(t, "alice:100000:65536\n")
	require.Equal(t, "uid 100001", g.Owner(Local{UID: 100001}))
	require.Equal(t, "uid 1000", g.Owner(Local{UID: 100002}))
	require.Equal(t, "cn:x", g.Owner(shown(t, "x")))
	require.Equal(t, "uid 7", Limits{}.ownerOf(Local{UID: 7}), "without an authorizer each id is one")
}

// TestAllCalls: a caller may have as many calls as are free, and admins do not
// count.
func TestAllCalls(t *testing.T) {
	a := newAccounts(Limits{AllCalls: 8})
	ctx, end := context.WithCancel(t.Context())
	count := func(name string, admin bool, most int) (n int) {
		c, err := a.enter(name)
		require.NoError(t, err)
		for n < most && c.begin(ctx, admin) == nil {
			n++
		}
		return n
	}
	require.Equal(t, 4, count("x", false, 10))
	require.Equal(t, 2, count("y", false, 10))
	require.Equal(t, 20, count("root", true, 20))
	require.Equal(t, 1, count("z", false, 10))
	require.Equal(t, 7, a.calls)
	end()
	require.Eventually(t, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.calls == 0 && a.open["root"].calls == 0
	}, watchdog, time.Millisecond)
}

// TestARequestHasItsTime: the call of one that does not come ends, and that of
// one that came does not.
func TestARequestHasItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authorizer := NewAuthorizer(granting(t, Viewer, "uid:1"), Methods(), nil)
		a := newAccounts(Limits{Request: 10 * time.Second})
		c, err := a.enter("x")
		require.NoError(t, err)
		tapped := func() context.Context {
			ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: Local{UID: 1, account: c}})
			ctx, err := authorizer.Tap(ctx, nil)
			require.NoError(t, err)
			return ctx
		}
		late, came := tapped(), tapped()
		time.Sleep(5 * time.Second)
		arrivalOf(came).came()
		time.Sleep(6 * time.Second)
		require.ErrorIs(t, late.Err(), context.Canceled)
		require.NoError(t, came.Err())

		arrivalOf(came).next()
		time.Sleep(nextMessage + time.Second)
		require.ErrorIs(t, came.Err(), context.Canceled)
		require.Equal(t, codes.Canceled, status.FromContextError(came.Err()).Code())
		arrivalOf(t.Context()).came()
		arrivalOf(t.Context()).next()
	})
}
