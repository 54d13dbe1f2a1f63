package mailbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var _ bridge.Mover = (*channel)(nil)

// Why an end does not move.
var (
	errElsewhere = fmt.Errorf("the channels are not of one device: %w", bridge.ErrInvalid)
	errItself    = fmt.Errorf("a channel through itself: %w", bridge.ErrInvalid)
	errNoMover   = fmt.Errorf("only ends of channels between hosts, of a device that moves them: %w", bridge.ErrNotSupported)
	errInUse     = fmt.Errorf("calls of the channel are under way: %w", bridge.ErrBusy)
	errTicket    = fmt.Errorf("the sender took the end back: %w", bridge.ErrAborted)
	errAsBytes   = fmt.Errorf("the end was not taken: %w", bridge.ErrKindMismatch)
	errNoEnd     = fmt.Errorf("a message is offered: %w", bridge.ErrKindMismatch)
)

// A ticket is a message of fixed length: these bytes, the ticket's number, the far end's id, zeros.
const ticketMark = "\x00nfcomms.channel"

// makeTicket returns the message that names a lent end.
func makeTicket(number uint64, far bridge.Target) []byte {
	msg := append(make([]byte, 0, abi.PayloadSize), ticketMark...)
	msg = binary.LittleEndian.AppendUint64(msg, number)
	return binary.LittleEndian.AppendUint64(msg, uint64(far))[:abi.PayloadSize]
}

// parseTicket returns the number of a ticket, and the id of the far end; false for any other message.
func parseTicket(msg []byte) (number uint64, far bridge.Target, ok bool) {
	const at = len(ticketMark)
	if len(msg) != abi.PayloadSize || string(msg[:at]) != ticketMark {
		return 0, 0, false
	}
	number, far = binary.LittleEndian.Uint64(msg[at:]), bridge.Target(binary.LittleEndian.Uint64(msg[at+8:]))
	return number, far, string(msg) == string(makeTicket(number, far))
}

// moves reports whether the device moves ends of the channel.
func (c *channel) moves() bool {
	return c.relay && c.ep.Hello.Capabilities&wire.CapMove != 0
}

// SendChannel gives this host's end of another channel to the host at the far end. See bridge.Mover.
func (c *channel) SendChannel(ctx context.Context, other bridge.Channel) error {
	o, ok := other.(*channel)
	switch {
	case ctx.Err() != nil:
		return &bridge.WithdrawnError{Cause: ctx.Err()}
	case !ok || o.ep != c.ep:
		return errElsewhere
	case !c.moves() || !o.moves():
		return errNoMover
	case o == c:
		return errItself
	case c.send.shut.Load() != 0:
		return c.send.err()
	}
	if err := o.hold(); err != nil {
		return err
	}
	moved, err := o.moveThrough(ctx, c)
	if !moved {
		o.letGo()
		return err
	}
	for _, h := range o.of(1<<abi.H2D | 1<<abi.D2H) {
		h.giveBack(h.shutFor(shutMoved))
	}
	o.letGo()
	_ = o.Close() // the target; it fails only when the device is lost
	return nil
}

// hold keeps all calls out of a channel in which none is under way. Senders wait.
func (c *channel) hold() error {
	if c.send.shut.Load() != 0 && c.recv.shut.Load() != 0 {
		return c.send.err()
	}
	if !c.send.queue.try() {
		return errInUse
	}
	if !c.recv.queue.try() {
		c.send.unlock()
		return errInUse
	}
	if c.recv.arms.Load() > 0 || c.recv.coming.Load() { // a Select
		c.letGo()
		return errInUse
	}
	return nil
}

// letGo ends hold.
func (c *channel) letGo() {
	c.recv.unlock()
	c.send.unlock()
}

// moveThrough sends the end through a channel, and reports whether it has moved: the device knows. The
// caller must have both halves.
func (c *channel) moveThrough(ctx context.Context, via *channel) (moved bool, err error) {
	k := &c.ep.control
	number, err := k.ticket(ctx, c, via)
	if err != nil {
		return false, err
	}
	sent := via.Send(ctx, makeTicket(number, c.far))
	for {
		r, err := k.call(background, wire.Control{Op: wire.ControlVoid, A: uint64(c.id), B: number}, nil)
		switch {
		case errors.Is(err, bridge.ErrTargetTimeout): // an island is busy; a device that stays so is lost
			continue
		case err != nil:
			return false, err
		case r.B == 1:
			return true, nil
		case sent != nil:
			return false, sent
		case c.recv.shut.Load()&shutPeer != 0:
			return false, c.recv.err()
		}
		return false, errAsBytes
	}
}

// ticket asks the device for the ticket of an end.
func (k *control) ticket(ctx context.Context, c, via *channel) (uint64, error) {
	r, err := k.again(ctx, wire.Control{Op: wire.ControlTicket, A: uint64(c.id), B: uint64(via.id)})
	if errors.Is(err, bridge.ErrNotSubscribed) { // the far end of one of the two is gone
		err = errPeerClosed
	}
	return r.A, err
}

// quietTime is how long an end may have answers under way of which no call waits to hear.
const quietTime = time.Second

// again repeats a request while the device is busy.
func (k *control) again(ctx context.Context, req wire.Control) (wire.Control, error) {
	const first, most = 20 * time.Microsecond, 5 * time.Millisecond
	within, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	for wait := first; ; wait = min(2*wait, most) {
		r, err := k.call(ctx, req, nil)
		if !errors.Is(err, bridge.ErrBusy) {
			return r, err
		}
		k.ch.ep.drain()
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-within.Done():
			timer.Stop()
			if ctx.Err() != nil {
				err = &bridge.WithdrawnError{Cause: ctx.Err()}
			}
			return r, err
		}
	}
}

// ReceiveChannel takes the end that the far host sends. See bridge.Mover.
func (c *channel) ReceiveChannel(ctx context.Context) (bridge.Channel, error) {
	if !c.moves() {
		return nil, errNoMover
	}
	var got *channel
	var refused error
	err := c.ReceiveFunc(ctx, func(msg []byte) (err error) {
		number, far, ok := parseTicket(msg)
		if !ok {
			return errNoEnd
		}
		got, err = c.claim(number, far)
		if errors.Is(err, bridge.ErrNotSubscribed) { // the message is of no use any more
			refused, err = errTicket, nil
		}
		return err
	})
	switch {
	case got != nil: // also if the answer was lost: the end is this host's
		return got, nil
	case err != nil:
		return nil, err
	}
	return nil, refused
}

// claim makes a lent end this host's, and opens it. No context ends it: the end may be here already.
func (c *channel) claim(number uint64, far bridge.Target) (*channel, error) {
	k := &c.ep.control
	r, err := k.again(background, wire.Control{Op: wire.ControlClaim, A: uint64(c.id), B: number})
	if err != nil {
		return nil, err
	}
	if !c.ep.isHost(uint64(far)) { // a label, of another host
		far = bridge.Target(r.A)
	}
	return k.openRelay(r.A, far)
}
