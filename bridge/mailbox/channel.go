package mailbox

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// channel is the host's end of one channel. It implements bridge.Channel.
type channel struct {
	ep         *epoch
	mailbox    *mailbox
	id         uint32
	far        bridge.Target // the far end, as it was asked for
	relay      bool          // another host is there
	verify     atomic.Bool   // transfers are compared by a checksum
	generation uint64        // of the subscription; written under rx while opening

	send sender
	recv receiver

	opening bool        // ids are not known yet: keep what arrives early; under rx
	early   []wire.Slot // under rx

	closing sync.Mutex  // held across a close, which waits for calls
	closed  uint32      // halves closed here; guarded by closing
	last    atomic.Bool // both halves are closed: the device is to agree
}

var _ bridge.Channel = (*channel)(nil)

// newChannel makes the end of a channel; it is not in the table yet.
func (e *epoch) newChannel(id uint32) *channel {
	c := &channel{ep: e, mailbox: e.mailboxOf(id), id: id, far: bridge.Target(id)}
	for d, h := range []*half{abi.H2D: &c.send.half, abi.D2H: &c.recv.half} {
		h.dir, h.mailbox, h.ch = abi.Direction(d), c.mailbox, c
		h.channel, h.parkWord = id, e.memory.park(id)
		h.spin.full = e.full
		h.sampler = meter.NewSampler()
		h.direct.Path, h.indirect.Path = e.dev.meters.of(h)
	}
	c.send.queue.ask = c.send.ask
	return c
}

// Target returns the id of the far end.
func (c *channel) Target() bridge.Target { return c.far }

// CloseSend closes the h2d half. Pending sends end with ErrClosed; it waits
// for them. Idempotent.
func (c *channel) CloseSend() error { return c.close(1 << abi.H2D) }

// CloseReceive closes the d2h half. A pending receive ends with ErrClosed; it
// waits for it, so a function given to ReceiveFunc or ReceiveIndFunc must not
// call it. Idempotent.
func (c *channel) CloseReceive() error { return c.close(1 << abi.D2H) }

// Close closes both halves and ends the subscription: when it returns, the
// target may be subscribed again. Idempotent; see CloseReceive.
func (c *channel) Close() error { return c.close(1<<abi.H2D | 1<<abi.D2H) }

// close ends the calls of some halves, puts CLOSE, and after the last
// half waits for it to agree.
func (c *channel) close(halves uint32) error {
	for _, h := range c.of(halves) {
		h.giveBack(h.shutFor(shutHost))
	}
	c.closing.Lock()
	defer c.closing.Unlock()
	halves &^= c.closed
	if halves == 0 {
		return nil
	}
	for _, h := range c.of(halves) {
		_ = h.leave(background)
		h.actClose()
	}
	c.closed |= halves
	h := &c.send.half // calls may continue in the half that stays open
	if c.closed&(1<<abi.D2H) != 0 {
		h = &c.recv.half
	}
	_ = h.queue.lock(background)
	defer h.unlock()
	c.last.Store(c.closed == 1<<abi.H2D|1<<abi.D2H)
	err := h.putClose(halves)
	if !c.last.Load() {
		return nil
	}
	if err == nil {
		h.escalate(events) // a lost device has no subscription either
	}
	c.ep.dev.retire(c)
	return nil
}

// actClose acts on CLOSE, which is put next. A WITHDRAWN that the device waits for is put before, unless
// the device takes nothing for long: then the put of CLOSE finds it lost.
func (h *half) actClose() {
	b, start := h.mailbox, meter.Now()
	for round := 0; ; round++ {
		if _, ok := h.act(proto.PutClose); ok || stateOf(h.word.Load()) != proto.StateAnswering {
			return
		}
		b.rx.Lock()
		b.flushRepliesLocked()
		dead := b.rx.dead
		b.rx.Unlock()
		if dead || start.Elapsed() > heartbeatTimeout {
			return
		}
		pause(round)
	}
}

// of lists the halves in a set.
func (c *channel) of(halves uint32) []*half {
	var list []*half
	if halves&(1<<abi.H2D) != 0 {
		list = append(list, &c.send.half)
	}
	if halves&(1<<abi.D2H) != 0 {
		list = append(list, &c.recv.half)
	}
	return list
}

// putClose puts CLOSE: the halves are not used any more. Must hold
// queue.
func (h *half) putClose(halves uint32) error {
	var s wire.Slot
	*s.Close() = wire.Close{Halves: halves, Generation: h.ch.generation}
	hd := h.header(wire.TypeClose, abi.PayloadSize, h.ch.generation)
	return h.put(background, hd, &s.Payload, h.mailbox.room(proto.RoomUrgent), shutDown)
}

// leave waits until no call works in a half that is shut.
func (h *half) leave(ctx context.Context) error {
	err := h.queue.lock(ctx)
	if err == nil {
		h.unlock()
	}
	return err
}

// leave waits until no call works in a channel that is shut.
func (c *channel) leave(ctx context.Context) error {
	if err := c.send.leave(ctx); err != nil {
		return err
	}
	return c.recv.leave(ctx)
}
