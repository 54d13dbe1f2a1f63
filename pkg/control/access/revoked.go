package access

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// Errors of a client certificate that was good once.
var (
	errRevoked = errors.New("the certificate was revoked")
	errExpired = errors.New("the certificate expired")
)

// revocations are the serial numbers of revoked certificates, by the name of their authority.
type revocations map[string]map[string]bool

// revocationsIn reads the revocation lists of a PEM text, each of which one of the authorities must
// have signed. A list that its authority should have replaced by now counts nevertheless.
func revocationsIn(text []byte, authorities []*x509.Certificate) (revocations, error) {
	all := make(revocations)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return nil, err
		}
		if !signed(list, authorities) {
			return nil, fmt.Errorf("the list of %q is signed by none of the client authorities", list.Issuer)
		}
		serials := all[string(list.RawIssuer)]
		if serials == nil {
			serials = make(map[string]bool)
			all[string(list.RawIssuer)] = serials
		}
		for _, e := range list.RevokedCertificateEntries {
			serials[e.SerialNumber.String()] = true
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no revocation list in it")
	}
	return all, nil
}

// signed is true if an authority of that name signed a list.
func signed(list *x509.RevocationList, authorities []*x509.Certificate) bool {
	for _, a := range authorities {
		if string(a.RawSubject) == string(list.RawIssuer) && list.CheckSignatureFrom(a) == nil {
			return true
		}
	}
	return false
}

// check refuses a connection that has no chain of certificates without a revoked one.
func (r revocations) check(state tls.ConnectionState) error {
	for _, chain := range state.VerifiedChains {
		if !r.has(chain) {
			return nil
		}
	}
	return errRevoked
}

// has is true for a chain with a revoked certificate.
func (r revocations) has(chain []*x509.Certificate) bool {
	for _, c := range chain {
		if r[string(c.RawIssuer)][c.SerialNumber.String()] {
			return true
		}
	}
	return false
}

// session is a connection of a client. It ends when its certificate is revoked, or expires.
type session struct {
	net.Conn
	t   *TLS
	who Remote
}

// Close ends the session.
func (s *session) Close() error {
	s.t.mu.Lock()
	delete(s.t.sessions, s)
	s.t.mu.Unlock()
	return s.Conn.Close()
}

// begin takes note of a session after its handshake, and refuses one whose certificate was revoked.
func (t *TLS) begin(conn net.Conn, info credentials.TLSInfo) (*session, error) {
	s := &session{Conn: conn, t: t, who: Remote{TLSInfo: info}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.revoked.check(info.State); err != nil {
		return nil, err
	}
	t.sessions[s] = struct{}{}
	return s, nil
}

// endLocked ends sessions. Must hold mu.
func (t *TLS) endLocked() {
	now := time.Now()
	for s := range t.sessions {
		err := t.revoked.check(s.who.State)
		if err == nil && now.After(s.who.State.PeerCertificates[0].NotAfter) {
			err = errExpired
		}
		if err != nil {
			delete(t.sessions, s)
			t.log.Warn("connection ended", "caller", Caller(s.who), "error", err)
			go s.Conn.Close() // which waits for a peer that does not read
		}
	}
}
