package mesh

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// Fingerprint is the SHA-256 of a certificate.
type Fingerprint [sha256.Size]byte

// Identity is the certificate of a process, and those of its neighbours.
type Identity struct {
	Certificate tls.Certificate
	// Known has the certificate of each node that is elsewhere. A peer that shows none of these
	// fails the handshake.
	Known map[int]Fingerprint
	// Issued has the certificates of all nodes, of this one too, in place of both; nil: it has not.
	Issued Issued
	// Dial reaches neighbours; nil: [DialTLS].
	Dial Dialer
}

// Issued are certificates of an authority. They may change at any time: each handshake asks anew.
type Issued interface {
	// Own returns the certificate of this process.
	Own() (*tls.Certificate, error)
	// Check returns why what a peer showed is not the certificate of a node, or for AnyNode of none.
	Check(node int, shown []*x509.Certificate) error
}

// AnyNode stands for a peer that has not said yet which node it is.
const AnyNode = -1

// Peer is a connection to another process that is encrypted, and not proven yet.
type Peer interface {
	// Words of a link; a Read or Write that moves part of a word moves the rest later.
	io.ReadWriteCloser
	// Handshake returns what the other end showed, which the configuration took, and the
	// stream in order that the connection begins with.
	Handshake(ctx context.Context) (Opening, tls.ConnectionState, error)
	// Medium carries it.
	Medium() bridge.FabricMedium
	RemoteAddr() net.Addr
}

// Opening is what both ends say before words are sent.
type Opening interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// Dialer connects to a process. Both ends show certificates, which config takes.
type Dialer func(ctx context.Context, address string, config *tls.Config) (Peer, error)

// Acceptor accepts connections of one medium. Accept fails after Close.
type Acceptor interface {
	// Accept waits for the next connection, whose handshake is not over.
	Accept() (Peer, error)
	Close() error
}

// Listener makes an acceptor whose peers show certificates that config takes. Those that
// are refused before Accept returns them are passed to refused.
type Listener func(config *tls.Config, refused func(error)) (Acceptor, error)

// ErrPeer means that a peer is not who it should be, or does not fit.
var ErrPeer = errors.New("peer refused")

// How connections are made.
const (
	handshakeWithin = 10 * time.Second
	handshakesMax   = 64 // at once; the oldest makes room for the next
	retryFirst      = 50 * time.Millisecond
	retryMost       = 2 * time.Second
)

// fingerprint is that of the certificate a connection showed.
func fingerprint(s tls.ConnectionState) (f Fingerprint, ok bool) {
	if len(s.PeerCertificates) == 0 {
		return f, false
	}
	return sha256.Sum256(s.PeerCertificates[0].Raw), true
}

// tls returns the configuration of either side: TLS 1.3, certificates of both, and a peer that is
// not known is refused. Certificates need no common authority: they are known one by one.
// Those of an authority are known by their names.
func (id *Identity) tls(node int) *tls.Config {
	c := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // VerifyConnection does it
		VerifyConnection:       func(s tls.ConnectionState) error { return id.check(node, s) },
		SessionTicketsDisabled: true, // each connection shows its certificate
		NextProtos:             []string{"nfcomms-link"},
	}
	if id.Issued == nil {
		c.Certificates = []tls.Certificate{id.Certificate}
		return c
	}
	c.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return id.Issued.Own() }
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return id.Issued.Own() }
	return c
}

// check returns why a peer is not a node by what it showed; an ErrPeer.
func (id *Identity) check(node int, s tls.ConnectionState) error {
	f, ok := fingerprint(s)
	switch {
	case ok && id.Issued != nil:
		if err := id.Issued.Check(node, s.PeerCertificates); err != nil {
			return fmt.Errorf("certificate %x: %w: %w", f[:8], ErrPeer, err)
		}
		return nil
	case ok && node != AnyNode && id.Known[node] == f:
		return nil
	case ok && node == AnyNode && slices.Contains(slices.Collect(maps.Values(id.Known)), f):
		return nil
	}
	return fmt.Errorf("certificate %x is not on the list: %w", f[:8], ErrPeer)
}

// knows reports whether a node may show a certificate.
func (id *Identity) knows(node int) bool {
	_, known := id.Known[node]
	return known || id.Issued != nil
}

// Dial connects a link to the process of its neighbour and carries words until the
// connection ends, as [Mesh.Connect] does. The error wraps ErrPeer if either end
// refused.
func (m *Mesh) Dial(ctx context.Context, address string, node, link int, id *Identity) error {
	if err := m.withLink(node, link, func(*firmware.Mesh) {}); err != nil {
		return err
	}
	far := m.Neighbour(node, link)
	if !id.knows(far) {
		return fmt.Errorf("node %d has no certificate on the list: %w", far, ErrPeer)
	}
	dial := id.Dial
	if dial == nil {
		dial = DialTLS
	}
	within, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	p, err := dial(within, address, id.tls(far))
	if err != nil {
		return fmt.Errorf("dial node %d at %s: %w", far, address, err)
	}
	if err := introduce(within, p, m.hello(node, link)); err != nil {
		return errors.Join(fmt.Errorf("node %d at %s: %w", far, address, err), p.Close())
	}
	return m.carry(ctx, node, link, p, p.Medium())
}

// Keep dials again whenever a connection ends, until ctx does or the mesh is closed.
// report, which may be nil, gets the reason why each ended.
func (m *Mesh) Keep(ctx context.Context, address string, node, link int, id *Identity, report func(error)) error {
	wait := retryFirst
	for {
		begin := time.Now()
		err := m.Dial(ctx, address, node, link, id)
		if ctx.Err() != nil || m.isClosed() {
			return errors.Join(ctx.Err(), err)
		}
		if report != nil {
			report(err)
		}
		pause := pauseAfter(time.Since(begin), wait)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-m.closed:
			return ErrClosed
		case <-time.After(pause):
		}
		wait = min(max(2*pause, retryFirst), retryMost)
	}
}

// pauseAfter returns how long to wait after a connection that lasted so long: not at all if it had
// worked, as channels continue if there is a way again soon; wait if it had not.
func pauseAfter(lasted, wait time.Duration) time.Duration {
	if lasted > retryMost {
		return 0
	}
	return wait
}

// Serve accepts connections of neighbours until ctx ends, the mesh is closed or the
// listener fails, closes it, and returns when all of them ended. report, which may be nil,
// gets the reason why each ended or was refused.
func (m *Mesh) Serve(ctx context.Context, listen Listener, id *Identity, report func(error)) error {
	if report == nil {
		report = func(error) {}
	}
	l, err := listen(id.tls(AnyNode), report)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var conns sync.WaitGroup
	defer conns.Wait()
	conns.Go(func() {
		select {
		case <-ctx.Done():
		case <-m.closed:
		}
		l.Close() // Accept ends with it, whatever that says
	})
	var shaking handshakes
	for {
		p, err := l.Accept()
		if err != nil {
			ended := ctx.Err() != nil || m.isClosed()
			cancel()
			if ended {
				err = nil
			}
			return err
		}
		shaking.begin(p)
		conns.Go(func() { report(m.serve(ctx, p, id, func() { shaking.end(p) })) })
	}
}

// handshakes are connections of which nobody knows whose they are: a stranger who
// opens many and says nothing keeps no neighbour out.
type handshakes struct {
	mu    sync.Mutex
	peers []Peer // in the order of their arrival
}

func (h *handshakes) begin(p Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.peers) == handshakesMax {
		h.peers[0].Close() // its handshake fails with that
		h.peers = h.peers[1:]
	}
	h.peers = append(h.peers, p)
}

func (h *handshakes) end(p Peer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peers = slices.DeleteFunc(h.peers, func(q Peer) bool { return p == q })
}

// serve is one connection that was accepted; ready is called when its handshake is
// over.
func (m *Mesh) serve(ctx context.Context, p Peer, id *Identity, ready func()) error {
	h, err := m.welcome(ctx, p, id)
	ready()
	if err != nil {
		return errors.Join(fmt.Errorf("peer at %v: %w", p.RemoteAddr(), err), p.Close())
	}
	return m.carry(ctx, h.to, h.link^1, p, p.Medium())
}
