package compare

import (
	"context"
	"fmt"
	"io"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The gRPC peer: one bidirectional stream of BytesValue. The service is
// described by hand, so that nothing is generated.
const (
	grpcService = "nfbench.Peer"
	GRPCEcho    = "Echo" // each message is sent back
	GRPCTake    = "Take" // each grpcSize bytes are answered by an empty message
	// grpcSize is the metadata key of the bytes per transfer.
	grpcSize = "nfbench-size"
	// grpcChunk is the largest message of a bulk transfer, below gRPC's
	// default limit of 4 MiB.
	grpcChunk = 1 << 20
)

func grpcDesc() *grpc.ServiceDesc {
	stream := func(name string, h grpc.StreamHandler) grpc.StreamDesc {
		return grpc.StreamDesc{StreamName: name, Handler: h, ServerStreams: true, ClientStreams: true}
	}
	return &grpc.ServiceDesc{
		ServiceName: grpcService,
		HandlerType: (*any)(nil),
		Streams:     []grpc.StreamDesc{stream(GRPCEcho, serveEcho), stream(GRPCTake, serveTake)},
	}
}

func serveEcho(_ any, s grpc.ServerStream) error {
	var m wrapperspb.BytesValue
	for {
		if err := s.RecvMsg(&m); err != nil {
			return endOfStream(err)
		}
		if err := s.SendMsg(&m); err != nil {
			return err
		}
	}
}

func serveTake(_ any, s grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(s.Context())
	values := md.Get(grpcSize)
	if len(values) != 1 {
		return status.Errorf(codes.InvalidArgument, "%s is missing", grpcSize)
	}
	size, err := strconv.Atoi(values[0])
	if err != nil || size < 1 {
		return status.Errorf(codes.InvalidArgument, "%s %q is no size", grpcSize, values[0])
	}
	var m, empty wrapperspb.BytesValue
	for got := 0; ; {
		if err := s.RecvMsg(&m); err != nil {
			return endOfStream(err)
		}
		if got += len(m.Value); got < size {
			continue
		}
		got = 0
		if err := s.SendMsg(&empty); err != nil {
			return err
		}
	}
}

// endOfStream is nil where the other end closed the stream.
func endOfStream(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func newGRPCServer() *grpc.Server {
	s := grpc.NewServer()
	s.RegisterService(grpcDesc(), nil)
	return s
}

// dialGRPC connects over a UNIX socket.
func dialGRPC(path string) (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}))
}

// grpcPeer is one open stream.
type grpcPeer struct {
	stream grpc.ClientStream
	cancel context.CancelFunc
	// chunks are the messages of one operation.
	chunks []*wrapperspb.BytesValue
}

// openGRPC starts a stream that moves data once per operation.
func openGRPC(ctx context.Context, conn *grpc.ClientConn, method string, data []byte) (*grpcPeer, error) {
	ctx, cancel := context.WithCancel(ctx)
	ctx = metadata.AppendToOutgoingContext(ctx, grpcSize, strconv.Itoa(len(data)))
	desc := &grpc.StreamDesc{StreamName: method, ServerStreams: true, ClientStreams: true}
	stream, err := conn.NewStream(ctx, desc, "/"+grpcService+"/"+method)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open gRPC stream: %w", err)
	}
	p := &grpcPeer{stream: stream, cancel: cancel}
	for len(data) > 0 {
		n := min(len(data), grpcChunk)
		p.chunks = append(p.chunks, wrapperspb.Bytes(data[:n]))
		data = data[n:]
	}
	return p, nil
}

// exchange runs n operations: all chunks out, one message back.
func (p *grpcPeer) exchange(n int) error {
	var answer wrapperspb.BytesValue
	for range n {
		for _, c := range p.chunks {
			if err := p.stream.SendMsg(c); err != nil {
				return fmt.Errorf("send to gRPC peer: %w", err)
			}
		}
		if err := p.stream.RecvMsg(&answer); err != nil {
			return fmt.Errorf("receive from gRPC peer: %w", err)
		}
	}
	return nil
}

// Close ends the stream and waits for it.
func (p *grpcPeer) Close() {
	_ = p.stream.CloseSend()
	var m wrapperspb.BytesValue
	for p.stream.RecvMsg(&m) == nil {
	}
	p.cancel()
}
