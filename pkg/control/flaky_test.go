package control_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/control"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// flaky is a sim device whose answers a test may replace.
type flaky struct {
	bridge.Device
	mu        sync.Mutex
	word      abi.Diagnostic
	lost      error // of every probe
	subscribe error
	reset     error
	stats     *bridge.Stats
	version   string
	fabric    bridge.Fabric
	vendor    uint16       // of the card that it calls itself; 0: none
	met       func()       // called once, after the next Subscribe
	asked     func() error // called once, in place of the next Memory
}

// flakies are the open flaky devices by path.
var flakies sync.Map

// closed are the errors of opening flaky devices, by path.
var unopened sync.Map

func init() {
	bridge.Register("flaky", func(ctx context.Context, a bridge.Address, o *bridge.Options) (bridge.Device, error) {
		if err, ok := unopened.Load(a.Path); ok {
			return nil, err.(error)
		}
		dev, err := bridge.Open(ctx, "sim:", o)
		if err != nil {
			return nil, err
		}
		f := &flaky{Device: dev}
		flakies.Store(a.Path, f)
		return f, nil
	})
}

// attachFlaky serves a device of an application as "devices/nic0", with answers to replace. Until it
// is asked the server does not look at it.
func attachFlaky(t testing.TB, o control.Options) (*control.Client, *nfcomms.Device, *flaky) {
	o.Interval = time.Hour
	srv, c := serve(t, o)
	dev := open(t, "flaky:"+t.Name())
	f, ok := flakies.Load(t.Name())
	require.True(t, ok)
	require.NoError(t, srv.Attach("nic0", dev))
	return c, dev, f.(*flaky)
}

// serveFlaky serves "devices/nic0" with answers to replace.
func serveFlaky(t testing.TB, o control.Options) (*control.Client, *flaky) {
	srv, c := serve(t, o)
	require.NoError(t, srv.Open(background(t), "nic0", "flaky:"+t.Name()))
	f, ok := flakies.Load(t.Name())
	require.True(t, ok)
	return c, f.(*flaky)
}

// set replaces answers.
func (f *flaky) set(change func(f *flaky)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *flaky) Memory(ctx context.Context, kind int) (bridge.Memory, error) {
	f.mu.Lock()
	err, asked := f.lost, f.asked
	f.asked = nil
	f.mu.Unlock()
	if asked != nil {
		err = asked()
	}
	if err != nil {
		return bridge.Memory{}, err
	}
	return f.Device.Memory(ctx, kind)
}

func (f *flaky) Health() (bridge.Health, error) {
	h, err := f.Device.Health()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.word != 0 {
		h.Diagnostic = f.word
	}
	return h, err
}

func (f *flaky) Stats() bridge.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stats != nil {
		return *f.stats
	}
	return f.Device.Stats()
}

func (f *flaky) Info() bridge.Info {
	i := f.Device.Info()
	f.mu.Lock()
	defer f.mu.Unlock()
	i.DriverVersion = f.version
	if f.vendor != 0 {
		i.Driver, i.Board = "dev", &bridge.Board{Vendor: f.vendor}
	}
	return i
}

func (f *flaky) Subscribe(ctx context.Context, t bridge.Target) (bridge.Channel, error) {
	f.mu.Lock()
	err, met := f.subscribe, f.met
	f.met = nil
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	ch, err := f.Device.Subscribe(ctx, t)
	if met != nil {
		met()
	}
	return ch, err
}

func (f *flaky) Reset(ctx context.Context) error {
	f.mu.Lock()
	err := f.reset
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.Device.Reset(ctx)
}
