package mailbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// background stands for "no context".
var background = context.Background()

// Send gives one message of at most abi.PayloadSize bytes and returns nil once
// the target took it. When ctx ends first the message is withdrawn and the
// error is a *bridge.WithdrawnError.
func (c *channel) Send(ctx context.Context, msg []byte) error {
	h := &c.send
	if err := ctx.Err(); err != nil {
		return h.refused(&h.direct, &bridge.WithdrawnError{Cause: err})
	}
	if len(msg) > abi.PayloadSize {
		return tooLarge(len(msg), abi.PayloadSize)
	}
	r := stamp.Of(ctx)
	r.Lap(stamp.Marshal)
	var start meter.Instant
	if !h.queue.try() {
		start = meter.Now()
		if err := h.lock(ctx); err != nil {
			return h.refused(&h.direct, err)
		}
		r.Lap(stamp.Queue)
	}
	start = h.sampler.Start(start)
	h.measure(r)
	err := h.offer(ctx, msg)
	for err == errAskedBack {
		h.asked.again()
		err = h.offer(ctx, msg)
	}
	h.asked.over()
	h.direct.Note(len(msg), err, start)
	h.over()
	h.unlock()
	return err
}

// measure takes the record of the call that has the queue now; nil for none. Must hold queue.
func (h *half) measure(r *stamp.Record) {
	if r != nil {
		h.mailbox.runs.measured.Add(1)
		h.record.Store(r)
	}
}

// over ends measure. Must hold queue.
func (h *half) over() {
	if h.record.Load() != nil {
		h.record.Store(nil)
		h.mailbox.runs.measured.Add(-1)
	}
}

// lock waits in the queue behind another call.
func (h *sender) lock(ctx context.Context) error {
	h.addWaiting(1)
	h.queued.Add(1)
	err := h.queue.lock(ctx)
	h.queued.Add(-1)
	h.addWaiting(-1)
	if err != nil {
		return &bridge.WithdrawnError{Cause: err}
	}
	return nil
}

// refused counts a call that ended before it began.
func (h *half) refused(c *meter.Counter, err error) error {
	c.Note(0, err, 0)
	return err
}

func tooLarge(n int, limit uint64) error {
	return fmt.Errorf("%d bytes, at most %d: %w", n, limit, bridge.ErrTooLarge)
}

// offer gives a message to the device and waits for what becomes of it.
// errAskedBack means that it was returned because the audit asked. Must hold queue.
func (h *sender) offer(ctx context.Context, msg []byte) error {
	if h.shut.Load() != 0 {
		return h.err()
	}
	var s wire.Slot
	copy(s.Bytes()[:], msg)
	id, before := h.begin(proto.PutMessage)
	return h.whyRefused(h.give(ctx, h.header(wire.TypeDirect, len(msg), id), &s, before))
}

// give puts an offer that was begun, and waits for what becomes of it; errRefused if the target did
// not take it, see the half's slot. Must hold queue.
func (h *sender) give(ctx context.Context, hd wire.Header, s *wire.Slot, before uint64) error {
	if err := h.present(ctx, hd, s, before); err != nil {
		return err
	}
	if h.spinFor(events) {
		h.record.Load().Answered()
		return h.outcome(nil)
	}
	err := h.parkOffer(ctx)
	h.record.Load().Answered()
	return err
}

// present puts an offer that was begun. Must hold queue.
func (h *sender) present(ctx context.Context, hd wire.Header, s *wire.Slot, before uint64) error {
	err := h.put(ctx, hd, &s.Payload, h.mailbox.room(proto.RoomNormal), shutAny)
	if err != nil {
		h.unbegin(before)
	}
	h.record.Load().Sent()
	return err
}

// parkOffer sleeps until the message is taken, or withdraws it.
func (h *sender) parkOffer(ctx context.Context) error {
	h.waitForTarget(1)
	ended := h.await(ctx.Done(), nil, events|askFlag, shutAny)
	h.waitForTarget(-1)
	switch shut := h.shut.Load(); {
	case h.word.Load()&events != 0:
		return h.outcome(nil)
	case shut&shutDown != 0:
		return h.err()
	case shut != 0:
		return h.withdraw(h.err())
	case ended:
		return h.withdraw(&bridge.WithdrawnError{Cause: ctx.Err()})
	default:
		return h.withdraw(errAskedBack)
	}
}

// withdraw takes the message back. It returns cause if that worked, nil if the
// target had it already.
func (h *sender) withdraw(cause error) error {
	if _, ok := h.act(proto.PutWithdraw); !ok { // it has ended meanwhile
		return h.outcome(cause)
	}
	if err := h.putNote(wire.TypeWithdraw, h.id()); err != nil {
		h.await(nil, nil, events, shutDown)
	} else if !h.escalate(events) {
		return h.err()
	}
	if h.word.Load()&events == 0 {
		return h.err()
	}
	return h.outcome(cause)
}

// errRefused means that the target did not take an offer.
var errRefused = errors.New("refused")

// whyRefused returns the error of a message; for errRefused that of the device's record.
func (h *sender) whyRefused(err error) error {
	if err == errRefused {
		return bridge.Error(h.slot.Ack().Status)
	}
	return err
}

// outcome returns how an offer ended. withdrawn is the error if
// it was taken back.
func (h *sender) outcome(withdrawn error) error {
	switch eventOf(h.word.Load()) {
	case proto.EventDelivered:
		return nil
	case proto.EventWithdrawn:
		return withdrawn
	default:
		return errRefused
	}
}

// TrySend gives msg only if the target is waiting for it now: it offers the
// message and withdraws it in the same breath, and the device answers one.
// waiter is the armed one whose place it uses, nil for none. False also while another
// call sends, or another waiter is the first.
func (c *channel) TrySend(msg []byte, waiter chan<- struct{}) (bool, error) {
	h := &c.send
	if len(msg) > abi.PayloadSize {
		return false, tooLarge(len(msg), abi.PayloadSize)
	}
	if c.refusesTries() {
		return false, errTryHost
	}
	if !h.enterTry(waiter) {
		return false, nil
	}
	start := h.sampler.Start(0)
	ok, err := h.tryOffer(msg)
	h.tried(!ok && err == nil, waiter)
	if ok || err != nil {
		h.direct.Note(len(msg), err, start)
	}
	h.unlock()
	return ok, err
}

// tryOffer is TrySend. Must hold queue.
func (h *sender) tryOffer(msg []byte) (bool, error) {
	if h.shut.Load() != 0 {
		return false, h.err()
	}
	var s wire.Slot
	copy(s.Bytes()[:], msg)
	id, before := h.begin(proto.PutMessage)
	h.act(proto.PutWithdraw)
	note := h.note(id)
	r := h.mailbox.putPair(h.header(wire.TypeDirect, len(msg), id), &s.Payload,
		h.header(wire.TypeWithdraw, abi.PayloadSize, id), &note.Payload)
	switch r {
	case putRing:
		h.ring()
	case putFull:
		h.mailbox.ep.dev.full.Add(1)
		h.unbegin(before)
		h.mailbox.poll()
		return false, nil
	case putDead:
		return false, h.mailbox.ep.err()
	}
	if !h.spinFor(events) && !h.escalate(events) {
		return false, h.err()
	}
	err := h.whyRefused(h.outcome(errNotReady))
	if err == errNotReady {
		return false, nil
	}
	return err == nil, err
}

// errNotReady means that TrySend's message was returned.
var errNotReady = fmt.Errorf("%w: target not waiting", bridge.ErrWithdrawn)
