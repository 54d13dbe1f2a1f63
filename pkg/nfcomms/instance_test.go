//go:build cgo

package nfcomms

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/program"
)

// rigged is a device whose calls may be refused.
type rigged struct {
	bridge.Device
	mu        sync.Mutex
	started   func(p Process)
	load      func() error
	subscribe func(ctx context.Context, t Target) error
	stop      func() error
	reset     func(ctx context.Context) error
	health    func() error
}

// hook runs one of the functions, if it is set.
func hook[F any](r *rigged, f *F) F {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *f
}

// set sets one of the functions.
func set[F any](r *rigged, f *F, to F) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*f = to
}

func (r *rigged) Subscribe(ctx context.Context, t Target) (bridge.Channel, error) {
	if f := hook(r, &r.subscribe); f != nil {
		if err := f(ctx, t); err != nil {
			return nil, err
		}
	}
	return r.Device.Subscribe(ctx, t)
}

func (r *rigged) Start(ctx context.Context, p Program) (Process, error) {
	proc, err := r.Device.Start(ctx, p)
	if f := hook(r, &r.started); f != nil && err == nil {
		f(proc)
	}
	return proc, err
}

func (r *rigged) Load(ctx context.Context, image []byte) (string, error) {
	if f := hook(r, &r.load); f != nil {
		return "", f()
	}
	return r.Device.Load(ctx, image)
}

func (r *rigged) Stop(ctx context.Context, id ProcessID) error {
	if f := hook(r, &r.stop); f != nil {
		if err := f(); err != nil {
			return err
		}
	}
	return r.Device.Stop(ctx, id)
}

func (r *rigged) Reset(ctx context.Context) error {
	if f := hook(r, &r.reset); f != nil {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return r.Device.Reset(ctx)
}

func (r *rigged) Health() (Health, error) {
	if f := hook(r, &r.health); f != nil {
		if err := f(); err != nil {
			return Health{}, err
		}
	}
	return r.Device.Health()
}

// openRigged returns a device over sim:, and how to rig it.
func openRigged(t testing.TB, address string) (*Device, *rigged) {
	dev, err := bridge.Open(background(t), address, nil)
	require.NoError(t, err)
	r := &rigged{Device: dev}
	d := newDevice(r, address)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, r
}

// services is how many processes of its own a device has.
var services = sync.OnceValues(func() (int, error) {
	d, err := Open(context.Background(), "sim:")
	if err != nil {
		return 0, err
	}
	defer d.Close()
	h, err := d.Health()
	return h.Processes, err
})

// nothingRuns requires that no process was left, and no channel is open.
func nothingRuns(t testing.TB, d *Device) {
	t.Helper()
	own, err := services()
	require.NoError(t, err)
	require.Empty(t, d.channels())
	require.Zero(t, d.Stats().Channels)
	require.Eventually(t, func() bool {
		h, err := d.Health()
		return err == nil && h.Processes == own
	}, time.Minute, time.Millisecond)
}

func TestRunGivesThePortsInOrder(t *testing.T) {
	ctx := background(t)
	d := openSim(t, "sim:?beat=1ms")
	i, err := d.Run(ctx, Program{Name: "loopback", First: 40, Targets: 3})
	require.NoError(t, err)
	require.Equal(t, Target(40), i.Process.First)
	require.Len(t, i.Channels, 3)
	buf := make([]byte, 8)
	for port, ch := range i.Channels {
		require.Equal(t, Target(40+port), ch.Target())
		require.NoError(t, ch.Send(ctx, []byte{byte(port)}))
		_, err := ch.Receive(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, byte(port), buf[0])
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { assert.NoError(t, i.Close()) })
	}
	wg.Wait()
	<-i.Done()
	require.NoError(t, i.Wait())
	require.ErrorIs(t, i.Channels[0].Send(ctx, nil), ErrClosed)
	nothingRuns(t, d)
	i, err = d.Run(ctx, Program{Name: "loopback"})
	require.NoError(t, err)
	require.Len(t, i.Channels, 1, "no ports given means one")
	require.NoError(t, d.Stop(ctx, i.Process.ID))
	require.NoError(t, i.Close(), "the process had returned")
	nothingRuns(t, d)
}

func TestRunEndsWithItsContext(t *testing.T) {
	d := openSim(t, "sim:?beat=1ms")
	for range 20 {
		ctx, cancel := context.WithCancel(background(t))
		i, err := d.Run(ctx, Program{Name: "hold", Targets: 2})
		require.NoError(t, err)
		pending := SendCase(i.Channels[1], nil).Start(background(t))
		cancel()
		require.NoError(t, i.Wait())
		_, err = pending.Wait(background(t))
		require.ErrorIs(t, err, ErrClosed)
	}
	nothingRuns(t, d)
}

// TestRunUnwinds: whatever fails, and wherever, leaves no process and no channel.
func TestRunUnwinds(t *testing.T) {
	d, r := openRigged(t, "sim:?beat=1ms")
	own := errors.New("refused")
	const ports = 4
	p := Program{Name: "hold", Targets: ports}
	for at := range ports {
		left := at
		set(r, &r.subscribe, func(context.Context, Target) error {
			if left--; left < 0 {
				return own
			}
			return nil
		})
		_, err := d.Run(background(t), p)
		require.ErrorIs(t, err, own)
		nothingRuns(t, d)

		ctx, cancel := context.WithCancel(background(t))
		left = at
		set(r, &r.subscribe, func(context.Context, Target) error {
			if left--; left < 0 {
				cancel()
			}
			return nil
		})
		_, err = d.Run(ctx, p)
		require.ErrorIs(t, err, ErrWithdrawn)
		require.ErrorIs(t, err, context.Canceled)
		require.Eventually(t, func() bool { // the rest may continue after a call whose context has ended
			return len(d.channels()) == 0 && d.Stats().Channels == 0
		}, time.Minute, time.Millisecond)
		nothingRuns(t, d)
	}
	set(r, &r.subscribe, func(context.Context, Target) error { return ErrNotSubscribed })
	_, err := d.Run(background(t), p)
	require.ErrorIs(t, err, ErrNotSubscribed)
	require.ErrorContains(t, err, "has ended")
	nothingRuns(t, d)
	set(r, &r.subscribe, nil)
	_, err = d.Run(background(t), Program{Name: "nothing"})
	require.ErrorIs(t, err, ErrNoProgram)
	_, err = d.Run(background(t), Program{Name: "hold", Targets: -1})
	require.ErrorIs(t, err, ErrInvalid)
	taken, err := d.Run(background(t), Program{Name: "hold", First: 50})
	require.NoError(t, err)
	_, err = d.Run(background(t), Program{Name: "hold", First: 49, Targets: 2})
	require.ErrorIs(t, err, ErrBusy)
	set(r, &r.stop, func() error { return own })
	require.ErrorIs(t, taken.Close(), own, "who cannot stop a process says so")
	require.ErrorIs(t, taken.Wait(), own)
	require.Empty(t, d.channels())
	set(r, &r.stop, nil)
	require.NoError(t, d.Stop(background(t), taken.Process.ID))
	nothingRuns(t, d)
}

// late is a program that computes for argument milliseconds, and then holds its ports until
// it is stopped.
const late = `#include "nfc_fw.h"

static void late_main(struct nfc_process *self)
{
	for (uint64_t end = nfc_now(self) + nfc_argument(self) * 1000000; nfc_now(self) < end;)
		;
	while (!nfc_stopped(self))
		nfc_sleep(self, UINT64_MAX / 2);
}

NFC_PROGRAMS({ NFC_PROGRAM_ABI, 0, "late", late_main });
`

// TestRunOnAnIslandThatComputes: a Run that failed because its process kept the island to
// itself leaves no process and no channel; the target is free.
func TestRunOnAnIslandThatComputes(t *testing.T) {
	ctx := background(t)
	d := openSim(t, "sim:?islands=2&managers=2&channels=64&beat=1ms")
	image, err := program.Build(ctx, fstest.MapFS{"late.c": {Data: []byte(late), Mode: 0o600}}, program.Options{})
	require.NoError(t, err)
	_, err = d.Load(ctx, image)
	require.NoError(t, err)
	_, err = d.Run(ctx, Program{Name: "late", First: 40, Argument: 1500})
	require.ErrorIs(t, err, ErrTargetTimeout)
	var computing *ComputingError
	require.ErrorAs(t, err, &computing)
	nothingRuns(t, d)
	i, err := d.Run(ctx, Program{Name: "late", First: 40})
	require.NoError(t, err)
	require.NoError(t, i.Close())
	nothingRuns(t, d)
}

// TestRunAcrossReset: an instance of an epoch that is over stops nothing of the
// next, where its process id may be another's.
func TestRunAcrossReset(t *testing.T) {
	ctx := background(t)
	d := openSim(t, "sim:?beat=1ms")
	old, err := d.Run(ctx, Program{Name: "hold"})
	require.NoError(t, err)
	require.NoError(t, d.Reset(ctx))
	next, err := d.Start(ctx, Program{Name: "hold", Targets: 1})
	require.NoError(t, err)
	require.Equal(t, old.Process.First, next.First)
	require.NotEqual(t, old.Process.ID, next.ID)
	require.ErrorIs(t, d.Stop(ctx, old.Process.ID), ErrInvalid)
	require.NoError(t, old.Close())
	require.NoError(t, d.Stop(ctx, next.ID), "it still ran")
	nothingRuns(t, d)
}

// TestRunThatMeetsAReset: the device is reset between Start and Subscribe of one Run, by this
// Device or behind its back, and a stranger's process gets the same port.
func TestRunThatMeetsAReset(t *testing.T) {
	ctx := background(t)
	for name, reset := range map[string]func(d *Device, r *rigged) error{
		"by this device":   func(d *Device, _ *rigged) error { return d.Reset(ctx) },
		"by somebody else": func(_ *Device, r *rigged) error { return r.Device.Reset(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			d, r := openRigged(t, "sim:?beat=1ms")
			var stranger Process
			set(r, &r.started, func(p Process) {
				set(r, &r.started, nil)
				require.NoError(t, reset(d, r))
				var err error
				stranger, err = r.Device.Start(ctx, Program{Name: "hold", First: p.First, Targets: 1})
				require.NoError(t, err)
			})
			_, err := d.Run(ctx, Program{Name: "loopback"})
			require.ErrorIs(t, err, ErrDeviceLost)
			require.Empty(t, d.channels())
			require.NoError(t, d.Stop(ctx, stranger.ID), "it still ran")
			i, err := d.Run(ctx, Program{Name: "loopback"})
			require.NoError(t, err)
			require.NoError(t, i.Close())
			nothingRuns(t, d)
		})
	}
}

// TestRunDuringAFailedReset: a reset that is refused, or whose context ends,
// decides nothing about an instance that ends meanwhile.
func TestRunDuringAFailedReset(t *testing.T) {
	d, r := openRigged(t, "sim:?beat=1ms")
	ctx := background(t)
	i, err := d.Run(ctx, Program{Name: "hold"})
	require.NoError(t, err)
	under, refuse := make(chan struct{}), make(chan struct{})
	set(r, &r.reset, func(context.Context) error {
		close(under)
		<-refuse
		return ErrNotSupported
	})
	reset := make(chan error, 1)
	go func() { reset <- d.Reset(ctx) }()
	<-under
	j, err := d.Run(ctx, Program{Name: "hold"})
	require.NoError(t, err, "the epoch goes on")
	require.NoError(t, j.Close())
	i.end()
	close(refuse)
	require.ErrorIs(t, <-reset, ErrNotSupported)
	require.NoError(t, i.Wait())
	nothingRuns(t, d)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, d.Reset(ended), ErrWithdrawn)
}

// TestChannelsAfterAFailedReset: what is open stays listed until it is closed.
func TestChannelsAfterAFailedReset(t *testing.T) {
	d, r := openRigged(t, "sim:")
	ch, err := d.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	set(r, &r.reset, func(context.Context) error { return ErrNotSupported })
	require.ErrorIs(t, d.Reset(background(t)), ErrNotSupported)
	require.Equal(t, []*Channel{ch}, d.channels())
	set(r, &r.reset, nil)
	require.NoError(t, d.Reset(background(t)))
	require.Empty(t, d.channels())
	_, err = d.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Empty(t, d.channels(), "a closed device has none")
}

// TestRunUnderResets runs and ends instances while somebody resets the device.
func TestRunUnderResets(t *testing.T) {
	ctx := background(t)
	d := openSim(t, "sim:?beat=1ms")
	stop := make(chan struct{})
	var resets, runs sync.WaitGroup
	resets.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, d.Reset(ctx))
			}
		}
	})
	for range 4 {
		runs.Go(func() {
			for range 40 {
				i, err := d.Run(ctx, Program{Name: "loopback", Targets: 2})
				if err != nil {
					assert.ErrorIs(t, err, ErrDeviceLost)
					continue
				}
				if err := i.Channels[1].Send(ctx, []byte("x")); err != nil {
					assert.ErrorIs(t, err, ErrDeviceLost)
				}
				assert.NoError(t, i.Close())
			}
		})
	}
	runs.Wait()
	close(stop)
	resets.Wait()
	i, err := d.Run(ctx, Program{Name: "loopback"})
	require.NoError(t, err)
	require.NoError(t, i.Close())
	nothingRuns(t, d)
}
