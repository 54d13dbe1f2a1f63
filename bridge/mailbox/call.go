package mailbox

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var _ bridge.Caller = (*channel)(nil)

// asks reports whether the far end takes questions. Others get messages.
func (c *channel) asks() bool {
	return !c.relay && c.ep.Hello.Capabilities&wire.CapCalls != 0
}

// Call gives msg as a question, and takes its answer into buf.
func (c *channel) Call(ctx context.Context, msg, buf []byte) (bridge.Answer, error) {
	h := &c.send
	if !c.asks() {
		return bridge.Answer{Message: true}, c.Send(ctx, msg)
	}
	if err := ctx.Err(); err != nil {
		return bridge.Answer{}, h.refused(&h.direct, &bridge.WithdrawnError{Cause: err})
	}
	if len(msg) > abi.PayloadSize {
		return bridge.Answer{}, tooLarge(len(msg), abi.PayloadSize)
	}
	var start meter.Instant
	if !h.queue.try() {
		start = meter.Now()
		if err := h.lock(ctx); err != nil {
			return bridge.Answer{}, h.refused(&h.direct, err)
		}
	}
	start = h.sampler.Start(start)
	a, err := h.call(ctx, msg, buf, 0)
	h.direct.Note(len(msg), err, start)
	h.unlock()
	return a, err
}

// TryCall is Call if the target waits now.
func (c *channel) TryCall(ctx context.Context, msg, buf []byte, waiter chan<- struct{}) (bridge.Answer, bool, error) {
	h := &c.send
	if !c.asks() {
		ok, err := c.TrySend(msg, waiter)
		return bridge.Answer{Message: true}, ok, err
	}
	if len(msg) > abi.PayloadSize {
		return bridge.Answer{}, false, tooLarge(len(msg), abi.PayloadSize)
	}
	if err := ctx.Err(); err != nil {
		return bridge.Answer{}, false, h.refused(&h.direct, &bridge.WithdrawnError{Cause: err})
	}
	if !h.enterTry(waiter) {
		return bridge.Answer{}, false, nil
	}
	start := h.sampler.Start(0)
	a, err := h.call(ctx, msg, buf, wire.CallNow)
	late := err == errNotReady
	h.tried(late, waiter)
	if !late {
		h.direct.Note(len(msg), err, start)
	}
	h.unlock()
	if late {
		return a, false, nil
	}
	return a, err == nil, err
}

// call puts a question and waits for its end; errNotReady if it was for a target that waits. Must hold
// queue.
func (h *sender) call(ctx context.Context, msg, buf []byte, now int) (bridge.Answer, error) {
	if h.shut.Load() != 0 {
		return bridge.Answer{}, h.err()
	}
	var s wire.Slot
	copy(s.Bytes()[:], msg)
	id, before := h.begin(proto.PutCall)
	if err := h.present(ctx, h.header(wire.TypeCall, len(msg)|now, id), &s, before); err != nil {
		return bridge.Answer{}, err
	}
	var cause error
	if !h.spinFor(events) {
		if cause = h.awaitAnswer(ctx); h.word.Load()&events == 0 {
			return bridge.Answer{}, h.err() // the device is lost
		}
	}
	a, err := h.called(buf, cause)
	if now != 0 && cause == nil && err == errRefused && h.slot.Ack().Status == abi.ErrTimeout {
		return a, errNotReady
	}
	return a, h.whyRefused(err)
}

// awaitAnswer sleeps until a question has ended, or takes it back: then it returns why. The device is
// not asked whether it still has the question, as it does not count one that a process took.
func (h *sender) awaitAnswer(ctx context.Context) error {
	ended := h.await(ctx.Done(), nil, events, shutAny)
	shut := h.shut.Load()
	if h.word.Load()&events != 0 || shut&shutDown != 0 {
		return nil
	}
	cause := h.err()
	if ended && shut == 0 {
		cause = &bridge.WithdrawnError{Cause: ctx.Err()}
	}
	_ = h.withdraw(cause) // the event says what became of it
	return cause
}

// called returns how a question ended, which was taken back for a cause, if that is not nil;
// errRefused if the target did not take it, see the half's slot. Must hold queue.
func (h *sender) called(buf []byte, cause error) (bridge.Answer, error) {
	switch eventOf(h.word.Load()) {
	case proto.EventAnswered:
		hd := wire.Header(h.slot.Header)
		if hd.Length() > len(buf) {
			return bridge.Answer{}, tooLarge(hd.Length(), uint64(len(buf)))
		}
		return bridge.Answer{Size: copy(buf, h.slot.Bytes()[:hd.Length()])}, nil
	case proto.EventDelivered:
		if cause != nil {
			return bridge.Answer{}, &bridge.UnansweredError{Cause: cause, Late: true}
		}
		return bridge.Answer{Message: true}, nil
	case proto.EventUnanswered:
		if cause == nil {
			cause = h.ch.ended()
		}
		return bridge.Answer{}, &bridge.UnansweredError{Cause: cause, Late: false}
	case proto.EventWithdrawn:
		return bridge.Answer{}, cause
	}
	return bridge.Answer{}, errRefused
}
