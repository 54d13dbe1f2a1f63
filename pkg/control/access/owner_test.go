package access

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/owners"
)

// TestOwner: a user id that the policy names is a caller of its own.
func TestOwner(t *testing.T) {
	g := NewAuthorizer(granting(t, Viewer, "uid:100001"), Methods(), nil)
	require.Equal(t, "uid 100001", g.Owner(Local{UID: 100001}))
	require.Equal(t, owners.Name(0), g.Owner(Local{UID: 0}))
	require.Equal(t, owners.Others, g.Owner(Local{UID: 1<<32 - 2}))
	require.Equal(t, owners.Others+" in /pod", g.Owner(Local{UID: 1<<32 - 2, group: func() string { return "/pod" }}))
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

	c, err := newAccounts(Limits{AllCalls: 1}).enter("x")
	require.NoError(t, err)
	require.NoError(t, c.begin(t.Context(), false))
	require.Error(t, c.begin(t.Context(), false), "one is the limit, too")
}

// TestARequestHasItsTime: a call without its request ends, and a call
// with its request does not.
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
