//go:build cgo

package hostile

import (
	"log/slog"
	"math/rand/v2"
	"sync"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/device"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// kept is how many messages are remembered to be said again.
const kept = 32

// Effects are what a device cannot do to itself.
type Effects struct {
	// Die ends the process.
	Die func()
	// Vanish pulls the device out.
	Vanish func()
	// FakeRemoval makes the device look as if it was pulled out.
	FakeRemoval func()
}

// Device boots epochs that follow a plan. It is a device in Go that speaks the
// protocol and runs the programs of the conformance suite.
type Device struct {
	effects Effects
	log     *slog.Logger
	shape   scripted.Shape

	mu     sync.Mutex // guards what follows
	plan   Plan
	rand   *rand.Rand
	struck uint64
	stale  *echo // nil: none
}

// New makes a device. shape is what an epoch has where the host does not say.
func New(p Plan, seed uint64, shape scripted.Shape, e Effects, log *slog.Logger) *Device {
	return &Device{
		effects: e, log: log, shape: shape, plan: p,
		rand: rand.New(rand.NewPCG(seed, 0)),
	}
}

// Struck counts the faults that struck.
func (d *Device) Struck() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.struck
}

// Boot starts an epoch. It is a device.Boot.
func (d *Device) Boot(bus *firmware.Bus, shape device.Shape, number uint32, quit <-chan struct{}) (device.Instance, abi.Status) {
	if len(d.strike(onReset, nil)) > 0 {
		<-quit
		return nil, abi.ErrTimeout
	}
	if bus.ClearArea() != nil {
		return nil, abi.ErrNoMemory
	}
	if e := d.remembered(); e != nil {
		bus.Write(e.address, e.data) // the host must not allow it yet
	}
	l := &epoch{dev: d, bus: bus, stop: make(chan struct{})}
	script, status := scripted.NewOn(bus.Area(), &host{l}, d.shapeOf(shape),
		scripted.Hooks{Take: l.take, Give: l.give, Head: l.head, Rewrite: l.rewrite}, number)
	if status != abi.OK {
		return nil, status
	}
	l.script.Store(script)
	return l, abi.OK
}

// remember keeps the last DMA write that the next boot repeats.
func (d *Device) remember(address uint64, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stale = &echo{address: address, data: data}
}

// remembered returns that write, once; nil: there is none.
func (d *Device) remembered() *echo {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.stale
	d.stale = nil
	return e
}

// shapeOf is the device's own shape, but for what the host asks for.
func (d *Device) shapeOf(want device.Shape) scripted.Shape {
	sh := d.shape
	for to, v := range map[*int]uint32{
		&sh.Channels: want.Channels, &sh.Mailboxes: want.Mailboxes, &sh.Islands: want.Islands,
		&sh.Slots: want.Slots, &sh.Window: want.Window,
	} {
		if v != 0 {
			*to = int(v)
		}
	}
	if want.EMEM != 0 {
		sh.EMEM = want.EMEM
	}
	if want.TargetTimeout != 0 {
		sh.TargetTimeout = want.TargetTimeout
	}
	return sh
}

// strike counts an event for every fault that looks at it, and returns those
// that strike.
func (d *Device) strike(e event, m *wire.Slot) (due []*fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.plan.faults {
		if f.event == e && (m == nil || f.matches(m)) && f.due() {
			due = append(due, f)
			d.struck++
			d.log.Info("fault", "kind", f.name, "event", f.seen)
		}
	}
	return due
}

// chance runs f with the source of chance.
func (d *Device) chance(f func(r *rand.Rand)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d.rand)
}
