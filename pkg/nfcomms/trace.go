package nfcomms

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/stamp"
)

// Bounds of what traces keep.
const (
	// TracersMost is how many tracers a device may have at a time.
	TracersMost = 8
	// TraceEveryMost is the largest TraceOptions.Every.
	TraceEveryMost = 1 << 30
	// TraceKeepMost is the largest TraceOptions.Keep.
	TraceKeepMost = 1 << 16
)

// Layer is a part of a call's way, see the constants.
type Layer = stamp.Layer

// Layers of a call, in the order in which one to the device passes them.
const (
	LayerMarshal    = stamp.Marshal    // the object's bytes are found or copied, and reach the back end
	LayerQueue      = stamp.Queue      // behind other calls of the half
	LayerPin        = stamp.Pin        // memory is held, and made known to the device
	LayerSubmit     = stamp.Submit     // slots are put and the device rung, or the driver is called
	LayerDevice     = stamp.Device     // all from submit to completion, where answers have no stamps
	LayerPickup     = stamp.Pickup     // until the device takes the offer
	LayerTarget     = stamp.Target     // until the other end comes
	LayerDMA        = stamp.DMA        // bytes move
	LayerCompletion = stamp.Completion // until the host has the answer
	LayerWakeup     = stamp.Wakeup     // until the caller runs again
	LayerReturn     = stamp.Return     // memory is let go, and the caller has its result
	LayerCount      = stamp.Layers     // their number
)

// TraceOptions is what a tracer measures. The zero value is valid.
type TraceOptions struct {
	// Every picks one call in so many, by chance, of all channels together; 0 means 64.
	Every int
	// Keep is how many calls the tracer holds that were not taken yet. Of more it holds
	// a choice, each as likely as any other, and counts the rest as lost. 0 means 1024.
	Keep int
}

// check fills in the defaults. ErrInvalid for what is out of bounds.
func (o *TraceOptions) check() error {
	switch {
	case o.Every < 0 || o.Every > TraceEveryMost:
		return fmt.Errorf("one call in %d, 1 to %d: %w", o.Every, TraceEveryMost, ErrInvalid)
	case o.Keep < 0 || o.Keep > TraceKeepMost:
		return fmt.Errorf("keep %d calls, 1 to %d: %w", o.Keep, TraceKeepMost, ErrInvalid)
	}
	if o.Every == 0 {
		o.Every = 64
	}
	if o.Keep == 0 {
		o.Keep = 1024
	}
	return nil
}

// Span is one call that was measured, layer by layer.
type Span struct {
	Op     string // OpSend, OpReceive, OpSendInd or OpReceiveInd
	Target Target
	Start  time.Time
	Bytes  int
	Whole  time.Duration // the sum of Layers
	Layers [LayerCount]time.Duration
}

// Tracer measures calls of a device. Its methods are safe for concurrent use. Whoever does not need
// it any more must Close it.
type Tracer struct {
	dev   *Device
	every uint64
	keep  int

	mu   sync.Mutex // guards what follows
	kept []*tracedCall
	lost uint64
}

// Trace begins to measure calls that send or receive, messages and transfers alike, and deliver
// something; tries, Selects, and transfers with functions are not measured. While nobody traces a
// device that costs nothing. ErrBusy if the device has TracersMost tracers, ErrInvalid for options
// out of bounds. A reset does not end a tracer.
func (d *Device) Trace(ctx context.Context, o TraceOptions) (*Tracer, error) {
	if err := o.check(); err != nil {
		return nil, d.fail(OpTrace, 0, err)
	}
	if err := d.align(ctx); err != nil {
		return nil, d.fail(OpTrace, 0, err)
	}
	t := &Tracer{dev: d, every: uint64(o.Every), keep: o.Keep}
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	var all tracing
	if now := d.tracing.Load(); now != nil {
		all = *now
	}
	if len(all) == TracersMost {
		return nil, d.fail(OpTrace, 0, fmt.Errorf("%d tracers: %w", TracersMost, ErrBusy))
	}
	all = append(slices.Clone(all), t)
	d.tracing.Store(&all)
	return t, nil
}

// Close ends the tracer. It is idempotent.
func (t *Tracer) Close() {
	d := t.dev
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	now := d.tracing.Load()
	if now == nil {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(*now), func(one *Tracer) bool { return one == t })
	if len(rest) == 0 {
		d.tracing.Store(nil)
	} else {
		d.tracing.Store(&rest)
	}
}

// Take returns the calls that were measured since the last Take, in the order in which they began,
// and how the clocks stand. The device is asked for its time again if that was more than a second
// ago, for as long as ctx and 100 ms allow. What is taken is gone.
func (t *Tracer) Take(ctx context.Context) Trace {
	ctx, cancel := context.WithTimeout(ctx, alignTime)
	defer cancel()
	_ = t.dev.align(ctx) // without it the clock of before is as good as it was
	c := t.dev.clock.get()
	t.mu.Lock()
	kept, lost := t.kept, t.lost
	t.kept, t.lost = nil, 0
	t.mu.Unlock()
	slices.SortFunc(kept, func(a, b *tracedCall) int { return cmp.Compare(a.Record.Start(), b.Record.Start()) })
	r := Trace{Spans: make([]Span, 0, len(kept)), Lost: lost, ClockKnown: c.Known, ClockError: c.Error}
	for _, one := range kept {
		s, wrong := one.span(c)
		r.Spans = append(r.Spans, s)
		if wrong {
			r.Wrong++
		}
	}
	return r
}

// add keeps a call, or counts one as lost: where there is no room it takes the place of another
// with the chance that all have (reservoir sampling).
func (t *Tracer) add(c *tracedCall) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) < t.keep {
		t.kept = append(t.kept, c)
		return
	}
	t.lost++
	if n := rand.Uint64N(uint64(t.keep) + t.lost); n < uint64(t.keep) {
		t.kept[n] = c
	}
}

// tracing is all tracers of a device. It is never changed once it is set.
type tracing []*Tracer

// most is how often a tracer picks that picks the most: one call in so many.
func (l tracing) most() uint64 {
	every := l[0].every
	for _, t := range l[1:] {
		every = min(every, t.every)
	}
	return every
}

// countdown says of a channel which calls are measured next. A draw for each call would cost more than
// all else of a call that is not: chance decides how many calls there are to the next. A number that
// is always the same would pick one operation and never another, of calls that take turns; one for
// all channels would be a cache line that all goroutines share.
type countdown struct {
	of   *tracing
	_    [56]byte // of is read by all, and what follows written by one half each
	half [2]struct {
		left atomic.Int64 // calls to the next that is measured, with it; below 1: not drawn
		_    [56]byte
	}
}

// due reports whether this call of the half is one to measure, and draws the next.
func (t *countdown) due(d abi.Direction) bool {
	left := &t.half[d].left
	n := left.Add(-1)
	if n > 0 {
		return false
	}
	every := t.of.most()
	if n < 0 { // the half's first call
		n = rand.Int64N(int64(every))
		left.Store(n)
		if n > 0 {
			return false
		}
	}
	left.Store(1 + rand.Int64N(2*int64(every)-1))
	return true
}

// trace is traced where there are tracers, as far as it knows.
func (c *Channel) trace(d abi.Direction, op string) *tracedCall {
	l, t := c.dev.tracing.Load(), c.countdown.Load()
	if l == nil {
		return nil
	}
	if t == nil || t.of != l {
		t = &countdown{of: l}
		c.countdown.Store(t)
	}
	if !t.due(d) {
		return nil
	}
	return l.begin(c, op)
}

// begin starts the record of a call that is due, if a tracer picks it.
func (l tracing) begin(c *Channel, op string) *tracedCall {
	call := &tracedCall{op: op, target: c.Target(), all: l}
	most := l.most()
	for i, t := range l {
		if t.every == most || rand.Uint64N(t.every) < most {
			call.pickers |= 1 << i
		}
	}
	call.Begin()
	return call
}

// tracedCall is one call that is measured.
type tracedCall struct {
	stamp.Context
	op      string
	target  Target
	bytes   int
	all     tracing
	pickers uint64 // a bit for each tracer of all that picked it
}

// in returns the context of the call, which the back end finds the record in.
func (c *tracedCall) in(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	return c.Of(ctx)
}

// end ends the record of a call that delivered n bytes; one that failed is forgotten.
func (c *tracedCall) end(n int, err error) {
	if c != nil && err == nil {
		c.finish(n)
	}
}

func (c *tracedCall) finish(n int) {
	c.Record.Lap(stamp.Return)
	c.Context.Context = nil // what the caller's holds is not the tracer's
	c.bytes = n
	for i, t := range c.all {
		if c.pickers>>i&1 != 0 {
			t.add(c)
		}
	}
}

// span cuts the call into its layers.
func (c *tracedCall) span(clock stamp.Clock) (s Span, wrong bool) {
	d := abi.H2D
	if c.op == OpReceive || c.op == OpReceiveInd {
		d = abi.D2H
	}
	s = Span{Op: c.op, Target: c.target, Bytes: c.bytes, Whole: c.Record.Whole(), Start: c.Record.Start().Time()}
	s.Layers, wrong = c.Record.Split(clock, d, c.op == OpSendInd || c.op == OpReceiveInd)
	return s, wrong
}

// traced begins the record of a call, if somebody measures it.
func (c *Channel) traced(d abi.Direction, op string) *tracedCall {
	if c.dev.tracing.Load() == nil {
		return nil
	}
	return c.trace(d, op)
}
