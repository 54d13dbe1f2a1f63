//go:build cgo

package nfcomms

import (
	"context"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOpenWithAnEndedContext: nothing is opened, whatever the address.
func TestOpenWithAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	for _, address := range []string{"sim:", "dev:0", "nowhere:", ""} {
		_, err := Open(ctx, address)
		require.ErrorIs(t, err, ErrWithdrawn, address)
		require.ErrorIs(t, err, context.Canceled, address)
	}
}

// unaware is a context whose time is over, and which has not learnt it yet.
type unaware struct{ context.Context }

func (unaware) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

// TestSocketIsFirst: a socket that finds the time over before the context does is a call withdrawn.
func TestSocketIsFirst(t *testing.T) {
	for _, of := range []error{os.ErrDeadlineExceeded, context.DeadlineExceeded} {
		_, err := behind(unaware{background(t)}, &leftovers{}, func() (int, error) { return 0, of }, nil)
		require.ErrorIs(t, err, ErrWithdrawn)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
}

// leavesDevice is a back end whose Reset ends as its context does, some time later, as one that takes
// leave of a process first.
type leavesDevice struct {
	brokenDevice
	begun chan struct{}
	end   func(ctx context.Context) error
}

func (d leavesDevice) Reset(ctx context.Context) error {
	close(d.begun)
	<-ctx.Done()
	time.Sleep(time.Second)
	return fmt.Errorf("%w: dial: %w", ErrDeviceLost, d.end(ctx))
}

// TestResetEndsTwice: a reset that a Close ended is withdrawn all the same if its own context ended by
// the time that it returned, whatever the back end made of that.
func TestResetEndsTwice(t *testing.T) {
	for name, end := range map[string]func(context.Context) error{
		"context": context.Context.Err,
		"socket":  func(context.Context) error { return os.ErrDeadlineExceeded },
	} {
		for _, patience := range []time.Duration{time.Second / 2, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				begun := make(chan struct{})
				dev := newDevice(leavesDevice{begun: begun, end: end}, "leaves:")
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				done := make(chan error)
				go func() { done <- dev.reset(ctx, dev.now()) }()
				<-begun
				dev.closing()
				err := <-done
				if patience > time.Second {
					require.ErrorIs(t, err, ErrClosed, name)
					return
				}
				require.ErrorIs(t, err, ErrWithdrawn, name)
				require.ErrorIs(t, err, context.DeadlineExceeded, name)
			})
		}
	}
}

// TestEndedContextWins: a call whose context has ended does nothing, whatever its arguments.
func TestEndedContextWins(t *testing.T) {
	dev := openSim(t, "sim:")
	ch, err := dev.Subscribe(background(t), Loopback)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	tracer, err := dev.trace(background(t), 0, 0, nil) // it has the time, so that others need not ask
	require.NoError(t, err)
	defer tracer.Close()
	native := make(chan int, 100)
	never := func([]byte) error { t.Error("was called"); return nil }
	received := func(_ any, err error) error { return err }
	for name, call := range map[string]func() error{
		"long message":        func() error { return ch.Send(ctx, make([]byte, 57)) },
		"nothing to send":     func() error { return ch.SendInd(ctx, nil) },
		"size to send":        func() error { return ch.SendInd(ctx, make([]byte, 1), 2) },
		"copy to receive":     func() error { return received(ch.ReceiveInd(ctx, [1]byte{})) },
		"function to send":    func() error { return ch.SendIndFunc(ctx, 1, never) },
		"size of function":    func() error { return ch.SendIndFunc(ctx, -1, never) },
		"function to receive": func() error { return ch.ReceiveIndFunc(ctx, -1, never) },
		"type to send":        func() error { return ChanOf[string](ch).Send(ctx, "") },
		"type to receive":     func() error { return received(ChanOf[string](ch).Receive(ctx)) },
		"no stripes":          func() error { return SendStriped(ctx, make([]byte, 1), 1) },
		"stripes of nothing":  func() error { return received(ReceiveStriped(ctx, nil, 1, ch)) },
		"two defaults":        func() error { return received(Select(ctx, Default(), Default())) },
		"default":             func() error { return received(Default().Start(ctx).Wait(background(t))) },
		"long case":           func() error { return received(SendCase(ch, make([]byte, 57)).Start(ctx).Wait(background(t))) },
		"case of nothing":     func() error { return received(SendIndCase(ch, nil).Start(ctx).Wait(background(t))) },
		"native": func() (err error) {
			for range cap(native) {
				err = received(GoSend(native, 1).Start(ctx).Wait(background(t)))
			}
			return err
		},
		"trace":          func() error { return received(dev.trace(ctx, 0, 0, nil)) },
		"trace too much": func() error { return received(dev.trace(ctx, -1, 0, nil)) },
		"supervisor": func() error {
			return Supervisor{}.Run(ctx, dev, func(context.Context, *Generation) error { return never(nil) })
		},
	} {
		err := call()
		require.ErrorIs(t, err, ErrWithdrawn, name)
		require.ErrorIs(t, err, context.Canceled, name)
		require.ErrorAs(t, err, new(*OpError), name)
		require.ErrorAs(t, err, new(*WithdrawnError), name)
	}
	require.Empty(t, native)
}
