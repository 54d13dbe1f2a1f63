package kdev

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/kdev/uapi"
	"github.com/nfcomms/nfcomms/internal/meter"
)

var _ bridge.Caller = (*Channel)(nil)

// ask is the operation that asks. A module of version 3.0 has messages alone, which OpAsk is, too,
// where the device takes no questions.
func (d *Device) ask() uint16 {
	if d.minor.Load() < 1 {
		return uapi.OpSend
	}
	return uapi.OpAsk
}

// Call gives msg as a question, and takes its answer into buf.
func (c *Channel) Call(ctx context.Context, msg, buf []byte) (a bridge.Answer, err error) {
	if len(msg) > abi.PayloadSize && ctx.Err() == nil {
		return a, tooLarge(len(msg), abi.PayloadSize)
	}
	h, start := c.half(abi.H2D), meter.Now()
	o, err := h.begin(ctx, c.dev.ask(), 0)
	if err == nil {
		o.raw.Length = uint64(copy(o.raw.Payload[:], msg))
		a, err = h.called(ctx, o, buf)
		h.end(o)
	}
	h.direct.Note(len(msg), err, start)
	return a, err
}

// TryCall is Call if the target waits for a question now. For wake see TrySend.
func (c *Channel) TryCall(ctx context.Context, msg, buf []byte, wake chan<- struct{}) (a bridge.Answer, taken bool, err error) {
	if len(msg) > abi.PayloadSize {
		return a, false, tooLarge(len(msg), abi.PayloadSize)
	}
	h, start := c.half(abi.H2D), meter.Now()
	o, err := h.begin(ctx, c.dev.ask(), uapi.Nowait)
	if err == nil {
		o.raw.Length = uint64(copy(o.raw.Payload[:], msg))
		taken, err = h.attempt(o, wake, func() (err error) {
			a, err = h.called(ctx, o, buf)
			return err
		})
		if !taken && err == nil {
			return a, false, nil
		}
	}
	h.direct.Note(len(msg), err, start)
	return a, taken, err
}

// called asks, and returns how that ended.
func (h *half) called(ctx context.Context, o *op, buf []byte) (bridge.Answer, error) {
	cause := h.fly(ctx, o)
	err := h.outcome(ctx, o, cause)
	taken := o.got.Error == 0 && o.got.Flags&uapi.Taken != 0
	switch {
	case o.notNow():
		return bridge.Answer{}, nil
	case taken && err != nil && cause == nil: // of the device, whatever it says
		return bridge.Answer{}, &bridge.UnansweredError{Cause: h.closedErr()}
	case taken && err != nil:
		return bridge.Answer{}, &bridge.UnansweredError{Cause: err}
	case err != nil:
		return bridge.Answer{}, err
	case !taken && cause != nil:
		return bridge.Answer{}, &bridge.UnansweredError{Cause: cause, Late: true}
	case !taken:
		return bridge.Answer{Message: true}, nil
	case len(o.message()) > len(buf):
		return bridge.Answer{}, tooLarge(len(o.message()), uint64(len(buf)))
	}
	return bridge.Answer{Size: copy(buf, o.message())}, nil
}
