package main

import (
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// watchedRecord is a line of nfctl list --watch.
type watchedRecord struct{ listedRecord }

func (r watchedRecord) table(p *printer) {
	listRecord{Devices: []listedRecord{{deviceRecord: r.deviceRecord}}}.table(p)
}

// deviceWatch prints devices, without their counters, from one server session to the next.
type deviceWatch struct {
	app    *app
	client *control.Client
	names  []string // none: all
	out    *series
	shown  map[string]*nfcommsv1.Device // as they were printed last
	there  map[string]bool              // those of the snapshot that is being received; nil behind it
}

// run prints the devices as they are and as they change until the context ends.
func (w *deviceWatch) run(ctx context.Context) error {
	for {
		err := w.watch(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, control.ErrSlowWatcher) && len(w.shown) > 0:
			continue
		case !isAway(err):
			return err
		}
		if err := w.app.awaitServer(ctx, w.client, err); err != nil {
			return err
		}
	}
}

// watch prints what one stream gives and returns why it ended.
func (w *deviceWatch) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.client.Devices.WatchDevices(ctx, &nfcommsv1.WatchDevicesRequest{})
	if err != nil {
		return err
	}
	w.there = make(map[string]bool)
	for {
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := w.take(m); err != nil {
			return err
		}
	}
}

// take prints a device that is not as it was printed last, and those that the last server alone had.
func (w *deviceWatch) take(m *nfcommsv1.WatchDevicesResponse) error {
	d := m.GetDevice()
	named := func(name string) bool { return deviceName(name) == d.GetName() }
	switch {
	case m.GetChange() == nfcommsv1.Change_CHANGE_SYNCED:
		for _, name := range slices.Sorted(maps.Keys(w.shown)) {
			if w.there[name] {
				continue
			}
			if err := w.removed(w.shown[name]); err != nil {
				return err
			}
		}
		w.there = nil
		return nil
	case d == nil, len(w.names) > 0 && !slices.ContainsFunc(w.names, named):
		return nil
	}
	if w.there != nil {
		w.there[d.GetName()] = true
	}
	if m.GetChange() == nfcommsv1.Change_CHANGE_SNAPSHOT && proto.Equal(w.shown[d.GetName()], d) {
		return nil
	}
	if m.GetChange() == nfcommsv1.Change_CHANGE_DELETED {
		return w.removed(d)
	}
	w.shown[d.GetName()] = d
	return w.out.print(watchedRecord{listedRecord{deviceRecord: deviceOf(d)}})
}

// removed prints a device that is not there any more, as it was but for its state.
func (w *deviceWatch) removed(d *nfcommsv1.Device) error {
	delete(w.shown, d.GetName())
	r := deviceOf(d)
	r.State = "removed"
	return w.out.print(watchedRecord{listedRecord{deviceRecord: r}})
}
