//go:build cgo

package udp

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/testcert"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watchdog ends what hangs.
const watchdog = time.Minute

// pair is two processes of one node each: near dials, far serves.
type pair struct {
	ends     [2]*mesh.Mesh
	ids      [2]*mesh.Identity
	stranger tls.Certificate
	address  string
	refused  chan error // what Serve reports
	sides    sync.WaitGroup
}

func newPair(t *testing.T) *pair {
	t.Helper()
	authority := testcert.New(t)
	certificate := func(name string) (tls.Certificate, mesh.Fingerprint) {
		issued := authority.Issue(t, name, "")
		c, err := tls.X509KeyPair(issued.Cert, issued.Key)
		require.NoError(t, err)
		return c, sha256.Sum256(c.Certificate[0])
	}
	p := &pair{refused: make(chan error, 1000)} // what is reported stays until a test reads it; none blocks
	p.stranger, _ = certificate("stranger")
	var prints [2]mesh.Fingerprint
	for node := range p.ends {
		var c tls.Certificate
		c, prints[node] = certificate("node")
		p.ids[node] = &mesh.Identity{Certificate: c, Known: map[int]mesh.Fingerprint{}, Dial: Dial}
		var err error
		p.ends[node], err = mesh.Open(mesh.OverConnections(mesh.Config{
			Side: [3]int{2, 1, 1}, Here: []bool{node == 0, node == 1}, Whole: true, Beat: 20 * time.Millisecond, Silence: watchdog,
		}))
		require.NoError(t, err)
	}
	p.ids[0].Known[1], p.ids[1].Known[0] = prints[1], prints[0]
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	p.address = "udp://" + socket.LocalAddr().String() // and nothing over TCP there
	p.sides.Go(func() {
		if err := p.ends[1].Serve(t.Context(), Listen(socket), p.ids[1], func(err error) { p.refused <- err }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		for _, m := range p.ends {
			m.Close()
		}
		p.sides.Wait()
	})
	return p
}

// keep has the link x+ of node 0 connected, to an address.
func (p *pair) keep(address string) (end context.CancelFunc) {
	ctx, end := context.WithCancel(context.Background())
	p.sides.Go(func() { _ = p.ends[0].Keep(ctx, address, 0, 0, p.ids[0], nil) }) // it ends with the mesh
	return end
}

// settle waits until both ends say that their link is up, or is not.
func (p *pair) settle(t *testing.T, up bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for node, m := range p.ends {
		require.NoError(t, m.Settle(ctx, func(_ int, w []abi.Diagnostic) bool {
			says := [2]bool{w[0].Valid() && w[0].Reading(abi.DiagXPlus) != abi.Broken, w[1].Valid() && w[1].Reading(abi.DiagXMinus) != abi.Broken}
			return says[node] == up && (says[1-node] || !up) // a link that is up is no way yet
		}))
	}
}

// exchange sends packets both ways; each comes once, as it was.
func (p *pair) exchange(t *testing.T, count int) {
	t.Helper()
	var before [2]mesh.Totals
	for node, m := range p.ends {
		var err error
		before[node], err = m.Totals()
		require.NoError(t, err)
	}
	for node, m := range p.ends {
		require.NoError(t, m.Start(mesh.Load{From: node, To: 1 - node, Size: mesh.PacketMax, Count: count}))
	}
	for node, m := range p.ends {
		require.Eventually(t, func() bool {
			now, err := m.Totals()
			return err != nil || now.Came-before[node].Came == uint64(count)
		}, watchdog, time.Millisecond)
		now, err := m.Totals()
		require.NoError(t, err)
		require.Zero(t, now.Changed+now.Doubled)
	}
}

// medium is what node 0 says of its link.
func (p *pair) medium(t *testing.T) bridge.FabricMedium {
	t.Helper()
	s, err := (&mesh.Fabric{Mesh: p.ends[0]}).State()
	require.NoError(t, err)
	return s.Nodes[0].Links[0].Medium
}

// TestBetweenProcesses: packets go both ways, and again over the connection after one that ended.
func TestBetweenProcesses(t *testing.T) {
	p := newPair(t)
	end := p.keep(p.address)
	p.settle(t, true)
	require.Equal(t, bridge.MediumUDP, p.medium(t))
	p.exchange(t, 300)
	end()
	p.settle(t, false)
	require.Eventually(t, func() bool { // the connection ends a little later
		s, err := (&mesh.Fabric{Mesh: p.ends[0]}).State()
		return err == nil && s.Nodes[0].Links[0].Medium == bridge.MediumUnknown
	}, watchdog, time.Millisecond)
	p.keep(p.address)
	p.settle(t, true)
	p.exchange(t, 10)
}

// TestStrangers: a peer that is not on the list gets no connection, and sends nothing to the link.
func TestStrangers(t *testing.T) {
	p := newPair(t)
	p.keep(p.address)
	p.settle(t, true)
	ctx := t.Context()
	stranger := &mesh.Identity{Certificate: p.stranger, Known: p.ids[0].Known, Dial: Dial}
	require.ErrorIs(t, p.ends[0].Dial(ctx, p.address, 0, 1, stranger), mesh.ErrPeer)
	require.ErrorIs(t, <-p.refused, mesh.ErrPeer)
	other := &mesh.Identity{Certificate: p.ids[0].Certificate, Known: map[int]mesh.Fingerprint{1: {1}}, Dial: Dial}
	require.ErrorIs(t, p.ends[0].Dial(ctx, p.address, 0, 1, other), mesh.ErrPeer)
	require.ErrorIs(t, p.ends[0].Dial(ctx, "quic://127.0.0.1:1", 0, 1, p.ids[0]), bridge.ErrInvalid)

	_, host, err := bridge.ParseFabricAddress(p.address)
	require.NoError(t, err)
	conn, err := net.Dial("udp", host)
	require.NoError(t, err)
	defer conn.Close()
	for i := range 100 {
		_, err := conn.Write([]byte(strings.Repeat("GET / HTTP/1.1\r\n", i)))
		require.NoError(t, err)
	}
	p.exchange(t, 10)
}

// TestPeersThatDoNotFit: over UDP, too, both ends say what differs.
func TestPeersThatDoNotFit(t *testing.T) {
	p := newPair(t)
	for _, c := range []struct {
		config mesh.Config
		want   error
	}{
		{mesh.Config{Side: [3]int{2, 1, 1}, Here: []bool{true, false}, Classic: true}, mesh.ErrFlow},
		{mesh.Config{Side: [3]int{2, 2, 1}, Here: []bool{true, false, false, false}}, mesh.ErrTorus},
	} {
		other, err := mesh.Open(mesh.OverConnections(c.config))
		require.NoError(t, err)
		dialed := other.Dial(t.Context(), p.address, 0, 0, p.ids[0])
		other.Close()
		require.ErrorIs(t, dialed, c.want)
		require.ErrorIs(t, <-p.refused, c.want)
	}
}

// TestListenerComesAgain: a neighbour that was killed, and listens again at its address with its
// certificate, notifies an earlier peer that its connection is over; no end waits for silence.
func TestListenerComesAgain(t *testing.T) {
	p := newPair(t)
	socket, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	at := socket.LocalAddr()
	config := &tls.Config{Certificates: []tls.Certificate{p.ids[1].Certificate}, NextProtos: []string{"test"}}
	killed := &quic.Transport{Conn: socket, StatelessResetKey: resetKey(config)}
	l, err := killed.Listen(config, settings())
	require.NoError(t, err)
	conn, err := dialQUIC(t.Context(), at.String(), &tls.Config{InsecureSkipVerify: true, NextProtos: config.NextProtos})
	require.NoError(t, err)
	_, err = l.Accept(t.Context())
	require.NoError(t, err)
	require.NoError(t, socket.Close()) // nothing is said
	_ = killed.Close()

	socket, err = net.ListenPacket("udp", at.String())
	require.NoError(t, err)
	again, err := Listen(socket)(config, func(error) {})
	require.NoError(t, err)
	defer again.Close()
	stream, err := conn.OpenStreamSync(t.Context())
	require.NoError(t, err)
	_, err = stream.Write(make([]byte, 100))
	require.NoError(t, err)
	_, err = stream.Read(make([]byte, 1))
	var reset *quic.StatelessResetError
	require.ErrorAs(t, err, &reset)
	require.ErrorIs(t, ended(err), io.EOF)
}

// TestBlocked: where UDP does not get through the link goes over TCP; where neither does, an
// error says so.
func TestBlocked(t *testing.T) {
	p := newPair(t)
	l, deaf, err := bothOf("127.0.0.1:0")
	require.NoError(t, err)
	defer deaf.Close()
	at := "udp://" + l.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	p.sides.Go(func() {
		if err := p.ends[1].Serve(ctx, mesh.TLS(l), p.ids[1], nil); err != nil {
			t.Error(err)
		}
	})
	p.ids[0].Dial = func(ctx context.Context, address string, config *tls.Config) (mesh.Peer, error) {
		return dial(ctx, address, config, 50*time.Millisecond)
	}
	p.keep(at)
	p.settle(t, true)
	require.Equal(t, bridge.MediumTLS, p.medium(t))
	p.exchange(t, 10)
	stop()
	p.settle(t, false)
	err = p.ends[0].Dial(t.Context(), at, 0, 1, p.ids[0])
	require.ErrorContains(t, err, "blocked")
	var refused *net.OpError
	require.True(t, errors.As(err, &refused), "%v", err)
}
