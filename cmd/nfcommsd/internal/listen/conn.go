package listen

import (
	"container/list"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
)

// ErrFull: no place is free, or the caller has as many as are. Compare with
// errors.Is.
var ErrFull = errors.New("too many connections")

// Conn is a connection of a listener with limits.
type Conn struct {
	net.Conn
	door  *door
	from  string // its source
	named bool   // the source is its owner, not an address
	peer  Owner  // whose it is as far as its source says

	begun atomic.Bool // its client sent something

	// Guarded by the lock of the door.
	place  place
	queued *list.Element // its place among those that wait
	owner  Owner         // once it settled
	proven bool          // it settled once
	closed bool
}

// place is where a connection is counted.
type place int

const (
	nowhere place = iota
	waiting
	ordinary
	reserved
)

// Source returns the origin of the connection: an address, of IPv6 the
// network of it, or the user of a UNIX socket.
func (c *Conn) Source() string { return c.from }

// Read reads. The first bytes of a connection whose owner is not known yet count against the pace of
// its source: a handshake or a request begins. Too many in a second close the connection.
func (c *Conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.begun.Swap(true) && !c.door.begin(c) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Request waits until its source may ask for more, one more each time: a client
// that asks too often waits, and no other. It returns the context's error.
func (c *Conn) Request(ctx context.Context) error {
	d := c.door
	if d.limits.Pace.Requests == 0 || c.peer.Privileged {
		return nil
	}
	d.mu.Lock()
	s := d.sourceLocked(c.from)
	if s.request == nil {
		s.request = limiter(d.limits.Pace.Requests)
	}
	pace := s.request
	d.mu.Unlock()
	return pace.Wait(ctx)
}

// Settle counts the connection as one of its owner's, by default its source's.
// ErrFull if there is no place, and net.ErrClosed if it was closed already.
func (c *Conn) Settle(owner Owner) error {
	d := c.door
	if owner.Name == "" {
		owner = c.peer
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case c.closed || c.place == nowhere:
		return net.ErrClosed
	case c.place != waiting:
		return nil
	case !d.settleLocked(c, owner):
		return ErrFull
	}
	return nil
}

// Wait counts the connection as one of which nothing is wanted now.
func (c *Conn) Wait() {
	c.door.mu.Lock()
	if c.closed || c.place == nowhere || c.place == waiting {
		c.door.mu.Unlock()
		return
	}
	c.door.leaveLocked(c)
	var evicted *Conn
	if c.door.waiting.Len() >= c.door.limits.Waiting {
		evicted = c.door.evictLocked()
	}
	c.door.waitLocked(c)
	c.door.mu.Unlock()
	if evicted != nil {
		evicted.Conn.Close()
		c.door.limits.Refused(evicted.from, Evicted)
	}
}

// Close closes the connection and makes room.
func (c *Conn) Close() error {
	c.door.mu.Lock()
	c.closed = true
	c.door.leaveLocked(c)
	c.door.mu.Unlock()
	return c.Conn.Close()
}

// SyscallConn gives access to the socket below, for credentials that ask the
// kernel who connected.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if sc, ok := c.Conn.(syscall.Conn); ok {
		return sc.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// sourceOf names what an address is counted under: of IPv6 the /64, as a host
// has all of one.
func sourceOf(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return a.Network()
	}
	ip, ok := netip.AddrFromSlice(tcp.IP)
	if !ok {
		return tcp.String()
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	network, _ := ip.Prefix(64) // an address of 128 bits has one
	return network.String()
}
