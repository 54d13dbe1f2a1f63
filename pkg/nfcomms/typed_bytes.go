package nfcomms

import (
	"context"
	"errors"
	"fmt"
)

// bytesMost is the most bytes of a value of a Chan[[]byte]: the sender chooses the size, and the
// receiver has to find memory for it.
const bytesMost = 64 << 20

// sizeOf returns the bytes of a value.
func (c Chan[T]) sizeOf(v *T) int {
	if c.bytes {
		return len(*sliceAt(v))
	}
	return c.size
}

// tooMany returns ErrTooLarge for more bytes than a value may have.
func tooMany(size uint64) error {
	if size > bytesMost {
		return fmt.Errorf("value of %d bytes, at most %d: %w", size, bytesMost, ErrTooLarge)
	}
	return nil
}

// sendBytes gives data: as a message where it fits into one, which is then the fastest way, else as a
// transfer.
func (c *Channel) sendBytes(ctx context.Context, data []byte) error {
	if err := tooMany(uint64(len(data))); err != nil {
		return c.fail(opSendInd, err)
	}
	if len(data) <= MessageSize {
		return c.Send(ctx, data)
	}
	_, err := c.sendInd(ctx, data, nil)
	return err
}

// trySendBytes is sendBytes to a target that waits now; false if it does not.
func (c *Channel) trySendBytes(ctx context.Context, waiter chan<- struct{}, data []byte) (bool, error) {
	if err := tooMany(uint64(len(data))); err != nil {
		return false, c.fail(opSendInd, err)
	}
	if len(data) <= MessageSize {
		return c.trySend(data, waiter)
	}
	return c.trySendInd(ctx, waiter, data, nil)
}

// another reports whether the offer is not the one that was looked at: another receiver took that, or
// its sender withdrew it.
func another(err error) bool {
	return errors.Is(err, ErrKindMismatch) || errors.Is(err, ErrSizeMismatch) || errors.Is(err, ErrTooLarge)
}

// receiveBytes takes the next message or transfer, of whatever size, into new memory.
func (c *Channel) receiveBytes(ctx context.Context) ([]byte, error) {
	for {
		offer, err := c.Next(ctx)
		if err == nil {
			err = c.fail(opReceiveInd, tooMany(offer.Size))
		}
		if err != nil {
			return nil, err
		}
		data := make([]byte, offer.Size)
		n := 0
		if offer.Indirect {
			n, err = c.ReceiveInd(ctx, data)
		} else {
			n, err = c.Receive(ctx, data)
		}
		if err == nil || !another(err) {
			return data[:n], err
		}
	}
}

// tryReceiveBytes is receiveBytes of what is offered now; false if nothing is.
func (c *Channel) tryReceiveBytes(ctx context.Context) (data []byte, ok bool, err error) {
	offer, ok, err := c.ch.TryNext()
	if ok && err == nil {
		err = tooMany(offer.Size)
	}
	if !ok || err != nil {
		return nil, false, err
	}
	data = make([]byte, offer.Size)
	n := len(data)
	if offer.Indirect {
		ok, err = c.ch.TryReceiveInd(ctx, data)
	} else {
		n, ok, err = c.ch.TryReceive(data)
	}
	return data[:n], ok, err
}
