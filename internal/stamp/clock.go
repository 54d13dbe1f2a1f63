package stamp

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
)

// How far a device's stamps may be outside of the wait without being counted as wrong, beside the
// error of the clock.
const (
	lateMost = 50 * time.Microsecond
	// An island reads its clock once for what it does in one pass, and its thread may lose the
	// processor after that.
	earlyMost = 100 * time.Millisecond
)

// Clock relates a device's clock to that of the host. The zero value knows nothing of it.
type Clock struct {
	Known  bool
	Offset int64         // what the device's clock shows at [meter.Instant] 0, in nanoseconds
	Error  time.Duration // the offset is right to so much, either way
}

// Align returns what one round trip to the device's time service says of its clock: the host's
// clock before and after, and the device's when it took the message and when it answered. False if
// the device's stamps cannot be true.
func Align(sent, seen meter.Instant, took, answered uint64) (Clock, bool) {
	inside, whole := int64(answered-took), int64(seen-sent)
	if inside < 0 || whole < inside {
		return Clock{}, false
	}
	slack := whole - inside // on the way, both ways together
	return Clock{Known: true, Offset: int64(took) - int64(sent) - slack/2, Error: time.Duration(slack/2 + 1)}, true
}

// Split returns the layers of a call, whose sum is the whole. Where the clock is not known the ways to
// the device and back count as equally long. wrong is true if the device's stamps cannot be true:
// they then count as far as they can.
func (call *Call) Split(c Clock, d abi.Direction, indirect bool) (laps [Layers]time.Duration, wrong bool) {
	laps = call.laps
	w := call.wait
	if w.done == 0 {
		laps[Device] += time.Duration(w.seen - w.sent)
		return laps, false
	}
	if !c.Known {
		c, wrong = w.guess(d)
	}
	s := split{laps: &laps, clock: c, at: w.sent, end: w.seen}
	first, last := Pickup, Target
	if d == abi.D2H { // began when the device offered, perhaps long before
		first = Target
		w.began = uint64(max(int64(w.began), int64(w.sent)+c.Offset))
	}
	if indirect {
		last = DMA
	}
	s.until(first, w.began)
	if w.met != 0 {
		s.until(Target, w.met)
	}
	s.until(last, w.done)
	laps[Completion] += time.Duration(w.seen - s.at)
	return laps, wrong || s.wrong
}

// guess returns a clock from the stamps of one call; wrong is true if they cannot be true.
func (w *wait) guess(d abi.Direction) (c Clock, wrong bool) {
	if d == abi.H2D {
		if c, ok := Align(w.sent, w.seen, w.began, w.done); ok {
			return c, false
		}
		early := w.done - w.began - uint64(w.seen-w.sent)
		wrong = w.done < w.began || early > uint64(earlyMost)
	}
	return Clock{Offset: int64(w.done) - int64(w.seen)}, wrong
}

// split cuts a wait at the device's stamps.
type split struct {
	laps    *[Layers]time.Duration
	clock   Clock
	at, end meter.Instant
	wrong   bool // a stamp is too far outside
}

// until gives a layer the time up to a stamp.
func (s *split) until(l Layer, stamp uint64) {
	t := meter.Instant(int64(stamp) - s.clock.Offset)
	to := max(s.at, min(t, s.end))
	s.wrong = s.wrong || t > to+meter.Instant(s.clock.Error+lateMost) || t < to-meter.Instant(s.clock.Error+earlyMost)
	s.laps[l] += time.Duration(to - s.at)
	s.at = to
}
