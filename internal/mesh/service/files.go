package service

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/internal/mesh"
)

// Files are certificates that others replace under way, in PEM.
type Files struct{ Certificate, Key, Authority string }

// Issued are the certificates of the nodes of a service: each is good for the host of its node, which a
// name with a wildcard is for all of them. Its methods are safe for concurrent use.
type Issued struct {
	files Files
	host  func(node int) string
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex
	read   [3][]byte // what own and roots were made of, or what failed
	failed error
	own    *tls.Certificate
	roots  *x509.CertPool
}

// Open reads the files. A later set that does not fit together is logged once, and the one before stays
// in use.
func Open(f Files, host func(node int) string, log *slog.Logger) (*Issued, error) {
	i := &Issued{files: f, host: host, log: log, now: time.Now}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refresh()
	return i, i.failed
}

// refresh reads the files and, if they changed, what they hold. Must hold mu.
func (i *Issued) refresh() {
	var read [3][]byte
	var err [3]error
	for n, name := range []string{i.files.Certificate, i.files.Key, i.files.Authority} {
		read[n], err[n] = os.ReadFile(name)
	}
	failed := errors.Join(err[:]...)
	if failed == nil {
		if bytes.Equal(read[0], i.read[0]) && bytes.Equal(read[1], i.read[1]) && bytes.Equal(read[2], i.read[2]) {
			return
		}
		failed = i.take(read)
	}
	if failed != nil {
		read = [3][]byte{}
	}
	if failed != nil && i.own != nil && (i.failed == nil || i.failed.Error() != failed.Error()) {
		i.log.Warn("certificates not loaded, those before stay in use", "err", failed)
	}
	i.read, i.failed = read, failed
}

// take uses what was read if it fits together. Must hold mu.
func (i *Issued) take(read [3][]byte) error {
	own, err := tls.X509KeyPair(read[0], read[1])
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", i.files.Certificate, i.files.Key, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(read[2]) {
		return fmt.Errorf("authority %s: it has no certificate", i.files.Authority)
	}
	i.own, i.roots = &own, roots
	i.log.Info("certificates loaded", "certificate", i.files.Certificate, "expires", own.Leaf.NotAfter)
	return nil
}

// Own returns the certificate of this process.
func (i *Issued) Own() (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refresh()
	return i.own, nil
}

// Check returns why what a peer showed is not the certificate of a node.
func (i *Issued) Check(node int, shown []*x509.Certificate) error {
	i.mu.Lock()
	i.refresh()
	roots := i.roots
	i.mu.Unlock()
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	o := x509.VerifyOptions{
		Roots: roots, Intermediates: between, CurrentTime: i.now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if node != mesh.AnyNode {
		o.DNSName = i.host(node)
	}
	_, err := shown[0].Verify(o)
	return err
}
