package nfcomms

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
)

// Channel is the host's end of one channel; the other end, its target, is a
// device process. All methods are safe for concurrent use. Senders are served
// in order of arrival; a second concurrent receiver gets ErrBusy.
//
// Every call is a rendezvous: a send returns nil once the target took the
// data. An error of a send means "not delivered", so that a retry is safe. When
// the context ends first, the message is withdrawn and the error is
// ErrWithdrawn; if the target took it meanwhile, the call returns nil. The one
// exception is ErrDeviceLost of a message, after which its outcome is unknown.
//
// So a send waits, beyond its context, for a device that does not answer, until that
// is lost: 1.5 s after its last heartbeat, or 7.5 heartbeats if those take longer, and
// 5.5 s for the device of another node. The same holds for a transfer that has begun,
// for a try that sends, and for Close.
//
// The arguments of a call belong to it until it returns.
type Channel struct {
	dev *Device
	ch  bridge.Channel
	// queue orders the futures of each half, by abi.Direction.
	queue [2]queue
	// countdowns say which calls are measured; nil until a tracer is there.
	countdowns [callKinds]atomic.Pointer[countdown]
	// answers has a token of the call that receives its answer as a message; nil until there was one.
	answers atomic.Pointer[chan struct{}]
	// receiveClosed: the d2h half was closed here.
	receiveClosed atomic.Bool
	// sendClosed: the h2d half was closed here.
	sendClosed atomic.Bool
	// epoch is the number of the one that the channel is of.
	epoch uint32
	// name is that of the listener which was dialed, or which accepted.
	name string
}

func (c *Channel) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return c.dev.failAt(op, c.ch.Target(), c.name, err)
}

// Target returns the id of the far end.
func (c *Channel) Target() Target { return c.ch.Target() }

// Name returns the name by which the channel was dialed, or of the listener that accepted it; empty
// for other channels.
func (c *Channel) Name() string { return c.name }

// Send gives one message of at most MessageSize bytes and returns nil once the
// target took it. ErrTooLarge if the message is longer, ErrKindMismatch if the
// target reads a transfer. Where the device does not answer it may return later than
// ctx ends, see Channel.
func (c *Channel) Send(ctx context.Context, msg []byte) error {
	err := unlessEnded(ctx, fits(msg))
	if err == nil {
		call := c.traced(callSend)
		err = c.ch.Send(call.in(ctx), msg)
		call.end(len(msg), err)
	}
	return c.fail(opSend, err)
}

// fits returns ErrTooLarge for a message over MessageSize bytes.
func fits(msg []byte) error {
	if len(msg) > MessageSize {
		return fmt.Errorf("message of %d bytes, at most %d: %w", len(msg), MessageSize, ErrTooLarge)
	}
	return nil
}

// Receive takes one message into buf and returns its length in bytes. With
// ErrTooLarge the message is longer than buf, with ErrKindMismatch the device
// offers a transfer: either stays offered, and the right receive gets it.
func (c *Channel) Receive(ctx context.Context, buf []byte) (int, error) {
	call := c.traced(callReceive)
	n, err := c.ch.Receive(call.in(ctx), buf)
	call.end(n, err)
	return n, c.fail(opReceive, err)
}

// ReceiveFunc is an extended rendezvous: fn works on the message in place, and
// the device's process stays in its write until fn returned nil. With an error
// from fn the message stays offered, and the error is returned. msg is valid
// in fn only.
func (c *Channel) ReceiveFunc(ctx context.Context, fn func(msg []byte) error) error {
	return c.fail(opReceive, c.ch.ReceiveFunc(ctx, fn))
}

// trySend gives msg if the target waits for it now, and reports whether it took it. waiter is the
// one whose place in the queue it uses.
func (c *Channel) trySend(msg []byte, waiter chan<- struct{}) (bool, error) {
	if err := fits(msg); err != nil {
		return false, c.fail(opSend, err)
	}
	ok, err := c.ch.TrySend(msg, waiter)
	return ok, c.fail(opSend, err)
}

// Next waits for the device's next offer and returns it without taking it, so
// that a receiver can make room for a transfer whose size it does not know.
func (c *Channel) Next(ctx context.Context) (Offer, error) {
	o, err := c.ch.Next(ctx)
	return o, c.fail(opNext, err)
}

// Verify turns the checksums of the channel's later transfers on or off. With them both ends compute
// the CRC32C of a transfer: the host of the caller's bytes, the device of those in its memory, before
// the commit. If they differ the transfer is aborted, and its error is ErrCorrupt. Such a transfer moves
// by lists, not as an eager one. Messages have none. ErrNotSupported where the device or the back end
// cannot, and for a channel to another host.
func (c *Channel) Verify(on bool) error {
	if v, ok := c.ch.(interface{ Verify(on bool) error }); ok {
		return c.fail(opVerify, v.Verify(on))
	}
	return c.fail(opVerify, ErrNotSupported)
}

// CloseSend closes the h2d half: pending sends end with ErrClosed, and the
// device's process sees the close. It is idempotent.
func (c *Channel) CloseSend() error {
	c.sendClosed.Store(true)
	defer c.leave()
	return c.fail(opCloseSend, c.ch.CloseSend())
}

// CloseReceive closes the d2h half, as CloseSend. It waits for a function that
// works in an extended rendezvous, which therefore must not call it.
func (c *Channel) CloseReceive() error {
	c.receiveClosed.Store(true)
	defer c.leave()
	return c.fail(opCloseReceive, c.ch.CloseReceive())
}

// leave takes the channel off the device's list once both halves are closed.
func (c *Channel) leave() {
	if c.sendClosed.Load() && c.receiveClosed.Load() {
		c.dev.left(c)
	}
}

// Close closes both halves; the target may be subscribed again. See
// CloseReceive. It is idempotent, and waits for a device that does not answer until
// that is lost, see Channel.
func (c *Channel) Close() error {
	c.sendClosed.Store(true)
	c.receiveClosed.Store(true)
	defer c.leave()
	return c.fail(opClose, c.ch.Close())
}

// Stats returns counters since Subscribe.
func (c *Channel) Stats() ChannelStats { return c.ch.Stats() }
