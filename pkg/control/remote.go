package control

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// remote is a channel that a remote client opened. Its device's mu guards it.
type remote struct {
	ch      *nfcomms.Channel
	caller  string    // who opened it
	calls   int       // that run
	used    time.Time // when the last one ended
	closing bool
	over    [2]bool // halves that the device's process closed, as a call found
}

// ended picks channels without calls whose process has ended.
func ended(_ nfcomms.Target, r *remote) bool {
	return r.calls == 0 && r.over[abi.H2D] && r.over[abi.D2H]
}

// quiet picks channels without calls.
func quiet(_ nfcomms.Target, r *remote) bool { return r.calls == 0 }

// idle picks channels that nobody used for some time.
func (d *device) idle(_ nfcomms.Target, r *remote) bool {
	limit := d.s.opt.ChannelIdle
	return limit > 0 && r.calls == 0 && time.Since(r.used) > limit
}

// begin counts a remote call that a drain waits for, or refuses it. finish must
// follow.
func (d *device) begin() (*nfcomms.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.beginLocked()
}

// beginLocked is begin. Must hold mu.
func (d *device) beginLocked() (*nfcomms.Device, error) {
	dev, err := d.useLocked()
	switch {
	case err != nil:
		return nil, err
	case d.draining:
		return nil, fmt.Errorf("%q: %w", d.name(), ErrDraining)
	case d.resetting:
		return nil, fmt.Errorf("%q is being reset: %w", d.name(), nfcomms.ErrBusy)
	}
	d.calls++
	return dev, nil
}

// finish ends what begin began.
func (d *device) finish() {
	d.update(func() {
		d.calls--
		d.settleLocked()
	})
}

// openRemote opens a channel for remote clients. One of which the device's
// process closed a half, and that nobody uses, makes room for the new one.
func (d *device) openRemote(ctx context.Context, t nfcomms.Target) (*nfcommsv1.Channel, error) {
	caller := d.s.callerOf(ctx)
	d.closeRemote(caller, nfcommsv1.Event_TYPE_CHANNEL_CLOSED, func(other nfcomms.Target, r *remote) bool {
		return other == t && r.calls == 0 && (r.over[abi.H2D] || r.over[abi.D2H])
	})
	d.mu.Lock()
	dev, err := d.beginLocked()
	if err == nil {
		defer d.finish()
		err = d.reserveLocked(t)
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ch, err := dev.Subscribe(ctx, t)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.opening, t)
		return nil, err
	}
	m, over, err := d.entered(&remote{ch: ch, caller: caller, used: time.Now()}, t)
	if over != nil {
		_ = over.Close()
	}
	return m, err
}

// entered lists a channel that was opened, and describes it. It is an error if the channel's epoch is
// over by now: another may be open at its target. over is a channel that no client has any more.
func (d *device) entered(r *remote, t nfcomms.Target) (m *nfcommsv1.Channel, over *nfcomms.Channel, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.opening, t)
	if d.ctx.Err() != nil {
		return nil, r.ch, fmt.Errorf("%q was removed: %w", d.name(), nfcomms.ErrClosed)
	}
	if before := d.remote[t]; before != nil { // of an epoch of its node
		over = before.ch
	}
	d.remote[t] = r
	d.syncLocked()
	s := d.seen[t]
	if s.ch != r.ch {
		return nil, over, fmt.Errorf("%q: the device was reset: %w", ChannelName(d.id, t), nfcomms.ErrDeviceLost)
	}
	d.eventBy(r.caller, nfcommsv1.Event_TYPE_CHANNEL_OPENED, ChannelName(d.id, t), "opened", nil)
	return s.described(), over, nil
}

// reserveLocked makes room for one more remote channel. Must hold mu.
func (d *device) reserveLocked(t nfcomms.Target) error {
	d.syncLocked()
	switch _, taken := d.opening[t]; {
	case taken:
		return fmt.Errorf("%q is being opened: %w", ChannelName(d.id, t), nfcomms.ErrBusy)
	case len(d.remote)+len(d.opening) >= d.s.opt.MaxChannels:
		return fmt.Errorf("%q has %d remote channels, its most: %w", d.name(), d.s.opt.MaxChannels, nfcomms.ErrNoMemory)
	}
	d.opening[t] = struct{}{}
	return nil
}

// call begins a call on a remote channel; the returned function ends it, with
// the halves that the call found closed.
func (d *device) call(t nfcomms.Target) (*nfcomms.Channel, func(over [2]bool), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.remoteLocked(t)
	if err == nil {
		_, err = d.beginLocked()
	}
	if err != nil {
		return nil, nil, err
	}
	r.calls++
	return r.ch, func(over [2]bool) { d.called(r, over) }, nil
}

// called ends a call on a remote channel. The channel closes with its last call
// once its process has ended, and while a drain waits.
func (d *device) called(r *remote, over [2]bool) {
	draining := false
	d.update(func() {
		for i := range over {
			r.over[i] = r.over[i] || over[i]
		}
		r.calls--
		r.used = time.Now()
		d.calls--
		d.settleLocked()
		draining = d.draining
	})
	pick := ended
	if draining {
		pick = quiet
	}
	d.closeRemote("", nfcommsv1.Event_TYPE_CHANNEL_CLOSED, pick)
}

// remoteLocked finds a remote channel. Must hold mu.
func (d *device) remoteLocked(t nfcomms.Target) (*remote, error) {
	dev, err := d.useLocked()
	if err != nil {
		return nil, err
	}
	name := ChannelName(d.id, t)
	if r := d.remote[t]; r != nil {
		if r.closing {
			return nil, fmt.Errorf("%q: %w", name, nfcomms.ErrClosed)
		}
		return r, nil
	}
	for _, ch := range admin.Channels(dev) {
		if ch.Target() == t {
			return nil, fmt.Errorf("%q: %w", name, ErrNotOwned)
		}
	}
	return nil, fmt.Errorf("%q is not open: %w", name, nfcomms.ErrNotSubscribed)
}

// closeOne closes one remote channel, whose calls end with ErrClosed, and
// returns it with its last counters.
func (d *device) closeOne(ctx context.Context, t nfcomms.Target) (*nfcommsv1.Channel, error) {
	d.mu.Lock()
	r, err := d.remoteLocked(t)
	var m *nfcommsv1.Channel
	if err == nil {
		d.syncLocked()
		m = proto.CloneOf(d.seen[t].m)
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	this := func(_ nfcomms.Target, other *remote) bool { return other == r }
	if d.closeRemote(d.s.callerOf(ctx), nfcommsv1.Event_TYPE_CHANNEL_CLOSED, this) == 0 || m == nil {
		return nil, fmt.Errorf("%q: %w", ChannelName(d.id, t), nfcomms.ErrClosed) // another was faster
	}
	m.State = nfcommsv1.Channel_STATE_CLOSED
	now(m, r.ch)
	return m, nil
}

// closeRemote closes the remote channels that pick chooses under mu, as a caller
// asked or nobody, and returns their number.
func (d *device) closeRemote(caller string, why nfcommsv1.Event_Type, pick func(nfcomms.Target, *remote) bool) int {
	chosen := make(map[nfcomms.Target]*remote)
	d.mu.Lock()
	for t, r := range d.remote {
		if !r.closing && pick(t, r) {
			r.closing = true
			chosen[t] = r
		}
	}
	d.mu.Unlock()
	for t, r := range chosen {
		err := r.ch.Close()
		d.update(func() {
			if d.remote[t] == r {
				delete(d.remote, t)
			}
			d.syncLocked()
			d.settleLocked()
		})
		d.eventBy(caller, why, ChannelName(d.id, t), "closed", err)
	}
	return len(chosen)
}

// takeRemoteLocked empties the table of remote channels and returns what was in
// it. Must hold mu.
func (d *device) takeRemoteLocked() []*remote {
	var list []*remote
	for t, r := range d.remote {
		r.closing = true
		delete(d.remote, t)
		list = append(list, r)
	}
	return list
}

// channelKey orders channels by device, node and number.
func channelKey(device string, t nfcomms.Target) string {
	return fmt.Sprintf("%s\x00%020d", device, uint64(t))
}

// seen is an open channel, and what the hub has of it.
type seen struct {
	ch *nfcomms.Channel
	m  *nfcommsv1.Channel
}

// described returns the channel with its counters.
func (s seen) described() *nfcommsv1.Channel {
	m := proto.CloneOf(s.m)
	now(m, s.ch)
	return m
}

// openLocked returns the open channels. There may be two at a target of a node, as that may have been
// reset alone: then that of a client counts, or the one that was seen before. Must hold mu.
func (d *device) openLocked() map[nfcomms.Target]*nfcomms.Channel {
	open := make(map[nfcomms.Target]*nfcomms.Channel)
	if d.dev == nil {
		return open
	}
	for _, ch := range admin.Channels(d.dev) {
		t := ch.Target()
		_, soon := d.opening[t] // whose a new one is shows then
		switch r := d.remote[t]; {
		case r != nil && open[t] == r.ch:
		case r != nil && ch == r.ch, ch == d.seen[t].ch, open[t] == nil && !soon:
			open[t] = ch
		}
	}
	return open
}

// syncLocked reports to the hub which channels opened and closed since the last report.
// Must hold mu.
func (d *device) syncLocked() {
	open := d.openLocked()
	for t, s := range d.seen {
		if open[t] != s.ch { // one in its place is another, of another epoch
			m := proto.CloneOf(s.m)
			m.State = nfcommsv1.Channel_STATE_CLOSED
			delete(d.seen, t)
			d.s.channelHub.remove(channelKey(d.id, t), m)
		}
	}
	for t, r := range d.remote {
		if open[t] != r.ch && !r.closing {
			delete(d.remote, t) // its epoch is over
		}
	}
	for t, ch := range open {
		d.syncOneLocked(t, ch)
	}
}

// syncOneLocked reports an open channel to the hub, if that is news. Must hold mu.
func (d *device) syncOneLocked(t nfcomms.Target, ch *nfcomms.Channel) {
	owner, caller := nfcommsv1.Channel_OWNER_APPLICATION, ""
	if r := d.remote[t]; r != nil && r.ch == ch {
		owner, caller = nfcommsv1.Channel_OWNER_SERVER, r.caller
	}
	if m := d.seen[t].m; m != nil && m.Owner == owner && m.Caller == caller && m.Listener == ch.Name() {
		return
	}
	m := &nfcommsv1.Channel{
		Name: ChannelName(d.id, t), Target: abi.ID(t).Target(), State: nfcommsv1.Channel_STATE_OPEN,
		Owner: owner, Caller: caller, CreateTime: timestamppb.Now(), Listener: ch.Name(), DeviceKind: kindOf(d.dev.Info()),
	}
	if node, there := t.Node(); there {
		m.Node = node.String()
	}
	d.seen[t] = seen{ch, m}
	d.s.channelHub.put(channelKey(d.id, t), m)
}

// channel describes an open channel with its counters.
func (d *device) channel(t nfcomms.Target) (*nfcommsv1.Channel, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.useLocked(); err != nil {
		return nil, err
	}
	d.syncLocked()
	if s := d.seen[t]; s.ch != nil {
		return s.described(), nil
	}
	return nil, fmt.Errorf("%q is not open: %w", ChannelName(d.id, t), nfcomms.ErrNotSubscribed)
}
