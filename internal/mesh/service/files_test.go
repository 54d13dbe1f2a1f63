package service

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/testcert"
)

// shown is what a peer with a certificate shows.
func shown(t *testing.T, p testcert.Pair) []*x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(p.Cert)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return []*x509.Certificate{c}
}

// written are certificates in files, and the log of their reader.
type written struct {
	Files
	log bytes.Buffer
}

func (w *written) write(t *testing.T, p testcert.Pair, a *testcert.Authority) {
	t.Helper()
	require.NoError(t, os.WriteFile(w.Certificate, p.Cert, 0o600))
	require.NoError(t, os.WriteFile(w.Key, p.Key, 0o600))
	require.NoError(t, os.WriteFile(w.Authority, testcert.Bundle(a), 0o600))
}

func (w *written) open(t *testing.T) (*Issued, error) {
	t.Helper()
	s, _, err := Parse(records, "nf-0")
	require.NoError(t, err)
	return Open(w.Files, s.Host, slog.New(slog.NewTextHandler(&w.log, nil)))
}

func newWritten(t *testing.T) *written {
	dir := t.TempDir()
	return &written{Files: Files{filepath.Join(dir, "crt"), filepath.Join(dir, "key"), filepath.Join(dir, "ca")}}
}

// TestCheck: a peer is the node whose host its certificate names, if the authority issued it, and as long
// as it is good by the clock, which may jump.
func TestCheck(t *testing.T) {
	a, w := testcert.New(t), newWritten(t)
	end := time.Now().Add(time.Hour)
	one := a.IssueHost(t, "nf-1."+domain, end)
	w.write(t, one, a)
	i, err := w.open(t)
	require.NoError(t, err)
	require.NoError(t, i.Check(1, shown(t, one)))
	require.NoError(t, i.Check(mesh.AnyNode, shown(t, one)))
	require.Error(t, i.Check(2, shown(t, one)), "another node")
	all := shown(t, a.IssueHost(t, "*."+domain, end))
	require.NoError(t, i.Check(2, all))
	for name, p := range map[string]testcert.Pair{
		"another authority": testcert.New(t).IssueHost(t, "nf-1."+domain, end),
		"another domain":    a.IssueHost(t, "nf-1.other.svc.cluster.local", end),
		"a name behind it":  a.IssueHost(t, "nf-1."+domain+".example.org", end),
		"no host":           a.Issue(t, "nf-1."+domain, ""),
		"it has ended":      a.IssueHost(t, "nf-1."+domain, time.Now().Add(-time.Minute)),
	} {
		require.Error(t, i.Check(1, shown(t, p)), name)
	}
	i.now = func() time.Time { return end.Add(time.Hour) }
	require.ErrorContains(t, i.Check(1, shown(t, one)), "expired")
	i.now = func() time.Time { return time.Unix(0, 0) }
	require.ErrorContains(t, i.Check(1, shown(t, one)), "not yet valid")
	i.now = time.Now
	require.NoError(t, i.Check(1, shown(t, one)), "the clock jumped back")
}

// TestFilesChange: what is there at a handshake counts, if it fits together; else what was there before,
// and one line says so.
func TestFilesChange(t *testing.T) {
	w := newWritten(t)
	_, err := w.open(t)
	require.ErrorIs(t, err, os.ErrNotExist)
	a, end := testcert.New(t), time.Now().Add(time.Hour)
	first, second := a.IssueHost(t, "*."+domain, end), a.IssueHost(t, "*."+domain, end)
	w.write(t, first, a)
	i, err := w.open(t)
	require.NoError(t, err)
	shows := func(p testcert.Pair) {
		t.Helper()
		own, err := i.Own()
		require.NoError(t, err)
		require.Equal(t, shown(t, p)[0].Raw, own.Certificate[0])
	}
	shows(first)
	require.NoError(t, os.WriteFile(w.Key, second.Key, 0o600)) // half of the next
	shows(first)
	shows(first)
	require.Equal(t, 1, strings.Count(w.log.String(), "those before stay in use"), w.log.String())
	w.write(t, second, a)
	shows(second)
	require.NoError(t, os.Remove(w.Certificate))
	shows(second)
	require.NoError(t, i.Check(1, shown(t, first)))
	b := testcert.New(t)
	w.write(t, second, b)
	require.Error(t, i.Check(1, shown(t, first)), "the authority is another")
	require.NoError(t, os.WriteFile(w.Authority, []byte("nothing"), 0o600))
	require.NoError(t, i.Check(1, shown(t, b.IssueHost(t, "nf-1."+domain, end))))
	require.Contains(t, w.log.String(), "it has no certificate")
}
