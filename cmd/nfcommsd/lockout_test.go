package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// greeting is how a client of HTTP/2 begins: with it a connection may be idle for
// as long as it likes.
const greeting = preface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00"

// TestManyUsersDoNotLockRootOut: an unprivileged user has 65,536 user ids by
// user namespaces. With connections from many of them root still gets in, and so
// does a user of the group who has none yet.
func TestManyUsersDoNotLockRootOut(t *testing.T) {
	p := start(t, append(crowdViewer(), "--roles-operator", "uid:4711")...)
	for i := range 5 * 256 {
		conn, err := as(t.Context(), firstOfCrowd+i/256, attacker, p.socket)
		require.NoError(t, err)
		defer conn.Close()
		_, _ = conn.Write([]byte(greeting)) // it may be refused already
	}
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, p.client(), ""))
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, clientOf(t, 4711, 4711, p.socket), ""))
	p.logged("connection refused")
	p.stop()
}

// TestACallersOwnLimitIsReported: a connection beyond those that one user may have is refused with a
// line in the log, however slowly they arrive.
func TestACallersOwnLimitIsReported(t *testing.T) {
	p := start(t, "--limits-caller-connections", "1")
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, p.client(), ""))
	conn, err := net.Dial("unix", p.socket)
	require.NoError(t, err)
	defer conn.Close()
	p.logged("connection refused")
	p.logged("reason=full")
	p.stop()
}

// watchUntilRefused begins watches until one is refused, or most of them, and
// returns how many there are. They end with the test.
func watchUntilRefused(t testing.TB, c *control.Client, most int) (n int) {
	ctx, cancel := context.WithCancel(deadline(t))
	t.Cleanup(cancel)
	for n = range most {
		s, err := c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{})
		if err == nil {
			_, err = s.Recv()
		}
		if err != nil {
			require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
			return n
		}
	}
	return most
}

// TestWatchesOfManyUsersAreBounded: however many users a client has, what it
// watches leaves room for others, and root is not counted.
func TestWatchesOfManyUsersAreBounded(t *testing.T) {
	p := start(t, append(crowdViewer(), "--limits-calls", "100", "--limits-caller-calls", "80", "--roles-operator", "uid:4711,uid:4712")...)
	sum := 0
	for i := range 4 {
		sum += watchUntilRefused(t, clientOf(t, firstOfCrowd+i, attacker, p.socket), 80)
	}
	require.LessOrEqual(t, sum, 50, "one user, whatever its ids, gets half of all")
	require.Equal(t, 25, watchUntilRefused(t, clientOf(t, 4711, 4711, p.socket), 80), "the next half of what is left")
	require.Equal(t, 80, watchUntilRefused(t, p.client(), 80), "an admin is not counted")
	require.Equal(t, healthpb.HealthCheckResponse_SERVING, healthOf(t, clientOf(t, 4712, 4712, p.socket), ""))
	p.stop()
}

// TestStrangersDoNotLockOutOfTLS: clients without a certificate, as fast as they
// can be on one machine, do not keep one with a certificate out.
func TestStrangersDoNotLockOutOfTLS(t *testing.T) {
	p, address, ca := overTLS(t)
	chief := ca.Issue(t, "chief", "").Client(t, ca)
	require.NoError(t, askTCP(t, address, chief), "it was there before")
	end := make(chan struct{})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			tick := time.NewTicker(time.Second / 40)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					all.Go(func() { stranger(address, testcert.Pair{}.Client(t, ca)) })
				case <-end:
					return
				}
			}
		})
	}
	time.Sleep(3 * time.Second) // the attack, until what a second allows is used up
	took := time.Now()
	conn := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(chief)))
	_, err := healthpb.NewHealthClient(conn).Check(deadline(t), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	t.Logf("answered after %v", time.Since(took))
	close(end)
	all.Wait()
	require.NoError(t, err)
	p.logged("handshake failed")
	p.stop()
}

// TestSilentStrangersDoNotLockOutOfTLS: connections that never begin their
// handshake take no place from one that does.
func TestSilentStrangersDoNotLockOutOfTLS(t *testing.T) {
	p, address, ca := overTLS(t, "--limits-handshake", "1m", "--limits-connections", "64")
	chief := ca.Issue(t, "chief", "").Client(t, ca)
	require.NoError(t, askTCP(t, address, chief), "it was there before")
	for range 400 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
	}
	conn := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(chief)))
	_, err := healthpb.NewHealthClient(conn).Check(deadline(t), &healthpb.HealthCheckRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	p.stop()
}

// TestConnectsDoNotLockOutOfTLS: connections from many addresses that say nothing keep nobody out,
// also not a client that the daemon sees for the first time.
func TestConnectsDoNotLockOutOfTLS(t *testing.T) {
	p, address, ca := overTLS(t)
	for range 400 {
		conn, err := elsewhere(address)
		require.NoError(t, err)
		conn.Close()
	}
	require.NoError(t, askTCP(t, address, ca.Issue(t, "chief", "").Client(t, ca)))
	p.stop()
}

// TestIdleClientsDoNotLockOutOfHTTP: idle connections, before a request or after
// one, make room for one that has a request.
func TestIdleClientsDoNotLockOutOfHTTP(t *testing.T) {
	address := freePort(t)
	p := start(t, "--http-address", address)
	for i := range 1100 {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		if i%2 == 0 {
			_, _ = conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")) // the answer is left unread
		}
	}
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	var resp *http.Response
	require.Eventually(t, func() (ok bool) {
		var err error
		resp, err = client.Get("http://" + address + "/metrics")
		return err == nil
	}, patience, 100*time.Millisecond)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	resp.Body.Close()
	require.Contains(t, string(body), "nfcommsd_connections_refused_total{")
	client.CloseIdleConnections()
	p.stop()
}

// TestHTTPRequestsHaveTheirTime: a client that sends its request slowly, or does
// not read the answer, is not waited for.
func TestHTTPRequestsHaveTheirTime(t *testing.T) {
	address := freePort(t)
	p := start(t, "--http-address", address, "--limits-handshake", "200ms")
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"))
	require.NoError(t, err)
	in := bufio.NewReader(conn)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(patience)))
	_, err = io.Copy(io.Discard, in)
	require.NoError(t, err, "the daemon closes it")
	p.stop()
}

// TestUnfinishedRequestsEnd: the daemon does not wait for the rest of a request, and
// does not keep the part that arrived.
func TestUnfinishedRequestsEnd(t *testing.T) {
	p := start(t, "--limits-handshake", "200ms")
	conn := connectAs(t, p)
	for _, method := range []string{
		"/nfcomms.v1.DeviceService/ListDevices", "/nfcomms.v1.DeviceService/WatchDevices", "/nfcomms.v1.DeviceService/LoadProgram",
	} {
		s, err := conn.NewStream(deadline(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		require.NoError(t, err)
		err = s.RecvMsg(&nfcommsv1.ListDevicesResponse{})
		require.Equal(t, codes.Canceled, status.Code(err), "%s: %v", method, err)
	}
	p.stop()
}

// connectAs is a plain connection to the daemon's UNIX socket.
func connectAs(t testing.TB, p *process) *grpc.ClientConn {
	return dial(t, "unix://"+p.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}

// TestAdminsByCertificateOnly: root on the UNIX socket, as the root of a container
// it is mounted into, has no more than socket.max_role.
func TestAdminsByCertificateOnly(t *testing.T) {
	p, address, ca := overTLS(t, "--socket-max-role", "operator")
	reset := &nfcommsv1.ResetDeviceRequest{Name: "devices/sim0"}
	_, err := p.client().Devices.ResetDevice(deadline(t), reset)
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	conn := dial(t, address, grpc.WithTransportCredentials(credentials.NewTLS(ca.Issue(t, "chief", "").Client(t, ca))))
	_, err = nfcommsv1.NewDeviceServiceClient(conn).ResetDevice(deadline(t), reset)
	require.NoError(t, err)
	p.stop()
}
