package access

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// deadline is the context of one test.
func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	t.Cleanup(cancel)
	return ctx
}

// socket returns a path that other users can reach.
func socket(t *testing.T) string {
	dir, err := os.MkdirTemp("", "access")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return filepath.Join(dir, "s")
}

// listen listens on a UNIX socket that everybody may connect to.
func listen(t *testing.T) (net.Listener, string) {
	path := socket(t)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, 0o666))
	return l, "unix://" + path
}

// serve serves health and the device service behind an authorizer until the test ends.
func serve(t *testing.T, l net.Listener, creds credentials.TransportCredentials, a *Authorizer) {
	s := grpc.NewServer(grpc.Creds(creds), grpc.InTapHandle(a.Tap), grpc.ChainUnaryInterceptor(a.Unary), grpc.ChainStreamInterceptor(a.Stream))
	healthpb.RegisterHealthServer(s, health.NewServer())
	nfcommsv1.RegisterDeviceServiceServer(s, nfcommsv1.UnimplementedDeviceServiceServer{})
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Stop()
		require.NoError(t, <-done)
	})
}

// dial connects until the test ends.
func dial(t *testing.T, address string, creds credentials.TransportCredentials) *grpc.ClientConn {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // a test may have closed it
	return conn
}

// local connects to a UNIX socket until the test ends.
func local(t *testing.T, address string) *grpc.ClientConn {
	return dial(t, address, insecure.NewCredentials())
}

// check asks for health.
func check(ctx context.Context, conn *grpc.ClientConn) error {
	_, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

// reasonOf returns the ErrorInfo of an error.
func reasonOf(err error) *errdetails.ErrorInfo {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return &errdetails.ErrorInfo{}
}

// granting returns a policy with one grant.
func granting(t *testing.T, role Role, subject string) *Policy {
	p := NewPolicy()
	require.NoError(t, p.Grant(role, subject))
	return p
}
