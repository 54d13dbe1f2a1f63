package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"

	"google.golang.org/grpc/credentials"
)

// Local is the peer of a UNIX socket, as the kernel recorded it when it connected. It is the
// credentials.AuthInfo of LocalCredentials.
type Local struct {
	credentials.CommonAuthInfo
	// PID is the process that connected. It may have ended since, and its
	// number may be another's by now: good for a log line, for nothing else.
	PID int32
	// UID and GID are the effective ids of that process.
	UID, GID uint32
	// Groups are its supplementary groups.
	Groups []uint32

	group   func() string // the control group of the process, as it was at the first call; nil if it is unknown
	account *account
}

// AuthType returns "local".
func (Local) AuthType() string { return "local" }

// String names the caller for a log line.
func (l Local) String() string {
	return fmt.Sprintf("uid %d gid %d pid %d", l.UID, l.GID, l.PID)
}

// LocalOf returns who is at the other end of a UNIX socket connection.
func LocalOf(conn syscall.Conn) (Local, error) { return peerOf(conn) }

// LocalCredentials returns the server side of a UNIX socket: nothing is
// encrypted, and each connection carries a Local. The limits are those of each
// user. Connections that are not a UNIX socket are refused.
func LocalCredentials(l Limits) credentials.TransportCredentials {
	return &localCredentials{accounts: newAccounts(l)}
}

type localCredentials struct{ accounts *accounts }

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
	who.account, err = c.accounts.enter(c.accounts.limits.ownerOf(who))
	if err != nil {
		return nil, nil, err
	}
	return c.accounts.meter(conn, who.account), who, nil
}

// ClientHandshake refuses: these credentials have no client side.
func (c *localCredentials) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("local credentials are for servers")
}

func (c *localCredentials) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "local"}
}

// Clone returns the same credentials: clones share the accounts.
func (c *localCredentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing; the interface asks for it.
func (c *localCredentials) OverrideServerName(string) error { return nil }
