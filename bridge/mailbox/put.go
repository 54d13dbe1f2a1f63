package mailbox

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// put publishes a message of the half; while the ring is full it waits. It
// returns why it gave up: nothing was put then. Must hold queue.
func (h *half) put(ctx context.Context, hd wire.Header, p *[7]uint64, limit uint64, stop uint32) error {
	switch h.mailbox.put(hd, p, limit) {
	case putDone:
		return nil
	case putRing:
		h.ring()
		return nil
	}
	return h.waitForRoom(ctx, hd, p, limit, stop)
}

// waitForRoom is put for a full ring. It drains d2h meanwhile, so that two full
// rings cannot wait for each other.
func (h *half) waitForRoom(ctx context.Context, hd wire.Header, p *[7]uint64, limit uint64, stop uint32) error {
	h.mailbox.ep.dev.full.Add(1)
	h.addWaiting(1)
	defer h.addWaiting(-1)
	h.mailbox.ep.watch.wakeUp()
	bound := h.mailbox.ep.stall
	if limit == h.mailbox.room(proto.RoomUrgent) {
		bound = heartbeatTimeout
	}
	var wait roomWait
	for round := 0; ; round++ {
		switch h.mailbox.put(hd, p, limit) {
		case putDone:
			return nil
		case putRing:
			h.ring()
			return nil
		case putDead:
			return h.mailbox.ep.err()
		}
		h.mailbox.poll()
		if err := h.endsWait(ctx, stop); err != nil {
			return err
		}
		if wait.stuck(h.mailbox, bound) {
			return h.mailbox.lost(bound)
		}
		pause(round)
	}
}

// endsWait returns why a call should not wait for room any more.
func (h *half) endsWait(ctx context.Context, stop uint32) error {
	if h.shut.Load()&stop != 0 {
		return h.err()
	}
	if ctx.Err() != nil {
		return &bridge.WithdrawnError{Cause: ctx.Err()}
	}
	return nil
}

// putRecord puts the completion record in s: ACK or ERROR of an offer.
func (h *half) putRecord(t wire.Type, s *wire.Slot) error {
	hd := h.header(t, abi.PayloadSize, s.Ack().Transaction)
	return h.put(background, hd, &s.Payload, h.mailbox.room(proto.RoomUrgent), shutDown)
}

// putNote names a transaction to the device: FIN, WITHDRAW, WITHDRAWN, ABORT, OFFER.
func (h *half) putNote(t wire.Type, id uint64) error {
	s := h.note(id)
	return h.put(background, h.header(t, abi.PayloadSize, id), &s.Payload, h.mailbox.room(proto.RoomUrgent), shutDown)
}

// note returns a slot with the payload of putNote.
func (h *half) note(id uint64) (s wire.Slot) {
	*s.Note() = wire.Note{Transaction: id, Direction: uint32(h.dir)}
	return s
}
