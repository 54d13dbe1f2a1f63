//go:build cgo

package nfcomms

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

// ways are how a program learns that futures have ended.
var ways = map[string]func(ctx context.Context, fs []*Future) error{
	"wait": func(ctx context.Context, fs []*Future) error {
		for _, f := range fs {
			if _, err := f.Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	},
	"done": func(_ context.Context, fs []*Future) error {
		for _, f := range fs {
			<-f.Done()
			if f.err != nil {
				return f.err
			}
		}
		return nil
	},
	"completions": func(ctx context.Context, fs []*Future) error {
		var q Completions
		for _, f := range fs {
			if err := q.Add(f); err != nil {
				return err
			}
		}
		return q.Wait(ctx)
	},
	"many": func(ctx context.Context, fs []*Future) error {
		var all sync.WaitGroup
		errs := make(chan error, 3*len(fs))
		for _, f := range fs {
			for range 3 {
				all.Go(func() { _, err := f.Wait(ctx); errs <- err })
			}
		}
		all.Wait()
		for range 3 * len(fs) {
			if err := <-errs; err != nil {
				return err
			}
		}
		return nil
	},
}

// TestBegunFutures: transfers that begin at once and those that cannot, there and back on many
// channels, however the program waits for them.
func TestBegunFutures(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	var chs []*Channel
	for range 4 {
		chs = append(chs, startSim(t, dev, "loopback", 1)...)
	}
	for way, wait := range ways {
		for _, size := range []int{0, 1, 4096, 1 << 16, 1 << 17} {
			out, back := make([][]byte, len(chs)), make([][]byte, len(chs))
			var sends, receives []*Future
			for i, ch := range chs {
				out[i], back[i] = make([]byte, size), make([]byte, size)
				for j := range out[i] {
					out[i][j] = byte(i + j)
				}
				sends = append(sends, SendIndCase(ch, out[i]).Start(ctx))
				receives = append(receives, ReceiveIndCase(ch, back[i]).Start(ctx))
			}
			require.NoError(t, wait(ctx, sends), "%s %d", way, size)
			require.NoError(t, wait(ctx, receives), "%s %d", way, size)
			require.Equal(t, out, back)
		}
	}
}

// TestBegunFutureIsCancelled: one that nobody waits for is taken back with its exact outcome; what
// is behind it, a future or a call, has its turn.
func TestBegunFutureIsCancelled(t *testing.T) {
	ctx := background(t)
	ports := startSim(t, openSim(t, "sim:"), "gate", 2)
	first := SendIndCase(ports[1], make([]byte, 100)).Start(ctx)
	require.NotNil(t, first.begun)
	second := SendIndCase(ports[1], make([]byte, 200)).Start(ctx)
	require.Nil(t, second.begun, "one is before it")
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := first.Wait(over)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrWithdrawn, "the call goes on")
	first.Cancel()
	<-first.Done()
	n, err := first.Wait(ctx)
	require.ErrorIs(t, err, ErrWithdrawn)
	require.Zero(t, n)
	behind := running(t, func() error { return ports[1].SendInd(ctx, make([]byte, 200)) })
	for range 2 {
		require.NoError(t, ports[0].Send(ctx, nil))
		var report [MessageSize]byte
		_, err = ports[0].Receive(ctx, report[:])
		require.NoError(t, err)
	}
	n, err = second.Wait(ctx)
	require.NoError(t, err)
	require.Equal(t, 200, n)
	behind()
}

// TestBegunFutureEndsWithItsChannel: a close and a reset end what nobody waits for.
func TestBegunFutureEndsWithItsChannel(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	for _, end := range []func(*Channel) error{
		func(ch *Channel) error { return ch.Close() },
		func(*Channel) error { return dev.Reset(ctx) },
	} {
		ports := startSim(t, dev, "gate", 2)
		send, receive := SendIndCase(ports[1], make([]byte, 100)).Start(ctx), ReceiveIndCase(ports[1], make([]byte, 100)).Start(ctx)
		require.NotNil(t, send.begun)
		require.NotNil(t, receive.begun)
		require.NoError(t, end(ports[1]))
		for _, f := range []*Future{send, receive} {
			<-f.Done()
			_, err := f.Wait(ctx)
			require.Error(t, err)
		}
	}
}

// TestFutureBeginsAfterOneThatEnded: once a future is done, the next one has nobody before it.
func TestFutureBeginsAfterOneThatEnded(t *testing.T) {
	ctx := background(t)
	port := startSim(t, openSim(t, "sim:"), "sink", 1)[0]
	empty := func(context.Context) (int, error) { return 0, nil }
	for range 2000 {
		call := port.async(ctx, abi.H2D, opSendInd, nil, empty) // by a goroutine, as a call that is measured
		<-call.Done()
		f := SendIndCase(port, make([]byte, 100)).Start(ctx)
		require.NotNil(t, f.begun)
		<-f.Done()
		f = SendIndCase(port, make([]byte, 100)).Start(ctx)
		require.NotNil(t, f.begun)
		<-f.Done()
	}
}

// TestFuturesBeginBesideATracer: a future that is measured is a call of its own, and no other one is.
func TestFuturesBeginBesideATracer(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	port := startSim(t, dev, "sink", 1)[0]
	future := func() *Future {
		f := SendIndCase(port, make([]byte, 100)).Start(ctx)
		_, err := f.Wait(ctx)
		require.NoError(t, err)
		return f
	}
	for _, every := range []int{1, over.MaxEvery} { // the chance of the second is one in 10^9
		tr, err := dev.trace(ctx, every, 0, nil)
		require.NoError(t, err)
		require.Equal(t, every == 1, future().begun == nil)
		require.Equal(t, every == 1, len(tr.Take(ctx).Calls) == 1)
		tr.Close()
		require.NotNil(t, future().begun, "nobody measures")
	}
}
