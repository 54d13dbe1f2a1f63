package listen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// from is a connection of an address that counts its closing, and whose client sends zeros.
type from struct {
	net.Conn
	address net.Addr
	closed  *int
}

func (f from) RemoteAddr() net.Addr       { return f.address }
func (f from) Read(b []byte) (int, error) { return len(b), nil }
func (f from) Close() error {
	*f.closed++
	return nil
}

// rig is a door with what it refused.
type rig struct {
	*door
	refused []string
	closed  int
}

func newRig(l Limits) *rig {
	r := &rig{}
	l.Refused = func(source string, why Reason) { r.refused = append(r.refused, source+" "+string(why)) }
	r.door = newDoor(l)
	return r
}

// silent admits a connection of an address.
func (r *rig) silent(address string) *Conn {
	ip := net.ParseIP(address)
	return r.admit(from{address: &net.TCPAddr{IP: ip, Port: 1}, closed: &r.closed})
}

// take admits a connection that sends something. It is nil if that was too fast.
func (r *rig) take(address string) *Conn {
	c := r.silent(address)
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return nil
	}
	return c
}

// TestACallerMayHaveAsManyAsAreFree: one takes half, the next half of the rest,
// and there is one left for each who has none.
func TestACallerMayHaveAsManyAsAreFree(t *testing.T) {
	r := newRig(Limits{Open: 16, Reserved: 2, Waiting: 100})
	settle := func(name string, privileged bool) error {
		return r.take("192.0.2.1").Settle(Owner{name, privileged})
	}
	count := func(name string, privileged bool) (n int) {
		for settle(name, privileged) == nil {
			n++
		}
		return n
	}
	require.Equal(t, 8, count("a", false))
	require.Equal(t, 4, count("b", false))
	require.Equal(t, 2, count("c", false))
	require.Equal(t, 1, count("d", false))
	require.Equal(t, 1, count("e", false))
	require.ErrorIs(t, settle("f", false), ErrFull)
	require.Equal(t, 2, count("root", true), "reserved")
	require.ErrorIs(t, settle("root", true), ErrFull)
}

// TestAConnectionMakesRoom when it closes, once, wherever it was counted.
func TestAConnectionMakesRoom(t *testing.T) {
	r := newRig(Limits{Open: 2, Reserved: 1, Waiting: 2})
	a, b := r.take("192.0.2.1"), r.take("192.0.2.2")
	require.NoError(t, a.Settle(Owner{"a", false}))
	require.NoError(t, a.Settle(Owner{"a", false}), "it is settled")
	require.NoError(t, b.Settle(Owner{"b", false}))
	root := r.take("192.0.2.3")
	require.NoError(t, root.Settle(Owner{"root", true}))
	require.NoError(t, root.Close())
	require.NoError(t, root.Close())
	require.ErrorIs(t, root.Settle(Owner{"root", true}), net.ErrClosed)
	root.Wait()
	require.Zero(t, r.door.reserved)
	require.NoError(t, a.Close())
	require.NoError(t, a.Close())
	require.Equal(t, 1, r.settled)
	b.Wait()
	b.Wait()
	require.Zero(t, r.settled)
	require.Equal(t, 1, r.waiting.Len())
	require.NoError(t, b.Settle(Owner{"b", false}))
	require.NoError(t, b.Close())
	require.Zero(t, r.settled+r.waiting.Len()+len(r.holders))
	require.Empty(t, r.refused)
}

// TestWhoWaitsMakesRoom: of the connections that wait, the oldest of the source with the
// most is closed first, and one that was of use is closed last.
func TestWhoWaitsMakesRoom(t *testing.T) {
	r := newRig(Limits{Open: 8, Waiting: 3})
	single, useful, first := r.take("192.0.2.1"), r.take("192.0.2.9"), r.take("192.0.2.9")
	require.NoError(t, useful.Settle(Owner{"u", false}))
	useful.Wait()
	second := r.take("192.0.2.9") // three wait: the first of the largest source is closed
	require.Equal(t, []string{"192.0.2.9 evicted"}, r.refused)
	require.ErrorIs(t, first.Settle(Owner{"x", false}), net.ErrClosed)
	r.take("192.0.2.9")
	require.ErrorIs(t, second.Settle(Owner{"x", false}), net.ErrClosed)
	require.NoError(t, useful.Settle(Owner{"u", false}))
	require.NoError(t, single.Settle(Owner{"s", false}))
	r.take("192.0.2.8")
	r.take("192.0.2.9")
	useful.Wait() // there is no room for it either, but by another's leave
	require.Equal(t, 3, r.closed)
	require.NoError(t, useful.Settle(Owner{"u", false}))
}

// TestPace: a stranger, all strangers together and a known source have a pace each.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Limits{Open: 1000, Waiting: 1000, Pace: Pace{Stranger: 4, Strangers: 10, Known: 30}})
		burst := func(address string) (n int) {
			for range 100 {
				if r.take(address) != nil {
					n++
				}
			}
			return n
		}
		require.NoError(t, r.take("192.0.2.1").Settle(Owner{"a", false}))
		time.Sleep(time.Second)
		require.Equal(t, 4, burst("192.0.2.2"))
		require.Equal(t, 4, burst("2001:db8::1"), "what one is refused takes nothing from others")
		require.Equal(t, 2, burst("2001:db8:0:1::1"), "what all of them have")
		require.Equal(t, 30, burst("192.0.2.1"), "who is known does not feel it")
		require.Contains(t, r.refused, "192.0.2.2 pace")
		time.Sleep(time.Second)
		require.Equal(t, 4, burst("192.0.2.2"))
		time.Sleep(2 * knownTime)
		require.Equal(t, 4, burst("192.0.2.1"), "a stranger again")
	})
}

// TestSilenceTakesNothing: connections that say nothing do not count against the pace, and are closed
// before those that do.
func TestSilenceTakesNothing(t *testing.T) {
	r := newRig(Limits{Open: 10, Waiting: 10, Pace: Pace{Stranger: 1, Strangers: 1, Known: 1}})
	first := r.take("192.0.2.1")
	for i := range 100 {
		require.NotNil(t, r.silent(fmt.Sprintf("198.51.100.%d", i)))
	}
	require.NoError(t, first.Settle(Owner{"a", false}))
	require.Nil(t, r.take("192.0.2.2"))
	require.Contains(t, r.refused, "192.0.2.2 pace")
}

// TestSourcesAreForgotten once they hold no information.
func TestSourcesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Limits{Open: 10, Waiting: 10, Pace: Pace{Stranger: 5}})
		for i := range 10 * leastSweep {
			r.take(net.IPv4(10, byte(i>>16), byte(i>>8), byte(i)).String())
			time.Sleep(time.Millisecond)
		}
		require.Less(t, len(r.sources), 4*leastSweep)
	})
}

// TestSources: an address, of IPv6 its network.
func TestSources(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8:1:2:3::4": "2001:db8:1:2::/64",
	} {
		require.Equal(t, want, sourceOf(&net.TCPAddr{IP: net.ParseIP(address)}))
	}
	require.Equal(t, "unix", sourceOf(&net.UnixAddr{Net: "unix"}))
	require.NotEmpty(t, sourceOf(&net.TCPAddr{}))
}

// TestLimitOnASocket: what is refused is closed at once, and what is taken can be
// asked who it is.
func TestLimitOnASocket(t *testing.T) {
	inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	defer inner.Close()
	refused := make(chan Reason, 8)
	names := []string{"a", "a", "", "-", "b"}
	l := Limit(inner, Limits{Open: 2, OwnerOf: func(syscall.Conn) (Owner, error) {
		name := names[0]
		if names = names[1:]; name == "" {
			return Owner{}, errors.New("nobody")
		} else if name == "-" {
			return Owner{}, nil
		}
		return Owner{Name: name}, nil
	}, Refused: func(_ string, why Reason) { refused <- why }})
	dial := func() net.Conn {
		c, err := net.Dial("unix", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	dial()
	first, err := l.Accept()
	require.NoError(t, err)
	sc, ok := first.(syscall.Conn)
	require.True(t, ok)
	_, err = sc.SyscallConn()
	require.NoError(t, err)
	second := dial()
	for range 3 {
		dial()
	}
	last, err := l.Accept()
	require.NoError(t, err)
	require.Equal(t, "b", last.(*Conn).Source())
	require.Equal(t, "unix", last.RemoteAddr().Network())
	for _, why := range []Reason{Full, Unknown, Unknown} {
		require.Equal(t, why, <-refused)
	}
	require.NoError(t, second.SetReadDeadline(time.Now().Add(time.Minute)))
	_, err = second.Read(make([]byte, 1))
	require.True(t, errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET), "closed at once: %v", err)
	_, err = (&Conn{Conn: struct{ net.Conn }{}}).SyscallConn()
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

// TestCloseUnderAFlood: a listener closes while it refuses what others connect.
func TestCloseUnderAFlood(t *testing.T) {
	inner, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	require.NoError(t, err)
	refused := make(chan struct{}, 1)
	l := Limit(inner, Limits{
		OwnerOf: func(syscall.Conn) (Owner, error) { return Owner{Name: "a"}, nil },
		Refused: func(string, Reason) {
			select {
			case refused <- struct{}{}:
			default:
			}
		},
	})
	flooded := make(chan struct{})
	go func() {
		defer close(flooded)
		for {
			c, err := net.Dial("unix", inner.Addr().String())
			if err == nil {
				c.Close()
			} else if !errors.Is(err, syscall.EAGAIN) {
				return
			}
		}
	}()
	accepted := make(chan error)
	go func() {
		_, err := l.Accept()
		accepted <- err
	}()
	<-refused
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-accepted, net.ErrClosed)
	<-flooded
}

// TestCloseEndsThoseThatWait, and leaves those that settled.
func TestCloseEndsThoseThatWait(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := Limit(inner, Limits{Open: 2, Waiting: 2})
	var here [2]*Conn
	for i := range here {
		there, err := net.Dial("tcp", inner.Addr().String())
		require.NoError(t, err)
		defer there.Close()
		conn, err := l.Accept()
		require.NoError(t, err)
		here[i] = conn.(*Conn)
	}
	require.NoError(t, here[0].Settle(Owner{Name: "a"}))
	require.NoError(t, l.Close())
	_, err = here[1].Read(make([]byte, 1))
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = here[0].Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, here[0].Close())
}

// TestNamedMayBeLate: an owner who is known from the start is counted by name, and takes a place
// only once it is of use.
func TestNamedMayBeLate(t *testing.T) {
	owner := Owner{"a", false}
	r := newRig(Limits{Open: 4, Reserved: 1, Waiting: 2, Late: true, Pace: Pace{Stranger: 1, Strangers: 1, Known: 3},
		OwnerOf: func(syscall.Conn) (Owner, error) { return owner, nil }})
	first, second := r.take("127.0.0.1"), r.take("127.0.0.1")
	require.Zero(t, r.settled)
	require.NoError(t, first.Settle(Owner{}))
	require.NoError(t, second.Settle(Owner{}))
	require.Equal(t, map[string]int{"a": 2}, r.holders)
	require.ErrorIs(t, r.take("127.0.0.1").Settle(Owner{}), ErrFull)
	require.Nil(t, r.take("127.0.0.1"), "the pace of a known source")
	owner = Owner{"root", true}
	require.NoError(t, r.take("127.0.0.1").Settle(Owner{}), "held to no pace")
	owner = Owner{}
	require.NoError(t, r.take("127.0.0.1").Settle(Owner{}), "an address")
	require.Nil(t, r.take("192.0.2.1"), "a stranger")
}

// TestRequestsHaveAPace: a source that asks too often waits, and no other does.
func TestRequestsHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(Limits{Open: 100, Waiting: 100, Pace: Pace{Requests: 10}})
		busy, quiet := r.take("192.0.2.1"), r.take("192.0.2.2")
		begin := time.Now()
		for range 30 {
			require.NoError(t, busy.Request(t.Context()))
		}
		require.Equal(t, 2*time.Second, time.Since(begin))
		require.NoError(t, quiet.Request(t.Context()))
		require.Equal(t, 2*time.Second, time.Since(begin))
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, busy.Request(gone), context.Canceled)
	})
}
