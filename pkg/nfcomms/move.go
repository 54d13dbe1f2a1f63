package nfcomms

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

// SendChannel gives this end of another channel to the host at the far end of c, whose ReceiveChannel
// returns it. Both channels are between hosts, as [Device.Dial] and [Listener.Accept] give them, of one
// device. The far end of other is not told, and nothing is lost: an offer that was not taken here is
// offered there.
//
// With nil the end is there, and each call of other is ErrMoved, which is an ErrClosed. With an error it
// is still here, also when ctx ended: ErrBusy if a call of other is under way, a future or a Select
// included; ErrKindMismatch if the far host received what was sent as a message; ErrInvalid for a channel
// of another device, or c itself; ErrNotSupported for channels to processes, and where the device cannot.
// While SendChannel waits, senders of other wait, its receives are ErrBusy, and Close waits.
func (c *Channel) SendChannel(ctx context.Context, other *Channel) error {
	m, err := c.mover()
	if err == nil && other == nil {
		err = fmt.Errorf("no channel: %w", ErrInvalid)
	}
	if err == nil {
		err = m.SendChannel(ctx, other.ch)
	}
	if err == nil {
		other.sendClosed.Store(true)
		other.receiveClosed.Store(true)
		other.leave()
	}
	return c.fail(opSendChannel, err)
}

// ReceiveChannel waits for an end that the far host sends, and returns it: it goes on where that host
// stopped. With ErrKindMismatch a message or transfer is offered, which stays offered; with ErrAborted the
// end cannot be had any more. If ctx ends the end stays with its sender.
func (c *Channel) ReceiveChannel(ctx context.Context) (*Channel, error) {
	m, err := c.mover()
	if err != nil {
		return nil, c.fail(opReceiveChannel, err)
	}
	ch, err := m.ReceiveChannel(ctx)
	if err != nil {
		return nil, c.fail(opReceiveChannel, err)
	}
	got := &Channel{dev: c.dev, epoch: c.epoch, ch: ch}
	c.dev.entered(got)
	return got, nil
}

// SendRegion gives a region to the host at the far end of c, whose ReceiveRegion returns it: the bytes
// stay where they are. The region is one of Alloc, or was received. The first way out of one of less
// than 1 MiB copies it, once: then the time does not depend on the size.
//
// With nil the region is there: its Bytes are nil here, SendRegion and transfers of its bytes are ErrMoved,
// and the program must not touch them. With an error it is still here, as it was, also when ctx ended or the
// far host died: ErrBusy while a transfer or a window uses it; ErrKindMismatch if the far host received what
// was sent as a message, or does not reach the memory; ErrInvalid for a region of another device;
// ErrNotSupported for memory of Register, channels to processes, and where hosts share no memory.
//
// A host that had the memory may keep a mapping of it. A program that does not trust that host copies
// bytes before it believes them.
func (c *Channel) SendRegion(ctx context.Context, r *Region) error {
	m, err := c.mover()
	if err == nil && r == nil {
		err = fmt.Errorf("no region: %w", ErrInvalid)
	}
	if err == nil {
		err = m.SendRegion(ctx, r.region)
	}
	return c.fail(opSendRegion, err)
}

// ReceiveRegion waits for a region that the far host gives away, and returns it. With ErrKindMismatch
// something else is offered, which stays offered; with ErrAborted the region cannot be had any more. If ctx
// ends the region stays with its sender. Close gives its memory back to the system.
func (c *Channel) ReceiveRegion(ctx context.Context) (*Region, error) {
	m, err := c.mover()
	if err != nil {
		return nil, c.fail(opReceiveRegion, err)
	}
	r, err := m.ReceiveRegion(ctx)
	if err != nil {
		return nil, c.fail(opReceiveRegion, err)
	}
	return &Region{dev: c.dev, region: r}, nil
}

func (c *Channel) mover() (bridge.Mover, error) {
	m, ok := c.ch.(bridge.Mover)
	if !ok {
		return nil, fmt.Errorf("%w by this back end", ErrNotSupported)
	}
	return m, nil
}
