package scripted

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/bridgetest"
	"github.com/nfcomms/nfcomms/bridge/bridgetest/pattern"
)

// conclusion is what the host must make of a deviation.
type conclusion int

const (
	// faulted: the call and every later one end with ErrFault until Reset.
	faulted conclusion = iota
	// ignored: the call works as if nothing had been, and the message is
	// counted as dropped.
	ignored
	// harmless: the call works as if nothing had been: the host has no use
	// for what is wrong.
	harmless
	// closed: the call works, and the channel is closed by the device.
	closed
	// waits: the call waits until its context ends, and is withdrawn.
	waits
	// lost: the device does not answer; the call ends with ErrDeviceLost
	// once its context is over.
	lost
	// refused: the call ends with the row's error, and the device goes on.
	refused
)

// deviation is one way to break the protocol during one call.
type deviation struct {
	name  string
	call  string // key of deviationCalls
	match func(m *abi.Slot) bool
	nth   int
	alter func(m abi.Slot) []abi.Slot
	want  conclusion
	err   error // with refused
	mute  bool  // the device gives nothing any more afterwards
	// still: records of lists that were moving before do not follow; with
	// them the conclusion would hang on which side is faster.
	still bool
	// astray: what belongs to another mailbox goes through the one of the
	// channel that the call is on.
	astray bool
}

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
	var all []deviation
	for _, g := range [][]deviation{directDeviations(), headerDeviations(), noteDeviations(), offerDeviations(),
		sendIndDeviations(), receiveIndDeviations()} {
		all = append(all, g...)
	}
	for _, d := range all {
		t.Run(d.call+"/"+d.name, func(t *testing.T) { newRig(t, quickBeat).deviate(d) })
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
func (r *rig) deviate(d deviation) {
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	hit := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(r.Ctx())
	defer cancel()
	alter := func(m abi.Slot) []abi.Slot {
		hit <- struct{}{}
		if d.want == lost || d.want == waits {
			time.AfterFunc(20*time.Millisecond, cancel)
		}
		return d.alter(m)
	}
	before := r.dev.Stats().Dropped
	give := nth(d.nth, d.match, alter)
	r.s.SetHooks(Hooks{Give: func(m abi.Slot) []abi.Slot {
		if len(hit) > 0 && (d.mute || d.still && moving(&m)) {
			return nil
		}
		return give(m)
	}, Mailbox: d.route})
	err := deviationCalls[d.call](r, ctx, ch)
	require.Len(r, hit, 1, "the deviation never happened")
	if d.want != lost && d.want != faulted {
		r.readAll(ch)
		require.Zero(r, r.dev.Stats().Faults)
	}
	r.concludes(d, ch, err)
	r.checkDropped(d, r.dev.Stats().Dropped-before)
	r.recovers()
}

// route sends a message of another mailbox the way of the loopback's.
func (d *deviation) route(_ *abi.Slot, own int) int {
	if d.astray {
		return abi.TargetLoopback
	}
	return own
}

// concludes checks how the call of a deviation ended, and what it left.
func (r *rig) concludes(d deviation, ch bridge.Channel, err error) {
	r.Helper()
	switch d.want {
	case faulted:
		require.ErrorIs(r, err, bridge.ErrFault)
		r.latched(ch)
	case ignored, harmless:
		require.NoError(r, err)
		require.Empty(r, r.s.Offences(), "the host broke a rule in turn")
	case closed:
		require.NoError(r, err)
		require.ErrorIs(r, ch.Send(r.Ctx(), nil), bridge.ErrClosed)
		require.ErrorIs(r, ch.SendInd(r.Ctx(), nil), bridge.ErrClosed)
	case waits:
		r.IsWithdrawn(err, context.Canceled)
	case lost:
		require.ErrorIs(r, err, bridge.ErrDeviceLost)
	case refused:
		require.ErrorIs(r, err, d.err)
	default:
		require.Fail(r, "a row without a conclusion")
	}
}

// checkDropped requires that messages were counted as dropped if they must be.
func (r *rig) checkDropped(d deviation, n uint64) {
	r.Helper()
	switch d.want {
	case ignored:
		require.Positive(r, n, "what was ignored is counted")
	case harmless, closed, waits:
		require.Zero(r, n, "what is harmless is not counted")
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

// ackRow alters the ack of a Send.
func ackRow(name string, want conclusion, f func(a *abi.Ack)) deviation {
	return deviation{name: name, call: "Send", match: ackOf(abi.StateConsumed, abi.H2D), want: want,
		alter: func(m abi.Slot) []abi.Slot { return only(withAck(m, f)) }}
}

func directDeviations() []deviation {
	consumed := ackOf(abi.StateConsumed, abi.H2D)
	row := func(name string, want conclusion, alter func(m abi.Slot) []abi.Slot) deviation {
		return deviation{name: name, call: "Send", match: consumed, want: want, alter: alter}
	}
	return []deviation{
		ackRow("ack from the future", faulted, func(a *abi.Ack) { a.Transaction++ }),
		ackRow("ack from far away", faulted, func(a *abi.Ack) { a.Transaction += 1 << 40 }),
		ackRow("ack with state READY", faulted, func(a *abi.Ack) { a.State = abi.StateReady }),
		ackRow("ack with state MOVING", faulted, func(a *abi.Ack) { a.State = abi.StateMoving }),
		ackRow("ack with state REPEAT", faulted, func(a *abi.Ack) { a.State = abi.StateRepeat }),
		ackRow("ack with an unknown state", faulted, func(a *abi.Ack) { a.State = abi.StateCount }),
		ackRow("ack with state 65535", faulted, func(a *abi.Ack) { a.State = 0xffff }),
		ackRow("ack with an unknown status", faulted, func(a *abi.Ack) { a.Status = abi.StatusCount }),
		ackRow("ack with an error status", faulted, func(a *abi.Ack) { a.Status = abi.ErrKind }),
		ackRow("ack for an unknown direction", faulted, func(a *abi.Ack) { a.Direction = 2 }),
		ackRow("ack for the other direction", faulted, func(a *abi.Ack) { a.Direction = uint32(abi.D2H) }),
		ackRow("ack with bytes processed", harmless, func(a *abi.Ack) { a.Processed = 1 << 60 }),
		ackRow("ack with lists", harmless, func(a *abi.Ack) { a.Lists = 7 }),
		row("replayed ack first", ignored, func(m abi.Slot) []abi.Slot {
			return only(withAck(m, func(a *abi.Ack) { a.Transaction-- }), m)
		}),
		row("ack twice", ignored, func(m abi.Slot) []abi.Slot { return only(m, m) }),
		row("ack a hundred times", ignored, func(m abi.Slot) (all []abi.Slot) {
			for range 100 {
				all = append(all, m)
			}
			return all
		}),
		row("no ack", lost, func(abi.Slot) []abi.Slot { return nil }),
		row("DONE for a message", faulted, func(m abi.Slot) []abi.Slot {
			m.Ack().State = abi.StateDone
			return only(withHeader(m, func(h *header) { h.kind = abi.TypeDone }))
		}),
		row("ABORTED for a message", faulted, func(m abi.Slot) []abi.Slot {
			m.Ack().State, m.Ack().Status = abi.StateFailed, abi.ErrAborted
			return only(withHeader(m, func(h *header) { h.kind = abi.TypeAborted }))
		}),
		errorRow("Send", "kind", refused, abi.ErrKind, bridge.ErrKindMismatch),
		errorRow("Send", "closed", refused, abi.ErrClosed, bridge.ErrClosed),
		errorRow("Send", "no target", refused, abi.ErrNoTarget, bridge.ErrNotSubscribed),
		errorRow("Send", "time-out", refused, abi.ErrTimeout, bridge.ErrTargetTimeout),
		errorRow("Send", "no status", faulted, abi.OK, nil),
		errorRow("Send", "unknown status", faulted, abi.StatusCount, nil),
		errorRow("Send", "status 65535", faulted, 0xffff, nil),
	}
}

// errorRow answers a message or a transfer with ERROR.
func errorRow(call, name string, want conclusion, why abi.Status, err error) deviation {
	match := ackOf(abi.StateConsumed, abi.H2D)
	if call == "SendInd" {
		match = ackOf(abi.StateReady, abi.H2D)
	}
	return deviation{name: "ERROR " + name, call: call, match: match, want: want, err: err,
		alter: func(m abi.Slot) []abi.Slot {
			a := m.Ack()
			a.State, a.Status = abi.StateFailed, why
			return only(withHeader(m, func(h *header) { h.kind = abi.TypeError }))
		}}
}
