package scripted

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/wire"
)

const eagerSize = 5000

func init() {
	deviationCalls["SendEager"] = func(r *rig, ctx context.Context, ch bridge.Channel) error {
		b := bridgetest.NewBuffer(eagerSize, 123)
		err := ch.SendInd(ctx, b.Data)
		r.Check(b)
		return err
	}
	deviationCalls["ReceiveEager"] = func(r *rig, ctx context.Context, ch bridge.Channel) error {
		src := make([]byte, eagerSize)
		pattern.Fill(src, 0, 4)
		if err := ch.SendInd(ctx, src); err != nil {
			return err
		}
		b := bridgetest.NewBuffer(eagerSize, 321)
		err := ch.ReceiveInd(ctx, b.Data)
		r.Check(b)
		if i := pattern.Diff(b.Data, 0, 4); err == nil && i >= 0 {
			return fmt.Errorf("byte %d differs", i)
		}
		return err
	}
}

// wrongEager are records that cannot end an eager transfer, or need not.
func wrongEager(call string, d abi.Direction) []Wrong {
	row := func(name string, want Conclusion, alter func(m wire.Slot) []wire.Slot) Wrong {
		return Wrong{Name: name, In: call, Match: ackOf(wire.StateConsumed, d), Want: want, alter: alter}
	}
	ack := func(name string, want Conclusion, f func(a *wire.Ack)) Wrong {
		return row(name, want, func(m wire.Slot) []wire.Slot { return only(withAck(m, f)) })
	}
	return []Wrong{
		ack("count/CONSUMED with a byte missing", Faulted, func(a *wire.Ack) { a.Processed-- }),
		ack("count/CONSUMED with a byte more", Faulted, func(a *wire.Ack) { a.Processed++ }),
		ack("count/CONSUMED with lists", Harmless, func(a *wire.Ack) { a.Lists = 7 }),
		ack("state/CONSUMED becomes READY", Faulted, func(a *wire.Ack) { a.State = wire.StateReady }),
		ack("state/CONSUMED becomes REPEAT", Faulted, func(a *wire.Ack) { a.State = wire.StateRepeat }),
		ack("state/CONSUMED with a status", Faulted, func(a *wire.Ack) { a.Status = abi.ErrDMA }),
		ack("id/CONSUMED from the future", Faulted, func(a *wire.Ack) { a.Transaction += 2 }),
		row("state/DONE in its place", Faulted, as(wire.TypeDone, wire.StateDone, abi.OK)),
		row("state/ABORTED in its place", Faulted, as(wire.TypeAborted, wire.StateFailed, abi.ErrAborted)),
		row("state/ERROR without a status", Faulted, as(wire.TypeError, wire.StateFailed, abi.OK)),
		row("state/ERROR in an entry that there cannot be", Faulted, func(m wire.Slot) []wire.Slot {
			m.Ack().FaultIndex = wire.EagerEntries
			return as(wire.TypeError, wire.StateFailed, abi.ErrDMA)(m)
		}),
		row("refuse/ERROR of DMA", Refused, as(wire.TypeError, wire.StateFailed, abi.ErrDMA)).with(abi.ErrDMA),
		row("replay/CONSUMED twice", Dropped, func(m wire.Slot) []wire.Slot { return only(m, m) }),
		row("drop/no CONSUMED", Lost, func(wire.Slot) []wire.Slot { return nil }),
		row("note/WITHDRAWN that nobody asked for", Faulted, func(m wire.Slot) []wire.Slot {
			var n wire.Slot
			*n.Note() = wire.Note{Transaction: m.Ack().Transaction, Direction: uint32(d)}
			n.Header = m.Header
			return only(withHeader(n, func(h *header) { h.kind = wire.TypeWithdrawn }))
		}),
	}
}

// TestEagerDeviations breaks one rule of eager transfers at a time.
func TestEagerDeviations(t *testing.T) {
	sh := quickBeat
	sh.Eager = wire.EagerEntries
	for _, w := range append(wrongEager("SendEager", abi.H2D), wrongEager("ReceiveEager", abi.D2H)...) {
		t.Run(w.In+"/"+w.Name, func(t *testing.T) { newRig(t, sh).deviate(&w) })
	}
}

// TestLostWithPages: a device that dies with pages in its hands ends the calls, and never touches
// them again.
func TestLostWithPages(t *testing.T) {
	sh := quickBeat
	sh.Eager = wire.EagerEntries
	r := newRig(t, sh)
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	b := bridgetest.NewBuffer(eagerSize, 9)
	p := bridgetest.Call("ReceiveInd", func() error { return ch.ReceiveInd(r.Ctx(), b.Data) })
	r.UntilBlocked(r.dev, 1)
	r.s.Kill()
	require.ErrorIs(t, r.Wait(p), bridge.ErrDeviceLost)
	r.Check(b)
	r.recovers()
}
