package scripted

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const deviationSize = 1 << 20

// deviationCalls are the calls that a deviation hits, each on a loopback.
var deviationCalls = map[string]func(r *rig, ctx context.Context, ch bridge.Channel) error{
	"Send": func(_ *rig, ctx context.Context, ch bridge.Channel) error {
		return ch.Send(ctx, []byte("message"))
	},
	"Receive": func(_ *rig, ctx context.Context, ch bridge.Channel) error {
		if err := ch.Send(ctx, []byte("message")); err != nil {
			return err
		}
		buf := make([]byte, 56)
		n, err := ch.Receive(ctx, buf)
		if err == nil && string(buf[:n]) != "message" {
			return fmt.Errorf("received %q", buf[:n])
		}
		return err
	},
	"SendInd": func(r *rig, ctx context.Context, ch bridge.Channel) error {
		b := bridgetest.NewBuffer(deviationSize, 123)
		pattern.Fill(b.Data, 0, 3)
		err := ch.SendInd(ctx, b.Data)
		require.Negative(r, pattern.Diff(b.Data, 0, 3), "source changed")
		r.Check(b)
		return err
	},
	// Before it receives, the host has looked at all that the device said.
	"ReceiveLate": func(r *rig, ctx context.Context, ch bridge.Channel) error {
		if err := ch.Send(ctx, []byte("message")); err != nil {
			return err
		}
		return r.lookedAt(ctx, ch)
	},
	"ReceiveIndLate": func(r *rig, ctx context.Context, ch bridge.Channel) error {
		if err := ch.SendInd(ctx, make([]byte, deviationSize)); err != nil {
			return err
		}
		return r.lookedAt(ctx, ch)
	},
	"ReceiveInd": func(r *rig, ctx context.Context, ch bridge.Channel) error {
		src := make([]byte, deviationSize)
		pattern.Fill(src, 0, 4)
		if err := ch.SendInd(ctx, src); err != nil {
			return err
		}
		b := bridgetest.NewBuffer(deviationSize, 321)
		err := ch.ReceiveInd(ctx, b.Data)
		r.Check(b)
		if i := pattern.Diff(b.Data, 0, 4); err == nil && i >= 0 {
			return fmt.Errorf("byte %d differs", i)
		}
		return err
	},
}

// TestDeviations breaks one rule at a time and looks what the host makes of it.
func TestDeviations(t *testing.T) {
	for i := range Catalogue {
		if w := &Catalogue[i]; w.Want != Undecided {
			t.Run(w.In+"/"+w.Name, func(t *testing.T) { newRig(t, quickBeat).deviate(w) })
		}
	}
}

// lookedAt makes the host read its mailbox until it is in fault. The process
// does not read while it offers: what is tried is withdrawn.
func (r *rig) lookedAt(ctx context.Context, ch bridge.Channel) error {
	for {
		if _, err := ch.TrySend([]byte("look"), nil); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// deviate makes the call of a deviation and checks the conclusion.
func (r *rig) deviate(d *Wrong) {
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	hit := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(r.Ctx())
	defer cancel()
	alter := func(m wire.Slot) []wire.Slot {
		hit <- struct{}{}
		if d.Want == Lost || d.Want == Waits {
			time.AfterFunc(20*time.Millisecond, cancel)
		}
		return d.Alter(nil, m, nil)
	}
	before := r.dev.Stats().Dropped
	give := nth(d.Nth, d.Match, alter)
	r.s.SetHooks(Hooks{Give: func(m wire.Slot) []wire.Slot {
		if len(hit) > 0 && (d.Mute || d.Still && moving(&m)) {
			return nil
		}
		return give(m)
	}, Mailbox: d.route})
	err := deviationCalls[d.In](r, ctx, ch)
	require.Len(r, hit, 1, "the deviation never happened")
	if d.Want != Lost && d.Want != Faulted {
		r.readAll(ch)
		require.Zero(r, r.dev.Stats().Faults)
	}
	r.concludes(d, ch, err)
	r.checkDropped(d, before)
	r.recovers()
}

// route sends a message of another mailbox the way of the loopback's.
func (d *Wrong) route(_ *wire.Slot, own int) int {
	if d.Astray {
		return abi.TargetLoopback
	}
	return own
}

// concludes checks how the call of a deviation ended, and what it left.
func (r *rig) concludes(d *Wrong, ch bridge.Channel, err error) {
	r.Helper()
	switch d.Want {
	case Faulted:
		require.ErrorIs(r, err, bridge.ErrFault)
		r.latched(ch)
	case Dropped, Harmless:
		require.NoError(r, err)
		require.Empty(r, r.s.Offences(), "the host broke a rule in turn")
	case Closed:
		require.NoError(r, err)
		require.ErrorIs(r, ch.Send(r.Ctx(), nil), bridge.ErrClosed)
		require.ErrorIs(r, ch.SendInd(r.Ctx(), nil), bridge.ErrClosed)
	case Waits:
		r.IsWithdrawn(err, context.Canceled)
	case Lost:
		require.ErrorIs(r, err, bridge.ErrDeviceLost)
	case Refused:
		status, _ := bridge.StatusOf(err)
		require.Equal(r, d.Status, status, "%v", err)
	default:
		require.Fail(r, "a row without a conclusion")
	}
}

// checkDropped requires that messages were counted as dropped if they must be.
func (r *rig) checkDropped(d *Wrong, before uint64) {
	r.Helper()
	switch d.Want {
	case Dropped: // by the dispatcher, perhaps, which is not done yet
		r.Until("what was ignored is counted", func() bool { return r.dev.Stats().Dropped > before })
	case Harmless, Closed, Waits:
		require.Equal(r, before, r.dev.Stats().Dropped, "what is harmless is not counted")
	}
}

// readAll makes the host read all that the device said so far, in both mailboxes.
func (r *rig) readAll(ch bridge.Channel) {
	r.Helper()
	_, err := r.dev.Programs(r.Ctx()) // the control channel's
	require.NoError(r, err)
	_, _, _ = ch.TryReceive(nil)
}

// latched requires that a fault stays until Reset.
func (r *rig) latched(ch bridge.Channel) {
	r.Helper()
	require.EqualValues(r, 1, r.dev.Stats().Faults)
	for _, op := range bridgetest.Operations {
		require.ErrorIs(r, op.Do(r.Ctx(), ch), bridge.ErrFault, op.Name)
	}
	_, err := r.dev.Subscribe(r.Ctx(), abi.TargetLog)
	require.ErrorIs(r, err, bridge.ErrFault)
	_, err = ch.TrySend(nil, nil)
	require.ErrorIs(r, err, bridge.ErrFault)
	_, err = r.dev.Start(r.Ctx(), bridge.Program{Name: "hold", Targets: 1})
	require.ErrorIs(r, err, bridge.ErrFault)
}
