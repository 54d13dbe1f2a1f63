//go:build cgo

package mesh

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/testcert"
)

func certificate(t *testing.T, a *testcert.Authority, name string) (tls.Certificate, Fingerprint) {
	t.Helper()
	pair := a.Issue(t, name, "")
	c, err := tls.X509KeyPair(pair.Cert, pair.Key)
	require.NoError(t, err)
	return c, sha256.Sum256(c.Certificate[0])
}

// shows is a connection whose peer showed a certificate.
func shows(t *testing.T, c tls.Certificate) tls.ConnectionState {
	t.Helper()
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	require.NoError(t, err)
	return tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
}

// two processes of one node each: near dials, far serves.
type two struct {
	near, far       *Mesh
	nearID, farID   *Identity
	stranger        tls.Certificate
	address         string
	refused         chan error // what Serve reports
	stop            context.CancelFunc
	sides           sync.WaitGroup
	nearConnections context.CancelFunc
}

func newTwo(t *testing.T) *two {
	t.Helper()
	a := testcert.New(t)
	nearCert, nearPrint := certificate(t, a, "near")
	farCert, farPrint := certificate(t, a, "far")
	w := &two{
		nearID: &Identity{Certificate: nearCert, Known: map[int]Fingerprint{1: farPrint}},
		farID:  &Identity{Certificate: farCert, Known: map[int]Fingerprint{0: nearPrint}},
		// what is reported stays until a test reads it; none blocks
		refused: make(chan error, 1000),
	}
	w.stranger, _ = certificate(t, a, "stranger") // of the same authority
	var err error
	c := quick(2, 1, 1)
	c.Here = []bool{true, false}
	w.near, err = Open(c)
	require.NoError(t, err)
	c.Here = []bool{false, true}
	w.far, err = Open(c)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	w.address = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	w.sides.Go(func() {
		if err := w.far.Serve(ctx, TLS(l), w.farID, func(err error) { w.refused <- err }); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		if w.nearConnections != nil {
			w.nearConnections()
		}
		w.near.Close()
		w.far.Close()
		w.sides.Wait()
	})
	return w
}

// connect keeps both links of node 0 connected.
func (w *two) connect() {
	ctx, cancel := context.WithCancel(context.Background())
	w.nearConnections = cancel
	for link := range 2 {
		w.sides.Go(func() { _ = w.near.Keep(ctx, w.address, 0, link, w.nearID, nil) })
	}
}

// settle waits until both know the other.
func (w *two) settle(t *testing.T, want func(int, []abi.Diagnostic) bool) {
	t.Helper()
	require.NoError(t, w.near.Settle(t.Context(), want))
	require.NoError(t, w.far.Settle(t.Context(), want))
}

// TestBetweenProcesses: packets are sent over TLS and none is lost, doubled or changed; a
// connection that ends is dialled again.
func TestBetweenProcesses(t *testing.T) {
	w := newTwo(t)
	w.connect()
	w.settle(t, Well)
	const count = 300
	require.NoError(t, w.near.Start(Load{From: 0, To: 1, Size: 4096, Count: count}))
	require.NoError(t, w.far.Start(Load{From: 1, To: 0, Size: 1000, Count: count}))
	for _, m := range []*Mesh{w.near, w.far} {
		require.NoError(t, m.poll(t.Context(), func() (bool, error) {
			total, err := m.Totals()
			return total.Came == count, err
		}))
		total, err := m.Totals()
		require.NoError(t, err)
		require.Zero(t, total.Changed+total.Doubled)
	}
	took, err := w.near.Ping(t.Context(), 0, 1, 56, 10)
	require.NoError(t, err)
	require.Len(t, took, 10)

	w.nearConnections()
	w.settle(t, func(node int, words []abi.Diagnostic) bool { return words[node].Reading(abi.DiagXPlus) == abi.Broken })
	w.connect()
	w.settle(t, Well)
}

// TestCutBetweenProcesses: a link that was cut stays so over the connection after, until it is mended.
func TestCutBetweenProcesses(t *testing.T) {
	w := newTwo(t)
	w.connect()
	w.settle(t, Well)
	require.NoError(t, w.near.Cut(0, 0, true))
	w.nearConnections()
	broken := func(node int, words []abi.Diagnostic) bool { return words[node].Reading(abi.DiagXPlus) == abi.Broken }
	w.settle(t, func(node int, words []abi.Diagnostic) bool {
		return broken(node, words) && words[node].Reading(abi.DiagXMinus) == abi.Broken
	})
	require.NoError(t, w.near.Cut(0, 1, true))
	require.NoError(t, w.near.Cut(0, 1, false)) // there is no connection behind it
	w.connect()
	way := func(node int, words []abi.Diagnostic) bool { // over x- of node 0
		return words[0].Reading(abi.DiagXMinus) == abi.Normal && words[1].Reading(abi.DiagXPlus) == abi.Normal
	}
	require.NoError(t, w.near.poll(t.Context(), func() (bool, error) { return w.near.connected(0, 0) && w.near.connected(0, 1), nil }))
	w.settle(t, way)
	_, err := w.near.Ping(t.Context(), 0, 1, 56, 10)
	require.NoError(t, err)
	s, err := w.near.State(0)
	require.NoError(t, err)
	require.False(t, s.Links[0].Up)
	require.NoError(t, w.near.Cut(0, 0, false))
	w.settle(t, Well)
}

// TestSilentConnections: one over which no word arrives any more ends, though it is open, and its
// link takes the next.
func TestSilentConnections(t *testing.T) {
	w := newTwo(t)
	w.near.silent = 100 * time.Millisecond
	ours, theirs := net.Pipe()
	defer theirs.Close()
	ended := make(chan error, 1)
	go func() { ended <- w.near.carry(t.Context(), 0, 0, ours, bridge.MediumConnection) }()
	go func() { _, _ = io.Copy(io.Discard, theirs) }() // it takes what is said, and says nothing
	require.ErrorIs(t, <-ended, errSilent)
	w.near.silent = time.Minute
	w.connect()
	w.settle(t, Well)
}

// TestSilentConnectionsGiveWay: a neighbour that did not hang up, and connects again, has its links; one
// that speaks keeps them.
func TestSilentConnectionsGiveWay(t *testing.T) {
	w := newTwo(t)
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	ended := make(chan error, 1)
	go func() { ended <- w.far.carry(t.Context(), 1, 1, ours, bridge.MediumConnection) }()
	require.NoError(t, w.far.poll(t.Context(), func() (bool, error) { return w.far.connected(1, 1), nil }))
	w.far.pumping.Lock()
	w.far.pumped[[2]int{1, 1}].patience = 100 * time.Millisecond
	w.far.pumping.Unlock()
	w.connect()
	require.ErrorIs(t, <-ended, errReplaced)
	w.settle(t, Well)

	other := openSide(t, quick(2, 1, 1), 0)
	require.ErrorIs(t, other.Dial(t.Context(), w.address, 0, 0, w.nearID), ErrConnected)
	w.settle(t, Well)
}

// TestPauses: a connection that had worked is dialled again at once, and then ever more rarely.
func TestPauses(t *testing.T) {
	require.Zero(t, pauseAfter(retryMost+1, retryFirst))
	require.Zero(t, pauseAfter(time.Hour, retryMost))
	require.Equal(t, retryFirst, pauseAfter(0, retryFirst))
	require.Equal(t, retryMost, pauseAfter(retryMost, retryMost))
}

// TestStrangers: a peer that is not on the list gets no connection, and others are not disturbed.
func TestStrangers(t *testing.T) {
	w := newTwo(t)
	w.connect()
	w.settle(t, Well)
	other := &Identity{Certificate: w.stranger, Known: w.nearID.Known}
	ctx := t.Context()

	err := w.near.Dial(ctx, w.address, 0, 0, other)
	require.Error(t, err, "a certificate of the same authority that is not on the list")
	require.ErrorIs(t, <-w.refused, ErrPeer)

	wrong := &Identity{Certificate: w.nearID.Certificate, Known: map[int]Fingerprint{1: {1}}}
	require.ErrorIs(t, w.near.Dial(ctx, w.address, 0, 0, wrong), ErrPeer, "the server is not who it should be")
	require.Error(t, <-w.refused)
	require.ErrorIs(t, w.near.Dial(ctx, w.address, 0, 0, &Identity{}), ErrPeer, "nobody is on the list")
	require.ErrorIs(t, w.near.Dial(ctx, w.address, 0, 2, w.nearID), ErrUnknown, "no such link")

	require.Error(t, w.near.Dial(ctx, w.address, 0, 0, w.nearID), "the link has a connection")
	conn, err := net.Dial("tcp", w.address)
	require.NoError(t, err)
	_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	require.NoError(t, err)
	_, _ = io.Copy(io.Discard, conn) // until it hangs up
	require.NoError(t, conn.Close())

	fit, near := terms{side: [3]int{2, 1, 1}}, shows(t, w.nearID.Certificate)
	for _, h := range []hello{{0, 1, 2, fit}, {0, 0, 0, fit}, {1, 0, 0, fit}, {7, 1, 0, fit}, {0, 1, 255, fit}} {
		require.ErrorIs(t, w.far.fits(h, w.farID, near), ErrPeer)
	}
	require.NoError(t, w.far.fits(hello{0, 1, 0, fit}, w.farID, near))
	require.ErrorIs(t, w.far.fits(hello{0, 1, 0, fit}, w.farID, shows(t, w.stranger)), ErrPeer)
	w.settle(t, Well)
}

// otherEnd dials the serving process of w as a mesh of that shape, and returns why each end
// refused it.
func (w *two) otherEnd(t *testing.T, c Config) (dialed, served error) {
	t.Helper()
	other, err := Open(c)
	require.NoError(t, err)
	defer other.Close()
	return other.Dial(t.Context(), w.address, 0, 0, w.nearID), <-w.refused
}

// TestPeersThatDoNotFit: both ends say in a sentence what differs, and others are not
// disturbed.
func TestPeersThatDoNotFit(t *testing.T) {
	w := newTwo(t)
	w.connect()
	w.settle(t, Well)
	wide := quick(2, 2, 1)
	wide.Here = []bool{true, false, false, false}
	classic := quick(2, 1, 1)
	classic.Here, classic.Classic = []bool{true, false}, true
	for name, c := range map[string]struct {
		config         Config
		want           error
		dialed, served string
	}{
		"another torus": {wide, ErrTorus, "its torus is 2x1x1, this one 2x2x1", "its torus is 2x2x1, this one 2x1x1"},
		"another flow": {classic, ErrFlow, "its flow control is cumulative, here it is classic",
			"its flow control is classic, here it is cumulative"},
	} {
		dialed, served := w.otherEnd(t, c.config)
		for _, err := range []error{dialed, served} {
			require.ErrorIs(t, err, c.want, name)
			require.ErrorIs(t, err, ErrPeer, name)
			require.NotContains(t, err.Error(), "\n", name)
		}
		require.ErrorContains(t, dialed, c.dialed, name)
		require.ErrorContains(t, served, c.served, name)
	}
	w.settle(t, Well)
}

// TestTwoOfOneName: the second process learns why it gets no link, and the first one keeps it.
func TestTwoOfOneName(t *testing.T) {
	w := newTwo(t)
	w.connect()
	w.settle(t, Well)
	c := quick(2, 1, 1)
	c.Here = []bool{true, false}
	dialed, served := w.otherEnd(t, c)
	for _, err := range []error{dialed, served} {
		require.ErrorIs(t, err, ErrBusy)
		require.ErrorIs(t, err, ErrPeer)
		require.NotContains(t, err.Error(), "\n")
	}
	require.ErrorIs(t, dialed, ErrConnected)
	require.ErrorContains(t, dialed, "another process of this name")
	w.settle(t, Well)
}

// TestAnotherVersion: links of another version are refused by name, whichever end is older.
func TestAnotherVersion(t *testing.T) {
	w := newTwo(t)
	config := w.nearID.tls(1)
	p, err := DialTLS(t.Context(), w.address, config)
	require.NoError(t, err)
	conn, _, err := p.Handshake(t.Context())
	require.NoError(t, err)
	_, err = conn.Write([]byte("NCL2 and what it had to say"))
	require.NoError(t, err)
	var answer [answerSize]byte
	_, err = io.ReadFull(conn, answer[:])
	require.NoError(t, err)
	require.EqualValues(t, helloAnotherVersion, answer[0])
	require.NoError(t, p.Close())
	refused := <-w.refused
	require.ErrorIs(t, refused, ErrVersion)
	require.ErrorIs(t, refused, bridge.ErrABI)
	require.ErrorContains(t, refused, "its links are of version '2', these of '3'")
	require.ErrorIs(t, answered(helloAnotherVersion, nil), ErrVersion)
	require.ErrorIs(t, answered(helloAnotherTorus, nil), ErrPeer, "an answer that lies")
	require.ErrorIs(t, answered(99, nil), ErrPeer)
}

// TestSilentStrangers: connections that say nothing keep no neighbour out.
func TestSilentStrangers(t *testing.T) {
	w := newTwo(t)
	silent := make([]net.Conn, 3*handshakesMax)
	for i := range silent {
		var err error
		silent[i], err = net.Dial("tcp", w.address)
		require.NoError(t, err)
	}
	w.connect()
	w.settle(t, Well)
	for _, c := range silent {
		require.NoError(t, c.Close())
	}
}

// TestConnectionsOfNobody: a connection for a link that needs none is closed.
func TestConnectionsOfNobody(t *testing.T) {
	m := open(t, quick(2, 1, 1))
	a, b := net.Pipe()
	require.ErrorIs(t, m.Connect(t.Context(), 0, 0, a), ErrUnknown, "both nodes are here")
	_, err := b.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	w := newTwo(t)
	a, b = net.Pipe()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	require.ErrorIs(t, w.near.Connect(ctx, 0, 0, a), context.DeadlineExceeded)
	_, err = b.Write([]byte{1})
	require.ErrorIs(t, err, io.ErrClosedPipe)
	w.near.Close()
	a, _ = net.Pipe()
	require.ErrorIs(t, w.near.Connect(t.Context(), 0, 0, a), ErrClosed)
}

// TestGarbage: what a neighbour that is known sends may be anything.
func TestGarbage(t *testing.T) {
	w := newTwo(t)
	a, b := net.Pipe()
	w.sides.Go(func() { _ = w.near.Connect(context.Background(), 0, 0, a) })
	require.NoError(t, w.far.meet(t.Context(), b, 1, 1))
	w.sides.Go(func() { _, _ = io.Copy(io.Discard, b) })
	junk := make([]byte, 10007) // no whole number of words
	for i := range junk {
		junk[i] = byte(i * i >> 3)
	}
	for range 20 {
		_, err := b.Write(junk)
		require.NoError(t, err)
	}
	require.NoError(t, b.Close())
	w.connect()
	w.settle(t, Well)
}

// recorder keeps the bytes of a connection, and repeats them on demand.
type recorder struct {
	net.Conn
	mu      sync.Mutex
	opening int // bytes before words
	kept    []byte
	again   []byte // read before the next bytes
	part    int    // bytes of a word that were not read yet
}

func (r *recorder) Read(p []byte) (int, error) {
	r.mu.Lock()
	if r.part == 0 && len(r.again) > 0 { // between two words
		n := copy(p, r.again)
		r.again = r.again[n:]
		r.mu.Unlock()
		return n, nil
	}
	r.mu.Unlock()
	n, err := r.Conn.Read(p)
	r.mu.Lock()
	defer r.mu.Unlock()
	before := min(n, r.opening)
	r.opening -= before
	r.kept = append(r.kept, p[before:n]...)
	r.part = len(r.kept) % wordBytes
	return n, err
}

// replay repeats words.
func (r *recorder) replay(words []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again = words
}

// words are those that arrived whole.
func (r *recorder) words() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.kept[:len(r.kept)/wordBytes*wordBytes])
}

// TestReplayedWords: words that were right once are no packets when they are repeated, and take
// nothing else along.
func TestReplayedWords(t *testing.T) {
	w := newTwo(t)
	a, b := net.Pipe()
	r := &recorder{Conn: b, opening: len(hello{}.bytes())}
	w.sides.Go(func() { _ = w.near.Connect(context.Background(), 0, 0, a) }) // both end with the meshes
	w.sides.Go(func() { _ = w.far.Connect(context.Background(), 1, 1, r) })
	w.settle(t, func(_ int, words []abi.Diagnostic) bool {
		return words[0].Valid() && words[1].Valid() && words[0].Reading(abi.DiagXPlus) != abi.Broken && words[1].Reading(abi.DiagXMinus) != abi.Broken
	})
	const rounds, packets = 5, 20
	for round := range rounds {
		r.replay(r.words())
		require.NoError(t, w.near.Start(Load{From: 0, To: 1, Size: 1000, Count: packets}))
		require.NoError(t, w.far.poll(t.Context(), func() (bool, error) {
			now, err := w.far.Totals()
			return now.Came == uint64(packets*(round+1)), err
		}))
	}
	now, err := w.far.Totals()
	require.NoError(t, err)
	require.Zero(t, now.Changed+now.Doubled)
}

// TestWiresThatAreFull: both ends of a connection wait for room and for words all the
// time, and for each other; all packets arrive.
func TestWiresThatAreFull(t *testing.T) {
	var ends [2]*Mesh
	conns := [2]net.Conn{}
	conns[0], conns[1] = net.Pipe()
	var sides sync.WaitGroup
	defer sides.Wait()
	for node := range ends {
		c := quick(2, 1, 1)
		c.Here, c.WireWords, c.Retry = []bool{node == 0, node == 1}, 64, 50*time.Millisecond
		var err error
		ends[node], err = Open(c)
		require.NoError(t, err)
		t.Cleanup(ends[node].Close)
		sides.Go(func() { _ = ends[node].Connect(t.Context(), node, node, conns[node]) }) // it ends with the mesh
	}
	for _, m := range ends {
		require.NoError(t, m.Settle(t.Context(), func(_ int, w []abi.Diagnostic) bool { // a link that is up is no way yet
			return w[0].Valid() && w[1].Valid() && w[0].Reading(abi.DiagXPlus) != abi.Broken && w[1].Reading(abi.DiagXMinus) != abi.Broken
		}))
	}
	const packets = 30 // each fills the wires some times, and threads have to be woken as often
	for node, m := range ends {
		require.NoError(t, m.Start(Load{From: node, To: 1 - node, Size: PacketMax, Count: packets}))
	}
	for _, m := range ends {
		require.NoError(t, m.poll(t.Context(), func() (bool, error) {
			total, err := m.Totals()
			return total.Came == packets, err
		}))
	}
	for _, m := range ends {
		m.Close()
	}
}
