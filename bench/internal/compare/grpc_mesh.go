package compare

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcEdge is the metadata key of the two members that a stream joins.
const grpcEdge = "nfbench-edge"

// Edges are what a member of a mesh gives to whom, and from whom it gets as much.
type Edges struct {
	Targets, Sources []int
	Out              [][]byte // for each target
}

// GRPCMesh joins members by a stream for each pair of neighbours, through a socket.
type GRPCMesh struct {
	edges   []Edges
	size    int // bytes of a package
	server  *grpc.Server
	conn    *grpc.ClientConn
	dir     string
	cancel  context.CancelFunc
	streams []map[int]grpc.ClientStream // by rank: to each target
	in      []map[int]chan []byte       // by rank: from each source
	out     [][]*wrapperspb.BytesValue  // by rank: for each target
}

// OpenGRPCMesh starts the server, and opens all streams, for packages of so many bytes.
func OpenGRPCMesh(ctx context.Context, edges []Edges, size int) (*GRPCMesh, error) {
	m := &GRPCMesh{edges: edges, size: size}
	if err := m.open(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *GRPCMesh) open(ctx context.Context) (err error) {
	if m.dir, err = os.MkdirTemp("", "nfbench"); err != nil {
		return err
	}
	path := filepath.Join(m.dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	m.server = grpc.NewServer(grpc.MaxRecvMsgSize(m.size + grpcChunk))
	m.server.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcService, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: GRPCTake, Handler: m.take, ClientStreams: true, ServerStreams: true}},
	}, nil)
	go func() { _ = m.server.Serve(l) }() // ends with the server, which Stop stops
	if m.conn, err = dialGRPC(path); err != nil {
		return err
	}
	m.join()
	ctx, m.cancel = context.WithCancel(ctx)
	for rank, e := range m.edges {
		for _, to := range e.Targets {
			if m.streams[rank][to], err = m.stream(ctx, rank, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// join makes what members give and get.
func (m *GRPCMesh) join() {
	for _, e := range m.edges {
		in := make(map[int]chan []byte)
		for _, from := range e.Sources {
			in[from] = make(chan []byte, 1) // the package of the step after this one
		}
		var out []*wrapperspb.BytesValue
		for _, data := range e.Out {
			out = append(out, wrapperspb.Bytes(data))
		}
		m.in, m.out, m.streams = append(m.in, in), append(m.out, out), append(m.streams, make(map[int]grpc.ClientStream))
	}
}

func (m *GRPCMesh) stream(ctx context.Context, from, to int) (grpc.ClientStream, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, grpcEdge, strconv.Itoa(from), grpcEdge, strconv.Itoa(to))
	s, err := m.conn.NewStream(ctx, &grpc.StreamDesc{StreamName: GRPCTake, ServerStreams: true, ClientStreams: true}, "/"+grpcService+"/"+GRPCTake)
	if err != nil {
		return nil, fmt.Errorf("open gRPC stream: %w", err)
	}
	return s, nil
}

// take hands what comes on a stream to the member that it is for.
func (m *GRPCMesh) take(_ any, s grpc.ServerStream) error {
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
			return endOfStream(err)
		}
		select {
		case m.in[to][from] <- got.Value:
		case <-s.Context().Done():
			return s.Context().Err()
		}
	}
}

// Steps does n steps of a member.
func (m *GRPCMesh) Steps(ctx context.Context, rank, n int) error {
	for range n {
		for i, to := range m.edges[rank].Targets {
			if err := m.streams[rank][to].SendMsg(m.out[rank][i]); err != nil {
				return fmt.Errorf("send to gRPC peer: %w", err)
			}
		}
		for _, from := range m.edges[rank].Sources {
			select {
			case data := <-m.in[rank][from]:
				if len(data) != m.size {
					return fmt.Errorf("gRPC peer: %d bytes from %d, not %d", len(data), from, m.size)
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

// Close ends the streams and the server.
func (m *GRPCMesh) Close() error {
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
