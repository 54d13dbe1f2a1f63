package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// topRecord is one sample of nfctl top.
type topRecord struct {
	Time     string             `json:"time" doc:"when the sample was taken, RFC 3339 in UTC"`
	Interval float64            `json:"interval_seconds" doc:"time that the rates are about; 0 if there are none yet; with --all the longest of servers[]"`
	Devices  []topDeviceRecord  `json:"devices" doc:"the devices, in the order of their names"`
	Channels []topChannelRecord `json:"channels" doc:"the busiest channels, most bytes first; --channels bounds them"`
	Total    int                `json:"channels_total" doc:"number of open channels, shown or not"`
	Servers  []topServerRecord  `json:"servers" doc:"with --all what each server answered, in the order of the contexts; else empty"`
}

// topDeviceRecord is what a device does.
type topDeviceRecord struct {
	Context string `json:"context" doc:"with --all the context of its server; else empty"`
	Device  string `json:"device" doc:"name of the device"`
	kindRecord
	State        string            `json:"state" doc:"state of the device, as in nfctl list"`
	Epoch        uint32            `json:"epoch" doc:"counts resets"`
	Failure      *failureRecord    `json:"failure" doc:"why it does not answer; null if it does"`
	OpenChannels int32             `json:"open_channels" doc:"channels open now"`
	BlockedCalls int32             `json:"blocked_calls" doc:"calls that wait now, those of the control channel too"`
	HeartbeatAge *float64          `json:"heartbeat_age_seconds" doc:"time since the last heartbeat, also if it is overdue; null if the device is not open"`
	Heartbeat    *heartbeatRecord  `json:"heartbeat" doc:"the last heartbeat; null if it is overdue"`
	Diagnostic   *diagnosticRecord `json:"diagnostic" doc:"the diagnostic word; null as the heartbeat"`
	Memories     []memoryRecord    `json:"memories" doc:"the memories; empty if the device does not answer"`
	nowRecord
	ratesRecord
	// stale: the server did not answer since.
	stale bool
}

// stateText is the state, with a mark if it is an old one.
func (d topDeviceRecord) stateText() string {
	if d.stale {
		return d.State + " (stale)"
	}
	return d.State
}

// stateTint is the colour of the state.
func (d topDeviceRecord) stateTint() tint {
	if d.stale {
		return warn
	}
	return tintOf(d.State)
}

// topChannelRecord is what a channel does.
type topChannelRecord struct {
	Context string `json:"context" doc:"with --all the context of its server; else empty"`
	Device  string `json:"device" doc:"name of the device"`
	farEnd
	kindRecord
	Owner string `json:"owner" doc:"server or application"`
	nowRecord
	ratesRecord
}

// ratesRecord is how fast something is.
type ratesRecord struct {
	DirectH2D   rateRecord `json:"direct_h2d" doc:"messages from host to device"`
	DirectD2H   rateRecord `json:"direct_d2h" doc:"messages from device to host"`
	IndirectH2D rateRecord `json:"indirect_h2d" doc:"transfers from host to device"`
	IndirectD2H rateRecord `json:"indirect_d2h" doc:"transfers from device to host"`
}

// rateRecord is how fast one direction of one path is.
type rateRecord struct {
	Messages float64 `json:"messages_per_second" doc:"messages or transfers delivered"`
	Bytes    float64 `json:"bytes_per_second" doc:"bytes delivered"`
	Errors   float64 `json:"errors_per_second" doc:"calls that ended with an error"`
}

func (r rateRecord) plus(q rateRecord) rateRecord {
	return rateRecord{r.Messages + q.Messages, r.Bytes + q.Bytes, r.Errors + q.Errors}
}

func (r ratesRecord) h2d() rateRecord { return r.DirectH2D.plus(r.IndirectH2D) }
func (r ratesRecord) d2h() rateRecord { return r.DirectD2H.plus(r.IndirectD2H) }
func (r ratesRecord) all() rateRecord { return r.h2d().plus(r.d2h()) }

// sample is what the server reports at one moment.
type sample struct {
	at       time.Time
	devices  []*nfcommsv1.Device
	health   map[string]*nfcommsv1.GetDiagnosticsResponse // by resource name
	channels []*nfcommsv1.Channel
	// parts are the servers of --all, with which there is nothing in the other fields; else nil.
	parts []part
}

// takeSample asks for all that top shows.
func takeSample(ctx context.Context, c *control.Client, parent string) (s sample, err error) {
	s = sample{health: make(map[string]*nfcommsv1.GetDiagnosticsResponse)}
	if parent == control.AllDevices {
		s.devices, err = collect(c.ListDevices(ctx))
	} else {
		var r *nfcommsv1.GetDeviceResponse
		r, err = c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: parent})
		s.devices = []*nfcommsv1.Device{r.GetDevice()}
	}
	s.at = time.Now()
	if err != nil {
		return s, err
	}
	for _, d := range s.devices {
		s.health[d.GetName()], err = c.Diagnostics.GetDiagnostics(ctx, &nfcommsv1.GetDiagnosticsRequest{Name: d.GetName()})
		if err != nil {
			return s, err
		}
	}
	s.channels, err = collect(c.ListChannels(ctx, parent))
	return s, err
}

// compare makes a record of two samples; without an earlier one its rates are 0.
func compare(before, now sample, channels int) topRecord {
	if now.parts != nil {
		return compareParts(now, channels)
	}
	r := topRecord{
		Time:    now.at.UTC().Format(timeLayout),
		Devices: []topDeviceRecord{}, Channels: []topChannelRecord{}, Servers: []topServerRecord{}, Total: len(now.channels),
	}
	if !before.at.IsZero() {
		r.Interval = now.at.Sub(before.at).Seconds()
	}
	old := make(map[string]*nfcommsv1.ChannelStats)
	for _, d := range before.devices {
		old[d.GetName()] = d.GetStats().GetChannels()
	}
	for _, c := range before.channels {
		old[c.GetName()] = c.GetStats()
	}
	for _, d := range now.devices {
		r.Devices = append(r.Devices, topDevice(d, now.health[d.GetName()], ratesOf(old[d.GetName()], d.GetStats().GetChannels(), r.Interval)))
	}
	for _, c := range now.channels {
		x := channelOf(c)
		r.Channels = append(r.Channels, topChannelRecord{"", x.Device, x.farEnd, x.kindRecord, x.Owner, x.Stats.nowRecord, ratesOf(old[c.GetName()], c.GetStats(), r.Interval)})
	}
	slices.SortStableFunc(r.Channels, busiest)
	r.Channels = r.Channels[:min(channels, len(r.Channels))]
	return r
}

// busiest orders channels by bytes, most first.
func busiest(a, b topChannelRecord) int { return cmp.Compare(b.all().Bytes, a.all().Bytes) }

func topDevice(d *nfcommsv1.Device, g *nfcommsv1.GetDiagnosticsResponse, rates ratesRecord) topDeviceRecord {
	return topDeviceRecord{
		Device: deviceID(d.GetName()), kindRecord: kindRecord{deviceKind(d.GetKind())}, State: word(d.GetState()), Epoch: d.GetEpoch(), Failure: failureOf(g.GetFailure()),
		OpenChannels: d.GetStats().GetOpenChannels(), BlockedCalls: d.GetStats().GetBlockedCalls(),
		HeartbeatAge: secondsOrNil(g.GetHeartbeatAge()), Heartbeat: heartbeatOf(g.GetHeartbeat()),
		Diagnostic: diagnosticOf(g.GetDiagnostic()), Memories: memoriesOf(g.GetMemories()),
		nowRecord: nowOf(d.GetStats().GetChannels()), ratesRecord: rates,
	}
}

// ratesOf compares counters. A channel that was not there before has no rate yet.
func ratesOf(before, now *nfcommsv1.ChannelStats, interval float64) ratesRecord {
	if before == nil || now == nil || interval <= 0 {
		return ratesRecord{}
	}
	rate := func(old, new *nfcommsv1.PathStats) rateRecord {
		return rateRecord{
			Messages: perSecond(old.GetMessages(), new.GetMessages(), interval),
			Bytes:    perSecond(old.GetBytes(), new.GetBytes(), interval),
			Errors:   perSecond(old.GetErrors(), new.GetErrors(), interval),
		}
	}
	return ratesRecord{
		DirectH2D: rate(before.GetDirectH2D(), now.GetDirectH2D()), DirectD2H: rate(before.GetDirectD2H(), now.GetDirectD2H()),
		IndirectH2D: rate(before.GetIndirectH2D(), now.GetIndirectH2D()), IndirectD2H: rate(before.GetIndirectD2H(), now.GetIndirectD2H()),
	}
}

// perSecond is the rate of a counter. One that decreased began anew at zero.
func perSecond(before, now uint64, interval float64) float64 {
	if now < before {
		before = 0
	}
	return float64(now-before) / interval
}

// topOptions are the flags of nfctl top.
type topOptions struct {
	once, loop bool
	count      int
	interval   time.Duration
	channels   int
}

func (o topOptions) check() error {
	switch {
	case o.interval < 10*time.Millisecond:
		return usagef("--interval %v is below 10ms", o.interval)
	case o.channels < 0 || o.count < 0:
		return usagef("--channels and --count must not be negative")
	case o.count > 0 && !o.loop:
		return usagef("--count goes with --loop")
	}
	return nil
}

func newTop(a *app) *cobra.Command {
	var o topOptions
	var all bool
	cmd := &cobra.Command{
		Use: "top [DEVICE]", GroupID: groupLook,
		Short: "Show what devices and channels do now",
		Long: `Show what devices and channels do now: on a terminal until q, with --once the
rates of one interval, with --loop the rates of each interval until interrupted,
also after the server was away. As JSON --loop writes a line for each. --timeout bounds each sample.
With --all the servers of all contexts are asked, each at its own pace; those that are
not ok stand below, and the exit code of --once is that of list --all.`,
		Example: `  nfctl top
  nfctl top --once -o json | jq '.devices[].direct_h2d.bytes_per_second'
  nfctl top --loop --interval 5s sim0`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		PreRunE: func(*cobra.Command, []string) error { return a.checkTop(o) },
		RunE: a.either(&all, func(ctx context.Context) error { return a.topAll(ctx, o) }, a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			return a.topShow(ctx, func(ctx context.Context) (sample, error) {
				ctx, cancel := a.limited(ctx)
				defer cancel()
				return takeSample(ctx, c, parentOf(args))
			}, o)
		})),
	}
	allFlag(cmd, &all)
	f := cmd.Flags()
	f.BoolVar(&o.once, "once", false, "show the rates of one interval and end")
	f.BoolVar(&o.loop, "loop", false, "show the rates of each interval one after the other")
	cmd.MarkFlagsMutuallyExclusive("once", "loop")
	f.IntVarP(&o.count, "count", "n", 0, "with --loop: number of intervals; 0 means until interrupted")
	f.DurationVarP(&o.interval, "interval", "i", time.Second, "time between two samples")
	f.IntVar(&o.channels, "channels", 20, "most channels to show")
	return cmd
}

// checkTop refuses flags that exclude each other, or the output.
func (a *app) checkTop(o topOptions) error {
	if !o.once && !o.loop && (!isTerminal(a.out) || a.output == "json" || a.output == "yaml") {
		return cmp.Or(o.check(), usagef("top shows its tables on a terminal; use --once or --loop"))
	}
	return o.check()
}

// topShow shows samples as the flags say.
func (a *app) topShow(ctx context.Context, fetch func(context.Context) (sample, error), o topOptions) error {
	switch {
	case o.once:
		o.count = 1
		return a.topLoop(ctx, fetch, o, a.print)
	case o.loop:
		return a.topLoop(ctx, fetch, o, a.series().print)
	}
	return a.topScreen(ctx, fetch, o)
}

// topLoop prints the rates of one interval after the other.
func (a *app) topLoop(ctx context.Context, fetch func(context.Context) (sample, error), o topOptions, show func(record) error) error {
	before, err := fetch(ctx)
	if err != nil {
		return err
	}
	for i := 0; o.count == 0 || i < o.count; i++ {
		if !pause(ctx, o.interval) {
			return ctx.Err()
		}
		now, err := fetch(ctx)
		err = a.explain(ctx, err)
		if code := exitCode(ctx, err); o.loop && (code == exitUnreachable || code == exitTimeout) {
			fmt.Fprintf(a.err, "nfctl: %s\n", message(err))
			before = sample{} // a restarted server has other counters
			continue
		}
		if err != nil {
			return err
		}
		if err := show(compare(before, now, o.channels)); err != nil {
			return err
		}
		before = now
	}
	return nil
}

func (r topRecord) table(p *printer) {
	loop := p.again
	p.again = false
	if loop {
		p.printf("\n")
	}
	p.printf("%s, rates over %s\n", r.Time, secondsText(&r.Interval))
	many := len(r.Servers) > 0
	writeTable(p, topDeviceColumns(many), r.Devices)
	if len(r.Channels) > 0 {
		p.printf("\n")
		writeTable(p, topChannelColumns(many), r.Channels)
	}
	writeServers(p, plainServers(r.Servers))
	if rest := r.Total - len(r.Channels); rest > 0 {
		p.printf("and %d more channels\n", rest)
	}
}

// contextColumn is the first column if there are servers of several contexts.
func contextColumn[T any](many bool, context func(T) string) []column[T] {
	if !many {
		return nil
	}
	return []column[T]{{title: "CONTEXT", cell: context}}
}

func topDeviceColumns(many bool) []column[topDeviceRecord] {
	type row = topDeviceRecord
	columns := append(contextColumn(many, func(d row) string { return d.Context }), []column[row]{
		{title: "DEVICE", cell: func(d row) string { return d.Device }},
		{title: "KIND", cell: func(d row) string { return kindText(d.Kind) }},
		{title: "STATE", cell: row.stateText, tint: row.stateTint},
		{title: "HEARTBEAT", right: true, spare: 4, cell: func(d row) string { return ageText(d.HeartbeatAge) }},
		{title: "PARTS", spare: 3, cell: func(d row) string { return orDash(d.Diagnostic.worst()) }, tint: func(d row) tint { return tintOf(d.Diagnostic.worst()) }},
		{title: "CHANNELS", right: true, spare: 5, cell: func(d row) string { return number(d.OpenChannels) }},
		{title: "WAITING", right: true, spare: 1, cell: func(d row) string { return number(d.BlockedCalls) }},
		{title: "TRANSFERS", right: true, spare: 6, cell: func(d row) string { return number(d.transfers()) }},
	}...)
	return append(columns, rateColumns(func(d row) ratesRecord { return d.ratesRecord })...)
}

func topChannelColumns(many bool) []column[topChannelRecord] {
	type row = topChannelRecord
	columns := append(contextColumn(many, func(c row) string { return c.Context }), []column[row]{
		{title: "DEVICE", cell: func(c row) string { return c.Device }},
		{title: "TARGET", right: true, cell: func(c row) string { return c.farEnd.text() }},
		{title: "KIND", cell: func(c row) string { return kindText(c.Kind) }},
		{title: "OWNER", spare: 7, cell: func(c row) string { return c.Owner }},
		{title: "WAITING", right: true, spare: 1, cell: func(c row) string { return number(c.waiting()) }},
		{title: "TRANSFERS", right: true, spare: 6, cell: func(c row) string { return number(c.transfers()) }},
	}...)
	return append(columns, rateColumns(func(c row) ratesRecord { return c.ratesRecord })...)
}

// rateColumns are the columns that devices and channels share.
func rateColumns[T any](rates func(T) ratesRecord) []column[T] {
	col := func(title string, spare int, cell func(ratesRecord) string) column[T] {
		return column[T]{title: title, right: true, spare: spare, cell: func(t T) string { return cell(rates(t)) }}
	}
	return []column[T]{
		col("H2D MSG/S", 0, func(r ratesRecord) string { return units.Count(r.DirectH2D.Messages) }),
		col("XFER/S", 2, func(r ratesRecord) string { return units.Count(r.IndirectH2D.Messages) }),
		col("H2D B/S", 0, func(r ratesRecord) string { return units.Bytes(r.h2d().Bytes) }),
		col("D2H MSG/S", 0, func(r ratesRecord) string { return units.Count(r.DirectD2H.Messages) }),
		col("XFER/S", 2, func(r ratesRecord) string { return units.Count(r.IndirectD2H.Messages) }),
		col("D2H B/S", 0, func(r ratesRecord) string { return units.Bytes(r.d2h().Bytes) }),
		col("ERR/S", 0, func(r ratesRecord) string { return units.Count(r.all().Errors) }),
	}
}
