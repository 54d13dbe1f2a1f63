package stamp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
)

// driven is a call that a driver made a second ago, and its times: 1 ms for each step.
func driven() (*Record, Driver) {
	begun := meter.Now() - meter.Instant(time.Second)
	at := func(ms int64) uint64 { return uint64(int64(begun) + ms*int64(time.Millisecond) + origin()) }
	s := Driver{Taken: at(1), Ready: at(3), Put: at(6), Answered: at(16), Completed: at(21)}
	s.Began, s.Met, s.Done = at(7)+far, at(9)+far, at(12)+far
	return &Record{Call: Call{start: begun, last: begun}}, s
}

// deviceClock is the clock of the device of driven.
func deviceClock() Clock { return Clock{Known: true, Offset: far + origin()} }

// TestDrivenFillsTheLayers: each of a driver's times ends its layer.
func TestDrivenFillsTheLayers(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name     string
		d        abi.Direction
		indirect bool
		change   func(s *Driver)
		want     map[Layer]time.Duration
	}{
		{"transfer to the device", abi.H2D, true, func(*Driver) {}, map[Layer]time.Duration{
			Submit: ms, Queue: 2 * ms, Pin: 3 * ms, Pickup: ms, Target: 2 * ms, DMA: 3 * ms, Completion: 4 * ms, Return: 5 * ms,
		}},
		{"message to the device", abi.H2D, false, func(s *Driver) { s.Met = 0 }, map[Layer]time.Duration{
			Submit: 4 * ms, Queue: 2 * ms, Pickup: ms, Target: 5 * ms, Completion: 4 * ms, Return: 5 * ms,
		}},
		{"transfer to the host", abi.D2H, true, func(*Driver) {}, map[Layer]time.Duration{
			Submit: ms, Target: 2*ms + ms + 2*ms, Pin: 3 * ms, DMA: 3 * ms, Completion: 4 * ms, Return: 5 * ms,
		}},
		{"pages that were there before the offer", abi.D2H, true, func(s *Driver) { s.Ready, s.Met = s.Put+uint64(9*ms), 0 }, map[Layer]time.Duration{
			Submit: ms, Pin: 5 * ms, Target: ms, DMA: 5 * ms, Completion: 4 * ms, Return: 5 * ms,
		}},
		{"message to the host", abi.D2H, false, func(s *Driver) { s.Answered, s.Done = 0, 0 }, map[Layer]time.Duration{
			Submit: ms + 3*ms, Target: 2 * ms, Return: 15 * ms,
		}},
	} {
		r, s := driven()
		c.change(&s)
		r.Driven(c.d, c.indirect, &s)
		laps, wrong := r.Split(deviceClock(), c.d, c.indirect)
		require.False(t, wrong, c.name)
		for l, took := range laps {
			if Layer(l) != Wakeup { // as long as the test took
				require.Equal(t, c.want[Layer(l)], took, "%s: %v", c.name, Layer(l))
			}
		}
		require.Positive(t, laps[Wakeup], c.name)
	}
}

// TestDrivenBelievesNothing: whatever a driver reports, no layer is negative and the sum is the whole.
func TestDrivenBelievesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, s := driven()
		for name, at := range map[string]*uint64{
			"taken": &s.Taken, "turn": &s.Ready, "put": &s.Put, "answered": &s.Answered, "completed": &s.Completed,
			"began": &s.Began, "met": &s.Met, "done": &s.Done,
		} {
			if rapid.Bool().Draw(t, name+" is wrong") {
				*at = rapid.Uint64().Draw(t, name)
			}
		}
		d, indirect := abi.Direction(rapid.IntRange(0, 1).Draw(t, "direction")), rapid.Bool().Draw(t, "indirect")
		r.Driven(d, indirect, &s)
		laps, _ := r.Split(deviceClock(), d, indirect)
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

// TestDriverReportsWhatDrivenTakes: a driver that measured a call by a record of its own reports times of
// which its caller makes the same layers.
func TestDriverReportsWhatDrivenTakes(t *testing.T) {
	for _, d := range []abi.Direction{abi.H2D, abi.D2H} {
		inner, s := driven()
		inner.Driven(d, true, &s)
		reported := inner.Driver(d)
		outer := &Record{Call: Call{start: inner.start, last: inner.start}}
		outer.Driven(d, true, &reported)
		want, _ := inner.Split(deviceClock(), d, true)
		got, wrong := outer.Split(deviceClock(), d, true)
		require.False(t, wrong)
		for _, l := range []Layer{Pin, Pickup, Target, DMA, Completion} {
			if l == Pin { // no border lies between them in a record
				want[l] += want[Submit]
				got[l] += got[Submit]
			}
			require.Equal(t, want[l], got[l], "%v: %v", d, l)
		}
	}
}
