package stamp

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Layer is a part of a call's way. The time of a call is the sum of its layers.
type Layer int

// The layers, in the order in which a call to the device passes them.
const (
	Marshal    Layer = iota // the bytes of the caller's object are found or copied, and it reaches the back end
	Queue                   // behind other calls of the half
	Pin                     // memory is held, and made known to the device
	Submit                  // slots are put and the device rung, or the driver is called
	Device                  // all that the device does, where no stamps say what
	Pickup                  // until the device takes the offer from its ring
	Target                  // until the other end takes part
	DMA                     // bytes move
	Completion              // until the host has the answer
	Wakeup                  // until a caller that slept runs again
	Return                  // memory is released, the call is counted, the caller has its result
	Layers     int   = iota
)

var names = [Layers]string{
	"marshal", "queue", "pin", "submit", "device", "pick-up", "target", "dma", "completion", "wake-up", "return",
}

// String returns the layer's name.
func (l Layer) String() string {
	if l < 0 || int(l) >= Layers {
		return "unknown"
	}
	return names[l]
}

// Call is what was measured of one call.
type Call struct {
	start, last meter.Instant
	laps        [Layers]time.Duration
	wait        wait // for the device's last answer
}

// Record is a call that continues. Its caller's goroutine writes it, but for what answers say.
// Methods that a call uses may be called on nil, and do nothing then.
type Record struct {
	Call
	waiting bool // slots are put, and the device may be at work

	// Answers since the caller looked last; written by the goroutine that takes them from the ring.
	seen             atomic.Uint64 // the [meter.Instant] at which the last was taken; zero: none
	began, met, done atomic.Uint64
}

// wait is the time in which a call waited for an answer, and what the device's clock says of it:
// zero where the answer had no stamps.
type wait struct {
	sent, seen       meter.Instant
	began, met, done uint64
}

// Context is a context with a record.
type Context struct {
	context.Context
	Record Record
}

// Begin starts the record, also if it was that of another call of the same half, which has ended.
func (c *Context) Begin() {
	r := &c.Record
	r.waiting = false
	r.answers(&r.wait) // what was late is about nobody
	r.laps, r.wait = [Layers]time.Duration{}, wait{}
	r.start = meter.Now()
	r.last = r.start
}

// Of makes c the context of a call, as a child of the caller's.
func (c *Context) Of(ctx context.Context) context.Context {
	c.Context = ctx
	return c
}

// Of returns the record of a call, nil if it has none.
func Of(ctx context.Context) *Record {
	if c, ok := ctx.(*Context); ok {
		return &c.Record
	}
	return nil
}

// The methods that every call passes are inlined, up to the comparison with nil.

// Lap gives a layer the time since the last lap.
func (r *Record) Lap(l Layer) {
	if r != nil {
		r.lapNow(l)
	}
}

func (r *Record) lapNow(l Layer) { r.lap(l, meter.Now()) }

func (r *Record) lap(l Layer, now meter.Instant) {
	r.laps[l] += time.Duration(now - r.last)
	r.last = now
}

// Sent begins a wait for the device: an offer is put. Again is the same wait.
func (r *Record) Sent() {
	if r != nil {
		r.sent()
	}
}

func (r *Record) sent() {
	if !r.waiting {
		r.lapNow(Submit)
		r.waiting = true
	}
}

// Posted notes that something was put which is not answered. Where Sent was called meanwhile the
// caller ran the device itself.
func (r *Record) Posted() {
	if r != nil {
		r.posted()
	}
}

func (r *Record) posted() {
	l := Submit
	if r.waiting {
		l = Device
	}
	r.lapNow(l)
	r.waiting = false
}

// Answered ends the wait that Sent began: the caller runs again.
func (r *Record) Answered() {
	if r != nil {
		r.answered()
	}
}

func (r *Record) answered() {
	w := &r.wait
	r.laps[Target] += time.Duration(w.seen - w.sent) // the earlier offer was returned
	r.waiting = false
	seen := r.answers(w)
	now := meter.Now()
	w.sent, w.seen = r.last, r.within(seen, now)
	r.last = w.seen
	r.lap(Wakeup, now)
}

// Offered ends a wait for something that the device offers: the caller runs again.
func (r *Record) Offered() {
	if r != nil {
		r.offered()
	}
}

func (r *Record) offered() {
	seen := meter.Instant(take(&r.seen))
	now := meter.Now()
	r.lap(Target, r.within(seen, now))
	r.lap(Wakeup, now)
}

// answers takes what answers said, and returns when the last was seen.
func (r *Record) answers(w *wait) (seen meter.Instant) {
	w.began, w.met, w.done = take(&r.began), take(&r.met), take(&r.done)
	return meter.Instant(take(&r.seen))
}

// take swaps zero in, which most of these are: reading one costs a tenth of that.
func take(v *atomic.Uint64) uint64 {
	if v.Load() == 0 {
		return 0
	}
	return v.Swap(0)
}

// within returns when the last answer was taken from the ring, now if none was.
func (r *Record) within(seen, now meter.Instant) meter.Instant {
	if seen == 0 {
		return now
	}
	return max(r.last, min(seen, now))
}

// Saw notes that a message of the device was taken from the ring. The clock is read for a caller that
// sleeps; one that polls has the message when it runs on. Any goroutine.
func (r *Record) Saw(s *wire.Slot, sleeps bool) {
	if sleeps {
		r.seen.Store(uint64(meter.Now()))
	} else {
		take(&r.seen) // that of an earlier one
	}
	switch wire.Header(s.Header).Type() {
	case wire.TypeAck, wire.TypeDone:
		a := s.Ack()
		r.began.Store(a.BeginNS)
		if a.State == wire.StateReady {
			r.met.Store(a.NowNS)
		} else {
			r.done.Store(a.NowNS)
		}
	}
}

// Completed notes that the driver reported the end of the call. Any goroutine.
func (r *Record) Completed() {
	if r != nil {
		r.seen.Store(uint64(meter.Now()))
	}
}

// Start returns when the call began.
func (c *Call) Start() meter.Instant { return c.start }

// Whole returns how long the call took so far, the sum of all layers.
func (c *Call) Whole() time.Duration { return time.Duration(c.last - c.start) }
