package nfcomms

import (
	"context"
	"errors"
	"fmt"
)

// AsReceiver gives the d2h half of a channel as a native, unbuffered Go channel
// of messages. Each message is a fresh copy that belongs to the goroutine that
// received it.
//
// It is a rendezvous: the device's process stays in its write until a Go
// receiver took the message, and a message nobody took stays offered.
//
// One goroutine does the work; as long as it lives it is the channel's one
// receiver. It ends, and closes the native channel, when ctx ends, when the
// channel or the device is closed or reset, or with the first error. A close by
// the device's process counts once what it offered before is taken. The returned
// function waits for the end of the goroutine and returns the reason: nil if
// the channel was closed, ErrWithdrawn if ctx ended, else the error.
func AsReceiver(ctx context.Context, ch *Channel) (<-chan []byte, func() error) {
	out := make(chan []byte)
	ended := make(chan struct{})
	var err error
	holding, release := ch.hold(ctx)
	go func() {
		defer close(ended)
		defer close(out)
		defer release()
		err = ch.fail(opAsReceiver, receiveInto(ctx, holding, ch, out))
	}()
	return out, func() error { <-ended; return err }
}

// hold returns the context in which an adapter may hold a message for a Go
// receiver. It ends with ctx, and when the channel or the device is closed or
// reset, since these wait until no adapter holds a message.
func (c *Channel) hold(ctx context.Context) (holding context.Context, release func()) {
	ctx, end := context.WithCancelCause(ctx)
	device := c.dev.now().ctx
	unhook := context.AfterFunc(device, func() { end(context.Cause(device)) })
	// A second adapter finds the half in use.
	mine := c.adapter.CompareAndSwap(nil, &end)
	if c.receiveClosed.Load() {
		end(ErrClosed)
	}
	return ctx, func() {
		if mine {
			c.adapter.Store(nil)
		}
		unhook()
		end(nil)
	}
}

// endAdapter makes a receiver adapter let go of the message it holds.
func (c *Channel) endAdapter() {
	c.receiveClosed.Store(true)
	if end := c.adapter.Load(); end != nil {
		(*end)(ErrClosed)
	}
}

// receiveInto hands messages to out until ctx ends or one fails; holding is for
// the time in which it has one.
func receiveInto(ctx, holding context.Context, ch *Channel, out chan<- []byte) error {
	hand := func(msg []byte) error {
		select {
		case out <- append([]byte{}, msg...):
			return nil
		case <-holding.Done():
			return context.Cause(holding)
		}
	}
	for {
		err := ch.ch.ReceiveFunc(ctx, hand)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return &WithdrawnError{Cause: ctx.Err()}
		case errors.Is(err, ErrClosed):
			return nil
		default:
			return err
		}
	}
}

// AsSender gives the h2d half of a channel as a native, unbuffered Go channel
// of messages.
//
// It is not a rendezvous with the device: a native send that completed means
// that the adapter took the message, which belongs to the adapter from then on
// and is on its way. To know that all were delivered, close the native channel
// and call the returned function: it waits for the end of the adapter's
// goroutine and returns nil if every message was delivered, else an error that
// names the first that was not.
//
// One goroutine does the work. It ends when the native channel is closed or ctx
// ends. After an error it takes and discards what still comes, so that no
// native sender hangs; once ctx ended nobody takes any more, so a sender that
// may outlive ctx selects on ctx.Done too.
func AsSender(ctx context.Context, ch *Channel) (chan<- []byte, func() error) {
	in := make(chan []byte)
	ended := make(chan struct{})
	var err error
	go func() {
		defer close(ended)
		err = ch.fail(opAsSender, sendFrom(ctx, ch, in))
	}()
	return in, func() error { <-ended; return err }
}

// sendFrom gives the target what comes from in until in is closed or ctx ends.
func sendFrom(ctx context.Context, ch *Channel, in <-chan []byte) error {
	var failed error
	for i := 0; ; i++ {
		var msg []byte
		open := true
		select {
		case msg, open = <-in:
		case <-ctx.Done():
			if failed == nil {
				failed = &WithdrawnError{Cause: ctx.Err()}
			}
			return failed
		}
		if !open {
			return failed
		}
		if failed != nil {
			continue
		}
		err := fits(msg)
		if err == nil {
			err = ch.ch.Send(ctx, msg)
		}
		if err != nil {
			failed = fmt.Errorf("message %d and those after it were not delivered: %w", i, err)
		}
	}
}
