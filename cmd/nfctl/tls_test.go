package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/access"
)

// serveTLS serves the control plane on TCP to clients of an authority;
// cn:viewer is a viewer. It returns the address.
func serveTLS(t *testing.T, file func(name string, text []byte) string, ca *testcert.Authority) string {
	t.Helper()
	own := ca.Issue(t, "server", "")
	creds, err := access.NewTLS(access.Files{
		Certificate: file("server.crt", own.Cert), Key: file("server.key", own.Key), ClientCA: file("ca.crt", testcert.Bundle(ca)),
	}, nil)
	require.NoError(t, err)
	policy := access.NewPolicy()
	require.NoError(t, policy.Grant(access.Viewer, "cn:viewer"))
	authorizer := access.NewAuthorizer(policy, access.Methods(), nil)
	srv := control.New(control.Options{})
	gs := grpc.NewServer(grpc.Creds(creds.Credentials(access.Limits{})), grpc.UnaryInterceptor(authorizer.Unary), grpc.StreamInterceptor(authorizer.Stream))
	srv.Register(gs)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- gs.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Shutdown(context.Background()))
		gs.Stop()
		require.NoError(t, <-done)
	})
	return l.Addr().String()
}

// TestTLS tries each kind of client that may call over TCP, or may not.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	ca, stranger := testcert.New(t), testcert.New(t)
	address := serveTLS(t, file, ca)
	cas := map[*testcert.Authority]string{ca: file("our-ca.crt", testcert.Bundle(ca)), stranger: file("other-ca.crt", testcert.Bundle(stranger))}
	for _, tc := range []struct {
		name   string
		pair   testcert.Pair
		trusts *testcert.Authority
		more   []string
		code   int
		says   string
	}{
		{"viewer", ca.Issue(t, "viewer", ""), ca, nil, exitOK, ""},
		{"server by another name", ca.Issue(t, "viewer", ""), ca, []string{"--tls-server-name", "example.org"}, exitUnreachable, "example.org"},
		{"no role", ca.Issue(t, "nobody", ""), ca, nil, exitDenied, "has the role none"},
		{"expired", ca.IssueUntil(t, "viewer", "", time.Now().Add(-time.Hour)), ca, nil, exitDenied, address + " refuses the certificate of --tls-cert: tls: expired certificate (its log"},
		{"another authority's client", stranger.Issue(t, "viewer", ""), ca, nil, exitDenied, address + " refuses the certificate of --tls-cert: tls: unknown certificate authority (its log"},
		{"another authority's server", ca.Issue(t, "viewer", ""), stranger, nil, exitUnreachable, "certificate"},
	} {
		args := append([]string{"list", "--timeout", "1m", "--address", address, "--tls-ca", cas[tc.trusts], "--tls-cert", file("c.crt", tc.pair.Cert), "--tls-key", file("c.key", tc.pair.Key)}, tc.more...)
		r := nfctl(t.Context(), t, args...)
		require.Equal(t, tc.code, r.code, "%s: %s", tc.name, r.err)
		require.Contains(t, r.err, tc.says, tc.name)
		require.LessOrEqual(t, strings.Count(r.err, "\n"), 1, tc.name)
	}
	expired := ca.IssueUntil(t, "viewer", "", time.Now().Add(-time.Hour))
	looks := nfctl(t.Context(), t, "doctor", "--timeout", "1m", "--address", address, "--tls-ca", cas[ca], "--tls-cert", file("c.crt", expired.Cert), "--tls-key", file("c.key", expired.Key))
	require.Equal(t, exitUnhealthy, looks.code)
	require.Contains(t, looks.out, "refuses the certificate of --tls-cert: tls: expired certificate")
	require.Contains(t, looks.out, "fix: a certificate of an authority in tcp.client_ca")
	wrong := ca.Issue(t, "viewer", "")
	r := nfctl(t.Context(), t, "list", "--address", address, "--tls-ca", cas[ca], "--tls-cert", file("c.crt", wrong.Cert), "--tls-key", file("c.key", ca.Issue(t, "viewer", "").Key))
	require.Equal(t, exitUsage, r.code)
	require.Contains(t, r.err, "private key does not match")
}
