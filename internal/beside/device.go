package beside

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// Device runs the methods of a device at an address, and of everything that it gives, beside each
// other. rounds is as in [Suite]. absent are the objects that the back end does not have.
func Device(t *testing.T, address string, rounds int, absent ...string) {
	t.Helper()
	Devices(t, func(ctx context.Context) (*World, error) { return OpenDevice(ctx, address, absent...) }, rounds)
}

// Devices is Device for worlds that each have an address of their own.
func Devices(t *testing.T, open func(context.Context) (*World, error), rounds int) {
	t.Helper()
	Run(t, Suite{
		Rounds: rounds,
		Open:   open,
		Once: []string{
			"Device.Close", "Device.Reset", "Channel.Close", "Channel.CloseSend", "Channel.CloseReceive",
			"Region.Close", "Listener.Close", "Tracer.Close", "Instance.Close", "Future.Cancel",
			"Fabric.KillNode", "Fabric.SilenceNode", "Fabric.CutLink", "HostWindow.Revoke", "Supervisor.Run",
		},
		Ends: []string{"Device.Close", "Device.Reset"},
	})
}

// OpenDevice returns the world of a device at an address. absent are the objects that the back end
// does not have.
func OpenDevice(ctx context.Context, address string, absent ...string) (*World, error) {
	w, err := openDevice(ctx, address)
	for end := time.Now().Add(hang); isLate(err) && time.Now().Before(end); {
		w, err = openDevice(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	for name, there := range w.there() {
		if there == slices.Contains(absent, name) {
			return nil, fmt.Errorf("%s: a %s: %t", address, name, there)
		}
	}
	all := w.world()
	all.Address = address
	return all, nil
}

// isLate reports whether a device may be opened later: on a busy machine one that is shared keeps the place of
// a host that has left for a while, has no time for an answer, or for its heartbeat.
func isLate(err error) bool {
	return errors.Is(err, nfcomms.ErrBusy) || errors.Is(err, nfcomms.ErrClosed) || errors.Is(err, nfcomms.ErrDeviceLost)
}

// deviceWorld is a device with one of each that it gives.
type deviceWorld struct {
	ctx         context.Context
	device      *nfcomms.Device
	channels    []*nfcomms.Channel
	region      *nfcomms.Region
	listener    *nfcomms.Listener // nil: there is none
	tracer      *trace.Tracer
	instance    *nfcomms.Instance
	fabric      fabric.Fabric // nil: there is none
	window      fabric.HostWindow
	future      *nfcomms.Future
	completions nfcomms.Completions
	memory      []byte        // of the region
	part        atomic.Uint64 // of it, that was given last
	name        string        // of the listener, as other worlds may share the device
}

var opened atomic.Uint64 // worlds

const (
	partSize = 4096
	parts    = 256
)

func openDevice(ctx context.Context, address string) (w *deviceWorld, err error) {
	w = &deviceWorld{ctx: ctx, memory: make([]byte, partSize*parts), name: fmt.Sprint("world", opened.Add(1))}
	if w.device, err = nfcomms.Open(ctx, address); err != nil {
		return nil, err
	}
	w.region, err = w.device.Register(w.memory)
	var ch *nfcomms.Channel
	if err == nil {
		ch, err = w.device.Subscribe(ctx, nfcomms.Loopback)
	}
	if err == nil {
		w.instance, err = w.device.Run(ctx, nfcomms.Program{Name: "loopback", Targets: 2})
	}
	if err == nil {
		w.tracer, err = trace.Start(ctx, w.device, trace.Options{Every: 1, Keep: 16})
	}
	if err == nil {
		w.channels = append(w.instance.Channels, ch)
		w.future = nfcomms.SendCase(ch, []byte("future")).Start(ctx)
		err = w.completions.Add(nfcomms.SendCase(w.channels[0], []byte("completion")).Start(ctx))
	}
	if err == nil {
		w.listener, err = w.device.Listen(ctx, w.name)
		if errors.Is(err, nfcomms.ErrNotSupported) {
			err = nil
		}
	}
	if w.fabric = fabric.Of(w.device); w.fabric != nil && err == nil {
		var shared *nfcomms.Region // some back ends reach no other memory
		if shared, err = w.device.Alloc(partSize); err == nil {
			w.window, err = w.fabric.Window(ctx, shared.Bytes(), fabric.Read|fabric.Write)
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.device.Close())
	}
	return w, nil
}

// there reports which of the objects that not every back end has there are.
func (w *deviceWorld) there() map[string]bool {
	return map[string]bool{"Listener": w.listener != nil, "Fabric": w.fabric != nil}
}

func (w *deviceWorld) world() *World {
	all := &World{Arguments: w.arguments(), Drop: w.drop(), End: w.device.Close}
	add := func(name string, value any, as reflect.Type) {
		all.Objects = append(all.Objects, Object{name, value, as})
	}
	add("Device", w.device, nil)
	for _, ch := range w.channels {
		add("Channel", ch, nil)
	}
	add("Region", w.region, nil)
	add("Tracer", w.tracer, nil)
	add("Instance", w.instance, nil)
	add("Future", w.future, nil)
	add("Completions", &w.completions, nil)
	add("functions", functions{w}, nil)
	add("Supervisor", nfcomms.Supervisor{Programs: []nfcomms.Program{{Name: "loopback"}}, MinWait: time.Microsecond}, nil)
	if w.listener != nil {
		add("Listener", w.listener, nil)
	}
	if w.fabric != nil {
		add("Fabric", w.fabric, reflect.TypeFor[fabric.Fabric]())
		add("HostWindow", w.window, reflect.TypeFor[fabric.HostWindow]())
	}
	return all
}

// functions are what the package has beside methods.
type functions struct{ w *deviceWorld }

func (f functions) Select(ctx context.Context) error {
	var buf [nfcomms.MessageSize]byte
	_, err := nfcomms.Select(ctx, nfcomms.SendCase(f.w.channels[0], []byte("case")), nfcomms.ReceiveCase(f.w.channels[1], buf[:], new(int)))
	return err
}

func (f functions) SelectDefault(ctx context.Context) error {
	_, err := nfcomms.Select(ctx, nfcomms.SendCase(f.w.channels[0], []byte("case")), nfcomms.Default())
	return err
}

func (f functions) TrySend() (bool, error) {
	return nfcomms.SendCase(f.w.channels[0], []byte("tried")).Try()
}

func (f functions) TryReceive() (bool, error) {
	var buf [nfcomms.MessageSize]byte
	return nfcomms.ReceiveCase(f.w.channels[0], buf[:], nil).Try()
}

func (f functions) TrySendInd() (bool, error) {
	return nfcomms.SendIndCase(f.w.channels[1], f.w.bytes()).Try()
}

func (f functions) TryReceiveInd() (bool, error) {
	return nfcomms.ReceiveIndCase(f.w.channels[1], f.w.bytes()).Try()
}

func (f functions) TryOffer() (bool, error) {
	return nfcomms.OfferCase(f.w.channels[1], nil).Try()
}

func (f functions) Striped(ctx context.Context) error {
	return nfcomms.SendStriped(ctx, f.w.bytes(), 64, f.w.channels...)
}

// bytes returns memory that no other call has, of the region or not.
func (w *deviceWorld) bytes() []byte {
	if rand.IntN(2) == 0 {
		return make([]byte, rand.IntN(2*partSize))
	}
	at := w.part.Add(1) % parts * partSize
	return w.memory[at : at+uint64(rand.IntN(partSize))]
}

func (w *deviceWorld) target() nfcomms.Target {
	list := []nfcomms.Target{nfcomms.Loopback, admin.Log, admin.Time, w.instance.Process.First, 999, fabric.Target(fabric.At(1, 0, 0), nfcomms.Loopback)}
	if w.listener != nil {
		list = append(list, w.listener.Target(), w.listener.Target())
	}
	return one(list...)
}

func one[T any](of ...T) T { return of[rand.IntN(len(of))] }

var errRefused = errors.New("refused by the test")

// arguments are the recipes.
func (w *deviceWorld) arguments() map[reflect.Type]func() any {
	all := make(map[reflect.Type]func() any)
	recipe(all, func() int { return one(0, 1, 2, 4, 56, partSize, 1<<20) })
	recipe(all, func() uint8 { return one[uint8](0, 1, 7) })
	recipe(all, func() uint64 { return one[uint64](0, 1, 56) })
	recipe(all, func() bool { return one(true, false) })
	recipe(all, func() string { return one("/nonexistent", w.name, "") })
	recipe(all, func() any { return w.bytes() })
	recipe(all, w.bytes)
	recipe(all, func() func([]byte) error { return func([]byte) error { return one(nil, nil, errRefused) } })
	recipe(all, func() nfcomms.ProcessID { return one(w.instance.Process.ID, 1, 0) })
	recipe(all, func() nfcomms.Program { return nfcomms.Program{Name: one("loopback", "hold", "none"), Targets: 1} })
	recipe(all, w.target)
	recipe(all, func() *nfcomms.Device { return w.device })
	recipe(all, func() *nfcomms.Channel { return one(w.channels...) }) // to a process: it stays
	recipe(all, func() *nfcomms.Region { return w.region })            // of Register: it stays
	recipe(all, func() *nfcomms.Future { return nfcomms.SendCase(w.channels[1], []byte("added")).Start(w.ctx) })
	recipe(all, func() func(context.Context, *nfcomms.Generation) error {
		return func(ctx context.Context, g *nfcomms.Generation) error {
			return g.Instances[0].Channels[0].Send(ctx, []byte("work"))
		}
	})
	recipe(all, func() fabric.Place {
		return one(fabric.At(0, 0, 0), fabric.At(1, 0, 0), fabric.At(9, 9, 9))
	})
	recipe(all, func() fabric.Access { return fabric.Read | fabric.Write })
	recipe(all, func() fabric.Window {
		if w.window == nil {
			return fabric.Window{}
		}
		return w.window.Remote()
	})
	return all
}

func recipe[T any](all map[reflect.Type]func() any, of func() T) {
	all[reflect.TypeFor[T]()] = func() any { return of() }
}

// drop ends what has no method for that.
func (w *deviceWorld) drop() map[reflect.Type]func(any) {
	all := make(map[reflect.Type]func(any))
	ending(all, func(f *nfcomms.Future) {
		f.Cancel()
		_, _ = f.Wait(context.Background())
	})
	ending(all, func(p nfcomms.Process) { _ = w.device.Stop(w.ctx, p.ID) })
	ending(all, func(each iter.Seq2[*nfcomms.Future, error]) {
		for range each {
		}
	})
	ending(all, func(fabric.Fabric) {})
	ending(all, func(bridge.Device) {}) // all callers that asked for that node share it
	return all
}

func ending[T any](all map[reflect.Type]func(any), end func(T)) {
	all[reflect.TypeFor[T]()] = func(v any) { end(v.(T)) }
}
