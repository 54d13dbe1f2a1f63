package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// listRecord is the output of nfctl list.
type listRecord struct {
	Devices []listedRecord `json:"devices" doc:"the devices, in the order of their names"`
	Servers []serverRecord `json:"servers" doc:"with --all what each server answered, in the order of the contexts; else empty"`
}

// listedRecord is a device of a server.
type listedRecord struct {
	deviceRecord
	Context string `json:"context" doc:"with --all the context of its server; else empty"`
}

func newList(a *app) *cobra.Command {
	var watch, all bool
	cmd := &cobra.Command{
		Use: "list [DEVICE...]", Aliases: []string{"devices"}, GroupID: groupLook,
		Short: "List the devices",
		Long: `List the devices, or those that are named. With --watch each is shown as it is, then
again whenever its state changes, until interrupted, also after the connection was lost
and is back: as JSON and YAML one device a document. With --all the servers of all
contexts are asked at once, and each that is not ok stands below the devices: exit code 8,
unless all of them end with the same one.`,
		ValidArgsFunction: a.completeDevices,
		RunE: a.either(&all, a.listAll, a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			devices, err := a.namedDevices(ctx, c, args)
			if watch && err == nil {
				w := deviceWatch{app: a, client: c, names: args, out: a.series(), shown: make(map[string]*nfcommsv1.Device)}
				return w.run(ctx)
			}
			if err != nil {
				return err
			}
			r := listRecord{Devices: []listedRecord{}, Servers: []serverRecord{}}
			for _, d := range devices {
				r.Devices = append(r.Devices, listedRecord{deviceRecord: deviceOf(d)})
			}
			return a.print(r)
		})),
	}
	allFlag(cmd, &all)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "continue with changes until interrupted; --timeout does not count")
	cmd.MarkFlagsMutuallyExclusive("all", "watch")
	return cmd
}

// namedDevices returns the devices of these names, or all if there is no name.
func (a *app) namedDevices(ctx context.Context, c *control.Client, names []string) (devices []*nfcommsv1.Device, err error) {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	if len(names) == 0 {
		return collect(c.ListDevices(ctx))
	}
	for _, name := range names {
		d, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: deviceName(name)})
		if err != nil {
			return nil, err
		}
		devices = append(devices, d.GetDevice())
	}
	return devices, nil
}

func (r listRecord) table(p *printer) {
	var columns []column[listedRecord]
	if len(r.Servers) > 0 {
		columns = append(columns, column[listedRecord]{title: "CONTEXT", cell: func(d listedRecord) string { return d.Context }})
	}
	writeTable(p, append(columns, []column[listedRecord]{
		{title: "DEVICE", cell: func(d listedRecord) string { return d.Device }},
		{title: "STATE", cell: func(d listedRecord) string { return d.State }, tint: func(d listedRecord) tint { return tintOf(d.State) }},
		{title: "ADDRESS", cell: func(d listedRecord) string { return d.Address }},
		{title: "DRIVER", cell: func(d listedRecord) string { return orDash(d.Driver) }},
		{title: "KIND", wide: true, cell: func(d listedRecord) string { return orDash(d.Kind) }},
		{title: "ABI", cell: func(d listedRecord) string { return abiText(d.Driver, d.ABIMajor, d.ABIMinor) }},
		{title: "EPOCH", right: true, cell: func(d listedRecord) string { return number(d.Epoch) }},
		{title: "OWNER", wide: true, cell: func(d listedRecord) string { return ownerText(d.Owned) }},
		{title: "SINCE", wide: true, cell: func(d listedRecord) string { return d.StateTime }},
		{title: "CHANNELS", right: true, cell: func(d listedRecord) string { return number(statsOrZero(d.Stats).OpenChannels) }},
		{title: "MESSAGES", right: true, wide: true, cell: func(d listedRecord) string { return number(messagesOf(d.Stats)) }},
		{title: "FAILURE", cell: func(d listedRecord) string { return failureText(d.Failure) }, tint: func(listedRecord) tint { return bad }},
	}...), r.Devices)
	writeServers(p, r.Servers)
}

// statsOrZero returns counters also of a device that has none.
func statsOrZero(s *statsRecord) statsRecord {
	if s == nil {
		return statsRecord{}
	}
	return *s
}

// messagesOf is the number of messages and transfers in both directions.
func messagesOf(s *statsRecord) uint64 {
	t := statsOrZero(s).trafficRecord
	return t.h2d().plus(t.d2h()).Messages
}

func ownerText(owned bool) string {
	if owned {
		return "server"
	}
	return "application"
}

// abiText writes a version of the ABI that only a known device has.
func abiText(driver string, major, minor int32) string {
	if driver == "" {
		return "-"
	}
	return fmt.Sprintf("%d.%d", major, minor)
}

func failureText(f *failureRecord) string {
	if f == nil {
		return ""
	}
	return f.Message
}

// infoRecord is the output of nfctl info.
type infoRecord struct {
	deviceRecord
	HeartbeatAge *float64          `json:"heartbeat_age_seconds" doc:"time since the last heartbeat, also if it is overdue; null if the device is not open"`
	Heartbeat    *heartbeatRecord  `json:"heartbeat" doc:"the last heartbeat; null if it is overdue"`
	Diagnostic   *diagnosticRecord `json:"diagnostic" doc:"the diagnostic word; null as the heartbeat"`
	Memories     []memoryRecord    `json:"memories" doc:"the memories; empty if the device does not answer"`
	Programs     []string          `json:"programs" doc:"what nfctl start accepts; empty if the device does not answer"`
}

func newInfo(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "info [DEVICE]", GroupID: groupLook,
		Short: "Describe a device: its state, shape, card, health, memories and counters",
		Long:  "Describe a device: its state, shape, card, health, memories and counters. DEVICE may be\nleft out if there is only one.",
		Args:  cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			r, err := getInfo(ctx, c, args)
			if err != nil {
				return err
			}
			return a.print(r)
		}),
	}
}

func getInfo(ctx context.Context, c *control.Client, args []string) (infoRecord, error) {
	name, err := onlyDevice(ctx, c, args)
	if err != nil {
		return infoRecord{}, err
	}
	d, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: name})
	if err != nil {
		return infoRecord{}, err
	}
	g, err := c.Diagnostics.GetDiagnostics(ctx, &nfcommsv1.GetDiagnosticsRequest{Name: name})
	if err != nil {
		return infoRecord{}, err
	}
	r := infoRecord{
		deviceRecord: deviceOf(d.GetDevice()),
		HeartbeatAge: secondsOrNil(g.GetHeartbeatAge()),
		Heartbeat:    heartbeatOf(g.GetHeartbeat()), Diagnostic: diagnosticOf(g.GetDiagnostic()),
		Memories: memoriesOf(g.GetMemories()), Programs: []string{},
	}
	if g.GetFailure() != nil { // it would not answer
		return r, nil
	}
	r.Programs, err = listPrograms(ctx, c, name, "")
	return r, err
}

func (r infoRecord) table(p *printer) {
	fields := []field{
		{"device", r.Device, plainTint}, {"address", r.Address, plainTint}, {"driver", orDash(r.Driver), plainTint},
		{"kind", kindText(r.Kind), plainTint},
		{"state", r.State + " since " + r.StateTime, tintOf(r.State)}, {"owner", ownerText(r.Owned), plainTint},
		{"abi", abiText(r.Driver, r.ABIMajor, r.ABIMinor), plainTint}, {"epoch", number(r.Epoch), plainTint},
	}
	if r.Failure != nil {
		fields = append(fields, field{"failure", strings.TrimPrefix(r.Failure.Reason+": "+r.Failure.Message, ": "), bad})
	}
	fields = append(fields, r.Shape.fields()...)
	fields = append(fields, r.Board.fields(r.Driver)...)
	fields = append(fields, healthFields(r.HeartbeatAge, r.Heartbeat, r.Diagnostic)...)
	if len(r.Programs) > 0 {
		fields = append(fields, field{"programs", strings.Join(r.Programs, ", "), plainTint})
	}
	fields = append(fields, r.Stats.fields()...)
	writeFields(p, fields)
	if r.Board != nil && len(r.Board.Bars) > 0 {
		p.printf("\n")
		writeBars(p, r.Board.Bars)
	}
	if len(r.Memories) > 0 {
		p.printf("\n")
		writeMemories(p, r.Memories)
	}
	if r.Stats != nil {
		p.printf("\n")
		writePaths(p, r.Stats.trafficRecord)
	}
}

func (s *shapeRecord) fields() []field {
	if s == nil {
		return nil
	}
	return []field{
		{"shape", fmt.Sprintf("%d channels, %d mailboxes of %d slots, %d islands, %d contexts",
			s.Channels, s.Mailboxes, s.Slots, s.Islands, s.Contexts), plainTint},
		{"managers", fmt.Sprintf("%d read, %d write", s.ReadManagers, s.WriteManagers), plainTint},
		{"transfers", fmt.Sprintf("up to %s, %d gather lists in flight", units.Bytes(float64(s.MaxTransferBytes)), s.Window), plainTint},
		{"loads programs", yesNo(s.CanLoad), plainTint},
	}
}

func (s *statsRecord) fields() []field {
	if s == nil {
		return nil
	}
	return []field{
		{"channels", fmt.Sprintf("%d open, %d calls wait, %d transfers under way", s.OpenChannels, s.BlockedCalls, s.transfers()), plainTint},
		{"doorbells", fmt.Sprintf("%d to the device, %d from it, %d of them in vain", s.Doorbells, s.Wakeups, s.Spurious), plainTint},
		{"rings", s.rings(), plainTint},
		{"rounds", fmt.Sprintf("%d gather lists sent, %d repeated", s.Lists, s.Repeated), plainTint},
		{"trouble", fmt.Sprintf("%d stale messages dropped, %d times a ring was full, %d faults, %d resets", s.Dropped, s.Full, s.Faults, s.Resets), plainTint},
	}
}

// rings reports how full the fullest rings are.
func (s *statsRecord) rings() string {
	if len(s.Mailboxes) == 0 {
		return "-"
	}
	h2d, d2h, slots := int32(0), int32(0), int32(0)
	for _, b := range s.Mailboxes {
		h2d, d2h, slots = max(h2d, b.UsedH2D), max(d2h, b.UsedD2H), max(slots, b.Slots)
	}
	return fmt.Sprintf("the fullest to the device %d, from it %d of %d slots", h2d, d2h, slots)
}

// healthFields describes heartbeat and diagnostic word.
func healthFields(age *float64, h *heartbeatRecord, d *diagnosticRecord) []field {
	switch {
	case h == nil && age == nil:
		return []field{{"heartbeat", "none", bad}}
	case h == nil:
		return []field{{"heartbeat", "overdue, the last one " + secondsText(age) + " ago", bad}}
	}
	fields := []field{
		{"heartbeat", fmt.Sprintf("%d, %s ago", h.Beat, secondsText(&h.Age)), plainTint},
		{"device side", fmt.Sprintf("%d processes, %d messages taken, %s moved, %d refused, %d queued",
			h.Processes, h.Messages, units.Bytes(float64(h.Bytes)), h.Dropped, h.Queued), plainTint},
	}
	return append(fields, field{"diagnostic", d.text(), tintOf(d.worst())})
}

// worst is the worst reading; empty without readings.
func (d *diagnosticRecord) worst() string {
	if d == nil {
		return ""
	}
	return d.Worst
}

// text names the parts that are not normal.
func (d *diagnosticRecord) text() string {
	switch {
	case d == nil:
		return "-"
	case !d.Valid:
		return "not filled in"
	}
	var parts []string
	for _, r := range d.Readings {
		if r.Level != "normal" {
			parts = append(parts, r.Part+" "+r.Level)
		}
	}
	if len(parts) == 0 {
		return fmt.Sprintf("all %d parts normal", len(d.Readings))
	}
	return strings.Join(parts, ", ")
}

func writeMemories(p *printer, memories []memoryRecord) {
	writeTable(p, []column[memoryRecord]{
		{title: "MEMORY", cell: func(m memoryRecord) string { return m.Type }},
		{title: "BASE", right: true, cell: func(m memoryRecord) string { return fmt.Sprintf("%#010x", m.Base) }},
		{title: "SIZE", right: true, cell: func(m memoryRecord) string { return units.Bytes(float64(m.SizeBytes)) }},
		{title: "FREE", right: true, cell: func(m memoryRecord) string { return units.Bytes(float64(m.FreeBytes)) }},
	}, memories)
}

// namedPath is a row of the table of paths.
type namedPath struct {
	path, direction string
	pathRecord
}

func writePaths(p *printer, t trafficRecord) {
	writeTable(p, []column[namedPath]{
		{title: "PATH", cell: func(r namedPath) string { return r.path }},
		{title: "DIRECTION", cell: func(r namedPath) string { return r.direction }},
		{title: "DELIVERED", right: true, cell: func(r namedPath) string { return number(r.Messages) }},
		{title: "BYTES", right: true, cell: func(r namedPath) string { return number(r.Bytes) }},
		{title: "ERRORS", right: true, cell: func(r namedPath) string { return number(r.Errors) }},
	}, []namedPath{
		{"direct", "h2d", t.DirectH2D}, {"direct", "d2h", t.DirectD2H},
		{"indirect", "h2d", t.IndirectH2D}, {"indirect", "d2h", t.IndirectD2H},
	})
}

// programsRecord is the output of nfctl programs.
type programsRecord struct {
	Device   string   `json:"device" doc:"name of the device"`
	Node     string   `json:"node" doc:"x.y.z of the fabric's node that has them; empty: the device's own"`
	Programs []string `json:"programs" doc:"the names that nfctl start accepts, in order"`
}

func newPrograms(a *app) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use: "programs [DEVICE]", GroupID: groupLook,
		Short: "List the programs that a device can start",
		Long:  "List the programs that a device can start. DEVICE may be left out if there is only\none.",
		Args:  cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			name, err := onlyDevice(ctx, c, args)
			if err != nil {
				return err
			}
			r := programsRecord{Device: deviceID(name), Node: node}
			if r.Programs, err = listPrograms(ctx, c, name, node); err != nil {
				return err
			}
			return a.print(r)
		}),
	}
	nodeFlag(cmd, &node)
	return cmd
}

// listPrograms returns the names of the programs of a device, or of a node of its fabric, never nil.
func listPrograms(ctx context.Context, c *control.Client, device, node string) ([]string, error) {
	programs, err := collect(c.ListPrograms(ctx, device, node))
	names := make([]string, 0, len(programs))
	for _, p := range programs {
		names = append(names, programID(p.GetName()))
	}
	return names, err
}

// programID returns the device's own name of a program, which its resource name
// holds escaped.
func programID(name string) string {
	id := lastID(name)
	if plain, err := url.PathUnescape(id); err == nil {
		return plain
	}
	return id
}

func (r programsRecord) table(p *printer) {
	writeTable(p, []column[string]{{title: "PROGRAM", cell: func(s string) string { return s }}}, r.Programs)
}
