package access

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/testcert"
)

// TestRevoked: a certificate that its authority revokes opens no connection, and the connection that
// it has ends, as one does whose certificate expires. The list is read again as the other files are.
func TestRevoked(t *testing.T) {
	s := newSite(t, new(log), "client.crl")
	ctx := deadline(t)
	good, bad := s.ca.Issue(t, "viewer", ""), s.ca.Issue(t, "viewer", "")
	brief := s.ca.Issue(t, "", "spiffe://example.org/admin")
	watch := func(p testcert.Pair) healthpb.Health_WatchClient {
		conn := dial(t, s.address, as(t, p, s.ca))
		t.Cleanup(func() { conn.Close() })
		stream, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		return stream
	}
	stays, ends, expires := watch(good), watch(bad), watch(brief)

	revoke := func(text []byte) { require.NoError(t, os.WriteFile(s.files.ClientCRL, text, 0o600)) }
	revoke(s.ca.Revoke(t, bad))
	require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, as(t, bad, s.ca))))
	require.NoError(t, s.ask(ctx, t, as(t, good, s.ca)))
	conn, err := (&tls.Dialer{Config: bad.Client(t, s.ca)}).DialContext(ctx, "tcp", s.address)
	require.NoError(t, err)
	_, err = conn.Read(make([]byte, 1))
	require.ErrorContains(t, err, "tls: bad certificate", "the client learns why")
	require.NoError(t, conn.Close())
	require.NoError(t, s.tls.Reload())
	_, err = ends.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)

	for _, wrong := range [][]byte{nil, testcert.New(t).Revoke(t, good), []byte("-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n")} {
		revoke(wrong)
		require.ErrorContains(t, s.tls.Reload(), "revoked certificates "+s.files.ClientCRL)
		require.Equal(t, codes.Unavailable, status.Code(s.ask(ctx, t, as(t, bad, s.ca))), "the old list stays in use")
		require.NoError(t, s.ask(ctx, t, as(t, good, s.ca)))
	}
	revoke(s.ca.Revoke(t))
	require.NoError(t, s.tls.Reload())
	require.NoError(t, s.ask(ctx, t, as(t, bad, s.ca)))

	s.tls.mu.Lock()
	for c := range s.tls.sessions {
		if cert := c.who.State.PeerCertificates[0]; len(cert.URIs) > 0 {
			cert.NotAfter = time.Now().Add(-time.Second)
		}
	}
	s.tls.mu.Unlock()
	require.NoError(t, s.tls.Reload())
	_, err = expires.Recv()
	require.Equal(t, codes.Unavailable, status.Code(err), "%v", err)
	s.tls.mu.Lock()
	require.LessOrEqual(t, len(s.tls.sessions), 3, "sessions that closed are forgotten")
	s.tls.mu.Unlock()
	require.NoError(t, stays.CloseSend())
	require.NoError(t, os.Remove(filepath.Join(filepath.Dir(s.files.Key), "client.crl")))
	require.Error(t, s.tls.Reload())
}
