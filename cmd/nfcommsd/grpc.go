package main

import (
	"context"
	"regexp"
	"runtime/debug"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	channelz "google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

const (
	// maxHeaders bounds the headers of a call, in bytes.
	maxHeaders = 16 << 10
	// readBuffer is what is taken from a connection at once, in bytes: work that
	// is there before its caller can be slowed down.
	readBuffer = 4 << 10
	// connWindow is what a client may send ahead of its calls, in bytes. Left to
	// itself gRPC raises it to 16 MiB for each connection.
	connWindow = 64 << 10
)

// newCallMetrics counts and times the calls of all servers.
func newCallMetrics() *grpcprom.ServerMetrics {
	return grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram(
		grpcprom.WithHistogramBuckets([]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10})))
}

// traceID finds the trace in the header of W3C Trace Context.
var traceID = regexp.MustCompile(`^00-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$`)

// exemplar names the trace that a call belongs to, if its client says so.
func exemplar(ctx context.Context) prometheus.Labels {
	for _, header := range metadata.ValueFromIncomingContext(ctx, "traceparent") {
		if m := traceID.FindStringSubmatch(header); m != nil {
			return prometheus.Labels{"trace_id": m[1]}
		}
	}
	return nil
}

// newLocal returns the server of UNIX sockets.
func (d *daemon) newLocal(creds credentials.TransportCredentials) *grpc.Server {
	gs := d.newServer(creds)
	reflection.Register(gs)
	channelz.RegisterChannelzServiceToServer(gs)
	return gs
}

// newRemote returns the server of TCP.
func (d *daemon) newRemote(creds credentials.TransportCredentials) *grpc.Server {
	gs := d.newServer(creds)
	if d.conf.TCP.Reflection {
		reflection.Register(gs)
	}
	return gs
}

// newServer returns a server with the services of the control plane. Of its
// interceptors the authorizer is right after the counting, so that nothing else
// sees a call that is denied.
func (d *daemon) newServer(creds credentials.TransportCredentials) *grpc.Server {
	rescue := recovery.WithRecoveryHandlerContext(d.recovered)
	k, l := d.conf.Keepalive, d.conf.Limits
	gs := grpc.NewServer(
		grpc.Creds(creds),
		grpc.InTapHandle(d.authorizer.Tap),
		grpc.ReadBufferSize(readBuffer),
		grpc.StaticConnWindowSize(connWindow),
		grpc.ChainUnaryInterceptor(d.calls.UnaryServerInterceptor(grpcprom.WithExemplarFromContext(exemplar)), d.authorizer.Unary, recovery.UnaryServerInterceptor(rescue)),
		grpc.ChainStreamInterceptor(d.calls.StreamServerInterceptor(grpcprom.WithExemplarFromContext(exemplar)), d.authorizer.Stream, recovery.StreamServerInterceptor(rescue)),
		grpc.MaxConcurrentStreams(uint32(l.Streams)),
		grpc.MaxRecvMsgSize(l.MessageBytes),
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.ConnectionTimeout(l.Handshake),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: k.Time, Timeout: k.Timeout, MaxConnectionAge: k.MaxAge, MaxConnectionAgeGrace: k.Grace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: k.MinTime, PermitWithoutStream: true}),
		grpc.WaitForHandlers(true),
	)
	d.control.Register(gs)
	return gs
}

// recovered turns a panic of one call into its error.
func (d *daemon) recovered(_ context.Context, p any) error {
	d.log.Error("call panicked", "panic", p, "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "internal error")
}
