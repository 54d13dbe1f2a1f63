package control

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
)

// device is one device of a server.
type device struct {
	s       *Server
	id      string // its part of the resource name
	address string
	owned   bool

	ctx   context.Context // ends with the listing
	stop  context.CancelFunc
	tried chan struct{} // closed after the first try to open it
	ping  chan struct{} // holds a token while the time service is in use
	load  chan struct{} // … while a program image is on its way
	tests chan struct{} // … for each test of a link

	mu        sync.Mutex      // guards what follows; no call of the device waits under it
	dev       *nfcomms.Device // nil unless open
	flight    *flight         // the probe under way
	resets    int             // by this server
	resetBy   string          // who asked for the last of them
	resetting bool
	draining  bool
	failure   error // of the last probe, or of the last try to open it
	word      abi.Diagnostic
	calls     int           // remote calls that run
	settled   chan struct{} // closed and replaced when a call or a channel ended
	opening   map[nfcomms.Target]struct{}
	remote    map[nfcomms.Target]*remote
	processes []process               // that clients started, oldest first
	seen      map[nfcomms.Target]seen // the open channels, as the hub has them
	state     nfcommsv1.Device_State
	since     time.Time         // when state changed
	published *nfcommsv1.Device // as the hub has it
}

// newDevice returns a device that is open already, or none if dev is nil.
func newDevice(s *Server, id, address string, dev *nfcomms.Device) *device {
	d := &device{
		s: s, id: id, address: address, owned: dev == nil, dev: dev,
		tried:   make(chan struct{}),
		ping:    make(chan struct{}, 1),
		tests:   make(chan struct{}, testsMost),
		load:    make(chan struct{}, 1),
		settled: make(chan struct{}),
		opening: make(map[nfcomms.Target]struct{}),
		remote:  make(map[nfcomms.Target]*remote),
		seen:    make(map[nfcomms.Target]seen),
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

func (d *device) name() string { return DeviceName(d.id) }

// run lists the device, opens it, if that is the server's part, and looks after
// it until the listing ends.
func (d *device) run() {
	defer d.triedOnce()
	d.event(nfcommsv1.Event_TYPE_DEVICE_ADDED, d.name(), "added: "+d.address, nil)
	d.update(func() {})
	var failed failures
	for pause := d.s.opt.Interval; d.opened() == nil; pause = min(2*pause, 32*d.s.opt.Interval) {
		if d.tryOpen(&failed) {
			break
		}
		d.triedOnce()
		if !sleep(d.ctx, pause) {
			return
		}
	}
	for {
		d.look()
		if d.opened() == nil || !sleep(d.ctx, d.s.opt.Interval) {
			return
		}
	}
}

// failures counts tries in a row that failed for the same reason.
type failures struct {
	reason string
	count  int
}

// add counts one, and returns the text to report: of the first, and whenever the count has doubled.
// So a device that is absent for weeks does not fill the log.
func (f *failures) add(err error) (text string, report bool) {
	if err.Error() != f.reason {
		*f = failures{reason: err.Error()}
	}
	f.count++
	if f.count == 1 {
		return f.reason, true
	}
	return fmt.Sprintf("%s (%d times)", f.reason, f.count), f.count&(f.count-1) == 0
}

// tryOpen opens the device once and reports whether it is open.
func (d *device) tryOpen(failed *failures) bool {
	dev, err := nfcomms.Open(d.ctx, d.address, nfcomms.WithLogger(d.s.log))
	if err != nil && d.ctx.Err() == nil {
		if message, report := failed.add(err); report {
			d.event(nfcommsv1.Event_TYPE_OPEN_FAILED, d.name(), message, err)
		}
	}
	late := false
	d.update(func() {
		if late = d.ctx.Err() != nil; !late {
			d.dev, d.failure = dev, err
		}
	})
	if late && err == nil {
		_ = dev.Close()
	}
	return !late && err == nil
}

// look finds out how the device is and what its channels are.
func (d *device) look() {
	err := d.probe(d.ctx)
	d.triedOnce()
	if gone(err) && !d.owned {
		_ = d.s.drop(d) // the application closed it
		return
	}
	d.closeRemote("", nfcommsv1.Event_TYPE_CHANNEL_IDLE, d.idle)
	d.update(d.syncLocked)
}

// opened returns the open device, or nil.
func (d *device) opened() *nfcomms.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dev
}

// kind returns the kind of the device, unspecified unless it is open.
func (d *device) kind() nfcommsv1.Device_Kind {
	if dev := d.opened(); dev != nil {
		return kindOf(dev.Info())
	}
	return nfcommsv1.Device_KIND_UNSPECIFIED
}

// current returns the state as it was last published.
func (d *device) current() nfcommsv1.Device_State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// use returns the open device, or ErrNotOpen with the reason.
func (d *device) use() (*nfcomms.Device, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.useLocked()
}

// useLocked is use. Must hold mu.
func (d *device) useLocked() (*nfcomms.Device, error) {
	switch {
	case d.dev != nil:
		return d.dev, nil
	case d.ctx.Err() != nil:
		return nil, d.s.unlisted(d.id, ErrNotOpen)
	case d.failure != nil:
		return nil, fmt.Errorf("%q: %w: %w", d.name(), ErrNotOpen, d.failure)
	default:
		return nil, fmt.Errorf("%q: %w", d.name(), ErrNotOpen)
	}
}

// update changes the device and notifies the watchers.
func (d *device) update(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
	d.publishLocked()
}

// publishLocked computes the state and publishes what changed. Must hold mu.
func (d *device) publishLocked() {
	if d.ctx.Err() != nil {
		return // it is not listed any more
	}
	if state := d.stateLocked(); state != d.state {
		d.state, d.since = state, time.Now()
		d.event(nfcommsv1.Event_TYPE_STATE_CHANGED, d.name(), "state is "+stateText(state), d.failureLocked())
		d.s.health.set(d.id, state == nfcommsv1.Device_STATE_READY || state == nfcommsv1.Device_STATE_DEGRADED)
	}
	now := d.protoLocked()
	if d.published.GetDriver() != "" && d.published.Epoch != now.Epoch {
		d.eventBy(d.resetBy, nfcommsv1.Event_TYPE_RESET, d.name(), fmt.Sprintf("reset: epoch %d", now.Epoch), nil)
		d.resetBy = ""
	}
	if !proto.Equal(now, d.published) {
		d.published = now
		d.s.deviceHub.put(d.id, now)
	}
}

// stateLocked computes the state. Must hold mu.
func (d *device) stateLocked() nfcommsv1.Device_State {
	switch {
	case d.resetting:
		return nfcommsv1.Device_STATE_RESETTING
	case d.failure != nil:
		return nfcommsv1.Device_STATE_FAILED
	case d.dev == nil:
		return nfcommsv1.Device_STATE_OPENING
	case d.draining && d.calls == 0 && len(admin.Channels(d.dev)) == 0:
		return nfcommsv1.Device_STATE_DRAINED
	case d.draining:
		return nfcommsv1.Device_STATE_DRAINING
	case unwell(d.word):
		return nfcommsv1.Device_STATE_DEGRADED
	}
	return nfcommsv1.Device_STATE_READY
}

// failureLocked returns why the state is FAILED, nil in other states. Must hold
// mu.
func (d *device) failureLocked() error {
	if d.state == nfcommsv1.Device_STATE_FAILED {
		return d.failure
	}
	return nil
}

// protoLocked describes the device without counters. Must hold mu.
func (d *device) protoLocked() *nfcommsv1.Device {
	m := &nfcommsv1.Device{
		Name:      d.name(),
		Address:   text(d.address),
		State:     d.state,
		Failure:   failureOf(d.failureLocked()),
		Owned:     d.owned,
		StateTime: timestamppb.New(d.since),
	}
	if d.dev != nil {
		describe(m, d.dev.Info())
	}
	return m
}

// withStats describes the device with counters.
func (d *device) withStats() *nfcommsv1.Device {
	d.mu.Lock()
	m, dev := d.protoLocked(), d.dev
	d.mu.Unlock()
	if dev != nil {
		m.Stats = deviceStats(dev.Stats())
	}
	return m
}

// settleLocked wakes those who wait for work to end. Must hold mu.
func (d *device) settleLocked() {
	close(d.settled)
	d.settled = make(chan struct{})
}

// close ends the listing: remote channels close, and the device if it is owned.
func (d *device) close() error {
	d.stop()
	d.mu.Lock()
	dev, left := d.dev, d.takeRemoteLocked()
	d.dev = nil
	d.settleLocked()
	d.mu.Unlock()
	for _, r := range left {
		_ = r.ch.Close() // its epoch may be over
	}
	var err error
	if dev != nil && d.owned {
		err = dev.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.syncLocked()
	d.s.deviceHub.remove(d.id, d.published)
	d.s.health.remove(d.id)
	d.event(nfcommsv1.Event_TYPE_DEVICE_REMOVED, d.name(), "removed", err)
	return err
}

// event reports what happened to a resource of the device, without anybody asking
// for it.
func (d *device) event(t nfcommsv1.Event_Type, resource, message string, err error) {
	d.eventBy("", t, resource, message, err)
}

// eventBy reports what happened to a resource of the device as a caller asked.
func (d *device) eventBy(caller string, t nfcommsv1.Event_Type, resource, message string, err error) {
	d.s.event(d.id, happening{t: t, severity: severityOf(t, err), resource: resource, message: message, caller: caller, err: err})
}
