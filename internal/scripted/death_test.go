package scripted

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// quickBeat makes a device whose silence is noticed soon.
var quickBeat = Shape{Beat: 5 * time.Millisecond}

// TestDeath kills the device at every step of each call: before and after each
// message it takes or gives. The call ends by itself, and buffers stay intact.
// All calls run at once: each takes as long as a silent device is waited for.
func TestDeath(t *testing.T) {
	const steps = 14
	type death struct {
		*rig
		step int
		call *bridgetest.Pending
	}
	e := bridgetest.NewEnv(t)
	var deaths []death
	for _, when := range []string{"take", "give"} {
		for name := range deviationCalls {
			for k := range steps {
				r := newRigIn(e, quickBeat)
				ch := r.Subscribe(r.dev, abi.TargetLoopback)
				r.s.SetHooks(r.dieAt(when, int64(k)))
				deaths = append(deaths, death{r, k, bridgetest.Call(fmt.Sprint(when, " ", name, " step ", k), func() error {
					return deviationCalls[name](r, e.Ctx(), ch)
				})})
			}
		}
	}
	for _, d := range deaths {
		if err := e.Wait(d.call); err != nil {
			require.ErrorIs(t, err, bridge.ErrDeviceLost, d.call.Name)
		} else {
			require.Positive(t, d.step, "%s: a call worked with a dead device", d.call.Name)
		}
		d.recovers()
	}
}

// dieAt makes hooks that kill the device at its k-th step.
func (r *rig) dieAt(when string, k int64) Hooks {
	var n atomic.Int64
	die := func() bool {
		if n.Add(1) > k {
			r.s.killLocked()
		}
		return n.Load() > k
	}
	if when == "take" {
		return Hooks{Take: func(*wire.Slot) bool { return !die() }}
	}
	return Hooks{Give: func(m wire.Slot) []wire.Slot {
		if die() {
			return nil
		}
		return only(m)
	}}
}

// TestHeartbeatStops: a device that only stops beating is lost as well, and so
// says Health; calls that wait for it end.
func TestHeartbeatStops(t *testing.T) {
	r := newRig(t, quickBeat)
	ports := r.Ports(r.dev, "hold", 2)
	send := bridgetest.Call("send", func() error { return ports[0].Send(r.Ctx(), nil) })
	receive := bridgetest.Call("receive", func() error { return ports[1].ReceiveInd(r.Ctx(), make([]byte, 10)) })
	r.UntilBlocked(r.dev, 2)
	_, err := r.dev.Health()
	require.NoError(t, err)
	r.s.StopBeat()
	require.ErrorIs(t, r.Wait(send), bridge.ErrDeviceLost)
	require.ErrorIs(t, r.Wait(receive), bridge.ErrDeviceLost)
	_, err = r.dev.Health()
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	r.recovers()
}

// TestSilence: a device that beats but answers nothing holds no call for longer
// than its context, plus what ending it takes.
func TestSilence(t *testing.T) {
	for _, op := range bridgetest.Operations[:4] {
		t.Run(op.Name, func(t *testing.T) {
			r := newRig(t, quickBeat)
			ch := r.Ports(r.dev, "hold", 1)[0]
			r.s.SetHooks(Hooks{Take: func(*wire.Slot) bool { return false }})
			ctx, cancel := context.WithTimeout(r.Ctx(), 10*time.Millisecond)
			defer cancel()
			err := op.Do(ctx, ch)
			require.Error(t, err)
			if op.Name == "Send" || op.Name == "SendInd" {
				require.ErrorIs(t, err, bridge.ErrDeviceLost)
			}
			requireTyped(t, err)
			r.recovers()
		})
	}
}

// TestSilentClose: closing a channel and the device ends although nobody
// answers.
func TestSilentClose(t *testing.T) {
	r := newRig(t, quickBeat)
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	r.s.SetHooks(Hooks{Take: func(*wire.Slot) bool { return false }})
	_ = ch.Close()
	r.s.Kill()
	require.NoError(t, r.dev.Close())
}

// TestRepeat: lists that get lost are sent again, and the bytes arrive.
func TestRepeat(t *testing.T) {
	for name, lose := range map[string]func(k uint32, lost int) bool{
		"first":      func(k uint32, lost int) bool { return k == 0 && lost == 0 },
		"some":       func(k uint32, lost int) bool { return k == 7 && lost == 0 || k == 33 && lost == 1 },
		"every once": func(k uint32, lost int) bool { return int(k) == lost },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Shape{})
			ch := r.Subscribe(r.dev, abi.TargetLoopback)
			var lost [2]int
			r.s.SetHooks(Hooks{Lose: func(d abi.Direction, k uint32) bool {
				if !lose(k, lost[d]) {
					return false
				}
				lost[d]++
				return true
			}})
			r.EchoInd(ch, 1<<20, 5)
			require.Positive(t, ch.Stats().Repeated)
			require.Empty(t, r.s.Offences())
			require.Zero(t, r.dev.Stats().Faults)
			r.recovers()
		})
	}
}

// TestRepeatStorm: a device that asks for the same list for ever cannot keep
// the call.
func TestRepeatStorm(t *testing.T) {
	for d, name := range []string{"SendInd", "ReceiveInd"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Shape{})
			ch := r.Subscribe(r.dev, abi.TargetLoopback)
			r.s.SetHooks(Hooks{Lose: func(x abi.Direction, k uint32) bool { return int(x) == d && k == 9 }})
			err := deviationCalls[name](r, r.brief(), ch)
			require.Error(t, err)
			requireTyped(t, err)
			require.Zero(t, r.dev.Stats().Faults)
			r.recovers()
		})
	}
}
