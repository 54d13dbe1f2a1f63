package main

import (
	"context"

	"github.com/spf13/cobra"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// healthRecord is the output of nfctl health.
type healthRecord struct {
	Healthy bool                 `json:"healthy" doc:"true if the server serves and every device shown answers and is well; the exit code says the same"`
	Server  string               `json:"server" doc:"the server's answer for itself: serving, not_serving"`
	Devices []deviceHealthRecord `json:"devices" doc:"the devices, in the order of their names"`
}

// deviceHealthRecord is the health of a device.
type deviceHealthRecord struct {
	Device string `json:"device" doc:"name of the device"`
	kindRecord
	Health       string            `json:"health" doc:"the server's answer after a round trip to the firmware: serving, not_serving"`
	State        string            `json:"state" doc:"state of the device, as in nfctl list"`
	Failure      *failureRecord    `json:"failure" doc:"why it does not answer; null if it does"`
	HeartbeatAge *float64          `json:"heartbeat_age_seconds" doc:"time since the last heartbeat, also if it is overdue; null if the device is not open"`
	Heartbeat    *heartbeatRecord  `json:"heartbeat" doc:"the last heartbeat; null if it is overdue"`
	Diagnostic   *diagnosticRecord `json:"diagnostic" doc:"the diagnostic word; null as the heartbeat"`
}

func newHealth(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "health [DEVICE]", GroupID: groupLook,
		Short: "Say whether the server and its devices are well",
		Long: `Say whether the server and its devices are well. The server answers for a device
after a round trip to its firmware. Exit code 8 says that something is not well.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			r, err := getHealth(ctx, c, args)
			if err != nil {
				return err
			}
			if err := a.print(r); err != nil || r.Healthy {
				return err
			}
			return errUnhealthy
		}),
	}
}

func getHealth(ctx context.Context, c *control.Client, args []string) (healthRecord, error) {
	var names []string
	if len(args) > 0 {
		names = []string{deviceName(args[0])}
	} else {
		devices, err := collect(c.ListDevices(ctx))
		if err != nil {
			return healthRecord{}, err
		}
		for _, d := range devices {
			names = append(names, d.GetName())
		}
	}
	server, err := checkHealth(ctx, c, "")
	if err != nil {
		return healthRecord{}, err
	}
	r := healthRecord{Server: server, Devices: []deviceHealthRecord{}}
	// A server that is asked about one device may be unwell for another.
	r.Healthy = len(args) > 0 || server == serving
	for _, name := range names {
		d, err := getDeviceHealth(ctx, c, name)
		if err != nil {
			return healthRecord{}, err
		}
		r.Devices = append(r.Devices, d)
		r.Healthy = r.Healthy && d.well()
	}
	return r, nil
}

// serving is the answer of what is well.
const serving = "serving"

func checkHealth(ctx context.Context, c *control.Client, service string) (string, error) {
	r, err := c.Health.Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	return word(r.GetStatus()), err
}

func getDeviceHealth(ctx context.Context, c *control.Client, name string) (deviceHealthRecord, error) {
	g, err := c.Diagnostics.GetDiagnostics(ctx, &nfcommsv1.GetDiagnosticsRequest{Name: name})
	if err != nil {
		return deviceHealthRecord{}, err
	}
	health, err := checkHealth(ctx, c, control.HealthService(deviceID(name)))
	return deviceHealthRecord{
		Device: deviceID(name), kindRecord: kindRecord{deviceKind(g.GetDeviceKind())}, Health: health, State: word(g.GetState()), Failure: failureOf(g.GetFailure()),
		HeartbeatAge: secondsOrNil(g.GetHeartbeatAge()), Heartbeat: heartbeatOf(g.GetHeartbeat()), Diagnostic: diagnosticOf(g.GetDiagnostic()),
	}, err
}

// well reports whether nobody needs to look after the device.
func (d deviceHealthRecord) well() bool {
	return d.Health == serving && d.Failure == nil && (d.Diagnostic.worst() == "" || d.Diagnostic.worst() == "normal")
}

func (r healthRecord) table(p *printer) {
	p.printf("server %s\n", p.paint(r.Server, tintOf(r.Server)))
	if len(r.Devices) == 0 {
		return
	}
	type row = deviceHealthRecord
	writeTable(p, []column[row]{
		{title: "DEVICE", cell: func(d row) string { return d.Device }},
		{title: "KIND", cell: func(d row) string { return kindText(d.Kind) }},
		{title: "HEALTH", cell: func(d row) string { return d.Health }, tint: func(d row) tint { return tintOf(d.Health) }},
		{title: "STATE", cell: func(d row) string { return d.State }, tint: func(d row) tint { return tintOf(d.State) }},
		{title: "HEARTBEAT", right: true, cell: func(d row) string { return ageText(d.HeartbeatAge) }},
		{title: "PARTS", cell: func(d row) string { return d.parts() }, tint: func(d row) tint { return tintOf(d.Diagnostic.worst()) }},
	}, r.Devices)
}

// ageText reports how old a heartbeat is.
func ageText(age *float64) string {
	if age == nil {
		return "none"
	}
	return secondsText(age) + " ago"
}

// parts lists what is not well.
func (d deviceHealthRecord) parts() string {
	if d.Failure != nil {
		return d.Failure.Message
	}
	return d.Diagnostic.text()
}
