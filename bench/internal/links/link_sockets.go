package links

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/mesh"
	"github.com/nfcomms/nfcomms/internal/mesh/udp"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// LinkSocket is a link between two nodes whose words go over a connection on loopback,
// beside a stream of bytes over such a connection, just before. CPUMBs is what a second of
// the processor carried, of both ends.
type LinkSocket struct {
	Medium       string  `json:"medium"`
	MBs          float64 `json:"mb_s"`
	CPUMBs       float64 `json:"cpu_mb_s"`
	StreamMBs    float64 `json:"stream_mb_s"`
	StreamCPUMBs float64 `json:"stream_cpu_mb_s"`
	VsStream     float64 `json:"vs_stream"`
	CPUVsStream  float64 `json:"cpu_vs_stream"`
	Packets      uint64  `json:"packets"`
	Repeated     uint64  `json:"repeated"`
	Errors       uint64  `json:"errors"`
	RoundTripS   float64 `json:"round_trip_s"`
}

// linkMedium is what links between processes go over: a connection alone, and the scheme of
// its address in a fabric; plain TCP has none.
type linkMedium struct {
	name, scheme string
	pair         func(context.Context) (near, far io.ReadWriteCloser, err error)
}

var linkMedia = []linkMedium{
	{"tcp", "", func(ctx context.Context) (near, far io.ReadWriteCloser, err error) {
		return tcpPair(ctx)
	}},
	{"tls", "tcp://", tlsPair},
	{"udp", "udp://", quicPair},
}

// streamBytes are written and read at once by a stream, as iperf does.
const streamBytes = 128 << 10

// tcpPair is both ends of a connection.
func tcpPair(ctx context.Context) (near, far net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	var d net.Dialer
	if near, err = d.DialContext(ctx, "tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	if far, err = l.Accept(); err != nil {
		return nil, nil, errors.Join(err, near.Close())
	}
	return near, far, nil
}

// tlsPair is both ends of one that is encrypted.
func tlsPair(ctx context.Context) (near, far io.ReadWriteCloser, err error) {
	certificate, err := benchCertificate()
	if err != nil {
		return nil, nil, err
	}
	client, server, err := tcpPair(ctx)
	if err != nil {
		return nil, nil, err
	}
	return tls.Client(client, &tls.Config{InsecureSkipVerify: true}),
		tls.Server(server, &tls.Config{Certificates: []tls.Certificate{certificate}}), nil
}

// quicStream is a stream, the only one of its connection.
type quicStream struct {
	*quic.Stream
	conn *quic.Conn
}

func (s quicStream) Close() error { return s.conn.CloseWithError(0, "") }

// quicPair is both ends of a stream over UDP.
func quicPair(ctx context.Context) (near, far io.ReadWriteCloser, err error) {
	certificate, err := benchCertificate()
	if err != nil {
		return nil, nil, err
	}
	const protocol = "stream"
	l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return nil, nil, err
	}
	client, err := quic.DialAddr(ctx, l.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{protocol}}, nil)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	server, err := l.Accept(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, l.Close())
	}
	context.AfterFunc(server.Context(), func() { l.Close() })
	out, err := client.OpenStreamSync(ctx)
	if err != nil {
		return nil, nil, err
	}
	if _, err = out.Write([]byte{0}); err != nil { // the other end knows of it by that
		return nil, nil, err
	}
	in, err := server.AcceptStream(ctx)
	return quicStream{out, client}, quicStream{in, server}, err
}

// benchCertificate is good for this process.
func benchCertificate() (c tls.Certificate, err error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// sockets measures a link over each medium.
func (o *LinkOptions) sockets(ctx context.Context) (out []LinkSocket, err error) {
	for _, medium := range linkMedia {
		s := LinkSocket{Medium: medium.name}
		near, far, err := medium.pair(ctx)
		if err != nil {
			return nil, err
		}
		if s.StreamMBs, s.StreamCPUMBs, err = streamRate(near, far, o.Time); err != nil {
			return nil, fmt.Errorf("stream over %s: %w", medium.name, err)
		}
		if err := s.link(ctx, &medium, o.Time); err != nil {
			return nil, fmt.Errorf("link over %s: %w", medium.name, err)
		}
		s.VsStream, s.CPUVsStream = s.MBs/s.StreamMBs, s.CPUMBs/s.StreamCPUMBs
		out = append(out, s)
	}
	return out, nil
}

// streamRate writes bytes to one end of a connection and reads them from the other for a
// time, and closes both: MB/s by the clock, and by the time of the processor.
func streamRate(near, far io.ReadWriteCloser, d time.Duration) (clock, cpu float64, err error) {
	wrote := make(chan error, 1)
	go func() {
		buf := make([]byte, streamBytes)
		for err := error(nil); ; {
			if _, err = near.Write(buf); err != nil {
				wrote <- err
				return
			}
		}
	}()
	buf, bytes := make([]byte, streamBytes), 0
	var used time.Duration
	var begin time.Time
	for warm := time.Now(); err == nil && (begin.IsZero() || time.Since(begin) < d); {
		if begin.IsZero() && time.Since(warm) > d/10 {
			used, begin, bytes = cli.CPUTime(), time.Now(), 0
		}
		var n int
		n, err = far.Read(buf)
		bytes += n
	}
	took, usedFor := time.Since(begin).Seconds(), max((cli.CPUTime()-used).Seconds(), 1e-9)
	err = errors.Join(err, near.Close(), far.Close())
	<-wrote // it ends with the connection
	return float64(bytes) / took / 1e6, float64(bytes) / usedFor / 1e6, err
}

// link sends from node 0 to 1 for a time.
func (s *LinkSocket) link(ctx context.Context, medium *linkMedium, d time.Duration) error {
	var ends [2]*mesh.Mesh
	var carried sync.WaitGroup // what carries words ends with the meshes
	defer carried.Wait()
	for node := range ends {
		m, err := mesh.Open(mesh.OverConnections(mesh.Config{
			Side: [3]int{2, 1, 1}, Here: []bool{node == 0, node == 1}, Silence: patientSilence,
		}))
		if err != nil {
			return err
		}
		defer m.Close()
		ends[node] = m
	}
	if err := medium.join(ctx, ends, &carried); err != nil {
		return err
	}
	for _, m := range ends {
		if err := m.Settle(ctx, func(_ int, w []abi.Diagnostic) bool {
			return w[0].Valid() && w[1].Valid() && !broken(w[0], 0) && !broken(w[1], 1)
		}); err != nil {
			return err
		}
	}
	if err := ends[0].Start(mesh.Load{From: 0, To: 1, Size: mesh.PacketMax, Count: endless}); err != nil {
		return err
	}
	return s.measure(ctx, ends, d)
}

// join connects link x+ of node 0.
func (l *linkMedium) join(ctx context.Context, ends [2]*mesh.Mesh, carried *sync.WaitGroup) error {
	if l.scheme == "" {
		near, far, err := tcpPair(ctx)
		if err != nil {
			return err
		}
		carried.Go(func() { _ = ends[0].Connect(ctx, 0, 0, near) })
		carried.Go(func() { _ = ends[1].Connect(ctx, 1, 1, far) })
		return nil
	}
	listeners, at, err := udp.Listeners(l.scheme + "127.0.0.1:0")
	if err != nil {
		return err
	}
	certificate, err := benchCertificate()
	if err != nil {
		return err
	}
	print := mesh.Fingerprint(sha256.Sum256(certificate.Certificate[0]))
	id := mesh.Identity{Certificate: certificate, Known: map[int]mesh.Fingerprint{0: print, 1: print}, Dial: udp.Dial}
	for _, listener := range listeners {
		carried.Go(func() { _ = ends[1].Serve(ctx, listener, &id, nil) })
	}
	carried.Go(func() { _ = ends[0].Keep(ctx, at, 0, 0, &id, nil) })
	return nil
}

// measure looks at what comes to node 1 for a time.
func (s *LinkSocket) measure(ctx context.Context, ends [2]*mesh.Mesh, d time.Duration) error {
	if err := pause(ctx, d/10); err != nil {
		return err
	}
	before, err := ends[1].State(1)
	if err != nil {
		return err
	}
	used, begin := cli.CPUTime(), time.Now()
	if err := pause(ctx, d); err != nil {
		return err
	}
	after, err := ends[1].State(1)
	if err != nil {
		return err
	}
	took, usedFor := time.Since(begin).Seconds(), max((cli.CPUTime()-used).Seconds(), 1e-9)
	sender, err := ends[0].State(0)
	if err != nil {
		return err
	}
	moved := float64(after.Bytes-before.Bytes) / 1e6
	s.MBs, s.CPUMBs = moved/took, moved/usedFor
	out := sender.Links[0]
	s.Packets, s.Repeated, s.Errors, s.RoundTripS = out.Packets, out.Repeated, out.Errors+after.Links[1].Errors, out.RoundTrip.Seconds()
	if after.Changed > 0 || after.Doubled > 0 {
		return fmt.Errorf("%d packets changed, %d doubled", after.Changed, after.Doubled)
	}
	return nil
}

func (r *LinkReport) socketTable(w io.Writer) {
	fmt.Fprintln(w, "\nover connections on loopback, both nodes in this process; the stream is of the same connection alone")
	t := texttable.Numbers("over", "MB/s", "of the stream", "MB by a second of processor", "of the stream", "packets", "repeated", "errors seen", "round trip")
	for _, s := range r.Sockets {
		t.Add(s.Medium, fmt.Sprintf("%.0f", s.MBs), fmt.Sprintf("%.2f", s.VsStream), fmt.Sprintf("%.0f", s.CPUMBs), fmt.Sprintf("%.2f", s.CPUVsStream),
			fmt.Sprint(s.Packets), fmt.Sprint(s.Repeated), fmt.Sprint(s.Errors), time.Duration(s.RoundTripS*1e9).Round(time.Microsecond).String())
	}
	t.Write(w)
}
