package mailbox

import (
	"context"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/meter"
)

var _ bridge.Beginner = (*channel)(nil)

// BeginSendInd offers an eager transfer and does not wait. Others need their caller: lists
// follow the device's acks, and only the caller commits. The ring may make it wait for room.
func (c *channel) BeginSendInd(ctx context.Context, data []byte) bool {
	h := &c.send
	if ctx.Err() != nil || uint64(len(data)) > c.ep.Hello.MaxTransfer || !h.queue.try() {
		return false
	}
	x := h.transfer()
	x.since = meter.Now()
	if h.shut.Load() == 0 && x.start(data, false) == nil {
		x.unready = timeout(ctx)
		if x.eager() && h.presentEager(ctx, x) == nil {
			return true
		}
		x.stop()
	}
	h.unlock()
	return false
}

// EndSendInd waits for what BeginSendInd offered.
func (c *channel) EndSendInd(ctx context.Context, data []byte, wait bool) (ended bool, err error) {
	h := &c.send
	x := h.xfer
	if !h.looks() && !wait {
		return false, nil
	}
	err = h.awaitTaken(ctx, x)
	x.stop()
	return true, h.endInd(ctx, data, err, x.since)
}

// BeginReceiveInd gives the device the pages of its next transfer and does not wait, while
// nothing is offered.
func (c *channel) BeginReceiveInd(ctx context.Context, data []byte) bool {
	h := &c.recv
	if h.enter(ctx) != nil {
		return false
	}
	if h.mayPost(len(data)) {
		x := h.transfer()
		x.since = meter.Now()
		if h.postPages(x, data) == nil {
			return true
		}
	}
	h.unlock()
	return false
}

// EndReceiveInd waits for what BeginReceiveInd posted. If the device offers something else
// that is taken, or refused, as ReceiveInd would.
func (c *channel) EndReceiveInd(ctx context.Context, data []byte, wait bool) (ended bool, err error) {
	h := &c.recv
	x := h.xfer
	if !h.voided {
		if !h.looks() && !wait {
			return false, nil
		}
		err = h.endEager(ctx, x)
		h.voided = err == errElse
	}
	if h.voided {
		if !wait {
			return false, nil
		}
		h.voided = false
		err = h.takeOffered(ctx, data)
	}
	h.indirect.Note(len(data), err, x.since)
	h.unlock()
	return true, err
}

// looks waits a moment for an event, and looks at least once: a call that does not sleep gets no
// doorbell, and with one processor none spins. Must hold queue.
func (p *parker) looks() bool { return p.spinFor(events) || p.pollFor(events, 1) }
