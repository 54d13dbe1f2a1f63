package nfcomms

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

// Defaults: one call in so many is measured, and so many calls are held.
const defaultEvery, defaultKeep = 64, 1024

// checkTrace returns ErrInvalid for what is out of bounds.
func checkTrace(every, keep int) error {
	switch {
	case every < 0 || every > over.MaxEvery:
		return fmt.Errorf("one call in %d, 1 to %d: %w", every, over.MaxEvery, ErrInvalid)
	case keep < 0 || keep > over.MaxKeep:
		return fmt.Errorf("keep %d calls, 1 to %d: %w", keep, over.MaxKeep, ErrInvalid)
	}
	return nil
}

// tracer measures calls of a device; package trace documents it.
type tracer struct {
	dev   *Device
	every uint64
	keep  uint64
	// caller is over.Device.Trace's; nil for none.
	caller func(context.Context) any

	mu    sync.Mutex // guards what follows
	kept  []measured
	taken []measured // room of the last Take, for the next
	lost  uint64
}

// trace begins to measure, see trace.Start.
func (d *Device) trace(ctx context.Context, every, keep int, caller func(context.Context) any) (*tracer, error) {
	if ctx.Err() != nil { // the time may be there already
		return nil, d.fail(opTrace, 0, &WithdrawnError{Cause: ctx.Err()})
	}
	if err := checkTrace(every, keep); err != nil {
		return nil, d.fail(opTrace, 0, err)
	}
	if err := d.align(ctx); err != nil {
		return nil, d.fail(opTrace, 0, err)
	}
	t := &tracer{dev: d, every: uint64(cmp.Or(every, defaultEvery)), keep: uint64(cmp.Or(keep, defaultKeep)), caller: caller}
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	var all tracing
	if now := d.tracing.Load(); now != nil {
		all = *now
	}
	if len(all) == over.MaxTracers {
		return nil, d.fail(opTrace, 0, fmt.Errorf("%d tracers: %w", over.MaxTracers, ErrBusy))
	}
	all = append(slices.Clone(all), t)
	d.tracing.Store(&all)
	return t, nil
}

// Close ends the tracer. It is idempotent.
func (t *tracer) Close() {
	d := t.dev
	d.clock.mu.Lock()
	defer d.clock.mu.Unlock()
	now := d.tracing.Load()
	if now == nil {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(*now), func(one *tracer) bool { return one == t })
	if len(rest) == 0 {
		d.tracing.Store(nil)
	} else {
		d.tracing.Store(&rest)
	}
}

// Take returns the calls that were measured since the last Take, in the order in which they began.
func (t *tracer) Take(ctx context.Context) over.Trace {
	ctx, cancel := context.WithTimeout(ctx, alignTime)
	defer cancel()
	_ = t.dev.align(ctx) // without it the clock of before is as good as it was
	c := t.dev.clock.get()
	t.mu.Lock()
	kept, lost := t.kept, t.lost
	t.kept, t.taken, t.lost = t.taken, nil, 0
	t.mu.Unlock()
	slices.SortFunc(kept, func(a, b measured) int { return cmp.Compare(a.Start(), b.Start()) })
	r := over.Trace{Calls: make([]over.Call, 0, len(kept)), Lost: lost, ClockKnown: c.Known, ClockError: c.Error}
	for i := range kept {
		s, wrong := kept[i].span(c)
		r.Calls = append(r.Calls, s)
		if wrong {
			r.Wrong++
		}
	}
	clear(kept) // their callers are not the tracer's
	t.mu.Lock()
	t.taken = kept[:0]
	t.mu.Unlock()
	return r
}

// pick reports whether to measure a call that is due. Where there is no room one is lost: the call
// takes the place of another with the chance that all have (reservoir sampling), and is drawn, or it
// need not be measured.
func (t *tracer) pick() (picked, drawn bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uint64(len(t.kept)) < t.keep {
		return true, false
	}
	drawn = t.draw()
	return drawn, drawn
}

// draw counts a call as lost, and reports whether that is another than the one at hand.
func (t *tracer) draw() bool {
	t.lost++
	return rand.Uint64N(t.keep+t.lost) < t.keep
}

// add keeps a call. One that is not drawn found room when it began, which others may have now.
func (t *tracer) add(ctx context.Context, c *tracedCall, n int, drawn bool) {
	var caller any
	if t.caller != nil && ctx != nil {
		caller = t.caller(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := uint64(len(t.kept))
	switch {
	case at < t.keep:
		t.kept = append(t.kept, measured{})
	case drawn || t.draw():
		at = rand.Uint64N(t.keep)
	default:
		return
	}
	m := &t.kept[at]
	m.Call, m.kind, m.target, m.bytes, m.caller = c.Record.Call, c.home.kind, c.home.target, n, caller
}

// tracing is all tracers of a device. It is never changed once it is set.
type tracing []*tracer

// most is how often a tracer picks that picks the most: one call in so many.
func (l tracing) most() uint64 {
	every := l[0].every
	for _, t := range l[1:] {
		every = min(every, t.every)
	}
	return every
}

// callKind is an operation that is measured.
type callKind int

// The operations: of messages, then of transfers, each by abi.Direction.
const (
	callSend callKind = iota
	callReceive
	callSendInd
	callReceiveInd
	callKinds
)

// callOps are their names.
var callOps = [callKinds]string{opSend, opReceive, opSendInd, opReceiveInd}

// half returns the direction.
func (k callKind) half() abi.Direction { return abi.Direction(k % callSendInd) }

// transfers reports whether it moves a transfer.
func (k callKind) transfers() bool { return k >= callSendInd }

// countdown says of an operation of a channel which calls are measured next. Deliveries are
// counted anyway: that counter is only read for a call that is not measured, as one of the tracers'
// would be an instruction that locks its line. Chance decides how many there are to the next: a
// number that is always the same would be in step with what a program does again and again.
// It fills a cache line.
type countdown struct {
	of        *tracing
	delivered *atomic.Uint64 // so far
	next      atomic.Uint64  // with so many delivered a call is measured
	spare     atomic.Pointer[tracedCall]
	every     uint64 // of the tracer that picks the most
	target    Target
	kind      callKind
	_         [8]byte
}

// traced begins the record of a call, if somebody measures it. It is inlined.
func (c *Channel) traced(k callKind) *tracedCall {
	if c.dev.tracing.Load() == nil {
		return nil
	}
	return c.trace(k)
}

// trace is traced where there are tracers.
func (c *Channel) trace(k callKind) *tracedCall {
	if t := c.countdown(k); t.due() {
		return t.begin()
	}
	return nil
}

// tracesNext reports whether the next call is one to measure.
func (c *Channel) tracesNext(k callKind) bool {
	return c.dev.tracing.Load() != nil && c.countdown(k).due()
}

// countdown returns that of an operation, for the tracers that there are.
func (c *Channel) countdown(k callKind) *countdown {
	if t := c.countdowns[k].Load(); t != nil && t.of == c.dev.tracing.Load() {
		return t
	}
	return c.count(k)
}

// due reports whether a call is one to measure.
func (t *countdown) due() bool { return t.delivered.Load() >= t.next.Load() }

// idle is the countdown of no tracer: no call is due.
var idle = func() *countdown {
	t := &countdown{delivered: new(atomic.Uint64)}
	t.next.Store(math.MaxUint64)
	return t
}()

// count begins the countdown of an operation for the tracers that there are.
func (c *Channel) count(k callKind) *countdown {
	all := c.dev.tracing.Load()
	if all == nil { // the last was closed meanwhile
		return idle
	}
	t := &countdown{of: all, every: all.most(), target: c.Target(), kind: k, delivered: c.ch.Delivered(k.half(), k.transfers())}
	t.next.Store(t.delivered.Load() + rand.Uint64N(t.every))
	c.countdowns[k].Store(t)
	return t
}

// begin draws the next call, and begins the record of this one.
func (t *countdown) begin() *tracedCall {
	at, n := t.next.Load(), t.delivered.Load()
	// with one in one also those that find the counter where another one did
	if t.every > 1 && (n < at || !t.next.CompareAndSwap(at, n+1+rand.Uint64N(2*t.every-1))) {
		return nil // another call is the one
	}
	pickers, drawn := t.pick()
	if pickers == 0 {
		return nil
	}
	call := t.spare.Swap(nil)
	if call == nil {
		call = &tracedCall{home: t}
	}
	call.pickers, call.drawn = pickers, drawn
	call.Begin()
	return call
}

// pick returns the tracers that measure a call that is due, and those of them that drew it.
func (t *countdown) pick() (pickers, drawn uint64) {
	for i, one := range *t.of {
		if one.every == t.every || rand.Uint64N(one.every) < t.every {
			if picked, drew := one.pick(); picked {
				pickers |= 1 << i
				if drew {
					drawn |= 1 << i
				}
			}
		}
	}
	return pickers, drawn
}

// tracedCall is one call that is measured, and after that another of the same operation.
type tracedCall struct {
	stamp.Context
	home    *countdown
	pickers uint64 // a bit for each tracer that picked it
	drawn   uint64 // of these, a bit for each that had no room and lost another
}

// in returns the context of the call, which the back end finds the record in.
func (c *tracedCall) in(ctx context.Context) context.Context {
	if c == nil {
		return ctx
	}
	return c.Of(ctx)
}

// end ends the record of a call that delivered n bytes. One that failed is forgotten, and the next
// call is measured in its place.
func (c *tracedCall) end(n int, err error) {
	if c != nil {
		c.finish(n, err)
	}
}

func (c *tracedCall) finish(n int, err error) {
	c.Record.Lap(stamp.Return)
	ctx := c.Context.Context
	c.Context.Context = nil // what the caller's holds is not the tracer's
	if err == nil {
		c.deliver(ctx, n)
	} else {
		c.home.next.Store(0)
	}
	c.home.spare.Store(c)
}

// deliver gives the call to the tracers that picked it.
func (c *tracedCall) deliver(ctx context.Context, n int) {
	for i, t := range *c.home.of {
		if c.pickers>>i&1 != 0 {
			t.add(ctx, c, n, c.drawn>>i&1 != 0)
		}
	}
}

// measured is a call that was measured.
type measured struct {
	stamp.Call
	kind   callKind
	target Target
	bytes  int
	caller any
}

// span cuts the call into its layers.
func (m *measured) span(clock stamp.Clock) (s over.Call, wrong bool) {
	s = over.Call{
		Op: callOps[m.kind], Receive: m.kind.half() == abi.D2H, Transfer: m.kind.transfers(),
		Target: m.target, Bytes: m.bytes, Whole: m.Whole(), Start: m.Start().Time(), Caller: m.caller,
	}
	s.Layers, wrong = m.Split(clock, m.kind.half(), m.kind.transfers())
	return s, wrong
}
