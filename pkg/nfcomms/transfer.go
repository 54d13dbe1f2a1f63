package nfcomms

import (
	"context"
	"fmt"
)

// SendInd gives data to the device, whose DMA engine reads the bytes where they
// are, and returns nil once the target holds them all. A size, in bytes, limits
// the transfer to the first ones of data; without it all of data is moved:
//
//	err := ch.SendInd(ctx, samples)       // the whole slice
//	err = ch.SendInd(ctx, samples, 4096)  // its first 4096 bytes
//
// data is an object of static size: a slice, a string, a pointer to an array,
// a struct or a scalar, or one of these by value. Its bytes are sent as they
// are in memory, padding included. Types with pointers in them are refused with
// a *TypeError that names the field. ErrSize if size is negative, larger than
// the object, given twice, or cuts an element: 100 bytes of []float64 are 12½ numbers.
// ErrSizeMismatch if the target reads another size.
//
// An object that Go keeps on the goroutine's stack, which may move, is copied
// once into memory that stays; everything else is read in place.
func (c *Channel) SendInd(ctx context.Context, data any, size ...int) error {
	_, err := c.sendInd(ctx, data, size)
	return err
}

// sendInd is SendInd, and returns how many bytes were moved: all or none.
func (c *Channel) sendInd(ctx context.Context, data any, size []int) (int, error) {
	call := c.traced(callSendInd)
	o, err := readableObject(data, size)
	if err = unlessEnded(ctx, err); err == nil {
		err = c.sendObject(call.in(ctx), o)
	}
	call.end(len(o.mem), err)
	return done(len(o.mem), c.fail(opSendInd, err))
}

// sendObject sends all of o.
func (c *Channel) sendObject(ctx context.Context, o object) error {
	if !o.moves {
		return c.ch.SendInd(ctx, o.mem)
	}
	b, err := takeBuffer(len(o.mem))
	if err != nil {
		return err
	}
	defer b.release()
	copy(b.mem, o.mem)
	return c.ch.SendInd(ctx, b.mem)
}

// ReceiveInd takes a transfer that fills data exactly, or its first size bytes
// if a size is given, and returns how many bytes arrived: all of them, or 0 with an
// error. data is a slice or a pointer to an array, a struct or a scalar; for the
// rest see SendInd. ErrInvalid
// if data is a copy, as a struct or an array by value is. With ErrSizeMismatch
// the device offers another size, with ErrKindMismatch a message: either stays
// offered, and the right receive gets it. Next returns both beforehand.
func (c *Channel) ReceiveInd(ctx context.Context, data any, size ...int) (int, error) {
	call := c.traced(callReceiveInd)
	o, err := writableObject(data, size)
	if err = unlessEnded(ctx, err); err == nil {
		err = c.receiveObject(call.in(ctx), o)
	}
	call.end(len(o.mem), err)
	return done(len(o.mem), c.fail(opReceiveInd, err))
}

// receiveObject fills all of o.
func (c *Channel) receiveObject(ctx context.Context, o object) error {
	if !o.moves {
		return c.ch.ReceiveInd(ctx, o.mem)
	}
	b, err := takeBuffer(len(o.mem))
	if err != nil {
		return err
	}
	defer b.release()
	err = c.ch.ReceiveInd(ctx, b.mem)
	if err == nil {
		copy(o.mem, b.mem)
	}
	return err
}

// SendIndFunc is SendInd without a buffer of the caller's: fill writes size
// bytes straight into page-aligned memory that the device then reads. fill must
// write all of data, which holds arbitrary bytes before; with an error from it
// nothing is sent and the error is returned. ErrNoMemory where the host has not
// that much memory. data is valid in fill only: later it may be memory of another
// call.
func (c *Channel) SendIndFunc(ctx context.Context, size int, fill func(data []byte) error) error {
	if ctx.Err() != nil {
		return c.fail(opSendInd, &WithdrawnError{Cause: ctx.Err()})
	}
	b, err := takeBuffer(size)
	if err != nil {
		return c.fail(opSendInd, err)
	}
	defer b.release()
	if err = fill(b.mem); err == nil {
		err = c.ch.SendInd(ctx, b.mem)
	}
	return c.fail(opSendInd, err)
}

// ReceiveIndFunc takes a transfer of exactly size bytes into memory lent by the
// framework and calls fn on it, as an extended rendezvous: the device's process
// is released when fn returned nil. An error from fn aborts the transfer, which
// the device's process sees, and is returned.
//
// Memory is taken when the device offers a transfer of that size, and not
// before. Where the host has not that much the error is ErrNoMemory, and the
// transfer stays offered. data is valid in fn only: later it may be memory of
// another call.
func (c *Channel) ReceiveIndFunc(ctx context.Context, size int, fn func(data []byte) error) error {
	if size < 0 {
		return c.fail(opReceiveInd, unlessEnded(ctx, fmt.Errorf("size %d is negative: %w", size, ErrSize)))
	}
	var b *buffer
	defer func() {
		if b != nil {
			b.release()
		}
	}()
	place := func() (mem []byte, err error) {
		if b, err = takeBuffer(size); err == nil {
			mem = b.mem
		}
		return mem, err
	}
	return c.fail(opReceiveInd, c.ch.ReceiveIndFunc(ctx, uint64(size), place, fn))
}

// trySendInd is SendInd to a target that waits now; false if it does not. waiter
// is the one whose place in the queue it uses.
func (c *Channel) trySendInd(ctx context.Context, waiter chan<- struct{}, data any, size []int) (ok bool, err error) {
	o, err := readableObject(data, size)
	if err == nil && o.moves {
		var b *buffer
		if b, err = takeBuffer(len(o.mem)); err == nil {
			defer b.release()
			copy(b.mem, o.mem)
			o.mem = b.mem
		}
	}
	if err == nil {
		ok, err = c.ch.TrySendInd(ctx, o.mem, waiter)
	}
	return ok, c.fail(opSendInd, err)
}

// tryReceiveInd is ReceiveInd of what is offered now; false if nothing is, or
// another call receives.
func (c *Channel) tryReceiveInd(ctx context.Context, data any, size []int) (ok bool, err error) {
	o, err := writableObject(data, size)
	if err != nil {
		return false, c.fail(opReceiveInd, err)
	}
	mem := o.mem
	if o.moves {
		b, err := takeBuffer(len(mem))
		if err != nil {
			return false, c.fail(opReceiveInd, err)
		}
		defer b.release()
		mem = b.mem
	}
	ok, err = c.ch.TryReceiveInd(ctx, mem)
	if ok && o.moves {
		copy(o.mem, mem)
	}
	return c.unlessBusy(ok, opReceiveInd, err)
}
