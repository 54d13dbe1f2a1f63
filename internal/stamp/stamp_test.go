package stamp

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// far is what the device's clock shows when the host's shows 0.
const far = 1 << 40

// exact is a clock that is known.
var exact = Clock{Known: true, Offset: far}

// call is a call to the device that takes 1 µs in each layer, and slow in one.
func call(slowed Layer, slow time.Duration, indirect bool) *Record {
	at := func(l Layer) time.Duration {
		if l == slowed {
			return slow
		}
		return time.Microsecond
	}
	r := &Record{Call: Call{start: 1000, last: 1000}}
	for _, l := range []Layer{Marshal, Queue, Pin, Submit} {
		r.lap(l, r.last+meter.Instant(at(l)))
	}
	w := &r.wait
	w.sent = r.last
	w.began = uint64(w.sent) + uint64(at(Pickup)) + far
	w.done = w.began + uint64(at(Target))
	if indirect {
		w.met = w.done
		w.done += uint64(at(DMA))
	}
	w.seen = meter.Instant(w.done-far) + meter.Instant(at(Completion))
	r.last = w.seen
	for _, l := range []Layer{Wakeup, Return} {
		r.lap(l, r.last+meter.Instant(at(l)))
	}
	return r
}

// TestEachLayerGrowsAlone: a layer that is slowed by a known time grows by that, and no other does.
func TestEachLayerGrowsAlone(t *testing.T) {
	const slow = 3 * time.Millisecond
	for _, indirect := range []bool{false, true} {
		for l := range Layer(Layers) {
			if l == Device || l == DMA && !indirect {
				continue
			}
			r := call(l, slow, indirect)
			laps, wrong := r.Split(exact, abi.H2D, indirect)
			require.False(t, wrong)
			var whole time.Duration
			for other, took := range laps {
				whole += took
				switch {
				case Layer(other) == l:
					require.Equal(t, slow, took, "%v", l)
				case Layer(other) == Device, Layer(other) == DMA && !indirect:
					require.Zero(t, took)
				default:
					require.Equal(t, time.Microsecond, took, "%v grew with %v", Layer(other), l)
				}
			}
			require.Equal(t, r.Whole(), whole)
		}
	}
}

// TestSplitBelievesNothing: whatever a device's stamps and the clock say, no layer is negative and
// the sum is the whole.
func TestSplitBelievesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := call(Layer(rapid.IntRange(0, Layers-1).Draw(t, "slow")), time.Millisecond, true)
		r.wait.began = rapid.Uint64().Draw(t, "began")
		r.wait.met = rapid.Uint64().Draw(t, "met")
		r.wait.done = rapid.Uint64().Draw(t, "done")
		c := Clock{
			Known: rapid.Bool().Draw(t, "known"), Offset: rapid.Int64().Draw(t, "offset"),
			Error: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "error")),
		}
		d := abi.Direction(rapid.IntRange(0, 1).Draw(t, "direction"))
		laps, _ := r.Split(c, d, rapid.Bool().Draw(t, "indirect"))
		var whole time.Duration
		for l, took := range laps {
			if took < 0 {
				t.Fatalf("%v takes %v", Layer(l), took)
			}
			whole += took
		}
		if whole != r.Whole() {
			t.Fatalf("layers take %v, the call %v", whole, r.Whole())
		}
	})
}

func TestSplitCountsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(w *wait)
		clock Clock
		wrong bool
	}{
		{"true", func(*wait) {}, exact, false},
		{"as far off as the clock may be", func(w *wait) { w.done += uint64(time.Second) }, Clock{true, far, time.Second}, false},
		{"after the host had the answer", func(w *wait) { w.done += uint64(time.Second) }, exact, true},
		{"long before the offer", func(w *wait) { w.began -= uint64(time.Second) }, exact, true},
		{"of an island's pass that began before", func(w *wait) { w.began -= uint64(time.Millisecond) }, exact, false},
		{"unknown clock", func(*wait) {}, Clock{}, false},
		{"unknown clock, of a pass that began before", func(w *wait) { w.began -= uint64(time.Millisecond) }, Clock{}, false},
		{"unknown clock, inside for far longer", func(w *wait) { w.began -= uint64(time.Second) }, Clock{}, true},
		{"unknown clock, answered before it came", func(w *wait) { w.began = w.done + 1 }, Clock{}, true},
		{"no stamps", func(w *wait) { w.done = 0 }, exact, false},
	} {
		r := call(DMA, time.Microsecond, true)
		c.spoil(&r.wait)
		_, wrong := r.Split(c.clock, abi.H2D, true)
		require.Equal(t, c.wrong, wrong, c.name)
	}
}

// TestUnknownClock: the ways there and back count as equally long, and what the device's own clock
// measured is as exact as ever.
func TestUnknownClock(t *testing.T) {
	r := call(Pickup, 3*time.Microsecond, true)
	laps, _ := r.Split(Clock{}, abi.H2D, true)
	require.Equal(t, 2*time.Microsecond, laps[Pickup])
	require.Equal(t, 2*time.Microsecond, laps[Completion])
	require.Equal(t, time.Microsecond, laps[DMA])
}

// TestPolling: a caller that polls has the answer when it runs on; only for one that sleeps the
// time of that is known, and a wake-up.
func TestPolling(t *testing.T) {
	var s wire.Slot
	s.Header = uint64(wire.MakeHeader(wire.TypeAck, abi.PayloadSize, 0, 1, 1))
	*s.Ack() = wire.Ack{State: wire.StateConsumed, BeginNS: 5, NowNS: 7}
	for _, sleeps := range []bool{false, true} {
		var c Context
		c.Begin()
		r := &c.Record
		r.Sent()
		r.Saw(&s, sleeps)
		require.Equal(t, sleeps, r.seen.Load() != 0)
		r.Answered()
		require.Equal(t, sleeps, r.laps[Wakeup] > 0)
		require.Equal(t, wait{sent: r.wait.sent, seen: r.wait.seen, began: 5, done: 7}, r.wait)
		laps, _ := r.Split(Clock{}, abi.H2D, false)
		var whole time.Duration
		for _, took := range laps {
			whole += took
		}
		require.Equal(t, r.Whole(), whole)

		r.Saw(&s, sleeps) // what comes late is not the next call's
		c.Begin()
		require.Equal(t, Call{start: r.start, last: r.start}, r.Call)
		r.Sent()
		r.Answered()
		require.Zero(t, r.wait.done)
	}
}

// TestSleepThenPoll: an answer that finds its caller polling is not as old as the one before it, which
// woke that caller.
func TestSleepThenPoll(t *testing.T) {
	var c Context
	c.Begin()
	r := &c.Record
	r.Sent()
	var s wire.Slot
	s.Header = uint64(wire.MakeHeader(wire.TypeAck, abi.PayloadSize, 0, 1, 1))
	*s.Ack() = wire.Ack{State: wire.StateReady, BeginNS: uint64(r.last), NowNS: uint64(r.last)}
	r.Saw(&s, true)
	*s.Ack() = wire.Ack{State: wire.StateDone, BeginNS: uint64(r.last), NowNS: uint64(meter.Now())}
	r.Saw(&s, false)
	require.Zero(t, r.seen.Load())
	r.Answered()
	require.Zero(t, r.laps[Wakeup])
}

func TestAlign(t *testing.T) {
	c, ok := Align(1000, 1300, far+1050, far+1150)
	require.True(t, ok)
	require.Equal(t, Clock{Known: true, Offset: far - 50, Error: 101}, c, "100 there at most, and 100 back")
	_, ok = Align(1000, 1300, far+1050, far+1049)
	require.False(t, ok, "answered before it came")
	_, ok = Align(1000, 1300, far+1000, far+1301)
	require.False(t, ok, "longer inside than outside")
}

// TestRecord: a record follows its context, and what has none costs no allocation.
func TestRecord(t *testing.T) {
	require.Nil(t, Of(context.Background()))
	var none *Record
	require.Zero(t, testing.AllocsPerRun(100, func() {
		none.Lap(Queue)
		none.Sent()
		none.Answered()
		none.Offered()
		none.Posted()
		none.Completed()
	}))
	var c Context
	c.Begin()
	r := Of(c.Of(t.Context()))
	require.Same(t, &c.Record, r)
	r.Sent()
	var s wire.Slot
	s.Header = uint64(wire.MakeHeader(wire.TypeAck, abi.PayloadSize, 0, 1, 1))
	*s.Ack() = wire.Ack{State: wire.StateReady, BeginNS: 5, NowNS: 6}
	r.Saw(&s, true)
	*s.Ack() = wire.Ack{State: wire.StateDone, BeginNS: 5, NowNS: 7}
	r.Saw(&s, true)
	r.Answered()
	r.Lap(Return)
	require.Equal(t, []uint64{5, 6, 7}, []uint64{r.wait.began, r.wait.met, r.wait.done})
	laps, _ := r.Split(Clock{}, abi.H2D, true)
	var whole time.Duration
	for _, took := range laps {
		whole += took
	}
	require.Equal(t, r.Whole(), whole)
	require.Equal(t, "wake-up", Wakeup.String())
	require.Equal(t, "unknown", Layer(Layers).String())
}
