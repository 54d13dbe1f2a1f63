package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// eventRecord is one line of nfctl events.
type eventRecord struct {
	Number   string         `json:"event" doc:"number of the event; it grows over all devices"`
	Device   string         `json:"device" doc:"name of the device"`
	Time     string         `json:"time" doc:"when it happened, RFC 3339 in UTC"`
	Type     string         `json:"type" doc:"what happened: state_changed, reset, channel_opened and so on"`
	Severity string         `json:"severity" doc:"info, warning or error"`
	Resource string         `json:"resource" doc:"what it happened to: a device, channel, program or process"`
	Message  string         `json:"message" doc:"one sentence"`
	Caller   string         `json:"caller" doc:"who asked for it, as the server's credentials name the caller; empty if nobody did"`
	Failure  *failureRecord `json:"failure" doc:"why, where something failed; else null"`
}

func eventOf(e *nfcommsv1.Event) eventRecord {
	return eventRecord{
		Number: lastID(e.GetName()), Device: resourceDevice(e.GetName()), Time: timeText(e.GetTime()),
		Type: word(e.GetType()), Severity: word(e.GetSeverity()), Resource: e.GetResource(),
		Message: e.GetMessage(), Caller: e.GetCaller(), Failure: failureOf(e.GetFailure()),
	}
}

func (r eventRecord) table(p *printer) {
	p.printf("%s  %s  %s  %s", r.Time, p.paint(fmt.Sprintf("%-7s", r.Severity), tintOf(r.Severity)), r.Resource, r.Message)
	if p.wide {
		p.printf("  (%s, event %s", r.Type, r.Number)
		if r.Caller != "" {
			p.printf(", %s", r.Caller)
		}
		p.printf(")")
	}
	p.printf("\n")
}

// eventsOptions are the flags of nfctl events.
type eventsOptions struct {
	follow bool
	last   int
	since  time.Duration
}

// choose drops the events that are too old, and all but the last of the rest.
func (o eventsOptions) choose(events []*nfcommsv1.Event, now time.Time) []*nfcommsv1.Event {
	if o.since > 0 {
		begin := now.Add(-o.since)
		events = slices.DeleteFunc(events, func(e *nfcommsv1.Event) bool { return e.GetTime().AsTime().Before(begin) })
	}
	if o.last > 0 {
		events = events[max(0, len(events)-o.last):]
	}
	return events
}

func newEvents(a *app) *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use: "events [DEVICE]", GroupID: groupLook,
		Short: "Show what happened to a device, or to all",
		Long: `Show what happened to a device, or to all, oldest first. The server keeps the
last events. With --follow new ones are shown as they come, until interrupted,
also after the connection was lost and came back.`,
		Example: `  nfctl events --since 10m
  nfctl events sim0 -n 5 -o wide`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: a.completeDevice,
		RunE: a.connected(func(ctx context.Context, c *control.Client, args []string) error {
			switch {
			case o.last < 0 || o.since < 0:
				return usagef("--last and --since must not be negative")
			case o.follow:
				f := follower{app: a, client: c, parent: parentOf(args), out: a.series()}
				return f.run(ctx)
			}
			return a.events(ctx, c, parentOf(args), o)
		}),
	}
	cmd.Flags().BoolVarP(&o.follow, "follow", "f", false, "go on with new events until interrupted; --timeout does not count")
	cmd.Flags().IntVarP(&o.last, "last", "n", 0, "only the last so many; 0 means all that are kept")
	cmd.Flags().DurationVar(&o.since, "since", 0, "only those of this time until now, as 10m; 0 means all that are kept")
	cmd.MarkFlagsMutuallyExclusive("follow", "last")
	cmd.MarkFlagsMutuallyExclusive("follow", "since")
	return cmd
}

// events prints the kept events that the options choose.
func (a *app) events(ctx context.Context, c *control.Client, parent string, o eventsOptions) error {
	ctx, cancel := a.limited(ctx)
	defer cancel()
	events, err := collect(c.ListEvents(ctx, parent))
	if err == nil && len(events) == 0 {
		err = mustExist(ctx, c, parent)
	}
	if err != nil {
		return err
	}
	out := a.series()
	for _, e := range o.choose(events, time.Now()) {
		if err := out.print(eventOf(e)); err != nil {
			return err
		}
	}
	return nil
}

// mustExist returns an error for a device that is not there. The events of
// removed devices are kept, so that a list does not show which are left.
func mustExist(ctx context.Context, c *control.Client, parent string) error {
	if parent == control.AllDevices {
		return nil
	}
	_, err := c.Devices.GetDevice(ctx, &nfcommsv1.GetDeviceRequest{Name: parent})
	return err
}

// follower prints events from one server session to the next.
type follower struct {
	app    *app
	client *control.Client
	parent string
	out    *series
	// token resumes the watch; empty before the first.
	token string
	// connected: there was a watch, so that a lost one is worth waiting for.
	connected bool
	// last is the time of the newest event that was printed, by which those
	// that a new snapshot repeats are known.
	last time.Time
}

// retryEvery is the time between two tries to get a lost watch back.
const retryEvery = time.Second

// run follows until the context ends or nothing can be got back.
func (f *follower) run(ctx context.Context) error {
	for {
		err := f.watch(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, control.ErrResumeExpired):
			f.app.note("the server started anew, events may be missing")
			f.token = ""
			continue
		case errors.Is(err, control.ErrSlowWatcher) && f.token != "":
			continue
		case !f.connected, !isAway(err):
			return err
		}
		if err := f.app.awaitServer(ctx, f.client, err); err != nil {
			return err
		}
	}
}

// isAway reports whether the server does not answer, or ends: it may be there again.
func isAway(err error) bool {
	return errors.Is(err, control.ErrUnavailable) || errors.Is(err, control.ErrShutdown)
}

// awaitServer notes why a watch was lost, and waits until the server answers again.
func (a *app) awaitServer(ctx context.Context, c *control.Client, lost error) error {
	a.note("%s; waiting for the server", message(lost))
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		_, err := c.Versions.GetVersion(ctx, &nfcommsv1.GetVersionRequest{})
		if !isAway(err) {
			return nil // another error is for the watch to report
		}
	}
}

// watch prints the events of one stream and returns why it ended.
func (f *follower) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.client.Events.WatchEvents(ctx, &nfcommsv1.WatchEventsRequest{Parent: f.parent, ResumeToken: f.token})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		f.connected = true
		if m.GetResumeToken() != "" {
			f.token = m.GetResumeToken()
		}
		if m.GetChange() == nfcommsv1.Change_CHANGE_SYNCED && f.last.IsZero() {
			err = mustExist(ctx, f.client, f.parent)
		} else {
			err = f.print(m)
		}
		if err != nil {
			return err
		}
	}
}

// print prints an event that was not printed before.
func (f *follower) print(m *nfcommsv1.WatchEventsResponse) error {
	e := m.GetEvent()
	if e == nil {
		return nil // the snapshot is complete
	}
	at := e.GetTime().AsTime()
	if m.GetChange() == nfcommsv1.Change_CHANGE_SNAPSHOT && !f.last.IsZero() && !at.After(f.last) {
		return nil
	}
	f.last = at
	return f.out.print(eventOf(e))
}
