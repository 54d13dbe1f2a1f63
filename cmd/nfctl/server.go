package main

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/pkg/control"
)

// server is the address of a server, and the means to connect to it.
type server struct {
	address string
	tls     tlsFlags
	// serverUser may serve at a UNIX socket, beside root and this user.
	serverUser string
}

// serverFlags are the global flags, and the keys of a context, that describe a server.
var serverFlags = []string{"address", "server-user", "tls-ca", "tls-cert", "tls-key", "tls-server-name"}

// fileFlags are those that name files.
var fileFlags = []string{"tls-ca", "tls-cert", "tls-key"}

// texts returns the fields by the names of their flags.
func (s *server) texts() map[string]*string {
	return map[string]*string{
		"address": &s.address, "server-user": &s.serverUser,
		"tls-ca": &s.tls.ca, "tls-cert": &s.tls.cert, "tls-key": &s.tls.key, "tls-server-name": &s.tls.serverName,
	}
}

// dial returns a client of the server, which connects with its first call.
func (s server) dial(more ...grpc.DialOption) (*control.Client, error) {
	option, err := s.dialOption()
	if err != nil {
		return nil, err
	}
	c, err := control.Dial(s.address, append(more, option)...)
	if err != nil {
		return nil, usagef("--address %q: %w", s.address, err)
	}
	return c, nil
}

// dialOption returns how to connect to the server: with certificates, or to a UNIX
// socket at which somebody serves who may.
func (s server) dialOption() (grpc.DialOption, error) {
	if isUnix(s.address) {
		trusts, err := s.trusts()
		return grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return dialUnix(ctx, unixPath(s.address), trusts)
		}), err
	}
	creds, err := s.tls.credentials()
	return grpc.WithTransportCredentials(creds), err
}

// explain turns the error of a failed connection into one that
// reports where and why.
func (s server) explain(ctx context.Context, err error) error {
	if !errors.Is(err, control.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	reason := err
	if isUnix(s.address) {
		trusts, bad := s.trusts()
		if bad != nil {
			return bad
		}
		if plain := probeUnix(ctx, unixPath(s.address), trusts); plain != nil {
			reason = plain
		}
		if untrusted := (*untrustedError)(nil); errors.As(reason, &untrusted) {
			return untrusted
		}
	} else if refused := s.probeTLS(ctx); refused != nil {
		return refused
	}
	return &unreachableError{address: s.address, reason: reason}
}

// isUnix reports whether an address is that of a UNIX socket.
func isUnix(address string) bool { return strings.HasPrefix(address, "unix:") }

// probeUnix connects to a UNIX socket for the plain error that gRPC hides.
func probeUnix(ctx context.Context, path string, trusts func(uid uint32) bool) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	conn, err := dialUnix(ctx, path, trusts)
	if err == nil {
		return conn.Close()
	}
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system.Err
	}
	return err
}

// unixPath returns the path in a UNIX socket's address.
func unixPath(address string) string {
	path := strings.TrimPrefix(address, "unix:")
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		path = rest
	}
	return path
}
