//go:build cgo

package trace_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/admin"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// background ends with the test, or before that if something hangs.
func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func sum(times []time.Duration) (all time.Duration) {
	for _, t := range times {
		all += t
	}
	return all
}

// tracer opens a simulated device, a tracer of every call and the loopback channel.
func tracer(t *testing.T, o trace.Options) (*nfcomms.Device, *trace.Tracer, *nfcomms.Channel) {
	t.Helper()
	ctx := background(t)
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	tr, err := trace.Start(ctx, dev, o)
	require.NoError(t, err)
	t.Cleanup(tr.Close)
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	return dev, tr, ch
}

// TestTraceAddsUp: every way of a call is measured, and its layers add up to the whole, which
// no clock outside finds shorter.
func TestTraceAddsUp(t *testing.T) {
	_, tr, ch := tracer(t, trace.Options{Every: 1})
	ctx := background(t)
	type value [200]byte
	begin := time.Now()
	for _, n := range []int{0, 1, 4096, 100_000, 1 << 20} {
		data := make([]byte, n)
		require.NoError(t, ch.SendInd(ctx, data))
		_, err := ch.ReceiveInd(ctx, data)
		require.NoError(t, err)
	}
	small, large := nfcomms.ChanOf[uint64](ch), nfcomms.ChanOf[value](ch)
	require.NoError(t, small.Send(ctx, 7))
	_, err := small.Receive(ctx)
	require.NoError(t, err)
	require.NoError(t, large.Send(ctx, value{}))
	_, err = large.Receive(ctx)
	require.NoError(t, err)
	require.NoError(t, ch.Send(ctx, make([]byte, 5)))
	_, err = ch.Receive(ctx, make([]byte, nfcomms.MessageSize))
	require.NoError(t, err)
	took := time.Since(begin)

	r := tr.Take(ctx)
	require.True(t, r.ClockKnown)
	require.Positive(t, r.ClockError)
	require.Len(t, r.Spans, 16)
	var all time.Duration
	for _, s := range r.Spans {
		require.Equal(t, s.Whole, sum(s.Layers[:]), "%+v", s)
		require.Positive(t, s.Whole)
		require.Equal(t, nfcomms.Loopback, s.Target)
		require.WithinRange(t, s.Start, begin.Add(-time.Second), time.Now().Add(time.Second))
		all += s.Whole
	}
	require.LessOrEqual(t, all, took, "one call after the other")
	require.Empty(t, tr.Take(ctx).Spans, "what is taken is gone")
	require.Empty(t, trace.Result{}.Waterfalls())
	require.Zero(t, trace.Waterfall{}.Dominant())

	list := r.Waterfalls()
	require.Len(t, list, 4)
	for i, op := range []string{"receive", "receive transfer", "send", "send transfer"} {
		w := list[i]
		require.Equal(t, op, w.Op)
		var mean time.Duration
		share := 0.0
		for _, l := range w.Layers {
			mean, share = mean+l.Mean, share+l.Share
			require.LessOrEqual(t, l.Share, w.Dominant().Share)
		}
		require.InDelta(t, 1, share, 1e-9)
		require.InDelta(t, w.Whole.Mean, mean, float64(len(w.Layers)), "but for rounding")
	}
}

// TestTraceKnowsCallers: a call that is measured carries what Caller made of its context, for each
// operation and also as a future; a tracer without Caller, and a call that failed, carry nothing.
func TestTraceKnowsCallers(t *testing.T) {
	type key struct{}
	asked := 0
	dev, tr, ch := tracer(t, trace.Options{Every: 1, Caller: func(ctx context.Context) any {
		asked++
		return ctx.Value(key{})
	}})
	plain, err := trace.Start(background(t), dev, trace.Options{Every: 1})
	require.NoError(t, err)
	defer plain.Close()
	named := func(name string) context.Context { return context.WithValue(background(t), key{}, name) }
	data := make([]byte, 4096)
	require.NoError(t, ch.Send(named("a"), nil))
	_, err = ch.Receive(named("b"), nil)
	require.NoError(t, err)
	require.NoError(t, ch.SendInd(named("c"), data))
	_, err = ch.ReceiveInd(named("d"), data)
	require.NoError(t, err)
	_, err = nfcomms.SendCase(ch, nil).Start(named("e")).Wait(background(t))
	require.NoError(t, err)
	ended, cancel := context.WithCancel(named("f"))
	cancel()
	require.Error(t, ch.Send(ended, nil))
	var callers []any
	for _, s := range tr.Take(background(t)).Spans {
		callers = append(callers, s.Caller)
	}
	require.Equal(t, []any{"a", "b", "c", "d", "e"}, callers)
	require.Equal(t, len(callers), asked)
	for _, s := range plain.Take(background(t)).Spans {
		require.Nil(t, s.Caller)
	}
}

// TestTraceFindsWhatWaits: a send that waits for its target shows that, one behind it shows the
// queue, and a receive shows that nothing was offered.
func TestTraceFindsWhatWaits(t *testing.T) {
	_, tr, ch := tracer(t, trace.Options{Every: 1})
	ctx := background(t)
	waiting := func(d abi.Direction, ready func(bridge.Half) bool) time.Time {
		for h := admin.Halves(ch); !ready(*h.Of(d)); h = admin.Halves(ch) {
			time.Sleep(time.Millisecond)
		}
		return time.Now()
	}
	const least = 20 * time.Millisecond
	receive := func() { _, _ = ch.Receive(ctx, make([]byte, nfcomms.MessageSize)) }

	first := nfcomms.SendCase(ch, []byte("loopback holds it")).Start(ctx) // and does not read until it is taken
	<-first.Done()
	done := make(chan error, 2)
	go func() { done <- ch.Send(ctx, []byte("target")) }()
	waiting(0, func(h bridge.Half) bool { return h.Waiting > 0 && h.Slept > least })
	go func() { done <- ch.Send(ctx, []byte("queue")) }()
	waiting(0, func(h bridge.Half) bool { return h.Queued > 0 })
	receive()
	receive()
	receive()
	require.NoError(t, <-done)
	require.NoError(t, <-done)

	sends := waterfallOf(t, tr.Take(ctx), "send")
	require.Equal(t, 3, sends.Calls)
	require.Greater(t, layerOf(sends, trace.Target).Max, least-least/4)
	require.Positive(t, layerOf(sends, trace.Queue).Max)
	require.Zero(t, layerOf(sends, trace.Queue).P50, "one of three found another call")

	go func() { receive(); done <- nil }()
	waiting(1, func(h bridge.Half) bool { return h.Slept > least })
	require.NoError(t, ch.Send(ctx, nil))
	<-done
	receives := waterfallOf(t, tr.Take(ctx), "receive")
	require.Greater(t, layerOf(receives, trace.Target).Max, least-least/4)
	require.Equal(t, trace.Target, receives.Dominant().Layer)
}

func waterfallOf(t *testing.T, r trace.Result, op string) trace.Waterfall {
	t.Helper()
	for _, w := range r.Waterfalls() {
		if w.Op == op {
			return w
		}
	}
	require.Fail(t, "no calls", op)
	return trace.Waterfall{}
}

func layerOf(w trace.Waterfall, l trace.Layer) trace.LayerTimes {
	for _, one := range w.Layers {
		if one.Layer == l {
			return one
		}
	}
	return trace.LayerTimes{}
}

// TestTracersAreBounded: so many and no more, each with its own share of the calls and its own
// bound of what it keeps.
func TestTracersAreBounded(t *testing.T) {
	dev, one, ch := tracer(t, trace.Options{Every: 1, Keep: 3})
	ctx := background(t)
	rare, err := trace.Start(ctx, dev, trace.Options{Every: trace.MaxEvery})
	require.NoError(t, err)
	for n := 2; n < trace.MaxTracers; n++ {
		more, err := trace.Start(ctx, dev, trace.Options{})
		require.NoError(t, err)
		defer more.Close()
	}
	_, err = trace.Start(ctx, dev, trace.Options{})
	require.ErrorIs(t, err, nfcomms.ErrBusy)
	for range 5 {
		require.NoError(t, ch.Send(ctx, nil))
		_, err = ch.Receive(ctx, nil)
		require.NoError(t, err)
	}
	r := one.Take(ctx)
	require.Len(t, r.Spans, 3)
	require.EqualValues(t, 7, r.Lost)
	require.Empty(t, rare.Take(ctx).Spans)

	one.Close()
	one.Close()
	require.NoError(t, ch.Send(ctx, nil))
	require.Empty(t, one.Take(ctx).Spans)
	again, err := trace.Start(ctx, dev, trace.Options{})
	require.NoError(t, err)
	again.Close()
	rare.Close()
}

func TestTraceRefuses(t *testing.T) {
	ctx := background(t)
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	for _, o := range []trace.Options{{Every: -1}, {Every: trace.MaxEvery + 1}, {Keep: -1}, {Keep: trace.MaxKeep + 1}} {
		_, err := trace.Start(ctx, dev, o)
		require.ErrorIs(t, err, nfcomms.ErrInvalid)
		require.ErrorContains(t, err, "trace sim:")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = trace.Start(ended, dev, trace.Options{})
	require.ErrorIs(t, err, nfcomms.ErrWithdrawn)
	require.NoError(t, dev.Close())
	_, err = trace.Start(ctx, dev, trace.Options{})
	require.ErrorIs(t, err, nfcomms.ErrClosed)
}

// TestTraceWithoutClock: who holds the time service keeps it, and calls are measured still.
func TestTraceWithoutClock(t *testing.T) {
	ctx := background(t)
	dev, err := nfcomms.Open(ctx, "sim:")
	require.NoError(t, err)
	defer dev.Close()
	_, err = dev.Subscribe(ctx, admin.Time)
	require.NoError(t, err)
	tr, err := trace.Start(ctx, dev, trace.Options{Every: 1})
	require.NoError(t, err)
	defer tr.Close()
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	require.NoError(t, ch.Send(ctx, nil))
	r := tr.Take(ctx)
	require.False(t, r.ClockKnown)
	require.Len(t, r.Spans, 1)
	require.Equal(t, r.Spans[0].Whole, sum(r.Spans[0].Layers[:]))
}

// TestTraceOutlivesReset: a tracer continues in the next epoch, and calls that failed are not in it.
func TestTraceOutlivesReset(t *testing.T) {
	dev, tr, ch := tracer(t, trace.Options{Every: 1})
	ctx := background(t)
	require.NoError(t, dev.Reset(ctx))
	require.Error(t, ch.Send(ctx, nil))
	ch, err := dev.Subscribe(ctx, nfcomms.Loopback)
	require.NoError(t, err)
	require.NoError(t, ch.Send(ctx, nil))
	require.Len(t, tr.Take(ctx).Spans, 1)
}

// TestTracePicksByChance: of calls that take turns each operation is measured.
func TestTracePicksByChance(t *testing.T) {
	_, tr, ch := tracer(t, trace.Options{Every: 2, Keep: trace.MaxKeep})
	ctx := background(t)
	const rounds = 1000
	for range rounds {
		require.NoError(t, ch.Send(ctx, nil))
		_, err := ch.Receive(ctx, nil)
		require.NoError(t, err)
	}
	for _, w := range tr.Take(ctx).Waterfalls() {
		require.InDelta(t, rounds/2, w.Calls, rounds/4, "%s", w.Op)
	}
}

// TestTracersHaveTheirShares: each tracer measures as many as it asked for, beside any other, and one
// that starts later measures the next call of a channel that others had left alone.
func TestTracersHaveTheirShares(t *testing.T) {
	dev, rare, ch := tracer(t, trace.Options{Every: trace.MaxEvery})
	ctx := background(t)
	exchange := func(rounds int) {
		for range rounds {
			require.NoError(t, ch.Send(ctx, nil))
			_, err := ch.Receive(ctx, nil)
			require.NoError(t, err)
		}
	}
	exchange(10)
	all, err := trace.Start(ctx, dev, trace.Options{Every: 1, Keep: trace.MaxKeep})
	require.NoError(t, err)
	for _, every := range []int{4, 10} {
		some, err := trace.Start(ctx, dev, trace.Options{Every: every, Keep: trace.MaxKeep})
		require.NoError(t, err)
		exchange(2000)
		require.Len(t, all.Take(ctx).Spans, 4000)
		require.InDelta(t, 4000/every, len(some.Take(ctx).Spans), 250, "one in %d beside one in 1", every)
		all.Close()
		exchange(2000)
		require.Empty(t, all.Take(ctx).Spans)
		require.InDelta(t, 4000/every, len(some.Take(ctx).Spans), 250, "one in %d", every)
		some.Close()
		exchange(10)
		all, err = trace.Start(ctx, dev, trace.Options{Every: 1, Keep: trace.MaxKeep})
		require.NoError(t, err)
	}
	require.Empty(t, rare.Take(ctx).Spans)
	all.Close()
}

// TestTraceKeepsAFairChoice: of more calls than it holds a tracer keeps early ones and late ones, in
// the order in which they began. Most of those that are lost are not measured.
func TestTraceKeepsAFairChoice(t *testing.T) {
	asked := 0
	_, tr, ch := tracer(t, trace.Options{Every: 1, Keep: 100, Caller: func(context.Context) any {
		asked++
		return nil
	}})
	ctx := background(t)
	var half time.Time
	for n := range 1000 {
		if n == 500 {
			half = time.Now()
		}
		require.NoError(t, ch.Send(ctx, nil))
		_, err := ch.Receive(ctx, nil)
		require.NoError(t, err)
	}
	r := tr.Take(ctx)
	require.Len(t, r.Spans, 100)
	require.EqualValues(t, 1900, r.Lost)
	early := 0
	for i, s := range r.Spans {
		require.False(t, i > 0 && s.Start.Before(r.Spans[i-1].Start))
		if s.Start.Before(half) {
			early++
		}
	}
	require.InDelta(t, 50, early, 40, "less likely than once in 10^15")
	require.Less(t, asked, 800, "400 are expected, with a deviation of 17")
}

// TestTracedCallsAllocateNothing: the records of calls that have ended serve those that follow, and so
// does the room of what was taken.
func TestTracedCallsAllocateNothing(t *testing.T) {
	const keep = 50
	_, tr, ch := tracer(t, trace.Options{Every: 1, Keep: keep})
	ctx := background(t)
	msg, page := make([]byte, nfcomms.MessageSize), make([]byte, 4096)
	round := func() {
		require.NoError(t, ch.Send(ctx, msg))
		_, err := ch.Receive(ctx, msg)
		require.NoError(t, err)
		require.NoError(t, ch.SendInd(ctx, page))
		_, err = ch.ReceiveInd(ctx, page)
		require.NoError(t, err)
	}
	traced := func() float64 { return testing.AllocsPerRun(2*keep, round) }
	for range 3 {
		traced()
		require.Len(t, tr.Take(ctx).Spans, keep)
	}
	with := traced()
	require.Len(t, tr.Take(ctx).Spans, keep)
	tr.Close()
	require.InDelta(t, traced(), with, 0.1, "as many as of calls that are not traced")
}

// TestTracedTogether: calls of many goroutines on one half are all measured, each by itself, and with
// one in so many that is their share.
func TestTracedTogether(t *testing.T) {
	dev, all, _ := tracer(t, trace.Options{Every: 1, Keep: trace.MaxKeep})
	ctx := background(t)
	proc, err := dev.Start(ctx, nfcomms.Program{Name: "sink", Targets: 1})
	require.NoError(t, err)
	ch, err := dev.Subscribe(ctx, proc.First)
	require.NoError(t, err)
	const callers, calls = 8, 500
	send := func() {
		var wg sync.WaitGroup
		for n := range callers {
			wg.Go(func() {
				for range calls {
					if err := ch.Send(ctx, make([]byte, n)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	send()
	spans := all.Take(ctx).Spans
	require.Len(t, spans, callers*calls)
	var of [callers]int
	for _, s := range spans {
		require.Equal(t, s.Whole, sum(s.Layers[:]))
		of[s.Bytes]++
	}
	for _, n := range of {
		require.Equal(t, calls, n)
	}
	all.Close()
	some, err := trace.Start(ctx, dev, trace.Options{Every: 10, Keep: trace.MaxKeep})
	require.NoError(t, err)
	defer some.Close()
	send()
	require.InDelta(t, callers*calls/10, len(some.Take(ctx).Spans), 150)
}

// TestTraceCountsDeliveries: calls that deliver nothing bring the next one that is measured no nearer,
// and do not stand for it.
func TestTraceCountsDeliveries(t *testing.T) {
	_, tr, ch := tracer(t, trace.Options{Every: 2, Keep: trace.MaxKeep})
	ctx := background(t)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	const rounds = 1000
	for range rounds {
		for range 3 {
			require.ErrorIs(t, ch.Send(ended, nil), nfcomms.ErrWithdrawn)
		}
		require.NoError(t, ch.Send(ctx, nil))
		_, err := ch.Receive(ctx, nil)
		require.NoError(t, err)
	}
	for _, w := range tr.Take(ctx).Waterfalls() {
		require.InDelta(t, rounds/2, w.Calls, rounds/4, "%s", w.Op)
	}
}
