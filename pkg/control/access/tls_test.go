package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pair is a certificate and its key, in PEM.
type pair struct{ cert, key []byte }

func newAuthority(t *testing.T) *authority {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, key, _ := sign(t, template, nil)
	return &authority{cert, key}
}

// issue makes a certificate for both sides of a connection to 127.0.0.1.
func (a *authority) issue(t *testing.T, cn string, uri string, until time.Time) pair {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: cn}, NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if uri != "" {
		u, err := url.Parse(uri)
		require.NoError(t, err)
		template.URIs = []*url.URL{u}
	}
	_, _, p := sign(t, template, a)
	return p
}

// sign signs a template, with its own key without an authority.
func sign(t *testing.T, template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey, pair) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return cert, key, pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}
}

// bundle returns the certificates of authorities as a file holds them.
func bundle(all ...*authority) []byte {
	var text []byte
	for _, a := range all {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	}
	return text
}

// client returns credentials that trust a server authority and show p.
func (p pair) client(t *testing.T, server *authority, change func(*tls.Config)) credentials.TransportCredentials {
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(server.cert)
	if p.cert != nil {
		own, err := tls.X509KeyPair(p.cert, p.key)
		require.NoError(t, err)
		c.Certificates = []tls.Certificate{own}
	}
	if change != nil {
		change(c)
	}
	return credentials.NewTLS(c)
}

// site is a TLS server with its files.
type site struct {
	files   Files
	ca      *authority
	address string
	tls     *TLS
}

func (s *site) write(t *testing.T, p pair, clientCA []byte) {
	for name, text := range map[string][]byte{s.files.Certificate: p.cert, s.files.Key: p.key, s.files.ClientCA: clientCA} {
		if text != nil {
			require.NoError(t, os.WriteFile(name, text, 0o600))
		}
	}
}

// newSite serves to clients of its own authority; cn:viewer is a viewer.
func newSite(t *testing.T, out *log) *site {
	dir := t.TempDir()
	s := &site{ca: newAuthority(t), files: Files{
		Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt"),
	}}
	s.write(t, s.ca.issue(t, "server", "", time.Time{}), bundle(s.ca))
	var err error
	s.tls, err = NewTLS(s.files, slog.New(slog.NewTextHandler(out, nil)))
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = l.Addr().String()
	policy := granting(t, Viewer, "cn:viewer")
	require.NoError(t, policy.Grant(Admin, "uri:spiffe://example.org/admin"))
	serve(t, l, s.tls.Credentials(), NewGate(policy, Methods(), nil))
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
	stranger := newAuthority(t)
	for _, c := range []struct {
		name  string
		creds credentials.TransportCredentials
		want  codes.Code
	}{
		{"by common name", s.ca.issue(t, "viewer", "", time.Time{}).client(t, s.ca, nil), codes.OK},
		{"by URI", s.ca.issue(t, "", "spiffe://example.org/admin", time.Time{}).client(t, s.ca, nil), codes.OK},
		{"a name without a role", s.ca.issue(t, "nobody", "", time.Time{}).client(t, s.ca, nil), codes.PermissionDenied},
		{"no certificate", pair{}.client(t, s.ca, nil), codes.Unavailable},
		{"another authority", stranger.issue(t, "viewer", "", time.Time{}).client(t, s.ca, nil), codes.Unavailable},
		{"expired", s.ca.issue(t, "viewer", "", time.Now().Add(-time.Hour)).client(t, s.ca, nil), codes.Unavailable},
		{"TLS 1.2", s.ca.issue(t, "viewer", "", time.Time{}).client(t, s.ca, func(c *tls.Config) {
			c.MaxVersion = tls.VersionTLS12
		}), codes.Unavailable},
		{"no TLS", insecure.NewCredentials(), codes.Unavailable},
		{"a client that trusts another", s.ca.issue(t, "viewer", "", time.Time{}).client(t, stranger, nil), codes.Unavailable},
	} {
		err := s.ask(ctx, t, c.creds)
		require.Equal(t, c.want, status.Code(err), "%s: %v", c.name, err)
	}
}

// TestTLSReload: files that change count for new connections, and the open one
// goes on.
func TestTLSReload(t *testing.T) {
	ctx := deadline(t)
	var out log
	s := newSite(t, &out)
	oldClient := s.ca.issue(t, "viewer", "", time.Time{})
	open := dial(t, s.address, oldClient.client(t, s.ca, nil))
	require.NoError(t, check(ctx, open))

	next := newAuthority(t)
	newClient := next.issue(t, "viewer", "", time.Time{})
	s.write(t, next.issue(t, "server", "", time.Time{}), bundle(next))
	require.NoError(t, s.ask(ctx, t, newClient.client(t, next, nil)), "the new certificates")
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, oldClient.client(t, next, nil))), "the old authority")
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, newClient.client(t, s.ca, nil))), "the old server certificate")
	require.NoError(t, check(ctx, open), "the open connection")
	require.Equal(t, 2, out.count("certificates loaded"))

	s.write(t, pair{}, bundle(next, s.ca))
	require.NoError(t, s.ask(ctx, t, oldClient.client(t, next, nil)), "both authorities")
	require.NoError(t, s.ask(ctx, t, newClient.client(t, next, nil)), "both authorities")
}

// TestTLSResumption: a session from before does not get in on an authority
// that is gone.
func TestTLSResumption(t *testing.T) {
	ctx := deadline(t)
	s := newSite(t, new(log))
	client := s.ca.issue(t, "viewer", "", time.Time{})
	cache := tls.NewLRUClientSessionCache(8)
	creds := client.client(t, s.ca, func(c *tls.Config) { c.ClientSessionCache = cache })
	require.NoError(t, s.ask(ctx, t, creds))
	s.write(t, pair{}, bundle(newAuthority(t)))
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, creds)))
}

// TestTLSBadReload: what cannot be used is refused, said once, and the old
// files stay in use until the new ones are whole.
func TestTLSBadReload(t *testing.T) {
	ctx := deadline(t)
	var out log
	s := newSite(t, &out)
	client := s.ca.issue(t, "viewer", "", time.Time{}).client(t, s.ca, nil)
	next := s.ca.issue(t, "server", "", time.Time{})
	first, err := os.ReadFile(s.files.Certificate)
	require.NoError(t, err)

	for i, c := range []struct {
		name, want string
		spoil      func()
	}{
		{"half a pair", "private key does not match public key", func() { s.write(t, pair{cert: next.cert}, nil) }},
		{"no PEM", "no certificate in it", func() { s.write(t, pair{cert: first}, []byte("x")) }},
		{"no key", "no such file", func() { require.NoError(t, os.Remove(s.files.Key)) }},
	} {
		c.spoil()
		for range 3 {
			require.NoError(t, s.ask(ctx, t, client), c.name)
		}
		require.ErrorContains(t, s.tls.Reload(), c.want, c.name)
		require.Equal(t, i+1, out.count("certificates not loaded"), c.name)
	}
	s.write(t, next, bundle(s.ca))
	require.NoError(t, s.tls.Reload())
	require.NoError(t, s.ask(ctx, t, client))
	require.Equal(t, 2, out.count("certificates loaded"))
}

func TestNewTLSRefuses(t *testing.T) {
	ca := newAuthority(t)
	good, other := ca.issue(t, "a", "", time.Time{}), ca.issue(t, "b", "", time.Time{})
	for _, c := range []struct {
		name     string
		p        pair
		clientCA []byte
		want     string
	}{
		{"a key of another certificate", pair{good.cert, other.key}, bundle(ca), "private key does not match public key"},
		{"no certificate", pair{[]byte("x"), good.key}, bundle(ca), "failed to find any PEM data"},
		{"no key", pair{good.cert, good.cert}, bundle(ca), "certificate rather than a key"},
		{"no authority", good, []byte("x"), "no certificate in it"},
		{"a missing file", good, nil, "no such file"},
	} {
		dir := t.TempDir()
		s := &site{files: Files{dir + "/crt", dir + "/key", dir + "/ca"}}
		s.write(t, c.p, c.clientCA)
		_, err := NewTLS(s.files, nil)
		require.ErrorContains(t, err, c.want, c.name)
	}
}
