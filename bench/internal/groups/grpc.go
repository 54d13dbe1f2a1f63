//go:build linux

package groups

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/nfcomms/nfcomms/bench/internal/compare"
)

const (
	nameStreams = "grpc streams"
	grpcEdge    = "nfbench-edge" // metadata: which neighbours a stream joins
)

// grpcMesh joins members by a stream for each pair of neighbours, through a socket.
type grpcMesh struct {
	shape   exchangeShape
	server  *grpc.Server
	conn    *grpc.ClientConn
	dir     string
	cancel  context.CancelFunc
	streams []map[int]grpc.ClientStream // by rank: to each target
	in      []map[int]chan []byte       // by rank: from each source
	out     [][]*wrapperspb.BytesValue  // by rank: for each target
	targets [][]int
	sources [][]int
}

// newStreamSide is a contender that exchanges over gRPC as a service would: one
// server, a stream of messages from each member to each of its neighbours.
func newStreamSide(ctx context.Context, s exchangeShape) (*compare.Contender, error) {
	m := &grpcMesh{shape: s}
	if err := m.open(ctx); err != nil {
		return nil, errors.Join(err, m.close())
	}
	run := func(ctx context.Context, n int) (time.Duration, error) {
		return compare.Timed(func() error {
			return together(s.members, func(rank int) error { return m.steps(ctx, rank, n) })
		})
	}
	return &compare.Contender{Name: nameStreams, Size: s.size, Batch: s.batch(), Run: run, CPU: compare.SelfCPU, Close: m.close}, nil
}

func (m *grpcMesh) open(ctx context.Context) (err error) {
	if m.dir, err = os.MkdirTemp("", "nfbench"); err != nil {
		return err
	}
	path := filepath.Join(m.dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	m.server = grpc.NewServer(grpc.MaxRecvMsgSize(m.shape.size + compare.GRPCChunk))
	m.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: compare.GRPCService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: compare.GRPCTake, Handler: m.take, ClientStreams: true, ServerStreams: true}},
	}, nil)
	go func() { _ = m.server.Serve(l) }() // ends with the server, which Stop stops
	if m.conn, err = compare.DialGRPC(path); err != nil {
		return err
	}
	m.neighbours()
	ctx, m.cancel = context.WithCancel(ctx)
	for rank, targets := range m.targets {
		for _, to := range targets {
			if m.streams[rank][to], err = m.stream(ctx, rank, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// neighbours makes what members give and get.
func (m *grpcMesh) neighbours() {
	n := m.shape.members
	m.streams, m.in = make([]map[int]grpc.ClientStream, n), make([]map[int]chan []byte, n)
	for rank := range n {
		targets, sources := m.shape.neighbours(rank)
		m.targets, m.sources = append(m.targets, targets), append(m.sources, sources)
		m.streams[rank], m.in[rank] = make(map[int]grpc.ClientStream), make(map[int]chan []byte)
		for _, from := range sources {
			m.in[rank][from] = make(chan []byte, 1) // the package of the step after this one
		}
		var out []*wrapperspb.BytesValue
		for _, p := range m.shape.packages(rank) {
			out = append(out, wrapperspb.Bytes(p.Data))
		}
		m.out = append(m.out, out)
	}
}

func (m *grpcMesh) stream(ctx context.Context, from, to int) (grpc.ClientStream, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, grpcEdge, strconv.Itoa(from), grpcEdge, strconv.Itoa(to))
	s, err := m.conn.NewStream(ctx, &grpc.StreamDesc{StreamName: compare.GRPCTake, ServerStreams: true, ClientStreams: true}, "/"+compare.GRPCService+"/"+compare.GRPCTake)
	if err != nil {
		return nil, fmt.Errorf("open gRPC stream: %w", err)
	}
	return s, nil
}

// take hands what comes on a stream to the member that it is for.
func (m *grpcMesh) take(_ any, s grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(s.Context())
	edge := md.Get(grpcEdge)
	if len(edge) != 2 {
		return status.Errorf(codes.InvalidArgument, "%s names %d members", grpcEdge, len(edge))
	}
	from, ferr := strconv.Atoi(edge[0])
	to, terr := strconv.Atoi(edge[1])
	if ferr != nil || terr != nil || to < 0 || to >= len(m.in) || m.in[to][from] == nil {
		return status.Errorf(codes.InvalidArgument, "%s %v joins nobody", grpcEdge, edge)
	}
	for {
		var got wrapperspb.BytesValue // its bytes are the member's from then on
		if err := s.RecvMsg(&got); err != nil {
			return compare.EndOfStream(err)
		}
		select {
		case m.in[to][from] <- got.Value:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

// steps does n steps of a member.
func (m *grpcMesh) steps(ctx context.Context, rank, n int) error {
	for range n {
		for i, to := range m.targets[rank] {
			if err := m.streams[rank][to].SendMsg(m.out[rank][i]); err != nil {
				return fmt.Errorf("send to gRPC peer: %w", err)
			}
		}
		for _, from := range m.sources[rank] {
			select {
			case data := <-m.in[rank][from]:
				if len(data) != m.shape.size {
					return fmt.Errorf("gRPC peer: %d bytes from %d, not %d", len(data), from, m.shape.size)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (m *grpcMesh) close() error {
	if m.cancel != nil {
		m.cancel()
	}
	var err error
	if m.conn != nil {
		err = m.conn.Close()
	}
	if m.server != nil {
		m.server.Stop()
	}
	return errors.Join(err, os.RemoveAll(m.dir))
}
