package mailbox

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// noPort is a port that nothing is behind.
type noPort struct{}

func (noPort) Area() (unsafe.Pointer, uint64) { return nil, 0 }
func (noPort) Ring(int)                       {}
func (noPort) Yield()                         {}
func (noPort) Doorbell() *os.File             { return nil }
func (noPort) Assist() bool                   { return false }
func (noPort) Map([]byte) (uint64, error)     { return 0, nil }
func (noPort) Unmap(uint64, uint64)           {}
func (noPort) Fence()                         {}
func (noPort) Restart(context.Context) error  { return nil }
func (noPort) Close() error                   { return nil }

// newPulse returns an epoch that is nothing but a heartbeat, watched.
func newPulse(beat time.Duration) *epoch { return newPulseOf(&device{port: noPort{}}, beat) }

// newPulseOf is newPulse of a device.
func newPulseOf(d *device, beat time.Duration) *epoch {
	e := &epoch{dev: d, fenced: make(chan struct{})}
	e.area = &wire.Area{State: wire.DeviceReady}
	e.table.init(1)
	e.watch.init(e, beat)
	return e
}

// pulse writes heartbeat n.
func (e *epoch) pulse(n uint64) {
	e.watch.mu.Lock() // two loads make one beat
	defer e.watch.mu.Unlock()
	e.area.Heartbeat.Heartbeat().Beat = n
	e.area.Heartbeat.Header = uint64(wire.MakeHeader(wire.TypeHeartbeat, abi.PayloadSize, 0, uint16(n), 0))
}

// TestAgeIsThatOfTheBeat: a heartbeat is as old as the time at which the device wrote it, however seldom
// anybody looks, where the device has the clock of this machine. A time that cannot be true makes it as
// old as the look that found it.
func TestAgeIsThatOfTheBeat(t *testing.T) {
	const beat, old = 100 * time.Millisecond, 60 * time.Millisecond
	clock, ok := monotonic()
	require.True(t, ok)
	for name, c := range map[string]struct {
		at    time.Duration // by the clock of this machine
		right bool
	}{
		"the same clock": {clock - old, true}, "another clock": {0, false}, "future": {clock + time.Hour, false}, "before the last look": {clock - 10*old, false},
	} {
		e := newPulse(beat)
		e.watch.beaten, e.watch.looked = time.Time{}, time.Now().Add(-2*old) // nobody has looked for a while
		e.area.Heartbeat.Heartbeat().NowNS = uint64(c.at)
		e.pulse(1)
		age := e.watch.age()
		h, err := e.watch.health()
		require.NoError(t, err)
		require.Equal(t, c.right, age >= old && h.Age >= age, "%s: %v", name, age)
		e.watch.stop()
	}
}

// TestSilenceIsNoticedInTime: calls of a device end at least a second after its last heartbeat, and
// at most a second and a half, or seven and a half of its heartbeats. It does not matter when the
// host looks between them.
func TestSilenceIsNoticedInTime(t *testing.T) {
	for _, beat := range []time.Duration{time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, time.Second} {
		limit := max(time.Second, 5*beat)
		for phase := range 20 {
			synctest.Test(t, func(t *testing.T) {
				e := newPulse(beat)
				time.Sleep(limit * time.Duration(phase) / 20)
				e.dev.blocked.Add(1)
				e.watch.wakeUp()
				n := uint64(1)
				for range 3 * limit / beat {
					e.pulse(n)
					n++
					time.Sleep(beat)
				}
				e.pulse(n)
				last := time.Now()
				<-e.fenced
				require.ErrorIs(t, e.err(), bridge.ErrDeviceLost)
				require.LessOrEqual(t, time.Since(last), limit*3/2, "beat %v, phase %d", beat, phase)
				require.Greater(t, time.Since(last), limit, "beat %v, phase %d", beat, phase)
			})
		}
	}
}

// carrier is a port to a device behind a process, which answers while it is there.
type carrier struct {
	noPort
	there *atomic.Bool
}

func (c carrier) Ask(answered func(bool)) {
	if c.there.Load() {
		go answered(true)
	}
}

// TestSilenceOfAFarDevice: heartbeats that have hops to make may be late by as much as an answer.
// The process that carries them has no more time than a near device. A device that it knows to be
// removed is lost as soon as the area says so.
func TestSilenceOfAFarDevice(t *testing.T) {
	const beat, far = 200 * time.Millisecond, 5 * time.Second
	for _, c := range []struct {
		name        string
		there       bool // the carrier
		state       uint32
		least, most time.Duration
	}{
		{"carried", true, wire.DeviceReady, far, far + time.Second/2},
		{"its carrier stands still", false, wire.DeviceReady, time.Second, 3 * time.Second / 2},
		{"its node is gone", true, wire.DeviceOff, 0, time.Second / looks},
	} {
		for phase := range 10 {
			synctest.Test(t, func(t *testing.T) {
				var there atomic.Bool
				there.Store(true)
				e := newPulseOf(&device{port: carrier{there: &there}, answer: far}, beat)
				e.dev.blocked.Add(1)
				e.watch.wakeUp()
				for n := range uint64(10) { // each as late as on a busy machine
					e.pulse(n + 1)
					time.Sleep(2*time.Second + beat*time.Duration(phase)/10)
					require.NoError(t, e.err(), c.name)
				}
				e.pulse(11)
				last := time.Now()
				there.Store(c.there)
				atomic.StoreUint32(&e.area.State, c.state)
				<-e.fenced
				require.ErrorIs(t, e.err(), bridge.ErrDeviceLost, c.name)
				require.LessOrEqual(t, time.Since(last), c.most, "%s, phase %d", c.name, phase)
				require.GreaterOrEqual(t, time.Since(last), c.least, "%s, phase %d", c.name, phase)
			})
		}
	}
}

// TestDeviceThatServesNoMore: calls end when the doorbell rings, whatever the heartbeat; and at the
// next poll where it was lost.
func TestDeviceThatServesNoMore(t *testing.T) {
	for _, state := range []uint32{wire.DeviceOff, wire.DeviceBooting, wire.DeviceFault} {
		f := newFake(t)
		dev := f.open()
		atomic.StoreUint32(&f.area.State, state)
		f.ringHost()
		<-dev.cur.Load().fenced
		_, err := dev.Health()
		require.ErrorIs(t, err, bridge.ErrDeviceLost)
		require.ErrorContains(t, err, "serves no more")
	}
	synctest.Test(t, func(t *testing.T) {
		e := newPulse(100 * time.Millisecond)
		e.pulse(1)
		e.dev.blocked.Add(1)
		e.watch.wakeUp()
		atomic.StoreUint32(&e.area.State, wire.DeviceOff)
		time.Sleep(time.Second / looks)
		<-e.fenced
		require.ErrorContains(t, e.err(), "serves no more")
	})
}

// TestStandingStillIsNoSilence: time in which no look was possible does not count.
func TestStandingStillIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newPulse(100 * time.Millisecond)
		e.pulse(1)
		e.watch.look()
		time.Sleep(time.Hour)
		e.dev.blocked.Add(1)
		e.watch.wakeUp()
		synctest.Wait()
		for n := uint64(2); n < 100; n++ {
			time.Sleep(900 * time.Millisecond)
			require.NoError(t, e.err())
			e.pulse(n)
		}
		e.dev.blocked.Add(-1)
		time.Sleep(time.Minute)
		require.NoError(t, e.err(), "nobody waits, so nobody looks")
	})
}
