package access

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// TestAccount: a second's work is free, the rest takes its time.
func TestAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		took := func() time.Duration { return time.Since(start).Round(time.Millisecond) }
		a := newAccounts(Limits{Work: 1 << 20})
		c, err := a.enter("x")
		require.NoError(t, err)
		c.charge(1<<20 - connectionCost)
		c.wait(nil)
		require.Zero(t, took(), "what a second allows")
		c.charge(1 << 19)
		c.wait(nil)
		require.InDelta(t, 500*time.Millisecond, took(), float64(50*time.Millisecond), "what is beyond")

		time.Sleep(time.Hour)
		start = time.Now()
		c.charge(1 << 20)
		c.wait(nil)
		c.charge(1 << 20)
		c.wait(nil)
		require.InDelta(t, time.Second, took(), float64(50*time.Millisecond), "an hour saves one second's work")

		c.charge(1 << 30)
		done := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(done) })
		start = time.Now()
		c.wait(done)
		require.Equal(t, time.Second, took(), "done ends the wait")
	})
}

// TestAccounts: callers do not feel each other, a second connection gains nothing, and
// what is forgotten is what nobody needs.
func TestAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccounts(Limits{Connections: 2, Work: 1 << 20})
		c, err := a.enter("x")
		require.NoError(t, err)
		again, err := a.enter("x")
		require.NoError(t, err)
		require.Same(t, c, again)
		_, err = a.enter("x")
		require.ErrorIs(t, err, ErrTooMany)
		other, err := a.enter("y")
		require.NoError(t, err)
		require.NotSame(t, c, other)

		c.charge(4 << 20)
		a.leave(c)
		a.leave(c)
		_, err = a.enter("x")
		require.ErrorIs(t, err, ErrTooFast)
		_, err = a.enter("y")
		require.NoError(t, err, "the other is not disturbed")

		time.Sleep(3 * time.Second)
		c, err = a.enter("x")
		require.NoError(t, err)
		a.leave(c)
		time.Sleep(3 * time.Second)
		_, err = a.enter("z")
		require.NoError(t, err)
		require.NotContains(t, a.open, "x")
		require.Contains(t, a.open, "y", "it has connections")
	})
}

// TestNoLimits: without limits nothing is counted or delayed.
func TestNoLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := newAccounts(Limits{})
		for range 10_000 {
			c, err := a.enter("x")
			require.NoError(t, err)
			c.charge(1 << 40)
			c.wait(nil)
		}
		(*account)(nil).charge(1)
		(*account)(nil).wait(nil)
		require.Zero(t, time.Since(start))
	})
}

// silent is a stream that takes what it is given.
type silent struct{ grpc.ServerStream }

func (silent) SendMsg(any) error { return nil }

// TestWorkIsCharged: bytes, calls and streamed messages are on the bill of the
// caller, and work beyond the limit delays the next read and the next message.
func TestWorkIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unit = time.Second / (1 << 10)
		a := newAccounts(Limits{Work: 1 << 10})
		c, err := a.enter("x")
		require.NoError(t, err)
		c.wait(nil)
		used := func() int { return int((c.delay(time.Now()) + time.Second) / unit) }
		time.Sleep(time.Hour)

		here, there := net.Pipe()
		conn := a.meter(here, c)
		go func() { _, _ = there.Write(make([]byte, 300)) }()
		c.charge(0) // an hour is worth a second
		n, err := conn.Read(make([]byte, 1000))
		require.NoError(t, err)
		require.Equal(t, 300, n)
		require.Equal(t, 300, used())

		authorizer := NewAuthorizer(NewPolicy(), Methods(), nil)
		ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: Local{account: c}})
		_, err = authorizer.Tap(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, 300+callCost, used())
		start := time.Now()
		go func() { _, _ = there.Write(make([]byte, 1)) }()
		_, err = conn.Read(make([]byte, 1))
		require.NoError(t, err)
		require.InDelta(t, 300*unit, time.Since(start), float64(10*unit), "the read waits for the call")

		start = time.Now()
		s := &guarded{ServerStream: silent{}, ctx: t.Context(), info: Remote{account: c}, record: &record{}}
		for range 8 {
			require.NoError(t, s.SendMsg(nil))
		}
		require.InDelta(t, 8*messageCost*unit, time.Since(start), float64(10*unit))

		c.charge(1 << 20)
		time.AfterFunc(time.Minute, func() { conn.Close() })
		start = time.Now()
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		require.Equal(t, time.Minute, time.Since(start), "closing ends the wait")
		require.NoError(t, there.Close())
	})
}

// TestAdminsAreNotSlowed: an admin sends as much as it likes, and a former admin does not.
func TestAdminsAreNotSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAccounts(Limits{Work: 1 << 10})
		c, err := a.enter("x")
		require.NoError(t, err)
		here, there := net.Pipe()
		conn := a.meter(here, c)
		authorizer := NewAuthorizer(granting(t, Admin, "uid:7"), Methods(), nil)
		call := func() {
			_, err := authorizer.Tap(peer.NewContext(t.Context(), &peer.Peer{AuthInfo: Local{UID: 7, account: c}}), nil)
			require.NoError(t, err)
		}
		send := func() time.Duration {
			start := time.Now()
			go func() { _, _ = there.Write(make([]byte, 1<<20)) }()
			for range 16 {
				_, err := io.ReadFull(conn, make([]byte, 1<<16))
				require.NoError(t, err)
			}
			return time.Since(start)
		}
		call()
		require.Zero(t, send())
		authorizer.SetPolicy(granting(t, Operator, "uid:7"))
		call()
		require.Greater(t, send(), 100*time.Second)
		require.NoError(t, conn.Close())
	})
}

// TestCallsAtOnce: calls beyond the limit are refused, of all connections of a
// caller together, and one that ends makes room.
func TestCallsAtOnce(t *testing.T) {
	ctx := deadline(t)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{Calls: 3}), NewAuthorizer(granting(t, Viewer, me()), Methods(), nil))
	one, two := local(t, address), local(t, address)
	watch := func(conn *grpc.ClientConn) (context.CancelFunc, error) {
		ctx, cancel := context.WithCancel(ctx)
		t.Cleanup(cancel)
		w, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = w.Recv()
		}
		return cancel, err
	}
	end, err := watch(one)
	require.NoError(t, err)
	_, err = watch(one)
	require.NoError(t, err)
	_, err = watch(two)
	require.NoError(t, err)
	_, err = watch(two)
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	require.ErrorContains(t, err, "3 calls under way")
	require.Equal(t, codes.ResourceExhausted, status.Code(check(ctx, one)))
	end()
	require.Eventually(t, func() bool { return check(ctx, two) == nil }, watchdog, time.Millisecond)
	for range 10 { // a call that is over does not count
		require.Eventually(t, func() bool { return check(ctx, two) == nil }, watchdog, time.Millisecond)
	}
}

// TestFastCaller: who calls faster than allowed is slowed down, not refused.
func TestFastCaller(t *testing.T) {
	ctx := deadline(t)
	authorizer := NewAuthorizer(granting(t, Viewer, me()), Methods(), nil)
	l, address := listen(t)
	serve(t, l, LocalCredentials(Limits{Work: 100_000}), authorizer)
	conn := local(t, address)
	start := time.Now()
	for range 200 {
		require.NoError(t, check(ctx, conn))
	}
	require.Greater(t, time.Since(start), time.Duration(200*callCost-100_000)*time.Second/100_000)
}
