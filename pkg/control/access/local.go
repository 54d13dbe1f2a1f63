package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"google.golang.org/grpc/credentials"
)

// Local is who connected to a UNIX socket, as the kernel noted it at that
// moment. It is the credentials.AuthInfo of LocalCredentials.
type Local struct {
	credentials.CommonAuthInfo
	// PID is the process that connected. It may have ended since, and its
	// number may be another's by now: good for a log line, for nothing else.
	PID int32
	// UID and GID are the effective ids of that process.
	UID, GID uint32
	// Groups are its supplementary groups.
	Groups []uint32
}

// AuthType returns "local".
func (Local) AuthType() string { return "local" }

// String names the caller for a log line.
func (l Local) String() string {
	return fmt.Sprintf("uid %d gid %d pid %d", l.UID, l.GID, l.PID)
}

// LocalOf returns who is at the other end of a UNIX socket connection.
func LocalOf(conn *net.UnixConn) (Local, error) { return peerOf(conn) }

// ErrTooMany is returned by the handshake of a user with too many connections.
var ErrTooMany = errors.New("too many connections of one user")

// LocalCredentials returns the server side of a UNIX socket: nothing is
// encrypted, and each connection carries a Local. At most perUser connections
// of one user are open at a time, so that one user cannot lock the others out;
// zero means no limit. Connections that are not a UNIX socket are refused.
func LocalCredentials(perUser int) credentials.TransportCredentials {
	return &localCredentials{perUser: perUser, open: make(map[uint32]int)}
}

type localCredentials struct {
	perUser int

	mu   sync.Mutex
	open map[uint32]int // connections by user; only with perUser
}

// ServerHandshake asks the kernel who connected.
func (c *localCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	sc, ok := conn.(syscall.Conn)
	if !ok || conn.LocalAddr().Network() != "unix" {
		return nil, nil, fmt.Errorf("local credentials on a %s connection", conn.LocalAddr().Network())
	}
	who, err := peerOf(sc)
	if err != nil {
		return nil, nil, fmt.Errorf("ask who connected: %w", err)
	}
	who.SecurityLevel = credentials.PrivacyAndIntegrity
	if c.perUser == 0 {
		return conn, who, nil
	}
	if !c.enter(who.UID) {
		return nil, nil, fmt.Errorf("%v: %w, at most %d", who, ErrTooMany, c.perUser)
	}
	return &counted{Conn: conn, leave: sync.OnceFunc(func() { c.leave(who.UID) })}, who, nil
}

func (c *localCredentials) enter(uid uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[uid] >= c.perUser {
		return false
	}
	c.open[uid]++
	return true
}

func (c *localCredentials) leave(uid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[uid]--; c.open[uid] == 0 {
		delete(c.open, uid)
	}
}

// counted is a connection that is taken off its user's count when it closes.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection once it no longer counts.
func (c *counted) Close() error {
	c.leave()
	return c.Conn.Close()
}

// ClientHandshake refuses: these credentials have no client side.
func (c *localCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("local credentials are for servers")
}

func (c *localCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "local"}
}

// Clone returns the same credentials: clones share the count.
func (c *localCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing; the interface asks for it.
func (c *localCredentials) OverrideServerName(string) error { return nil }
