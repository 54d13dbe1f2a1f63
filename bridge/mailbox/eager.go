package mailbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/stamp"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// eager reports whether the transfer may travel with its pages. Bytes that are copied from there to
// the buffer need one that can be written: the device commits first.
func (x *transfer) eager() bool {
	eager := x.ledger.Cut.IsEager(uint64(x.h.mailbox.ep.Hello.Eager))
	return eager && (x.staged == nil || x.h.dir == abi.H2D || fault.Writable(x.data))
}

// pages fills a slot with the transfer and its pages, and returns the header.
func (x *transfer) pages(s *wire.Slot) wire.Header {
	e := s.Eager()
	n := x.ledger.Cut.FillEager(e)
	e.Transaction, e.TimeoutNS = x.id, x.unready
	if x.h.dir == abi.D2H {
		n |= wire.ListD2H
	}
	return x.h.header(wire.TypeEager, n, x.id)
}

// offerEager gives a transfer with its pages: it is taken and committed like a message. Must hold
// queue.
func (h *sender) offerEager(ctx context.Context, x *transfer) error {
	if err := h.presentEager(ctx, x); err != nil {
		return err
	}
	h.spinFor(events)
	return h.awaitTaken(ctx, x)
}

// presentEager gives the device a transfer with its pages. Must hold queue.
func (h *sender) presentEager(ctx context.Context, x *transfer) error {
	var s wire.Slot
	var before uint64
	h.size.Store(x.ledger.Cut.Size)
	x.id, before = h.begin(proto.PutEager)
	return h.present(ctx, x.pages(&s), &s, before)
}

// awaitTaken waits until the target took what presentEager gave, or withdraws it: a try does so at
// once. Must hold queue.
func (h *sender) awaitTaken(ctx context.Context, x *transfer) error {
	var err error
	switch {
	case h.word.Load()&events != 0:
		err = h.outcome(nil)
	case x.unready == notAtAll:
		err = h.withdraw(errNotReady)
	default:
		err = h.parkOffer(ctx)
	}
	h.record.Load().Answered()
	if err == errRefused {
		x.end = *h.slot.Ack()
		err = x.failure(ctx)
	}
	return err
}

// errElse means that the device offered something else than the transfer it has pages for.
var errElse = errors.New("something else is offered")

// post gives the device pages for its next transfer, while nothing is offered; errElse if it offers
// something else, or the pages are too many. Must hold queue.
func (h *receiver) post(ctx context.Context, data []byte) error {
	x := h.transfer()
	err := h.postPages(x, data)
	if err == nil {
		err = h.endEager(ctx, x)
	}
	return err
}

// endEager waits until the device has the pages of a transfer no more, and gives the buffer back.
// nil if the transfer arrived. Must hold queue.
func (h *receiver) endEager(ctx context.Context, x *transfer) error {
	err := h.awaitEager(ctx, x)
	h.record.Load().Answered()
	if err == nil {
		err = x.takeRest()
	}
	x.stop()
	return err
}

// postPages holds the buffer of a transfer and gives the device its pages. With an error nothing is
// held: errElse if they are too many, or an offer arrived meanwhile. Must hold queue.
func (h *receiver) postPages(x *transfer, data []byte) error {
	if err := x.start(data, true); err != nil {
		return err
	}
	x.id = h.id() + 1 // before it can be offered
	h.record.Load().Lap(stamp.Pin)
	err := errElse
	if x.eager() {
		err = h.giveEager(x)
	}
	if err != nil {
		x.stop()
	} else if h.ch.relay {
		h.sayReady()
	}
	return err
}

// mayPost reports whether it is worth a try to post pages for so many bytes.
func (h *receiver) mayPost(n int) bool {
	most := h.mailbox.ep.EagerMost()
	return most > 0 && n <= most && !h.ch.verify.Load() && h.shut.Load() == 0 && !h.offered()
}

// giveEager gives the device the pages of a transfer; errElse if an offer arrived meanwhile. Must hold
// queue.
func (h *receiver) giveEager(x *transfer) error {
	h.size.Store(x.ledger.Cut.Size)
	if _, ok := h.act(proto.PutEager); !ok {
		return errElse
	}
	var s wire.Slot
	x.unready = 0
	hd := x.pages(&s)
	err := h.put(background, hd, &s.Payload, h.mailbox.room(proto.RoomUrgent), shutDown)
	h.record.Load().Sent()
	return err
}

// awaitEager waits until the device has the pages of a transfer no more. nil if the transfer
// arrived. Must hold queue.
func (h *receiver) awaitEager(ctx context.Context, x *transfer) error {
	defer x.clock.stop()
	for {
		late := !h.spinFor(events) && h.awaitPages(ctx, x)
		e, shut := eventOf(h.word.Load()), h.shut.Load()
		switch {
		case e == proto.EventProgress: // the pages answer an offer that they crossed
			h.seen(e)
		case e != proto.EventNone:
			return h.ended(ctx, x, e, errElse)
		case shut&shutDown != 0:
			return h.err()
		case shut != 0:
			return h.takeBack(ctx, x, h.err())
		case ctx.Err() != nil:
			return h.takeBack(ctx, x, &bridge.WithdrawnError{Cause: ctx.Err()})
		case late && x.clock.overdue():
			h.mailbox.ep.fail(fmt.Errorf("%w: channel %d: nothing moved for %v", bridge.ErrDeviceLost, h.channel, h.mailbox.ep.stall))
		}
	}
}

// awaitPages sleeps until there are events of the pages that the device has; true if a step of the
// stall clock passed first. A device that has offered the transfer owes its end, one that has not
// may wait for ever. Must hold queue.
func (h *receiver) awaitPages(ctx context.Context, x *transfer) bool {
	if stateOf(h.word.Load()) == proto.StateGiven {
		return h.await(ctx.Done(), x.clock.ticks(h.mailbox.ep.stall), events, shutAny)
	}
	h.await(ctx.Done(), nil, events, shutAny)
	return false
}

// takeBack asks for the pages that are posted, or waits for the end of the transfer that uses them:
// the device does either at once, or is lost. It returns cause if nothing was taken. Must hold queue.
func (h *receiver) takeBack(ctx context.Context, x *transfer, cause error) error {
	if _, posted := h.act(proto.PutWithdraw); posted {
		_ = h.putNote(wire.TypeWithdraw, x.id) // fails only when the device is lost
	}
	for h.escalate(events) {
		e := eventOf(h.word.Load())
		if e != proto.EventProgress {
			return h.ended(ctx, x, e, cause)
		}
		h.seen(e)
	}
	return h.err()
}

// ended returns what the event that ended an eager transfer to the host means; nothing is taken if
// what was posted was returned, or something else was offered, which stays. Must hold queue.
func (h *receiver) ended(ctx context.Context, x *transfer, e proto.Event, nothing error) error {
	h.settle()
	switch e {
	case proto.EventDelivered:
		return nil
	case proto.EventRefused:
		return x.failure(ctx)
	default:
		return nothing
	}
}
