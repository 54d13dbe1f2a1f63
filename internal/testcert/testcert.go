package testcert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Pair is a certificate and its key, in PEM.
type Pair struct{ Cert, Key []byte }

// New returns an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	cert, key, _ := sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, NotAfter: time.Now().Add(time.Hour),
	}, nil)
	return &Authority{cert, key}
}

// Issue makes a certificate for both sides of a connection to 127.0.0.1, with a
// common name, good for an hour. uri may be empty.
func (a *Authority) Issue(t testing.TB, name, uri string) Pair {
	t.Helper()
	return a.IssueUntil(t, name, uri, time.Now().Add(time.Hour))
}

// IssueUntil is Issue with an end of its own.
func (a *Authority) IssueUntil(t testing.TB, name, uri string, end time.Time) Pair {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if uri != "" {
		u, err := url.Parse(uri)
		must(t, err)
		template.URIs = []*url.URL{u}
	}
	_, _, p := sign(t, template, a)
	return p
}

// IssueHost makes a certificate of a host, whose name may have a wildcard.
func (a *Authority) IssueHost(t testing.TB, host string, end time.Time) Pair {
	t.Helper()
	_, _, p := sign(t, &x509.Certificate{
		DNSNames: []string{host}, NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a)
	return p
}

// sign signs a template, with its own key without an authority.
func sign(t testing.TB, template *x509.Certificate, by *Authority) (*x509.Certificate, *ecdsa.PrivateKey, Pair) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	must(t, err)
	template.NotBefore = time.Now().Add(-2 * time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return cert, key, Pair{encode("CERTIFICATE", der), encode("PRIVATE KEY", secret)}
}

func encode(what string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: what, Bytes: der})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Revoke returns a list of certificates that are revoked, in PEM.
func (a *Authority) Revoke(t testing.TB, all ...Pair) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-2 * time.Hour), NextUpdate: time.Now().Add(-time.Hour)}
	for _, p := range all {
		block, _ := pem.Decode(p.Cert)
		cert, err := x509.ParseCertificate(block.Bytes)
		must(t, err)
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: list.ThisUpdate})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	must(t, err)
	return encode("X509 CRL", der)
}

// Bundle returns the certificates of authorities as a file holds them.
func Bundle(all ...*Authority) []byte {
	var text []byte
	for _, a := range all {
		text = append(text, encode("CERTIFICATE", a.cert.Raw)...)
	}
	return text
}

// Client returns the configuration of a client that trusts an authority and
// shows p. The zero Pair shows nothing.
func (p Pair) Client(t testing.TB, trusted *Authority) *tls.Config {
	t.Helper()
	c := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	c.RootCAs.AddCert(trusted.cert)
	if p.Cert != nil {
		own, err := tls.X509KeyPair(p.Cert, p.Key)
		must(t, err)
		c.Certificates = []tls.Certificate{own}
	}
	return c
}
