package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nfcomms/nfcomms/internal/cdi"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// idMost is the longest id that the kubelet takes.
const idMost = 63

// offer is a device that containers can be given.
type offer struct {
	name, address string
	epoch         uint32
	healthy       bool
	// shares is how many clients it has room for; 0: it is given as a whole.
	shares int
	// numa is the node of the machine that it is next to; -1: none is known.
	numa int64
	info *nfcommsv1.Device
}

// ids lists the ids of a device: its name, or its name and a number for each share.
func (o *offer) ids() []string {
	if o.shares == 0 {
		return []string{o.name}
	}
	ids := make([]string, o.shares)
	for i := range ids {
		ids[i] = o.name + ":" + strconv.Itoa(i)
	}
	return ids
}

// deviceOf returns the device of an id. No name of a device has a colon.
func deviceOf(id string) string {
	name, _, _ := strings.Cut(id, ":")
	return name
}

// known is a device of the daemon.
type known struct {
	*nfcommsv1.Device
	healthy bool
}

// table has the devices of the daemon, and which of them are offered.
type table struct {
	log      *slog.Logger
	shares   Shares
	describe func(name, address string) (cdi.Device, error)
	folder   string // of specifications; empty: none are written

	begin sync.Once
	begun chan struct{} // closed with the first snapshot

	mu      sync.Mutex // guards what follows
	devices map[string]known
	offers  map[string]*offer
	lost    bool          // the daemon has been silent for too long
	written bool          // the specification has all that is offered
	said    logged        // what the log has of each device
	changed chan struct{} // closed and replaced with each change
}

func newTable(o *Options) *table {
	return &table{
		log: o.Log, shares: o.Shares, describe: o.describe, folder: o.CDI,
		devices: make(map[string]known), offers: make(map[string]*offer), said: make(logged),
		begun: make(chan struct{}), changed: make(chan struct{}),
	}
}

// logged has the last text about each subject, so that one that repeats is one line.
type logged map[string]string

// news reports whether a text is another than the last about its subject.
func (l logged) news(subject, text string) bool {
	if l[subject] == text {
		return false
	}
	l[subject] = text
	return true
}

// healthOf returns whether a device of a state can be given. A reset, which the plugin asks for
// itself, changes nothing.
func healthOf(state nfcommsv1.Device_State, before bool) bool {
	switch state {
	case nfcommsv1.Device_STATE_READY, nfcommsv1.Device_STATE_DEGRADED:
		return true
	case nfcommsv1.Device_STATE_RESETTING:
		return before
	}
	return false
}

// replace takes the devices of a snapshot in place of those that there were.
func (t *table) replace(devices []*nfcommsv1.Device) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.devices
	t.devices = make(map[string]known)
	for _, d := range devices {
		name := strings.TrimPrefix(d.GetName(), "devices/")
		t.devices[name] = known{d, healthOf(d.GetState(), before[name].healthy)}
	}
	t.lost = false
	t.begin.Do(func() { close(t.begun) })
	t.offerLocked()
}

// change takes one device, or notes that it is gone.
func (t *table) change(d *nfcommsv1.Device, gone bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := strings.TrimPrefix(d.GetName(), "devices/")
	if gone {
		delete(t.devices, name)
	} else {
		t.devices[name] = known{d, healthOf(d.GetState(), t.devices[name].healthy)}
	}
	t.offerLocked()
}

// giveUp notes that the daemon has been silent for too long.
func (t *table) giveUp() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
	t.log.Warn("the daemon is silent: all devices are unhealthy")
	t.offerLocked()
}

// offerLocked computes what is offered, writes the specification, and notifies streams. Must hold mu.
func (t *table) offerLocked() {
	t.offers = make(map[string]*offer)
	var given []cdi.Device
	variables := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(t.devices)) {
		o, d, err := t.offerOf(name)
		if v := cdi.Variable(name); err == nil && variables[v] != "" {
			err = fmt.Errorf("device %q has the variable %s already: rename one", variables[v], v)
		} else if err == nil {
			variables[v] = name
		}
		missing := errors.Is(err, fs.ErrNotExist) // its process is not there yet
		switch {
		case err == nil:
			t.said.news(name, "")
			given = append(given, d)
		case t.said.news(name, err.Error()):
			t.log.Warn("device cannot be given", "device", name, "reason", err, "listed", missing)
		}
		if err == nil || missing {
			o.healthy = o.healthy && err == nil && !t.lost
			t.offers[name] = o
		}
	}
	t.written = t.write(given)
	close(t.changed)
	t.changed = make(chan struct{})
}

// offerOf describes a device of the daemon.
func (t *table) offerOf(name string) (*offer, cdi.Device, error) {
	k := t.devices[name]
	o := &offer{name: name, address: k.GetAddress(), epoch: k.GetEpoch(), healthy: k.healthy, numa: -1, info: k.Device}
	if node := k.GetBoard().GetNumaNode(); k.GetBoard() != nil && k.Board.NumaNode != nil && node >= 0 {
		o.numa = int64(node)
	}
	o.shares = t.shares.of(name, o.address)
	ids := o.ids()
	if id := ids[len(ids)-1]; len(id) > idMost {
		return o, cdi.Device{}, fmt.Errorf("id %q has %d bytes, the kubelet takes %d", id, len(id), idMost)
	}
	d, err := t.describe(name, o.address)
	return o, d, err
}

// write writes the specification, if there is a folder for it, and reports whether it is there.
func (t *table) write(given []cdi.Device) bool {
	if t.folder == "" {
		return false
	}
	spec, err := cdi.New(given)
	if err == nil {
		err = spec.Write(t.folder)
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if t.said.news("the specification", text) && err != nil {
		t.log.Warn("containers get nodes and mounts in place of names of CDI", "reason", err)
	}
	return err == nil
}

// list returns the offers that are of a kind, in order, and a bell for the next change.
func (t *table) list(is func(*offer) bool) (offers []*offer, bell <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.offers)) {
		if o := t.offers[name]; is(o) {
			offers = append(offers, o)
		}
	}
	return offers, t.changed
}

// byCDI reports whether runtimes find the devices by their names.
func (t *table) byCDI() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.written
}
