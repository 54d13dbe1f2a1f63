package control

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// diagnosticService implements nfcomms.v1.DiagnosticService.
type diagnosticService struct {
	nfcommsv1.UnsafeDiagnosticServiceServer
	s *Server
}

// memoryTypes are the memories of a device by their number.
var memoryTypes = []nfcommsv1.Memory_Type{
	admin.CLS:  nfcommsv1.Memory_TYPE_CLS,
	admin.CTM:  nfcommsv1.Memory_TYPE_CTM,
	admin.IMEM: nfcommsv1.Memory_TYPE_IMEM,
	admin.EMEM: nfcommsv1.Memory_TYPE_EMEM,
}

// GetDiagnostics returns the health of a device, after a round trip to it.
func (v diagnosticService) GetDiagnostics(ctx context.Context, req *nfcommsv1.GetDiagnosticsRequest) (*nfcommsv1.GetDiagnosticsResponse, error) {
	d, err := v.s.named("name", req.GetName())
	if err != nil {
		return nil, err
	}
	if err := d.probe(ctx); err != nil && ctx.Err() != nil {
		return nil, err
	}
	m := d.withStats()
	resp := &nfcommsv1.GetDiagnosticsResponse{Name: m.Name, State: m.State, Failure: m.Failure, Stats: m.Stats, DeviceKind: m.Kind}
	dev := d.opened()
	if dev == nil {
		return resp, nil
	}
	resp.HeartbeatAge = durationpb.New(dev.Stats().Age)
	if m.Failure != nil {
		return resp, nil
	}
	h, err := dev.Health()
	if err == nil {
		resp.Heartbeat, resp.Diagnostic = heartbeat(h), diagnostic(h.Diagnostic)
		resp.Memories, err = memories(ctx, dev)
	}
	resp.Failure = failureOf(err)
	return resp, nil
}

// memories describes the memories of a device.
func memories(ctx context.Context, dev *nfcomms.Device) ([]*nfcommsv1.Memory, error) {
	var list []*nfcommsv1.Memory
	for kind, t := range memoryTypes {
		m, err := admin.MemoryOf(ctx, dev, kind)
		if err != nil {
			return nil, err
		}
		list = append(list, &nfcommsv1.Memory{Type: t, Base: m.Base, SizeBytes: m.Size, FreeBytes: m.Free})
	}
	return list, nil
}

// PingDevice makes a round trip to the time service of the firmware. Pings of
// several clients take turns.
func (v diagnosticService) PingDevice(ctx context.Context, req *nfcommsv1.PingDeviceRequest) (*nfcommsv1.PingDeviceResponse, error) {
	d, err := v.s.named("name", req.GetName())
	if err != nil {
		return nil, err
	}
	dev, err := d.use()
	if err != nil {
		return nil, err
	}
	select {
	case d.ping <- struct{}{}:
		defer func() { <-d.ping }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ch, err := dev.Subscribe(ctx, admin.Time)
	if err != nil {
		return nil, err
	}
	defer ch.Close()
	return ping(ctx, ch, d.kind())
}

// epoch is where the host's monotonic clock of a ping begins.
var epoch = time.Now()

// ping asks the time service of a device of this kind once.
func ping(ctx context.Context, ch *nfcomms.Channel, kind nfcommsv1.Device_Kind) (*nfcommsv1.PingDeviceResponse, error) {
	const stamp = 8 // bytes
	var buf [nfcomms.MessageSize]byte
	begin := time.Now()
	binary.LittleEndian.PutUint64(buf[:], uint64(begin.Sub(epoch)))
	if err := ch.Send(ctx, buf[:stamp]); err != nil {
		return nil, err
	}
	n, err := ch.Receive(ctx, buf[:])
	if err != nil {
		return nil, err
	}
	took := time.Since(begin)
	if n != 3*stamp {
		return nil, fmt.Errorf("time service answered with %d bytes: %w", n, nfcomms.ErrProtocol)
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(buf[i*stamp:]) }
	return &nfcommsv1.PingDeviceResponse{
		RoundTrip: durationpb.New(took), HostSendNs: word(0), DeviceReceiveNs: word(1), DeviceSendNs: word(2), DeviceKind: kind,
	}, nil
}
