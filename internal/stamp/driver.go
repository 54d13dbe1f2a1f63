package stamp

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
)

// Driver is what a driver reports of a call that it made: when, by CLOCK_MONOTONIC in nanoseconds,
// zero where something did not happen; and the device's claims, by its own clock.
type Driver struct {
	Taken     uint64 // the driver has the call
	Ready     uint64 // sends: no other is before it; receives: the device's offer came
	Put       uint64 // the offer is in the ring; receives: the answer to the device's, or the pages
	Answered  uint64 // the device's last answer was taken from the ring
	Completed uint64 // the end was reported

	Began, Met, Done uint64
}

// Driven ends a call of a driver that reported its times: the caller runs again. No layer is negative
// and the sum is the whole, for any times.
func (r *Record) Driven(d abi.Direction, indirect bool, s *Driver) {
	now, zero := meter.Now(), origin()
	until := func(l Layer, stamp uint64) {
		if stamp != 0 {
			r.lap(l, max(r.last, min(meter.Instant(int64(stamp)-zero), now)))
		}
	}
	prepare, first := Submit, Queue
	if indirect {
		prepare = Pin
	}
	if d == abi.D2H {
		first = Target
	}
	until(Submit, s.Taken)
	if d == abi.H2D || s.Ready <= s.Put { // else the pages were there before the offer
		until(first, s.Ready)
	}
	until(prepare, s.Put)
	r.wait = wait{}
	if s.Answered != 0 {
		w := &r.wait
		w.began, w.met, w.done = s.Began, s.Met, s.Done
		w.sent = r.last
		w.seen = max(r.last, min(meter.Instant(int64(s.Answered)-zero), now))
		r.last = w.seen
	}
	until(Return, s.Completed)
	r.lap(Wakeup, now)
}

// Driver returns the times of a call that ends now, as a driver that made it reports them.
func (r *Record) Driver(d abi.Direction) Driver {
	r.Lap(Return)
	zero := origin()
	at := func(i meter.Instant) uint64 { return uint64(int64(i) + zero) }
	ready := r.start + meter.Instant(r.laps[Marshal]+r.laps[Queue])
	s := Driver{Taken: at(r.start), Completed: at(r.last), Began: r.wait.began, Met: r.wait.met, Done: r.wait.done}
	if d == abi.H2D {
		s.Ready = at(ready)
	} else if waited := r.laps[Target]; waited > time.Duration(0) {
		ready += meter.Instant(waited)
		s.Ready = at(ready)
	}
	s.Put = at(ready + meter.Instant(r.laps[Pin]+r.laps[Submit]))
	if r.wait.sent != 0 {
		s.Put, s.Answered = at(r.wait.sent), at(r.wait.seen)
	}
	return s
}
