package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control"
)

// channelsRecord is the output of nfctl channels.
type channelsRecord struct {
	Channels []channelRecord `json:"channels" doc:"the channels, in the order of devices and targets"`
}

func newChannels(a *app) *cobra.Command {
	var waiting bool
	cmd := &cobra.Command{
		Use: "channels [DEVICE]", GroupID: groupLook,
		Short: "List the open channels of a device, or of all, and the calls that wait",
		Long: `List the open channels of a device, or of all. With --waiting only those on which
somebody waits, and of each direction what it waits for: where its transaction
stands, how long the call in front has slept, and who queues behind it.`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.bounded(func(ctx context.Context, c *control.Client, args []string) error {
			channels, err := collect(c.ListChannels(ctx, parentOf(args)))
			if err != nil {
				return err
			}
			r := channelsRecord{Channels: []channelRecord{}}
			for _, ch := range channels {
				r.Channels = append(r.Channels, channelOf(ch))
			}
			if waiting {
				return a.print(waitingOf(r))
			}
			return a.print(r)
		}),
	}
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only those on which somebody waits, and for what")
	return cmd
}

func (r channelsRecord) table(p *printer) {
	type row = channelRecord
	writeTable(p, []column[row]{
		{title: "DEVICE", cell: func(c row) string { return c.Device }},
		{title: "TARGET", right: true, cell: func(c row) string { return c.farEnd.text() }},
		{title: "NAME", cell: func(c row) string { return orDash(c.Listener) }},
		{title: "STATE", cell: func(c row) string { return c.State }},
		{title: "OWNER", cell: func(c row) string { return c.Owner }},
		{title: "H2D", right: true, cell: func(c row) string { return number(c.Stats.h2d().Messages) }},
		{title: "H2D BYTES", right: true, cell: func(c row) string { return units.Bytes(float64(c.Stats.h2d().Bytes)) }},
		{title: "D2H", right: true, cell: func(c row) string { return number(c.Stats.d2h().Messages) }},
		{title: "D2H BYTES", right: true, cell: func(c row) string { return units.Bytes(float64(c.Stats.d2h().Bytes)) }},
		{title: "WAITING", right: true, cell: func(c row) string { return number(c.Stats.waiting()) }},
		{title: "TRANSFERS", right: true, cell: func(c row) string { return number(c.Stats.transfers()) }},
		{title: "ERRORS", right: true, cell: func(c row) string { return number(c.Stats.h2d().plus(c.Stats.d2h()).Errors) }},
		{title: "REPEATED", right: true, wide: true, cell: func(c row) string { return number(c.Stats.Repeated) }},
		{title: "SINCE", wide: true, cell: func(c row) string { return c.CreateTime }},
		{title: "OPENED BY", wide: true, cell: func(c row) string { return orDash(c.Caller) }},
	}, r.Channels)
}

// waitingRecord is the output of nfctl channels --waiting: the same keys, another table.
type waitingRecord struct{ channelsRecord }

// waitingOf keeps the channels on which somebody waits.
func waitingOf(r channelsRecord) waitingRecord {
	r.Channels = slices.DeleteFunc(r.Channels, func(c channelRecord) bool { return !c.H2D.busy() && !c.D2H.busy() })
	return waitingRecord{r}
}

// busy reports whether somebody waits on the half.
func (h *halfRecord) busy() bool { return h != nil && (h.Waiting > 0 || h.Armed > 0) }

func (r waitingRecord) table(p *printer) {
	type row struct {
		channelRecord
		direction string
		half      *halfRecord
	}
	var rows []row
	for _, c := range r.Channels {
		for _, one := range []row{{c, "h2d", c.H2D}, {c, "d2h", c.D2H}} {
			if one.half.busy() {
				rows = append(rows, one)
			}
		}
	}
	writeTable(p, []column[row]{
		{title: "DEVICE", cell: func(r row) string { return r.Device }},
		{title: "TARGET", right: true, cell: func(r row) string { return r.farEnd.text() }},
		{title: "KIND", cell: func(r row) string { return kindText(r.Kind) }},
		{title: "DIRECTION", cell: func(r row) string { return r.direction }},
		{title: "STATE", cell: func(r row) string { return r.half.State }},
		{title: "TRANSACTION", right: true, cell: func(r row) string { return number(r.half.Transaction) }},
		{title: "SLEPT", right: true, cell: func(r row) string { return secondsText(r.half.Slept) }},
		{title: "WAITING", right: true, cell: func(r row) string { return number(r.half.Waiting) }},
		{title: "QUEUED", right: true, cell: func(r row) string { return number(r.half.Queued) }},
		{title: "ARMED", right: true, cell: func(r row) string { return number(r.half.Armed) }},
		{title: "HELD BY", cell: func(r row) string { return r.Owner }},
		{title: "OPENED BY", wide: true, cell: func(r row) string { return orDash(r.Caller) }},
	}, rows)
}
