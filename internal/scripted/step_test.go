package scripted

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// TestCancelAtEveryStep ends the context of each call at every step: just
// before the device takes, or gives, its k-th message. The call succeeds or is
// withdrawn, and leaves nothing behind.
func TestCancelAtEveryStep(t *testing.T) {
	eachStep(t, func(r *rig, name string, at func(func()) Hooks) {
		ch := r.Subscribe(r.dev, abi.TargetLoopback)
		ctx, cancel := context.WithCancel(r.Ctx())
		defer cancel()
		r.s.SetHooks(at(cancel))
		err := deviationCalls[name](r, ctx, ch)
		if err != nil {
			require.ErrorIs(r, err, bridge.ErrWithdrawn)
			require.ErrorIs(r, err, context.Canceled)
		}
		r.s.SetHooks(Hooks{})
		require.NoError(r, ch.Close())
	})
}

// TestCloseAtEveryStep closes the channel under each call at every step.
func TestCloseAtEveryStep(t *testing.T) {
	eachStep(t, func(r *rig, name string, at func(func()) Hooks) {
		ch := r.Subscribe(r.dev, abi.TargetLoopback)
		var closing sync.WaitGroup
		closed := make(chan error, 1)
		r.s.SetHooks(at(func() { closing.Go(func() { closed <- ch.Close() }) }))
		err := deviationCalls[name](r, r.Ctx(), ch)
		if err != nil {
			require.ErrorIs(r, err, bridge.ErrClosed)
		}
		r.s.SetHooks(Hooks{})
		closing.Wait()
		require.NoError(r, errors.Join(came(closed), ch.Close()))
	})
}

// came is what came, if anything did.
func came(c <-chan error) error {
	select {
	case err := <-c:
		return err
	default:
		return nil
	}
}

// eachStep runs body with hooks that fire once, at one step of one call, for
// all calls and steps. The device must be as good as new afterwards, without a
// reset.
func eachStep(t *testing.T, body func(r *rig, name string, at func(func()) Hooks)) {
	const steps = 14
	for _, when := range []string{"take", "give"} {
		for name := range deviationCalls {
			t.Run(when+"/"+name, func(t *testing.T) {
				r := newRigIn(bridgetest.NewEnv(t), quickBeat)
				for k := range int64(steps) {
					body(r, name, func(fire func()) Hooks { return fireAt(when, k, fire) })
					ch := r.Subscribe(r.dev, abi.TargetLoopback)
					r.Echo(ch, []byte(fmt.Sprint("after step ", k)))
					r.EchoInd(ch, 50_000, 3)
					require.NoError(r, ch.Close())
				}
				require.Zero(r, r.dev.Stats().Faults)
				require.Empty(r, r.s.Offences())
			})
		}
	}
}

// fireAt makes hooks that call fire once, at the k-th message.
func fireAt(when string, k int64, fire func()) Hooks {
	var n atomic.Int64
	look := func() {
		if n.Add(1) == k+1 {
			fire()
		}
	}
	if when == "take" {
		return Hooks{Take: func(*wire.Slot) bool { look(); return true }}
	}
	return Hooks{Give: func(m wire.Slot) []wire.Slot { look(); return only(m) }}
}
