package control

import (
	"context"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// Register adds the services of nfcomms.v1 and health v1 to a server. Limits,
// credentials and interceptors are that server's; an interceptor sees errors as
// gRPC statuses.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	t := translator{r, s}
	nfcommsv1.RegisterDeviceServiceServer(t, deviceService{s: s})
	nfcommsv1.RegisterChannelServiceServer(t, channelService{s: s})
	nfcommsv1.RegisterMessageServiceServer(t, messageService{s: s})
	nfcommsv1.RegisterDiagnosticServiceServer(t, diagnosticService{s: s})
	nfcommsv1.RegisterEventServiceServer(t, eventService{s: s})
	nfcommsv1.RegisterGroupServiceServer(t, groupService{s: s})
	nfcommsv1.RegisterFabricServiceServer(t, fabricService{s: s})
	nfcommsv1.RegisterBoardServiceServer(t, boardService{s: s})
	nfcommsv1.RegisterVersionServiceServer(t, versionService{s: s})
	healthpb.RegisterHealthServer(translator{r, nil}, s.Health())
}

// Health returns the health service that Register registers, for a process that
// asks its own server: the answers of Check and List are those of round trips to
// the firmware.
func (s *Server) Health() healthpb.HealthServer { return healthService{s.health, s} }

// translator registers services whose methods return Go errors: what leaves
// them is a gRPC status. With a server it refuses calls once that shuts down.
type translator struct {
	grpc.ServiceRegistrar
	s *Server
}

// RegisterService registers a service with every method wrapped.
func (t translator) RegisterService(desc *grpc.ServiceDesc, impl any) {
	wrapped := *desc
	wrapped.Methods, wrapped.Streams = nil, nil
	for _, m := range desc.Methods {
		m.Handler = t.unary(m.Handler)
		wrapped.Methods = append(wrapped.Methods, m)
	}
	for _, m := range desc.Streams {
		m.Handler = t.stream(m.Handler)
		wrapped.Streams = append(wrapped.Streams, m)
	}
	t.ServiceRegistrar.RegisterService(&wrapped, impl)
}

// refuse returns ErrShutdown once the server shuts down.
func (t translator) refuse() error {
	if t.s == nil {
		return nil
	}
	select {
	case <-t.s.done:
		return ErrShutdown
	default:
		return nil
	}
}

// enter counts a call until leave, or returns ErrShutdown.
func (t translator) enter() (leave func(), err error) {
	switch {
	case t.s == nil:
		return func() {}, nil
	case !t.s.calls.enter():
		return nil, ErrShutdown
	}
	return t.s.calls.running.Done, nil
}

// unary wraps a method below the interceptors of the gRPC server.
func (t translator) unary(next grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		return next(srv, ctx, dec, func(ctx context.Context, req any, info *grpc.UnaryServerInfo, method grpc.UnaryHandler) (any, error) {
			call := func(ctx context.Context, req any) (any, error) {
				leave, err := t.enter()
				if err != nil {
					return nil, toStatus(err)
				}
				defer leave()
				resp, err := method(ctx, req)
				return resp, toStatus(nameDevice(req, err))
			}
			if interceptor == nil {
				return call(ctx, req)
			}
			return interceptor(ctx, req, info, call)
		})
	}
}

// stream wraps a streaming method, which the gRPC server calls below its
// interceptors.
func (t translator) stream(next grpc.StreamHandler) grpc.StreamHandler {
	return func(srv any, stream grpc.ServerStream) error {
		err := t.refuse()
		if err == nil {
			err = next(srv, stream)
		}
		return toStatus(err)
	}
}
