package mailbox

import (
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
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
func (noPort) Restart() error                 { return nil }
func (noPort) Close() error                   { return nil }

// newPulse returns an epoch that is nothing but a heartbeat, watched.
func newPulse(beat time.Duration) *epoch {
	e := &epoch{dev: &Device{port: noPort{}}, fenced: make(chan struct{})}
	e.area = &abi.Area{State: abi.DeviceReady}
	e.table.init(1)
	e.watch.init(e, beat)
	return e
}

// pulse writes heartbeat n.
func (e *epoch) pulse(n uint64) {
	e.watch.mu.Lock() // two loads make one beat
	defer e.watch.mu.Unlock()
	e.area.Heartbeat.Heartbeat().Beat = n
	e.area.Heartbeat.Header = uint64(abi.MakeHeader(abi.TypeHeartbeat, abi.PayloadSize, 0, uint16(n), 0))
}

// TestSilenceIsNoticedInTime: from the last heartbeat to the end of the calls of a
// device at most a second and a half pass, or seven and a half of its heartbeats,
// wherever the looks fall between them; and never less than a second.
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

// TestDeviceThatServesNoMore: calls end when the doorbell rings, whatever the heartbeat; and at the
// next look where it was not heard.
func TestDeviceThatServesNoMore(t *testing.T) {
	for _, state := range []uint32{abi.DeviceOff, abi.DeviceBooting, abi.DeviceFault} {
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
		atomic.StoreUint32(&e.area.State, abi.DeviceOff)
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
