package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/internal/testcert"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// sieges are attacks on one listener each, by name: many users on the UNIX
// socket, clients without a certificate on TLS, clients without any right on
// HTTP. They have other addresses of this machine than the admin.
var sieges = map[string]func(address string){
	"crowd":     crowd,
	"strangers": strangers,
	"silent":    silent,
	"visitors":  visitors,
	"connects":  connects,
	"resets":    resets,
	"streams":   streams,
	"readers":   readers,
	"again":     again,
}

// crowdSize is how many user ids the crowd has.
const crowdSize = 40

// crowd is one user with many user ids: each holds connections, and watches that
// it does not read.
func crowd(address string) {
	for {
		var conns []io.Closer
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		for i := range crowdSize {
			enter := func(ctx context.Context, _ string) (net.Conn, error) {
				return as(ctx, firstOfCrowd+i, attacker, path(address))
			}
			conn, err := grpc.NewClient("passthrough:///crowd", grpc.WithContextDialer(enter), grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16))
			if err != nil {
				continue
			}
			conns = append(conns, conn)
			c := control.NewClient(conn)
			for range 512 {
				_, _ = c.Events.WatchEvents(ctx, &nfcommsv1.WatchEventsRequest{Parent: control.AllDevices})
				_, _ = c.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{})
			}
			for range 32 {
				if idle, err := enter(ctx, ""); err == nil {
					_, _ = idle.Write([]byte(greeting))
					conns = append(conns, idle)
				}
			}
		}
		<-ctx.Done()
		cancel()
		for _, c := range conns {
			c.Close()
		}
	}
}

// elsewhere connects from an address of this machine that is not the usual one.
func elsewhere(address string) (net.Conn, error) { return dialFrom(1, 256, address) }

// dialFrom connects from some address of 127.network.0.0, of so many networks below it,
// or to a UNIX socket.
func dialFrom(network byte, networks int, address string) (net.Conn, error) {
	if strings.HasPrefix(address, "unix:") {
		return dialWeb(address)
	}
	from := net.IPv4(127, network, byte(rand.IntN(networks)), byte(1+rand.IntN(254)))
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 5 * time.Second}
	return d.Dial("tcp", address)
}

// strangers make handshakes without a certificate.
func strangers(address string) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for {
				conn, err := elsewhere(address)
				if err != nil {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
				_ = c.SetDeadline(time.Now().Add(5 * time.Second))
				if c.Handshake() == nil {
					_, _ = c.Read(make([]byte, 1))
				}
				c.Close()
			}
		})
	}
	all.Wait()
}

// connects begins connections from two thousand addresses, a thousand times a second and more, and says nothing.
func connects(address string) {
	parallel(4, func() {
		if conn, err := dialFrom(2, 8, address); err == nil {
			conn.Close()
		}
		time.Sleep(time.Millisecond)
	})
}

// silent holds connections on which no handshake begins.
func silent(address string) {
	hold(address, func(net.Conn) {})
}

// visitors hold connections before, in the middle of and after a request.
func visitors(address string) {
	starts := []string{"", "GET /met", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"}
	hold(address, func(conn net.Conn) { _, _ = conn.Write([]byte(starts[rand.IntN(len(starts))])) })
}

// hold begins a thousand connections and keeps them for a while.
func hold(address string, begin func(net.Conn)) {
	for {
		var all []net.Conn
		for range 1100 {
			if conn, err := elsewhere(address); err == nil {
				begin(conn)
				all = append(all, conn)
			}
		}
		time.Sleep(time.Second)
		for _, c := range all {
			c.Close()
		}
	}
}

// Bounds of a siege.
const (
	// mostWait is how long an admin may wait for an answer.
	mostWait = 300 * time.Millisecond
	// mostMemory is half of MemoryHigh of the unit.
	mostMemory = 256 << 20
)

// answers asks as an admin on each listener, over a connection of its own, and
// returns how long each took. A refused call is tried again, as a person would.
type answers map[string]time.Duration

func (a answers) ask(t testing.TB, name string, call func() error) {
	begin := time.Now()
	var failed []error
	require.Eventually(t, func() bool {
		err := call()
		if err != nil {
			failed = append(failed, err)
		}
		return err == nil
	}, patience, 10*time.Millisecond, name)
	a[name] = max(a[name], time.Since(begin))
	if len(failed) > 0 {
		t.Logf("%s: answered at try %d, before: %v", name, len(failed)+1, failed[0])
	}
}

func (a answers) String() string {
	var parts []string
	for _, name := range []string{"open connection", "new on UNIX", "new on TLS", "HTTP"} {
		parts = append(parts, fmt.Sprintf("%s %v", name, a[name].Round(time.Millisecond)))
	}
	return strings.Join(parts, ", ")
}

// fromAnywhere dials from an address that the daemon most likely never saw.
func fromAnywhere(_ context.Context, address string) (net.Conn, error) {
	return dialFrom(3, 256, address)
}

// askOnce asks over a connection of its own.
func askOnce(t testing.TB, target string, creds credentials.TransportCredentials, o ...grpc.DialOption) error {
	conn, err := grpc.NewClient(target, append(o, grpc.WithTransportCredentials(creds))...)
	require.NoError(t, err)
	defer conn.Close()
	_, err = healthpb.NewHealthClient(conn).Check(deadline(t), &healthpb.HealthCheckRequest{})
	return err
}

// askAnew asks over a connection of its own, as nfctl does.
func askAnew(t testing.TB, address string) error {
	c, err := control.Dial(address)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Health.Check(deadline(t), &healthpb.HealthCheckRequest{})
	return err
}

// scrape asks for metrics, over a connection of its own.
func scrape(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// TestSoakAdmin attacks all three listeners, with many users and without
// certificates, from its start on: an admin is answered throughout, and memory stays bounded.
func TestSoakAdmin(t *testing.T) {
	total := max(*soakFor, shortSoak)
	ca, tcp, web := testcert.New(t), freePort(t), freePort(t)
	args := append(certificates(t, t.TempDir(), ca.Issue(t, "server", ""), ca), invited()...)
	p := newProcess(t, append(args, "--tcp-address", tcp, "--http-address", web, "--log-level", "error", "--devices", "sim0=sim:?beat=2s", "--health-timeout", "20s",
		"--roles-viewer", fmt.Sprintf("gid:%d", attacker), "--roles-admin", "cn:chief,uid:0")...)
	p.env = append(p.env, "GOMEMLIMIT=384MiB")
	p.run()
	p.await("READY=1")
	c := p.client()
	chief := credentials.NewTLS(ca.Issue(t, "chief", "").Client(t, ca))
	took := answers{}
	round := func() {
		took.ask(t, "open connection", func() error {
			_, err := c.Health.Check(deadline(t), &healthpb.HealthCheckRequest{})
			return err
		})
		took.ask(t, "new on UNIX", func() error { return askAnew(t, "unix://"+p.socket) })
		took.ask(t, "new on TLS", func() error { return askOnce(t, tcp, chief, grpc.WithContextDialer(fromAnywhere)) })
		took.ask(t, "HTTP", func() error { return scrape(web) })
	}
	stops := []func() time.Duration{
		attackers(t, "unix://"+p.socket, "flood", "idle", "calls", "streams"), besiege(t, "unix://"+p.socket, "crowd"),
		besiege(t, tcp, "strangers", "silent", "connects"), besiege(t, web, "visitors"),
	}
	time.Sleep(100 * time.Millisecond) // so that the daemon knows nobody else before
	most, n := 0, 0
	for end := time.Now().Add(total); time.Now().Before(end); n++ {
		round()
		most = max(most, p.resident())
	}
	for _, stop := range stops {
		stop()
	}
	t.Logf("%d rounds, the longest: %v; %.1f MiB at most", n, took, float64(most)/(1<<20))
	require.Less(t, most, memoryFactor*mostMemory)
	if *soakFor > 0 {
		for name, d := range took {
			require.Less(t, d, mostWait, name)
		}
	}
	require.NotContains(t, p.log.String(), "panicked")
	require.NotContains(t, p.log.String(), "DATA RACE")
	p.stop()
}

// besiege starts sieges as this user, who can take the ids of others.
func besiege(t testing.TB, address string, names ...string) (stop func() time.Duration) {
	return launchAll(t, nil, address, names...)
}

// resident is the memory of the daemon, in bytes.
func (p *process) resident() int {
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	require.NoError(p.t, err)
	var size, pages int
	_, err = fmt.Sscan(string(statm), &size, &pages)
	require.NoError(p.t, err)
	return pages * os.Getpagesize()
}
