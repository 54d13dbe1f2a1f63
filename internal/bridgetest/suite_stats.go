package bridgetest

import (
	"bytes"
	"context"
	"errors"
	"math/bits"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pattern"
	"github.com/nfcomms/nfcomms/internal/stamp"
)

var statsCases = []testCase{
	{"stats/add-up", statsAddUp},
	{"stats/health", health},
	{"stats/waiting", statsWaiting},
	{"stats/halves", statsHalves},
	{"stats/errors", statsErrors},
	{"stats/profile", statsProfile},
	{"stats/mailboxes", statsMailboxes},
	{"stats/outlive", statsOutlive},
	{"stats/layers", statsLayers},
	{"stats/allocations", allocations},
}

// statsAddUp: the counters say what was done, per channel and for the device,
// also when channels have closed.
func statsAddUp(e *Env) {
	dev := e.device("")
	base := dev.Stats()
	ports := e.Ports(dev, "loopback", 2)
	for i, ch := range ports {
		for n := range 10 * (i + 1) {
			e.Echo(ch, make([]byte, n))
			e.EchoInd(ch, 9000*n, 1)
		}
	}
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	for _, op := range Operations[:4] {
		require.Error(e, op.Do(ctx, ports[0]))
	}
	var sum bridge.ChannelStats
	for i, ch := range ports {
		st, n := ch.Stats(), uint64(10*(i+1))
		for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
			failed := uint64(1 - i)
			require.Equal(e, bridge.PathStats{Messages: n, Bytes: n * (n - 1) / 2, Errors: failed}, *st.Direct.Of(half))
			require.Equal(e, bridge.PathStats{Messages: n, Bytes: 4500 * n * (n - 1), Errors: failed}, *st.Indirect.Of(half))
			require.Equal(e, st.Direct.Of(half).Messages, ch.Delivered(half, false).Load())
			require.Equal(e, st.Indirect.Of(half).Messages, ch.Delivered(half, true).Load())
			sum.Direct.Of(half).Messages += st.Direct.Of(half).Messages
			sum.Indirect.Of(half).Bytes += st.Indirect.Of(half).Bytes
		}
		sum.Lists += st.Lists
	}
	require.Positive(e, sum.Lists)
	require.Equal(e, base.Channels+2, dev.Stats().Channels)
	require.NoError(e, ports[0].Close())
	st := dev.Stats()
	require.Equal(e, base.Channels+1, st.Channels)
	for _, half := range []abi.Direction{abi.H2D, abi.D2H} {
		require.GreaterOrEqual(e, st.Direct.Of(half).Messages, sum.Direct.Of(half).Messages)
		require.Equal(e, base.Indirect.Of(half).Bytes+sum.Indirect.Of(half).Bytes, st.Indirect.Of(half).Bytes)
	}
	require.Equal(e, base.Lists+sum.Lists, st.Lists)
	require.Zero(e, st.Faults)
	require.Zero(e, st.Resets)
}

// statsWaiting: calls that wait are counted while they do, those that queue
// behind another sender too, and so are transfers and their lists.
func statsWaiting(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "hold", 1)[0]
	ctx, cancel := context.WithCancel(e.Ctx())
	const senders = 5
	var calls []*Pending
	for range senders {
		calls = append(calls, Call("Send", func() error { return ch.Send(ctx, nil) }))
	}
	calls = append(calls, Call("Receive", func() error { _, err := ch.Receive(ctx, nil); return err }))
	e.Until("all wait", func() bool { return ch.Stats().Waiting == bridge.Both[int]{H2D: senders, D2H: 1} })
	st := dev.Stats()
	require.Equal(e, senders+1, st.Blocked)
	require.Equal(e, bridge.Both[int]{H2D: senders, D2H: 1}, st.Waiting)
	require.Zero(e, st.Transfers)
	cancel()
	for _, c := range calls {
		e.IsWithdrawn(e.Wait(c), context.Canceled)
	}
	ctx, cancel = context.WithCancel(e.Ctx())
	move := Call("SendInd", func() error { return ch.SendInd(ctx, make([]byte, 100_000)) })
	e.UntilBlocked(dev, 1)
	st = dev.Stats()
	require.Equal(e, bridge.Both[int]{H2D: 1}, st.Transfers)
	require.LessOrEqual(e, st.InFlight.H2D, dev.Info().Window)
	require.Zero(e, st.InFlight.D2H)
	cancel()
	e.IsWithdrawn(e.Wait(move), context.Canceled)
	st = dev.Stats()
	require.Zero(e, st.Blocked)
	require.Zero(e, st.Waiting)
	require.Zero(e, st.Transfers)
	require.Zero(e, st.InFlight)
}

// statsHalves: a half reports what its transaction waits for, who queues behind it and since
// when, and is idle before and after.
func statsHalves(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "hold", 1)[0]
	idle := bridge.Half{State: ch.Halves().H2D.State}
	require.Equal(e, bridge.Both[bridge.Half]{H2D: idle, D2H: idle}, ch.Halves())
	ctx, cancel := context.WithCancel(e.Ctx())
	var calls []*Pending
	for range 3 {
		calls = append(calls, Call("Send", func() error { return ch.Send(ctx, nil) }))
	}
	calls = append(calls, Call("Receive", func() error { _, err := ch.Receive(ctx, nil); return err }))
	h := e.halves(ch, [2]int{3, 1}, [2]bridge.HalfState{bridge.HalfOffered, bridge.HalfIdle})
	if known := idle.State != bridge.HalfUnknown; known {
		require.NotZero(e, h.H2D.Transaction)
		require.Zero(e, h.D2H.Transaction)
		e.Until("the first sleep", func() bool { h := ch.Halves(); return h.H2D.Slept > 0 && h.D2H.Slept > 0 })
	}
	cancel()
	for _, c := range calls {
		e.IsWithdrawn(e.Wait(c), context.Canceled)
	}
	require.Equal(e, bridge.Both[bridge.Half]{H2D: idle, D2H: idle}, ch.Halves())

	ctx, cancel = context.WithCancel(e.Ctx())
	move := Call("SendInd", func() error { return ch.SendInd(ctx, make([]byte, 100_000)) })
	e.halves(ch, [2]int{1, 0}, [2]bridge.HalfState{bridge.HalfMoving, bridge.HalfIdle})
	cancel()
	e.IsWithdrawn(e.Wait(move), context.Canceled)
	wake := make(chan struct{}, 1)
	for _, d := range []abi.Direction{abi.H2D, abi.D2H} {
		require.NoError(e, ch.Arm(d, wake))
		require.Equal(e, 1, armed(ch, d))
		ch.Disarm(d, wake)
		require.Zero(e, armed(ch, d))
	}
	require.NoError(e, ch.CloseSend())
	require.True(e, ch.Halves().H2D.Closed)
	require.False(e, ch.Halves().D2H.Closed)
	require.NoError(e, dev.Reset(e.Ctx()))
	require.True(e, ch.Halves().D2H.Closed)
}

// armed returns how many waiters are armed on a half.
func armed(ch bridge.Channel, d abi.Direction) int {
	h := ch.Halves()
	return h.Of(d).Armed
}

// halves waits until so many calls wait and returns the halves, which stand as given or
// are not reported.
func (e *Env) halves(ch bridge.Channel, waiting [2]int, states [2]bridge.HalfState) (h bridge.Both[bridge.Half]) {
	e.Helper()
	e.Until("calls wait", func() bool {
		h = ch.Halves()
		for d := range abi.Direction(2) {
			half := h.Of(d)
			known := half.State != bridge.HalfUnknown
			if half.Waiting != waiting[d] || known && (half.State != states[d] || half.Queued != max(waiting[d]-1, 0)) {
				return false
			}
		}
		return true
	})
	return h
}

// statsErrors: every error is counted under its status.
func statsErrors(e *Env) {
	dev := e.device("")
	ports := e.Ports(dev, "expect", 2)
	e.send(ports[0], pattern.Words(1000))
	require.ErrorIs(e, ports[1].SendInd(e.Ctx(), make([]byte, 999)), bridge.ErrSizeMismatch)
	e.receive(ports[0])
	e.send(ports[0], pattern.Words(1000))
	require.ErrorIs(e, ports[1].Send(e.Ctx(), nil), bridge.ErrKindMismatch)
	e.receive(ports[0])
	ctx, cancel := context.WithCancel(e.Ctx())
	cancel()
	for _, op := range Operations[:4] {
		e.IsWithdrawn(op.Do(ctx, ports[1]), context.Canceled)
	}
	own := errors.New("the application's")
	e.send(ports[0], pattern.Words(1<<63|100))
	require.ErrorIs(e, receiveFunc(e.Ctx(), ports[1], make([]byte, 100), func() error { return own }), own)
	e.receive(ports[0])
	st := dev.Stats()
	p := st.Profile
	for d := range abi.Direction(2) {
		require.EqualValues(e, 1, p.Direct.Of(d).Errors[abi.ErrWithdrawn])
		require.EqualValues(e, 1, p.Indirect.Of(d).Errors[abi.ErrWithdrawn])
		require.Equal(e, st.Direct.Of(d).Errors, total(p.Direct.Of(d).Errors[:]))
		require.Equal(e, st.Indirect.Of(d).Errors, total(p.Indirect.Of(d).Errors[:]))
	}
	require.EqualValues(e, 1, p.Direct.H2D.Errors[abi.ErrKind])
	require.EqualValues(e, 1, p.Indirect.H2D.Errors[abi.ErrSize])
	require.EqualValues(e, 1, p.Indirect.D2H.Errors[abi.OK])
}

// total adds counters up.
func total(list []uint64) (n uint64) {
	for _, v := range list {
		n += v
	}
	return n
}

// statsProfile: one delivered call in Every is measured, and each of those is
// in one bucket of every histogram.
func statsProfile(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	const messages, transfers, size = 1000, 20, 5000
	start := time.Now()
	for range messages {
		e.Echo(ch, make([]byte, 56))
	}
	for range transfers {
		e.EchoInd(ch, size, 0)
	}
	elapsed := time.Since(start)
	p := dev.Stats().Profile
	for d := range abi.Direction(2) {
		e.measured(p.Direct.Of(d), messages, 56, elapsed)
		e.measured(p.Indirect.Of(d), transfers, size, elapsed)
	}
}

// measured checks the profile of a path by which n calls of a size passed.
func (e *Env) measured(p *bridge.PathProfile, n, size int, elapsed time.Duration) {
	e.Helper()
	require.Positive(e, p.Every)
	count := total(p.Durations[:])
	require.GreaterOrEqual(e, count, uint64(n/p.Every))
	require.LessOrEqual(e, count, uint64((n+p.Every-1)/p.Every))
	require.Equal(e, count, p.Sizes[bits.Len(uint(size-1))], "calls of %d bytes", size)
	require.Equal(e, count, total(p.Sizes[:]))
	require.Equal(e, count*uint64(size), p.Bytes)
	require.Positive(e, p.Time)
	require.LessOrEqual(e, p.Time, elapsed)
	require.Zero(e, total(p.Errors[:]))
}

// statsMailboxes: where a back end shows its rings, they have the shape that
// Info tells, and most of their slots are free when nothing is under way. A
// beat is young, unless the device had no processor for a while.
func statsMailboxes(e *Env) {
	dev := e.device("managers=2&slots=64")
	for _, ch := range e.Ports(dev, "loopback", 2) {
		for i := range 500 { // several laps
			e.Echo(ch, make([]byte, i%57))
		}
	}
	info, st := dev.Info(), dev.Stats()
	e.Until("a beat is young", func() bool { return dev.Stats().Age <= max(time.Second, 10*info.Beat) })
	require.LessOrEqual(e, st.Spurious, st.Wakeups)
	if st.Mailboxes == nil {
		e.Log("this back end does not show its rings")
		return
	}
	require.Len(e, st.Mailboxes, info.Mailboxes)
	for i, m := range st.Mailboxes {
		require.Equal(e, info.Slots, m.Slots)
		require.LessOrEqual(e, 2*m.Used.H2D, m.Slots, "mailbox %d, h2d", i)
		require.LessOrEqual(e, 2*m.Used.D2H, m.Slots, "mailbox %d, d2h", i)
	}
}

// statsOutlive: what was counted stays when channels close, the device is
// reset or closed.
func statsOutlive(e *Env) {
	dev := e.device("")
	ch := e.Ports(dev, "loopback", 1)[0]
	e.EchoInd(ch, 100, 0)
	require.NoError(e, ch.Close())
	require.NoError(e, dev.Reset(e.Ctx()))
	e.EchoInd(e.Ports(dev, "loopback", 1)[0], 100, 0)
	require.NoError(e, dev.Close())
	st := dev.Stats()
	require.EqualValues(e, 1, st.Resets)
	for _, d := range []abi.Direction{abi.H2D, abi.D2H} {
		require.EqualValues(e, 2, st.Indirect.Of(d).Messages)
		require.EqualValues(e, 2, total(st.Profile.Indirect.Of(d).Durations[:]))
		require.Zero(e, *st.Waiting.Of(d))
		require.Zero(e, *st.Transfers.Of(d))
	}
}

// health: heartbeats count up and tell what the device did.
func health(e *Env) {
	dev := e.device("")
	before := e.health(dev)
	ch := e.Subscribe(dev, abi.TargetLoopback)
	for range 10 {
		e.Echo(ch, []byte("counted"))
		e.EchoInd(ch, 10_000, 0)
	}
	e.Start(dev, "hold", 1)
	e.Until("heartbeat tells", func() bool {
		h := e.health(dev)
		if h.Beat == before.Beat { // which may be none at all
			return false
		}
		require.True(e, h.Diagnostic.Valid())
		require.Equal(e, abi.Normal, h.Diagnostic.Worst())
		return h.Beat > before.Beat && h.Messages >= before.Messages+20 &&
			h.Bytes >= before.Bytes+200_000 && h.Processes > 0
	})
}

// allocations: the four calls allocate nothing once a channel has been used.
// The race detector allocates by itself, so there only the calls are made.
func allocations(e *Env) {
	dev := e.device("")
	ch := e.Subscribe(dev, abi.TargetLoopback)
	ctx, msg, buf := context.Background(), []byte("no garbage"), make([]byte, 56)
	e.noAllocations("Send and Receive", func() {
		if err := ch.Send(ctx, msg); err != nil {
			e.Error(err)
		}
		if n, err := ch.Receive(ctx, buf); err != nil || !bytes.Equal(buf[:n], msg) {
			e.Error("receive", err)
		}
	})
	data := make([]byte, 100_000)
	e.noAllocations("SendInd and ReceiveInd", func() {
		if err := ch.SendInd(ctx, data); err != nil {
			e.Error(err)
		}
		if err := ch.ReceiveInd(ctx, data); err != nil {
			e.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.noAllocations("with a context that can end", func() {
		if err := ch.Send(ctx, msg); err != nil {
			e.Error(err)
		}
		if _, err := ch.Receive(ctx, buf); err != nil {
			e.Error(err)
		}
	})
}

func (e *Env) noAllocations(what string, f func()) {
	e.Helper()
	for range 20 {
		f()
	}
	if n := testing.AllocsPerRun(500, f); n != 0 && !RaceEnabled {
		e.Errorf("%s: %v allocations per run", what, n)
	}
}

// statsLayers: a call with a record ends as one without, and its layers add up to the whole.
func statsLayers(e *Env) {
	ch := e.Ports(e.device(""), "loopback", 1)[0]
	for _, n := range []int{0, 56, 4096, 300_000} {
		data := make([]byte, n)
		message := data[:min(n, abi.PayloadSize)]
		for _, c := range []struct {
			d        abi.Direction
			indirect bool
			call     func(ctx context.Context) error
		}{
			{abi.H2D, false, func(ctx context.Context) error { return ch.Send(ctx, message) }},
			{abi.D2H, false, func(ctx context.Context) error { _, err := ch.Receive(ctx, message); return err }},
			{abi.H2D, true, func(ctx context.Context) error { return ch.SendInd(ctx, data) }},
			{abi.D2H, true, func(ctx context.Context) error { return ch.ReceiveInd(ctx, data) }},
		} {
			var ctx stamp.Context
			ctx.Begin()
			require.NoError(e, c.call(ctx.Of(e.Ctx())))
			r := stamp.Of(&ctx)
			r.Lap(stamp.Return)
			laps, wrong := r.Split(stamp.Clock{}, c.d, c.indirect)
			require.False(e, wrong)
			var whole time.Duration
			for _, took := range laps {
				require.GreaterOrEqual(e, took, time.Duration(0))
				whole += took
			}
			require.Equal(e, r.Whole(), whole)
			require.Positive(e, laps[stamp.Submit], "%d bytes, %v, %v: %v", n, c.d, c.indirect, laps)
		}
	}
}
