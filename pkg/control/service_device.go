package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// deviceService implements nfcomms.v1.DeviceService.
type deviceService struct {
	nfcommsv1.UnsafeDeviceServiceServer
	s *Server
}

// named finds the device of a resource name.
func (s *Server) named(field, name string) (*device, error) {
	id, err := parseDevice(field, name)
	if err != nil {
		return nil, err
	}
	return s.device(id)
}

// ListDevices lists the devices.
func (v deviceService) ListDevices(_ context.Context, req *nfcommsv1.ListDevicesRequest) (*nfcommsv1.ListDevicesResponse, error) {
	all, _ := v.s.list("")
	all, next, err := page(pageOfDevices, "", all, func(d *device) string { return d.id }, req)
	if err != nil {
		return nil, err
	}
	resp := &nfcommsv1.ListDevicesResponse{NextPageToken: next}
	for _, d := range all {
		resp.Devices = append(resp.Devices, d.withStats())
	}
	return resp, nil
}

// GetDevice returns one device.
func (v deviceService) GetDevice(_ context.Context, req *nfcommsv1.GetDeviceRequest) (*nfcommsv1.GetDeviceResponse, error) {
	d, err := v.s.named("name", req.GetName())
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.GetDeviceResponse{Device: d.withStats()}, nil
}

// WatchDevices streams the devices and what becomes of them.
func (v deviceService) WatchDevices(req *nfcommsv1.WatchDevicesRequest, stream grpc.ServerStreamingServer[nfcommsv1.WatchDevicesResponse]) error {
	w := &watch[*nfcommsv1.Device]{
		s: v.s, hub: v.s.deviceHub, kind: watchOfDevices,
		wants: func(string) bool { return true },
		send: func(c change[*nfcommsv1.Device], token string) error {
			return stream.Send(&nfcommsv1.WatchDevicesResponse{
				Change: c.kind, Device: c.value, Revision: c.revision, ResumeToken: token,
			})
		},
	}
	return w.run(stream.Context(), req.GetResumeToken())
}

// ResetDevice resets a device.
func (v deviceService) ResetDevice(ctx context.Context, req *nfcommsv1.ResetDeviceRequest) (*nfcommsv1.ResetDeviceResponse, error) {
	d, err := v.s.named("name", req.GetName())
	if err == nil {
		err = d.reset(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.ResetDeviceResponse{Device: d.withStats()}, nil
}

// drainDefault is how long a drain waits that does not say it.
const drainDefault = 30 * time.Second

// DrainDevice drains a device.
func (v deviceService) DrainDevice(ctx context.Context, req *nfcommsv1.DrainDeviceRequest) (*nfcommsv1.DrainDeviceResponse, error) {
	timeout, err := durationOf("timeout", req.GetTimeout(), drainDefault)
	if err != nil {
		return nil, err
	}
	d, err := v.s.named("name", req.GetName())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	calls, channels, err := d.drain(ctx)
	if err != nil {
		return nil, err
	}
	return &nfcommsv1.DrainDeviceResponse{
		Device:       d.withStats(),
		Drained:      calls == 0 && channels == 0,
		RunningCalls: int32(calls),
		OpenChannels: int32(channels),
	}, nil
}

// durationOf returns a duration of a request, or what an absent one means.
func durationOf(field string, d *durationpb.Duration, absent time.Duration) (time.Duration, error) {
	switch {
	case d == nil:
		return absent, nil
	case !d.IsValid():
		return 0, invalid(field, "%d s and %d ns are no duration", d.GetSeconds(), d.GetNanos())
	case d.AsDuration() < 0:
		return 0, invalid(field, "%v is negative", d.AsDuration())
	}
	return d.AsDuration(), nil
}

// ResumeDevice ends a drain.
func (v deviceService) ResumeDevice(ctx context.Context, req *nfcommsv1.ResumeDeviceRequest) (*nfcommsv1.ResumeDeviceResponse, error) {
	d, err := v.s.named("name", req.GetName())
	if err != nil {
		return nil, err
	}
	d.resume(ctx)
	return &nfcommsv1.ResumeDeviceResponse{Device: d.withStats()}, nil
}

// ListPrograms lists the programs of a device, or of a node of its fabric.
func (v deviceService) ListPrograms(ctx context.Context, req *nfcommsv1.ListProgramsRequest) (*nfcommsv1.ListProgramsResponse, error) {
	d, err := v.s.named("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	dev, err := d.use()
	if err != nil {
		return nil, err
	}
	at, err := siteOf(ctx, dev, "node", req.GetNode())
	if err != nil {
		return nil, err
	}
	names, err := admin.Programs(ctx, at.dev)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	names, next, err := page(pageOfPrograms, d.id+" "+at.node, slices.Compact(names), func(name string) string { return name }, req)
	if err != nil {
		return nil, err
	}
	resp := &nfcommsv1.ListProgramsResponse{NextPageToken: next}
	for _, name := range names {
		resp.Programs = append(resp.Programs, &nfcommsv1.Program{Name: ProgramName(d.id, name)})
	}
	return resp, nil
}

// ListProcesses lists the processes that clients started.
func (v deviceService) ListProcesses(_ context.Context, req *nfcommsv1.ListProcessesRequest) (*nfcommsv1.ListProcessesResponse, error) {
	scope, devices, err := v.s.under(req.GetParent())
	if err != nil {
		return nil, err
	}
	type listed struct {
		key string
		m   *nfcommsv1.Process
	}
	var all []listed
	for _, d := range devices {
		for _, p := range d.processList() {
			all = append(all, listed{p.key(d.id), p.m})
		}
	}
	all, next, err := page(pageOfProcesses, scope, all, func(l listed) string { return l.key }, req)
	if err != nil {
		return nil, err
	}
	resp := &nfcommsv1.ListProcessesResponse{NextPageToken: next}
	for _, l := range all {
		resp.Processes = append(resp.Processes, l.m)
	}
	return resp, nil
}

// StartProgram starts a program.
func (v deviceService) StartProgram(ctx context.Context, req *nfcommsv1.StartProgramRequest) (*nfcommsv1.StartProgramResponse, error) {
	id, program, err := parseProgram("name", req.GetName())
	if err != nil {
		return nil, err
	}
	d, err := v.s.device(id)
	if err != nil {
		return nil, err
	}
	dev, err := d.begin()
	if err != nil {
		return nil, err
	}
	defer d.finish()
	at, err := siteOf(ctx, dev, "node", req.GetNode())
	if err != nil {
		return nil, err
	}
	p, err := at.dev.Start(ctx, nfcomms.Program{
		Name: program, First: nfcomms.Target(req.GetFirstTarget()),
		Targets: max(1, int(req.GetTargets())), Argument: req.GetArgument(),
	})
	if err != nil {
		return nil, err
	}
	m := d.started(dev, at, v.s.callerOf(ctx), program, p)
	d.eventBy(m.GetCaller(), nfcommsv1.Event_TYPE_PROCESS_STARTED, m.GetName(), startedText(program, at, p), nil)
	return &nfcommsv1.StartProgramResponse{Process: m}, nil
}

// startedText names the program and its targets: later only this shows
// whose a target is.
func startedText(program string, at site, p nfcomms.Process) string {
	first := at.first + p.First
	if p.Targets == 1 {
		return fmt.Sprintf("started: %s at target %v", program, first)
	}
	return fmt.Sprintf("started: %s at targets %v to %v", program, first, first+nfcomms.Target(p.Targets-1))
}

// StopProgram stops a device process.
func (v deviceService) StopProgram(ctx context.Context, req *nfcommsv1.StopProgramRequest) (*nfcommsv1.StopProgramResponse, error) {
	id, node, process, err := parseProcess("name", req.GetName())
	if err != nil {
		return nil, err
	}
	d, err := v.s.device(id)
	if err != nil {
		return nil, err
	}
	dev, err := d.use()
	if err != nil {
		return nil, err
	}
	at, err := siteOf(ctx, dev, "name", node)
	if err != nil {
		return nil, err
	}
	if err := d.stopProcess(ctx, at, process); err != nil {
		return nil, err
	}
	d.eventBy(v.s.callerOf(ctx), nfcommsv1.Event_TYPE_PROCESS_STOPPED, req.GetName(), "stopped", nil)
	return &nfcommsv1.StopProgramResponse{}, nil
}
