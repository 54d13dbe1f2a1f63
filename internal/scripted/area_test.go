package scripted

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// locked runs f with the device standing still.
func (r *rig) locked(f func()) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	f()
}

// TestHeadNonsense: a consumer counter that cannot be is a fault, or is never
// looked at; one that stands still lets calls end with their context.
func TestHeadNonsense(t *testing.T) {
	for name, head := range map[string]uint64{"ahead": 1 << 20, "far ahead": 1 << 63, "all ones": 1<<64 - 1, "stands still": 0} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Shape{Slots: 16, Mailboxes: 1})
			ch := r.Subscribe(r.dev, abi.TargetLoopback)
			r.s.SetHooks(Hooks{Head: func(uint64) uint64 { return head }})
			ctx := r.brief()
			var err error
			for i := 0; i < 200 && err == nil; i++ {
				if err = ch.Send(ctx, pattern.Words(uint64(i))); err == nil {
					_, err = ch.Receive(ctx, make([]byte, 56))
				}
			}
			if err != nil {
				requireTyped(t, err)
			}
			r.recovers()
		})
	}
}

// TestPageRewritten: the first page is read once; a device that
// changes it later changes nothing.
func TestPageRewritten(t *testing.T) {
	r := newRig(t, Shape{})
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	random := rand.New(rand.NewPCG(5, 5))
	for i := range 50 {
		r.locked(func() {
			state := r.s.area.page().State
			bytes := unsafe.Slice((*byte)(r.s.area.base), 192)
			for j := range bytes {
				if j < 44 || j >= 48 {
					bytes[j] = byte(random.Uint32())
				}
			}
			require.Equal(t, state, r.s.area.page().State)
		})
		r.Echo(ch, pattern.Words(uint64(i)))
		r.EchoInd(ch, 100_000, uint64(i))
	}
	require.Zero(t, r.dev.Stats().Faults)
	r.recovers()
}

// TestStateChanges: a device whose state is fault, off or something
// undrained-of while it continues working is believed or not, but nothing hangs.
func TestStateChanges(t *testing.T) {
	for _, state := range []uint32{wire.DeviceOff, wire.DeviceBooting, wire.DeviceFault, 1 << 31} {
		r := newRig(t, quickBeat)
		ch := r.Subscribe(r.dev, abi.TargetLoopback)
		atomic.StoreUint32(&r.s.area.page().State, state)
		for range 20 {
			if err := deviationCalls["Receive"](r, r.Ctx(), ch); err != nil {
				requireTyped(t, err)
				break
			}
		}
		r.recovers()
	}
}

// TestHeartbeatNonsense: heartbeats that go backwards, never settle or are none
// at all neither hang Health nor crash it.
func TestHeartbeatNonsense(t *testing.T) {
	r := newRig(t, quickBeat)
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	r.s.StopBeat()
	slot := &r.s.area.page().Heartbeat
	random := rand.New(rand.NewPCG(6, 6))
	stop := make(chan struct{})
	writer := bridgetest.Call("writer", func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
				atomic.StoreUint64(&slot.Header, random.Uint64())
				atomic.StoreUint64(&slot.Payload[random.IntN(7)], random.Uint64())
			}
		}
	})
	var err error
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		if _, healthErr := r.dev.Health(); healthErr != nil {
			requireTyped(t, healthErr)
		}
		if err == nil {
			err = deviationCalls["Receive"](r, r.Ctx(), ch)
		}
	}
	close(stop)
	require.NoError(t, r.Wait(writer))
	if err != nil {
		require.ErrorIs(t, err, bridge.ErrDeviceLost)
	}
	r.recovers()
}

// TestIslandWords: an island whose word is asleep when it is awake, or the other
// way round, costs time and nothing else.
func TestIslandWords(t *testing.T) {
	r := newRig(t, Shape{Islands: 2})
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	for i, word := range []uint64{0, 1, 2, 1<<64 - 1} {
		for j := range wire.IslandsMax {
			atomic.StoreUint64(&r.s.area.page().Island[j].Word, word)
		}
		r.Echo(ch, pattern.Words(uint64(i)))
	}
	r.recovers()
}
