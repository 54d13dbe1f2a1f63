package access

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/testcert"
)

// as returns credentials that trust a server authority and show p.
func as(t *testing.T, p testcert.Pair, server *testcert.Authority) credentials.TransportCredentials {
	return credentials.NewTLS(p.Client(t, server))
}

// site is a TLS server with its files.
type site struct {
	files   Files
	ca      *testcert.Authority
	address string
	tls     *TLS
}

func (s *site) write(t *testing.T, p testcert.Pair, clientCA []byte) {
	for name, text := range map[string][]byte{s.files.Certificate: p.Cert, s.files.Key: p.Key, s.files.ClientCA: clientCA} {
		if text != nil {
			require.NoError(t, os.WriteFile(name, text, 0o600))
		}
	}
}

// newSite serves to clients of its own authority; cn:viewer is a viewer. crl is a list that revokes
// nothing yet, if there is one.
func newSite(t *testing.T, out *log, crl ...string) *site {
	dir := t.TempDir()
	s := &site{ca: testcert.New(t), files: Files{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt"),
	}}
	s.write(t, s.ca.Issue(t, "server", ""), testcert.Bundle(s.ca))
	for _, name := range crl {
		s.files.ClientCRL = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(s.files.ClientCRL, s.ca.Revoke(t), 0o600))
	}
	var err error
	s.tls, err = NewTLS(s.files, slog.New(slog.NewTextHandler(out, nil)))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = l.Addr().String()
	policy := granting(t, Viewer, "cn:viewer")
	require.NoError(t, policy.Grant(Admin, "uri:spiffe://example.org/admin"))
	serve(t, l, s.tls.Credentials(Limits{}), NewAuthorizer(policy, Methods(), nil))
	return s
}

// ask makes one connection with creds and returns what a health check gives.
func (s *site) ask(ctx context.Context, t *testing.T, creds credentials.TransportCredentials) error {
	conn := dial(t, s.address, creds)
	defer conn.Close()
	return check(ctx, conn)
}

func TestTLSClients(t *testing.T) {
	ctx := deadline(t)
	s := newSite(t, new(log))
	stranger := testcert.New(t)
	old := s.ca.Issue(t, "viewer", "").Client(t, s.ca)
	old.MaxVersion = tls.VersionTLS12
	for _, c := range []struct {
		name  string
		creds credentials.TransportCredentials
		want  codes.Code
	}{
		{"by common name", as(t, s.ca.Issue(t, "viewer", ""), s.ca), codes.OK},
		{"by URI", as(t, s.ca.Issue(t, "", "spiffe://example.org/admin"), s.ca), codes.OK},
		{"a name without a role", as(t, s.ca.Issue(t, "nobody", ""), s.ca), codes.PermissionDenied},
		{"no certificate", as(t, testcert.Pair{}, s.ca), codes.Unavailable},
		{"another authority", as(t, stranger.Issue(t, "viewer", ""), s.ca), codes.Unavailable},
		{"expired", as(t, s.ca.IssueUntil(t, "viewer", "", time.Now().Add(-time.Hour)), s.ca), codes.Unavailable},
		{"TLS 1.2", credentials.NewTLS(old), codes.Unavailable},
		{"no TLS", insecure.NewCredentials(), codes.Unavailable},
		{"a client that trusts another", as(t, s.ca.Issue(t, "viewer", ""), stranger), codes.Unavailable},
	} {
		err := s.ask(ctx, t, c.creds)
		require.Equal(t, c.want, status.Code(err), "%s: %v", c.name, err)
	}
}

// TestTLSReload: files that change count for new connections, and the open one
// continues.
func TestTLSReload(t *testing.T) {
	ctx := deadline(t)
	var out log
	s := newSite(t, &out)
	oldClient := s.ca.Issue(t, "viewer", "")
	open := dial(t, s.address, as(t, oldClient, s.ca))
	require.NoError(t, check(ctx, open))

	next := testcert.New(t)
	newClient := next.Issue(t, "viewer", "")
	s.write(t, next.Issue(t, "server", ""), testcert.Bundle(next))
	require.NoError(t, s.ask(ctx, t, as(t, newClient, next)), "the new certificates")
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, as(t, oldClient, next))), "the old authority")
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, as(t, newClient, s.ca))), "the old server certificate")
	require.NoError(t, check(ctx, open), "the open connection")
	require.Equal(t, 2, out.count("certificates loaded"))

	s.write(t, testcert.Pair{}, testcert.Bundle(next, s.ca))
	require.NoError(t, s.ask(ctx, t, as(t, oldClient, next)), "both authorities")
	require.NoError(t, s.ask(ctx, t, as(t, newClient, next)), "both authorities")
}

// TestTLSResumption: a session from before does not get in on an authority
// that was removed.
func TestTLSResumption(t *testing.T) {
	ctx := deadline(t)
	s := newSite(t, new(log))
	config := s.ca.Issue(t, "viewer", "").Client(t, s.ca)
	config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	creds := credentials.NewTLS(config)
	require.NoError(t, s.ask(ctx, t, creds))
	s.write(t, testcert.Pair{}, testcert.Bundle(testcert.New(t)))
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, creds)))
}

// TestTLSBadReload: what cannot be used is refused, said once, and the old
// files stay in use until the new ones are whole.
func TestTLSBadReload(t *testing.T) {
	ctx := deadline(t)
	var out log
	s := newSite(t, &out)
	client := as(t, s.ca.Issue(t, "viewer", ""), s.ca)
	next := s.ca.Issue(t, "server", "")
	first, err := os.ReadFile(s.files.Certificate)
	require.NoError(t, err)

	for i, c := range []struct {
		name, want string
		spoil      func()
	}{
		{"half a pair", "private key does not match public key", func() { s.write(t, testcert.Pair{Cert: next.Cert}, nil) }},
		{"no PEM", "no certificate in it", func() { s.write(t, testcert.Pair{Cert: first}, []byte("x")) }},
		{"no key", "no such file", func() { require.NoError(t, os.Remove(s.files.Key)) }},
	} {
		c.spoil()
		for range 3 {
			require.NoError(t, s.ask(ctx, t, client), c.name)
		}
		require.ErrorContains(t, s.tls.Reload(), c.want, c.name)
		require.Equal(t, i+1, out.count("certificates not loaded"), c.name)
	}
	s.write(t, next, testcert.Bundle(s.ca))
	require.NoError(t, s.tls.Reload())
	require.NoError(t, s.ask(ctx, t, client))
	require.Equal(t, 2, out.count("certificates loaded"))
}

func TestNewTLSRefuses(t *testing.T) {
	ca := testcert.New(t)
	good, other := ca.Issue(t, "a", ""), ca.Issue(t, "b", "")
	for _, c := range []struct {
		name     string
		p        testcert.Pair
		clientCA []byte
		want     string
	}{
		{"a key of another certificate", testcert.Pair{Cert: good.Cert, Key: other.Key}, testcert.Bundle(ca), "private key does not match public key"},
		{"no certificate", testcert.Pair{Cert: []byte("x"), Key: good.Key}, testcert.Bundle(ca), "failed to find any PEM data"},
		{"no key", testcert.Pair{Cert: good.Cert, Key: good.Cert}, testcert.Bundle(ca), "certificate rather than a key"},
		{"no authority", good, []byte("x"), "no certificate in it"},
		{"a missing file", good, nil, "no such file"},
	} {
		dir := t.TempDir()
		s := &site{files: Files{Certificate: dir + "/crt", Key: dir + "/key", ClientCA: dir + "/ca"}}
		s.write(t, c.p, c.clientCA)
		_, err := NewTLS(s.files, nil)
		require.ErrorContains(t, err, c.want, c.name)
	}
}
