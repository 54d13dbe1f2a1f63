package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/nfcomms/nfcomms/internal/owners"
)

// Limits bounds what one caller, a user or a certificate's name, can make a
// server do, over all its connections, and what all can. Zero fields set no
// bound.
type Limits struct {
	// Connections is the most that are open at a time.
	Connections int
	// Calls is the most that are under way at a time, streams included. One
	// beyond is refused with RESOURCE_EXHAUSTED before it is read.
	Calls int
	// Work is what the caller can have done in a second. A byte that it sends counts as one,
	// and the costs below are added. HTTP/2 frames that are no call cost the server 0.6 of a
	// processor for one connection if bytes are not counted, and 0.04 at 1 MB a second. A
	// caller that asks for more is not refused but read more slowly: it waits, others do not.
	// The work of one second may be done at once. Admins have no limit.
	Work int
	// AllCalls is the most that are under way at a time of all callers together, those of
	// admins not counted. A caller may have as many of them as are left free: one gets half,
	// two get a third each. There is always one for a caller that has none.
	AllCalls int
	// Request is the time for a request to arrive, after which its call ends.
	Request time.Duration
	// Owner names what a caller is counted under; nil stands for its own name.
	// Authorizer.Owner counts the user ids of one user as one.
	Owner func(credentials.AuthInfo) string
}

// ownerOf names what a caller is counted under.
func (l Limits) ownerOf(who credentials.AuthInfo) string {
	if l.Owner != nil {
		return l.Owner(who)
	}
	if local, ok := who.(Local); ok {
		return owners.Name(local.UID)
	}
	return Caller(who)
}

// Costs that are charged beside the bytes, about as much as it costs to serve.
const (
	connectionCost = 4096
	callCost       = 1024 // a call begins
	messageCost    = 128  // a message is sent on a stream
)

// maxDelay bounds the delay of a caller that may still connect.
const maxDelay = time.Second

// Errors of a handshake.
var (
	// ErrTooMany: the caller has too many connections.
	ErrTooMany = errors.New("too many connections of one caller")
	// ErrTooFast: the caller has asked for too much lately.
	ErrTooFast = errors.New("too much work for one caller")
)

// accounts are those of all callers of one server.
type accounts struct {
	limits Limits

	mu    sync.Mutex
	open  map[string]*account // with a connection, or with work to their account
	calls int                 // under way, of all callers but admins
}

func newAccounts(l Limits) *accounts {
	return &accounts{limits: l, open: make(map[string]*account)}
}

// account is what one caller has used.
type account struct {
	all  *accounts
	unit time.Duration // of one piece of work; 0 without a limit

	// Under the lock of the accounts.
	connections int
	calls       int // under way
	counted     int // of them, those that count for all callers together

	mu     sync.Mutex
	admin  bool      // at its last call: nothing is charged
	freeAt time.Time // until then the caller is over its limit
}

// enter counts a new connection.
func (a *accounts) enter(caller string) (*account, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	c := a.open[caller]
	if c == nil {
		a.sweepLocked(now)
		c = &account{all: a}
		if a.limits.Work > 0 {
			c.unit = max(time.Second/time.Duration(a.limits.Work), 1)
		}
		a.open[caller] = c
	}
	switch {
	case a.limits.Connections > 0 && c.connections >= a.limits.Connections:
		return nil, fmt.Errorf("%s: %w, at most %d", caller, ErrTooMany, a.limits.Connections)
	case c.delay(now) > maxDelay:
		return nil, fmt.Errorf("%s: %w", caller, ErrTooFast)
	}
	c.connections++
	c.charge(connectionCost)
	return c, nil
}

// leave counts a connection that closed. The account stays until its work is
// forgotten, so that to connect again gains nothing.
func (a *accounts) leave(c *account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.connections--
}

// sweepLocked forgets accounts that a new one would equal. Must hold mu.
func (a *accounts) sweepLocked(now time.Time) {
	for name, c := range a.open {
		if c.connections == 0 && c.delay(now) <= -time.Second {
			delete(a.open, name)
		}
	}
}

// charge adds work to an account.
func (c *account) charge(work int) {
	if c == nil || c.unit == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admin {
		return
	}
	if free := time.Now().Add(-time.Second); c.freeAt.Before(free) {
		c.freeAt = free
	}
	c.freeAt = c.freeAt.Add(time.Duration(work) * c.unit)
}

// calling notes whether the caller of the next call is an admin, who works as fast as it can: an
// image may have 64 MiB.
func (c *account) calling(admin bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.admin = admin; admin {
		c.freeAt = time.Time{}
	}
}

// delay returns how long the caller must wait until it is within its limit again;
// negative if it has something left.
func (c *account) delay(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.freeAt.Sub(now)
}

// wait waits until the caller is within its limit again, or until done.
func (c *account) wait(done <-chan struct{}) {
	if c == nil || c.unit == 0 {
		return
	}
	d := c.delay(time.Now())
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-done:
	}
}

// metered is a connection that is read no faster than its account allows.
type metered struct {
	net.Conn
	account *account
	closed  chan struct{}
	close   func()
}

func (a *accounts) meter(conn net.Conn, c *account) *metered {
	m := &metered{Conn: conn, account: c, closed: make(chan struct{})}
	m.close = sync.OnceFunc(func() {
		close(m.closed)
		a.leave(c)
	})
	return m
}

// Read reads once the caller is within its limit.
func (m *metered) Read(p []byte) (int, error) {
	m.account.wait(m.closed)
	n, err := m.Conn.Read(p)
	m.account.charge(n)
	return n, err
}

// Close closes the connection, which then no longer counts.
func (m *metered) Close() error {
	m.close()
	return m.Conn.Close()
}

// begin counts a call until ctx ends, or refuses it.
func (c *account) begin(ctx context.Context, admin bool) error {
	if c == nil {
		return nil
	}
	a := c.all
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.limits.Calls; most > 0 && c.calls >= most {
		return status.Errorf(codes.ResourceExhausted, "one caller may have %d calls under way, and no more", most)
	}
	one := 0
	if all := a.limits.AllCalls; all > 0 && !admin {
		if one = 1; c.counted >= all-a.calls {
			return status.Errorf(codes.ResourceExhausted, "%d calls of %d are under way: one caller may have as many as are free", a.calls, all)
		}
	}
	c.addLocked(1, one)
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		c.addLocked(-1, -one)
	})
	return nil
}

// addLocked counts calls, and those of them that count for all. Must hold the
// lock of the accounts.
func (c *account) addLocked(calls, counted int) {
	c.calls += calls
	c.counted += counted
	c.all.calls += counted
}

// Tap charges a call to its caller, before anything is read of it, and holds the
// caller to its limit of calls; for grpc.InTapHandle. Work beyond the limit is
// no error: it delays the next read.
func (a *Authorizer) Tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	who := callerOf(ctx)
	c := accountOf(who)
	if c == nil {
		return ctx, nil
	}
	admin := a.RoleOf(who) == Admin
	c.calling(admin)
	c.charge(callCost)
	return expect(ctx, c.all.limits.Request), c.begin(ctx, admin)
}
