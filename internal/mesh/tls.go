package mesh

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/nfcomms/nfcomms/bridge"
)

// tlsPeer is a connection over TCP.
type tlsPeer struct{ *tls.Conn }

// DialTLS is a [Dialer] over TCP.
func DialTLS(ctx context.Context, address string, config *tls.Config) (Peer, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return tlsPeer{tls.Client(conn, config)}, nil
}

// TLS is a [Listener] over TCP.
func TLS(l net.Listener) Listener {
	return func(config *tls.Config, _ func(error)) (Acceptor, error) { return tlsAcceptor{l, config}, nil }
}

type tlsAcceptor struct {
	net.Listener
	config *tls.Config
}

// Accept returns a connection that says nothing yet.
func (a tlsAcceptor) Accept() (Peer, error) {
	conn, err := a.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tlsPeer{tls.Server(conn, a.config)}, nil
}

// Handshake is that of TLS; the stream is the connection itself.
func (p tlsPeer) Handshake(ctx context.Context) (Opening, tls.ConnectionState, error) {
	err := p.HandshakeContext(ctx)
	return p, p.ConnectionState(), err
}

// Medium returns bridge.MediumTLS.
func (tlsPeer) Medium() bridge.FabricMedium { return bridge.MediumTLS }
