package access

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"
)

// Files are the PEM files of a TLS server.
type Files struct {
	// Certificate is the server's certificate, followed by its intermediates.
	Certificate string
	// Key is the certificate's private key.
	Key string
	// ClientCA holds the authorities whose client certificates are accepted.
	ClientCA string
	// ClientCRL holds lists of certificates that these authorities revoked; empty for none.
	ClientCRL string
}

// TLS is the server side of mutual TLS 1.3: a client must show a certificate
// that one of the authorities signed. Files that changed count from the next
// handshake on; open connections continue with what they agreed on, until Reload finds
// their certificate revoked or expired. All methods are safe for concurrent use.
type TLS struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	read   contents    // what was last read, good or bad
	failed error       // what was wrong with it
	config *tls.Config // of the last good contents
	ends   expiry      // of the last good contents

	revoked  revocations // of the last good contents
	sessions map[*session]struct{}
}

// expiry is when the first certificate of each file expires.
type expiry struct{ certificate, clientCA time.Time }

// contents are the bytes of Files.
type contents struct{ certificate, key, clientCA, clientCRL []byte }

func (c contents) equal(o contents) bool {
	return bytes.Equal(c.certificate, o.certificate) && bytes.Equal(c.key, o.key) && bytes.Equal(c.clientCA, o.clientCA) &&
		bytes.Equal(c.clientCRL, o.clientCRL)
}

// NewTLS reads the files. It fails if one cannot be read, holds nothing of its
// kind, or the key is not the certificate's. A nil log discards.
func NewTLS(files Files, log *slog.Logger) (*TLS, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &TLS{files: files, log: log, sessions: make(map[*session]struct{})}
	if err := t.Reload(); err != nil {
		return nil, err
	}
	return t, nil
}

// Reload reads the files now and returns what is wrong with them. After an
// error what was read before stays in use. It ends the connections whose certificate was
// revoked or has expired.
func (t *TLS) Reload() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refreshLocked()
	t.endLocked()
	return t.failed
}

// refreshLocked reads the files and, if they changed, what they hold. Must hold mu.
func (t *TLS) refreshLocked() {
	now, err := readFiles(t.files)
	if err != nil {
		t.read = contents{}
		t.noteLocked(err)
		return
	}
	if t.read.equal(now) {
		return
	}
	t.read = now
	config, ends, revoked, err := now.config(t.files)
	t.noteLocked(err)
	if err == nil {
		t.config, t.ends, t.revoked = config, ends, revoked
		t.log.Info("certificates loaded", "certificate", t.files.Certificate,
			"client_ca", t.files.ClientCA, "expires", config.Certificates[0].Leaf.NotAfter)
	}
}

// noteLocked keeps an error, and logs it if it is news. Must hold mu.
func (t *TLS) noteLocked(err error) {
	news := err != nil && (t.failed == nil || t.failed.Error() != err.Error())
	t.failed = err
	if news && t.config != nil {
		t.log.Warn("certificates not loaded, the old ones stay in use", "error", err)
	}
}

// Credentials returns gRPC credentials that follow the files. The limits are
// those of each name that a Policy knows a certificate by; each connection
// carries a Remote.
func (t *TLS) Credentials(l Limits) credentials.TransportCredentials {
	return &tlsCredentials{t: t, accounts: newAccounts(l), TransportCredentials: credentials.NewTLS(&tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
		GetConfigForClient:     func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current(), nil },
	})}
}

// Remote is the peer of a TLS connection. It is the credentials.AuthInfo of TLS.Credentials.
type Remote struct {
	credentials.TLSInfo

	account *account
}

type tlsCredentials struct {
	credentials.TransportCredentials
	t        *TLS
	accounts *accounts
}

// ServerHandshake does the handshake and opens an account.
func (c *tlsCredentials) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		return nil, nil, err
	}
	who := Remote{TLSInfo: info.(credentials.TLSInfo)}
	who.account, err = c.accounts.enter(c.accounts.limits.ownerOf(who))
	if err != nil {
		return nil, nil, err
	}
	s, err := c.t.begin(secure, who.TLSInfo)
	if err != nil {
		c.accounts.leave(who.account)
		return nil, nil, err
	}
	return c.accounts.meter(s, who.account), who, nil
}

// Clone returns credentials that share the accounts.
func (c *tlsCredentials) Clone() credentials.TransportCredentials {
	return &tlsCredentials{c.TransportCredentials.Clone(), c.t, c.accounts}
}

// current returns the configuration for one handshake. The files are read each
// time and compared: next to a handshake that costs nothing, and there is no
// watcher that could miss a change. A pair that is half replaced does not
// match, which keeps the old one in use until the other half is there too.
func (t *TLS) current() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refreshLocked()
	return t.config
}

func readFiles(f Files) (contents, error) {
	var c contents
	var err [4]error
	c.certificate, err[0] = os.ReadFile(f.Certificate)
	c.key, err[1] = os.ReadFile(f.Key)
	c.clientCA, err[2] = os.ReadFile(f.ClientCA)
	if f.ClientCRL != "" {
		c.clientCRL, err[3] = os.ReadFile(f.ClientCRL)
	}
	return c, errors.Join(err[:]...)
}

// Expiry returns when the first certificate of the server's file, and the first of the
// authorities, expires, of those that are in use. Files that changed are read.
func (t *TLS) Expiry() (certificate, clientCA time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refreshLocked()
	return t.ends.certificate, t.ends.clientCA
}

// config makes the configuration of one set of files. Sessions are not resumed,
// so that no client gets in on an authority that is no longer accepted.
func (c contents) config(f Files) (*tls.Config, expiry, revocations, error) {
	pair, err := tls.X509KeyPair(c.certificate, c.key)
	if err != nil {
		return nil, expiry{}, nil, fmt.Errorf("certificate %s with key %s: %w", f.Certificate, f.Key, err)
	}
	authorities := certificatesIn(c.clientCA)
	if len(authorities) == 0 {
		return nil, expiry{}, nil, fmt.Errorf("client authorities %s: no certificate in it", f.ClientCA)
	}
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a)
	}
	var revoked revocations
	if f.ClientCRL != "" {
		if revoked, err = revocationsIn(c.clientCRL, authorities); err != nil {
			return nil, expiry{}, nil, fmt.Errorf("revoked certificates %s: %w", f.ClientCRL, err)
		}
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{pair},
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              pool,
		VerifyConnection:       revoked.check,
		SessionTicketsDisabled: true,
		NextProtos:             []string{"h2"},
	}, expiry{firstEnd(certificatesIn(c.certificate)), firstEnd(authorities)}, revoked, nil
}

// certificatesIn reads the certificates of a PEM text, as x509.CertPool does.
func certificatesIn(text []byte) (all []*x509.Certificate) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type == "CERTIFICATE" && err == nil {
			all = append(all, certificate)
		}
	}
	return all
}

// firstEnd returns when the first of some certificates expires.
func firstEnd(all []*x509.Certificate) (first time.Time) {
	for _, c := range all {
		if first.IsZero() || c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}
