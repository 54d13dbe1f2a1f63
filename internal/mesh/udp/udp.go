package udp

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/mesh"
)

const (
	// blockedAfter is how long a peer may take to answer before UDP counts as blocked.
	blockedAfter = 5 * time.Second
	// silentAfter ends a connection whose peer says nothing: one that was killed does not
	// hang up.
	silentAfter = 3 * time.Second
)

func settings() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout: blockedAfter, MaxIdleTimeout: silentAfter, KeepAlivePeriod: silentAfter / 4,
		MaxIncomingStreams: 1, MaxIncomingUniStreams: -1,
	}
}

// Dial is a [mesh.Dialer] that takes the addresses of [bridge.ParseFabricAddress]. Where
// nothing answers over UDP it tries TCP at the same port.
func Dial(ctx context.Context, address string, config *tls.Config) (mesh.Peer, error) {
	return dial(ctx, address, config, blockedAfter)
}

func dial(ctx context.Context, address string, config *tls.Config, patience time.Duration) (mesh.Peer, error) {
	medium, host, err := bridge.ParseFabricAddress(address)
	if err != nil {
		return nil, err
	}
	if medium == bridge.MediumTLS {
		return mesh.DialTLS(ctx, host, config)
	}
	conn, err := dialAgain(ctx, host, config, patience)
	if err == nil {
		return &peer{conn: conn, dialed: true}, nil
	}
	if err = ended(err); errors.Is(err, mesh.ErrPeer) || ctx.Err() != nil {
		return nil, err
	}
	p, over := mesh.DialTLS(ctx, host, config)
	if over != nil {
		return nil, fmt.Errorf("nothing answers over UDP, or it is blocked on the way: %w; and over TCP: %w", err, over)
	}
	return p, nil
}

// dialAgain tries within a time, the first time for an eighth of it, and each time twice as long as
// before: who is there again is found sooner than by one try, which asks ever more seldom.
func dialAgain(ctx context.Context, host string, config *tls.Config, patience time.Duration) (conn *quic.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := patience / 8; ; wait *= 2 {
		within, cancel := context.WithTimeout(ctx, wait)
		conn, err = dialQUIC(within, host, config)
		over := within.Err() == nil || ctx.Err() != nil
		cancel()
		if err == nil || over {
			return conn, err
		}
	}
}

// dialQUIC connects from a socket of the connection's own.
func dialQUIC(ctx context.Context, host string, config *tls.Config) (*quic.Conn, error) {
	to, err := net.ResolveUDPAddr("udp", host)
	if err != nil {
		return nil, err
	}
	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		return nil, err
	}
	transport := &quic.Transport{Conn: merge(socket)}
	end := func() {
		transport.Close() // nothing is under way
		socket.Close()
	}
	conn, err := transport.Dial(ctx, to, config, settings())
	if err != nil {
		end()
		return nil, err
	}
	context.AfterFunc(conn.Context(), end)
	return conn, nil
}

// portTries is how often a port that is free for TCP is looked for if UDP has it in use.
const portTries = 10

// Listeners listens at an address of [bridge.ParseFabricAddress], and at the TCP port of the
// same number for whom UDP does not reach, and returns it with the port that it took for 0.
func Listeners(address string) (all []mesh.Listener, at string, err error) {
	medium, host, err := bridge.ParseFabricAddress(address)
	if err != nil {
		return nil, "", err
	}
	if medium == bridge.MediumTLS {
		l, err := net.Listen("tcp", host)
		if err != nil {
			return nil, "", err
		}
		return []mesh.Listener{mesh.TLS(l)}, l.Addr().String(), nil
	}
	l, socket, err := bothOf(host)
	if err != nil {
		return nil, "", err
	}
	return []mesh.Listener{Listen(socket), mesh.TLS(l)}, "udp://" + l.Addr().String(), nil
}

// bothOf listens at a TCP and a UDP port of the same number.
func bothOf(host string) (net.Listener, net.PacketConn, error) {
	for try := 1; ; try++ {
		l, err := net.Listen("tcp", host)
		if err != nil {
			return nil, nil, err
		}
		socket, err := net.ListenPacket("udp", l.Addr().String())
		if err == nil {
			return l, socket, nil
		}
		l.Close() // nobody has dialed it
		if _, port, _ := net.SplitHostPort(host); port != "0" || try == portTries {
			return nil, nil, err
		}
	}
}

// Listen is a [mesh.Listener] at a socket, which it closes.
func Listen(socket net.PacketConn) mesh.Listener {
	return func(config *tls.Config, refused func(error)) (mesh.Acceptor, error) {
		config = config.Clone()
		verify := config.VerifyConnection
		config.VerifyConnection = func(s tls.ConnectionState) error {
			err := verify(s)
			if err != nil {
				refused(err) // no connection is accepted for it
			}
			return err
		}
		a := &acceptor{transport: quic.Transport{
			Conn:              merge(socket),
			StatelessResetKey: resetKey(config),
			// who does not receive what is sent to its address costs nothing
			VerifySourceAddress: func(net.Addr) bool { return true },
		}}
		var err error
		if a.listener, err = a.transport.Listen(config, settings()); err != nil {
			return nil, errors.Join(err, socket.Close())
		}
		return a, nil
	}
}

// resetKey is the key by which a restarted process ends a connection that it knows
// nothing of (RFC 9000, 10.3): the same each time, as the key of its certificate is, and as secret.
func resetKey(config *tls.Config) *quic.StatelessResetKey {
	if len(config.Certificates) == 0 {
		return nil
	}
	private, err := x509.MarshalPKCS8PrivateKey(config.Certificates[0].PrivateKey)
	if err != nil {
		return nil // it is none that can be read: its neighbours wait for silence
	}
	key, err := hkdf.Key(sha256.New, private, nil, "nfcomms link reset", len(quic.StatelessResetKey{}))
	if err != nil {
		return nil
	}
	return (*quic.StatelessResetKey)(key)
}

type acceptor struct {
	transport quic.Transport
	listener  *quic.Listener
	peers     sync.WaitGroup
}

// Accept returns a connection whose certificate was taken.
func (a *acceptor) Accept() (mesh.Peer, error) {
	conn, err := a.listener.Accept(context.Background()) // until it is closed
	if err != nil {
		return nil, err
	}
	a.peers.Add(1)
	context.AfterFunc(conn.Context(), a.peers.Done)
	return &peer{conn: conn}, nil
}

// Close accepts no more, and closes the socket when all that were accepted have ended.
func (a *acceptor) Close() error {
	err := a.listener.Close()
	a.peers.Wait()
	return errors.Join(err, a.transport.Close(), a.transport.Conn.Close())
}

// peer is a connection with one stream, of the hello and then of words.
type peer struct {
	conn   *quic.Conn
	stream *quic.Stream
	dialed bool
}

// Handshake returns the stream.
func (p *peer) Handshake(ctx context.Context) (_ mesh.Opening, _ tls.ConnectionState, err error) {
	begin := p.conn.AcceptStream
	if p.dialed {
		begin = p.conn.OpenStreamSync
	}
	p.stream, err = begin(ctx)
	return p.stream, p.conn.ConnectionState().TLS, ended(err)
}

// Medium returns bridge.MediumUDP.
func (*peer) Medium() bridge.FabricMedium { return bridge.MediumUDP }

func (p *peer) RemoteAddr() net.Addr { return p.conn.RemoteAddr() }

func (p *peer) Write(words []byte) (int, error) {
	n, err := p.stream.Write(words)
	return n, ended(err)
}

func (p *peer) Read(words []byte) (int, error) {
	n, err := p.stream.Read(words)
	return n, ended(err)
}

// Close hangs up.
func (p *peer) Close() error { return p.conn.CloseWithError(0, "") }

// errSilent means that a peer said nothing for silentAfter.
var errSilent = fmt.Errorf("the neighbour said nothing for %v", silentAfter)

// ended distinguishes a connection that was closed from one that broke, and from a peer that was
// refused or refuses.
func ended(err error) error {
	var closed *quic.ApplicationError
	var silent *quic.IdleTimeoutError
	var reset *quic.StatelessResetError
	var refused *quic.TransportError
	var version *quic.VersionNegotiationError
	switch {
	case errors.As(err, &closed), errors.As(err, &reset): // the second by a process that was restarted
		return io.EOF
	case errors.As(err, &silent):
		return errSilent
	case errors.As(err, &refused), errors.As(err, &version):
		return fmt.Errorf("%w: %w", mesh.ErrPeer, err)
	}
	return err
}
