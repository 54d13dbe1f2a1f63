package control_test

import (
	"cmp"
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// background returns a context that ends when the test hangs.
func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// patientProbe is the time of a probe: a device without a processor for some seconds has not failed.
const patientProbe = time.Minute

// quick are options under which a test need not wait.
var quick = control.Options{Interval: 5 * time.Millisecond, ProbeTimeout: patientProbe}

// serve runs a server on an in-memory listener and returns it with a client.
func serve(t testing.TB, o control.Options) (*control.Server, *control.Client) {
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, patientProbe)
	srv := control.New(o)
	return srv, connect(t, listen(t, srv))
}

// listen serves until the test ends and returns how to connect.
func listen(t testing.TB, srv *control.Server, o ...grpc.ServerOption) func(context.Context, string) (net.Conn, error) {
	l := bufconn.Listen(1 << 20)
	gs := grpc.NewServer(o...)
	srv.Register(gs)
	served := make(chan error, 1)
	go func() { served <- gs.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, srv.Shutdown(background(t)))
		gs.Stop()
		require.NoError(t, <-served)
	})
	return func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
}

// connect returns a client that is closed when the test ends.
func connect(t testing.TB, dial func(context.Context, string) (net.Conn, error), o ...grpc.DialOption) *control.Client {
	o = append(o, grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	c, err := control.Dial("passthrough:///bufconn", o...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// open returns a device of the test itself.
func open(t testing.TB, address string) *nfcomms.Device {
	dev, err := nfcomms.Open(background(t), address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// serveSim serves a device of the server's own, "devices/nic0".
func serveSim(t testing.TB, o control.Options) (*control.Server, *control.Client) {
	srv, c := serve(t, o)
	require.NoError(t, srv.Open(background(t), "nic0", "sim:"))
	return srv, c
}
