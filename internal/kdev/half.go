package kdev

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/waiter"
)

// half is one direction of a channel.
type half struct {
	gate gate
	dev  *Device
	ch   *Channel
	dir  abi.Direction

	direct, indirect meter.Counter
	lists, repeated  atomic.Uint64 // of transfers that ended
	registered       atomic.Uint64
	unaligned        atomic.Uint64
	parked           atomic.Uint64
	waiting          atomic.Int32 // calls that wait now
	moving           atomic.Int32 // transfers under way
	reserved         atomic.Bool  // a receive holds the half between two operations

	armed   atomic.Int32               // waiters for what the device offers
	mu      sync.Mutex                 // guards what follows
	waiters waiter.Queue               // d2h
	asking  bool                       // d2h: an ARM is under way, also after a Disarm
	places  map[chan<- struct{}]*place // h2d
}

// flag is the half's place in the flags of CLOSE and ARM.
func (h *half) flag() uint16 { return uapi.H2D << h.dir }

// begin starts a call as enter does, unless another has reserved the half.
func (h *half) begin(ctx context.Context, opcode, flags uint16) (*op, error) {
	if h.reserved.Load() && h.gate.why() == 0 && ctx.Err() == nil {
		return nil, bridge.ErrBusy
	}
	return h.enter(ctx, opcode, flags)
}

// enter starts a call: the half is open and ctx continues. end ends it.
func (h *half) enter(ctx context.Context, opcode, flags uint16) (*op, error) {
	if err := ctx.Err(); err != nil {
		return nil, &bridge.WithdrawnError{Cause: err}
	}
	if why := h.gate.enter(); why != 0 {
		return nil, h.shutErr(why)
	}
	stamp.Of(ctx).Lap(stamp.Marshal)
	return h.dev.ops.get(opcode, flags, h.ch.handle, nil), nil
}

// memory gives an operation of the half the bytes it is about.
func (h *half) memory(o *op, data []byte) {
	o.memory(&h.dev.regions, data)
	if o.region != nil {
		h.registered.Add(1)
	}
	if len(data) > 0 && uintptr(unsafe.Pointer(unsafe.SliceData(data)))%8 != 0 {
		h.unaligned.Add(1)
	}
}

// end gives back what begin took.
func (h *half) end(o *op) {
	h.dev.ops.put(o)
	h.pass()
	h.gate.leave()
}

// run makes one operation and returns its outcome.
func (h *half) run(ctx context.Context, o *op) error { return h.outcome(ctx, o, h.fly(ctx, o)) }

// fly makes one operation, and returns why the call gave up, nil if it did not.
func (h *half) fly(ctx context.Context, o *op) error {
	r := stamp.Of(ctx)
	o.record.Store(r)
	stamped := r != nil && h.dev.minor.Load() >= 1 && o.moves()
	if stamped {
		o.raw.Flags |= uapi.Stamped
	}
	transfer := o.transfers()
	if transfer {
		h.moving.Add(1)
		h.dev.sub.alone(o)
	} else {
		h.dev.sub.put(o)
	}
	if !stamped {
		r.Sent()
	}
	cause := h.dev.wait(ctx, o, h)
	if stamped {
		o.driven(r, h.dir)
	} else {
		r.Answered()
	}
	if transfer {
		h.lists.Add(uint64(o.got.Lists))
		h.repeated.Add(uint64(o.got.Repeated))
		h.moving.Add(-1)
	}
	return cause
}

// outcome returns what a completion means. cause is why the call gave up, nil
// if it did not.
func (h *half) outcome(ctx context.Context, o *op, cause error) error {
	c := &o.got
	status := abi.Status(min(c.Status, uint32(abi.StatusCount)))
	switch {
	case c.Error != 0: // of memory that was reached for while the transfer ran, too
		return stopped(c, h.refused(o, syscall.Errno(c.Error)), c.Outstanding != 0)
	case status == abi.OK, o.notNow():
		return nil
	case status == abi.ErrSize:
		return &bridge.SizeError{Host: o.raw.Length, Device: c.PeerSize}
	case (status == abi.ErrWithdrawn || status == abi.ErrAborted) && cause != nil:
		return stopped(c, cause, false)
	case status == abi.ErrClosed:
		return stopped(c, h.closedErr(), false)
	case status == abi.ErrTimeout && c.Opcode == uapi.OpSendInd && overdue(ctx):
		return &bridge.WithdrawnError{Cause: bridge.ErrTargetTimeout} // not the device's own
	default:
		return stopped(c, h.dev.statusErr(status), status == abi.ErrDMA)
	}
}

// overdue reports whether the deadline of ctx has passed.
func overdue(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return ok && !time.Now().Before(end)
}

// timeout is how long the target may stay unready; 0 is for ever.
func timeout(ctx context.Context) uint64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return uint64(max(1, time.Until(end)))
}

// stopped returns err, with the place where a transfer stopped if bytes were
// moved before, or always.
func stopped(c *uapi.Completion, err error, always bool) error {
	if c.Processed == 0 && !always {
		return err
	}
	return &bridge.TransferError{
		Processed: c.Processed, Outstanding: c.Outstanding, List: c.List, Entry: c.Entry, Err: err,
	}
}

// closedErr returns the error of a half that is closed, by whichever side.
func (h *half) closedErr() error {
	if why := h.gate.why(); why != 0 {
		return h.shutErr(why)
	}
	return errPeerClosed
}

// shutErr returns the error of a half that is shut.
func (h *half) shutErr(why int64) error {
	switch {
	case why&shutDevice != 0:
		return errDeviceClosed
	case why&shutLost != 0:
		return bridge.ErrReset
	default:
		return bridge.ErrClosed
	}
}

// refused returns what an errno of the module means for an operation.
func (h *half) refused(o *op, errno syscall.Errno) error {
	if errno == syscall.ENOENT && o.got.ID == 0 { // not taken: the channel is closed here, or of another epoch
		if why := h.gate.why(); why != 0 {
			return h.shutErr(why)
		}
		return bridge.ErrReset
	}
	return h.dev.refused(o, errno)
}
