package trace

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

// Bounds of tracers.
const (
	// MaxTracers is how many tracers a device may have at a time.
	MaxTracers = over.MaxTracers
	// MaxEvery is the largest Options.Every.
	MaxEvery = over.MaxEvery
	// MaxKeep is the largest Options.Keep.
	MaxKeep = over.MaxKeep
)

// Layer is a part of a call, see the constants.
type Layer int

// Layers of a call, in the order in which one to the device passes them.
const (
	Marshal    = Layer(stamp.Marshal)    // the object's bytes are found or copied, and reach the back end
	Queue      = Layer(stamp.Queue)      // behind other calls of the half
	Pin        = Layer(stamp.Pin)        // memory is held, and made known to the device
	Submit     = Layer(stamp.Submit)     // slots are put and the device rung, or the driver is called
	Device     = Layer(stamp.Device)     // all from submit to completion, where answers have no stamps
	Pickup     = Layer(stamp.Pickup)     // until the device takes the offer
	Target     = Layer(stamp.Target)     // until the other end reads or writes
	DMA        = Layer(stamp.DMA)        // bytes move
	Completion = Layer(stamp.Completion) // until the host has the answer
	Wakeup     = Layer(stamp.Wakeup)     // until a caller that slept runs again
	Return     = Layer(stamp.Return)     // memory is released, and the caller has its result
)

// Layers is how many layers there are.
const Layers = stamp.Layers

// String returns the layer in a word: "queue".
func (l Layer) String() string { return stamp.Layer(l).String() }

// Options is what a tracer measures. The zero value is valid.
type Options struct {
	// Every picks one call in so many, by chance, of all channels together; 0 means 64.
	Every int
	// Keep is how many calls the tracer holds that were not taken yet. Of more it holds
	// a choice, each as likely as any other, and counts the rest as lost. 0 means 1024.
	Keep int
	// Caller relates calls to their callers; nil does not. It is called with the context of each
	// measured call, on the goroutine of its caller before the call returns, and Span.Caller has
	// its result. It must be quick, and must not call the device.
	Caller func(ctx context.Context) any
}

// Span is one call that was measured, layer by layer.
type Span struct {
	Op string // "send", "receive", "send transfer" or "receive transfer"
	// Receive and Transfer name the operation: to or from the host, a message or a transfer.
	Receive, Transfer bool
	Target            nfcomms.Target
	Start             time.Time
	Bytes             int
	Whole             time.Duration // the sum of Layers
	Layers            [Layers]time.Duration
	Caller            any // the result of Options.Caller; nil without it
}

// Tracer measures calls of a device. Its methods are safe for concurrent use. A tracer that is not
// needed any more must be closed.
type Tracer struct{ t over.Tracer }

// Start begins to measure calls that send or receive, messages and transfers alike, and deliver
// something; tries, Selects, and transfers with functions are not measured. ErrBusy if the device
// has MaxTracers tracers, ErrInvalid for options out of bounds. A reset does not end a tracer.
func Start(ctx context.Context, dev *nfcomms.Device, o Options) (*Tracer, error) {
	t, err := over.Of(dev).Trace(ctx, o.Every, o.Keep, o.Caller)
	if err != nil {
		return nil, err
	}
	return &Tracer{t}, nil
}

// Close ends the tracer. It is idempotent.
func (t *Tracer) Close() { t.t.Close() }

// Take returns the calls that were measured since the last Take, in the order in which they began,
// and how the clocks stand. The device is asked for its time again if that was more than a second
// ago, for as long as ctx and 100 ms allow. A call is taken once.
func (t *Tracer) Take(ctx context.Context) Result {
	took := t.t.Take(ctx)
	r := Result{Lost: took.Lost, Wrong: took.Wrong, ClockKnown: took.ClockKnown, ClockError: took.ClockError}
	r.Spans = make([]Span, len(took.Calls))
	for i := range took.Calls {
		r.Spans[i] = Span(took.Calls[i])
	}
	return r
}
