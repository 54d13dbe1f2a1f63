package control

import (
	"context"
	"errors"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// services are the names of our own services.
var services = []string{
	nfcommsv1.DeviceService_ServiceDesc.ServiceName,
	nfcommsv1.ChannelService_ServiceDesc.ServiceName,
	nfcommsv1.MessageService_ServiceDesc.ServiceName,
	nfcommsv1.DiagnosticService_ServiceDesc.ServiceName,
	nfcommsv1.EventService_ServiceDesc.ServiceName,
	nfcommsv1.VersionService_ServiceDesc.ServiceName,
}

// devicePrefix begins the health name of a device: "device/nic0".
const devicePrefix = "device/"

// healthTable is the health table: which devices serve, and so whether the server
// does. It serves as long as one device does, or there is none.
type healthTable struct {
	*health.Server
	mu      sync.Mutex
	serving map[string]bool // by device
}

func newHealthTable() *healthTable {
	t := &healthTable{Server: health.NewServer(), serving: make(map[string]bool)}
	t.overallLocked()
	return t
}

// set notes whether a device takes work.
func (t *healthTable) set(device string, serving bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serving[device] = serving
	t.SetServingStatus(devicePrefix+device, statusOf(serving))
	t.overallLocked()
}

// remove forgets a device.
func (t *healthTable) remove(device string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.serving, device)
	t.SetServingStatus(devicePrefix+device, healthpb.HealthCheckResponse_SERVICE_UNKNOWN)
	t.overallLocked()
}

// overallLocked computes what holds for the server and its services. Must hold
// mu.
func (t *healthTable) overallLocked() {
	serving := len(t.serving) == 0
	for _, s := range t.serving {
		serving = serving || s
	}
	t.SetServingStatus("", statusOf(serving))
	for _, name := range services {
		t.SetServingStatus(name, statusOf(serving))
	}
}

func statusOf(serving bool) healthpb.HealthCheckResponse_ServingStatus {
	if serving {
		return healthpb.HealthCheckResponse_SERVING
	}
	return healthpb.HealthCheckResponse_NOT_SERVING
}

// healthService is health v1 whose answers are those of round trips to the
// firmware.
type healthService struct {
	*healthTable
	s *Server
}

// Check probes the device that is asked for, or all of them.
func (h healthService) Check(ctx context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	name, one := strings.CutPrefix(req.GetService(), devicePrefix)
	if !one {
		name = ""
	}
	if err := h.probe(ctx, name); err != nil {
		return nil, err
	}
	return h.healthTable.Check(ctx, req)
}

// List probes all devices.
func (h healthService) List(ctx context.Context, req *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	if err := h.probe(ctx, ""); err != nil {
		return nil, err
	}
	list, err := h.healthTable.List(ctx, req)
	for name, r := range list.GetStatuses() {
		if r.GetStatus() == healthpb.HealthCheckResponse_SERVICE_UNKNOWN {
			delete(list.Statuses, name) // a device that was removed
		}
	}
	return list, err
}

// probe makes round trips to one device, or to all of them at once if name is empty. The results
// show in the table; an error means that there is no such device, or that ctx ended.
func (h healthService) probe(ctx context.Context, name string) error {
	devices, err := h.s.list(name)
	if errors.Is(err, ErrNoDevice) {
		return status.Error(codes.NotFound, "unknown service")
	}
	var asking sync.WaitGroup
	for _, d := range devices {
		asking.Go(func() { _ = d.probe(ctx) })
	}
	asking.Wait()
	return ctx.Err()
}

// Watch streams the health as the server's own checks of the devices find it,
// and ends with NOT_SERVING when Shutdown is over.
func (h healthService) Watch(req *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-h.s.ended:
			cancel()
		case <-ended:
		}
	}()
	b := &bounded{ServerStreamingServer: stream, ctx: ctx}
	if err := h.healthTable.Watch(req, b); stream.Context().Err() != nil {
		return err
	}
	if b.last == healthpb.HealthCheckResponse_SERVING { // it ended before the event
		_ = b.Send(&healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING})
	}
	return ErrShutdown
}

// bounded is a stream with a context that ends earlier.
type bounded struct {
	grpc.ServerStreamingServer[healthpb.HealthCheckResponse]
	ctx  context.Context
	last healthpb.HealthCheckResponse_ServingStatus // that was sent
}

func (b *bounded) Context() context.Context { return b.ctx }

func (b *bounded) Send(r *healthpb.HealthCheckResponse) error {
	b.last = r.GetStatus()
	return b.ServerStreamingServer.Send(r)
}
