//go:build cgo

package mesh

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/firmware"
)

// openSide opens a mesh of which one node is here.
func openSide(t *testing.T, c Config, here int) *Mesh {
	t.Helper()
	c.Here = make([]bool, c.Side[0]*c.Side[1]*c.Side[2])
	c.Here[here] = true
	m, err := Open(c)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// pipes are two ends of a connection, of each kind.
func pipes(t *testing.T) map[string]func() (a, b net.Conn) {
	return map[string]func() (a, b net.Conn){
		"pipe": net.Pipe,
		"tcp": func() (a, b net.Conn) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			a, err = net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			b, err = l.Accept()
			require.NoError(t, err)
			return a, b
		},
	}
}

// TestConnectedMisfits: both ends of a connection say what differs, and nothing is carried.
func TestConnectedMisfits(t *testing.T) {
	classic := quick(2, 1, 1)
	classic.Classic = true
	near := openSide(t, quick(2, 1, 1), 0)
	for name, c := range map[string]struct {
		far  *Mesh
		link int
		want error
	}{
		"another torus": {openSide(t, quick(3, 1, 1), 1), 1, ErrTorus},
		"another flow":  {openSide(t, classic, 1), 1, ErrFlow},
		"another link":  {openSide(t, quick(2, 1, 1), 1), 0, ErrPeer},
		"the same node": {openSide(t, quick(2, 1, 1), 0), 1, ErrPeer},
	} {
		for kind, pipe := range pipes(t) {
			a, b := pipe()
			node := 1
			if c.far.here(0) {
				node = 0
			}
			ended := make(chan error, 1)
			go func() { ended <- near.Connect(t.Context(), 0, 0, a) }()
			require.ErrorIs(t, c.far.Connect(t.Context(), node, c.link, b), c.want, name+kind)
			require.ErrorIs(t, <-ended, c.want, name+kind)
		}
	}
	require.False(t, near.connected(0, 0))
}

// TestConnectedStrangers: an end of another version hears which this one has; one that says
// something else, or nothing, is refused.
func TestConnectedStrangers(t *testing.T) {
	near := openSide(t, quick(2, 1, 1), 0)
	good := hello{1, 0, 1, near.terms()}.bytes()
	other := bytes.Clone(good)
	other[3]++
	for kind, pipe := range pipes(t) {
		for name, c := range map[string]struct {
			says []byte
			want error
		}{
			"another version": {append(bytes.Clone(other), 1, 2, 3, 4), ErrVersion},
			"words":           {make([]byte, 5000), ErrPeer},
			"half of a hello": {good[:7], nil},
			"nothing":         {nil, nil},
		} {
			a, b := pipe()
			ended := make(chan error, 1)
			go func() { ended <- near.Connect(t.Context(), 0, 0, a) }()
			go func() {
				_, _ = b.Write(c.says)
				if c.want == nil {
					_ = b.Close()
				}
			}()
			if c.want != nil {
				its, err := readHello(b)
				require.NoError(t, err, name+kind)
				require.Equal(t, near.hello(0, 0), its)
			}
			err := <-ended
			require.Error(t, err, name+kind)
			if c.want != nil {
				require.ErrorIs(t, err, c.want, name+kind)
			}
			_ = b.Close()
		}
	}
	require.ErrorIs(t, ErrVersion, bridge.ErrABI)
	require.EqualValues(t, firmware.MeshLinkVersion, helloVersion-'0')

	a, b := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- near.Connect(ctx, 0, 0, a) }()
	_, err := b.Read(make([]byte, 4)) // it says hello, and hears nothing
	require.NoError(t, err)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	a, b = net.Pipe()
	go func() { ended <- near.Connect(t.Context(), 0, 0, a) }()
	_, err = b.Read(make([]byte, 4))
	require.NoError(t, err)
	near.Close()
	require.ErrorIs(t, <-ended, ErrClosed)
}

// opening is a connection that takes any deadline, as a stream of QUIC does.
type opening struct{ net.Conn }

func (opening) SetDeadline(time.Time) error { return nil }

// refusing is a peer that hangs up before the hello is written.
type refusing struct {
	Peer
	conn opening
}

func (r refusing) Handshake(context.Context) (Opening, tls.ConnectionState, error) {
	return r.conn, tls.ConnectionState{}, nil
}

// TestIntroduceToAPeerThatHungUp: the error is that of a refusal, wherever it is noticed.
func TestIntroduceToAPeerThatHungUp(t *testing.T) {
	near, far := net.Pipe()
	require.NoError(t, far.Close())
	require.ErrorIs(t, introduce(t.Context(), refusing{conn: opening{near}}, hello{}), ErrPeer)
	require.NoError(t, near.Close())
}
