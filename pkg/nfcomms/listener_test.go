//go:build cgo

package nfcomms

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListener has this process talk to itself, as two of them do.
func TestListener(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx, "")
	require.NoError(t, err)
	near, err := dev.Subscribe(ctx, l.Target())
	require.NoError(t, err)
	sent := SendCase(near, []byte("hello")).Start(ctx)
	far, err := l.Accept(ctx)
	require.NoError(t, err)
	require.Equal(t, l.Target(), far.Target())
	require.ElementsMatch(t, []*Channel{near, far}, dev.channels())

	buf := make([]byte, MessageSize)
	var n int
	chosen, err := Select(ctx, ReceiveCase(far, buf, &n))
	require.NoError(t, err)
	require.Zero(t, chosen)
	require.Equal(t, "hello", string(buf[:n]))
	_, err = sent.Wait(ctx)
	require.NoError(t, err)

	data, got := bytes.Repeat([]byte("0123456789abcdef!"), 20_000), make([]byte, 340_000)
	sent = SendIndCase(near, data).Start(ctx)
	n, err = far.ReceiveInd(ctx, got)
	require.NoError(t, err)
	require.Equal(t, data, got[:n])
	_, err = sent.Wait(ctx)
	require.NoError(t, err)

	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Accept(ctx)
	var op *OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, opAccept, op.Op)
	require.ErrorIs(t, err, ErrClosed)
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())
}

// TestListenerSelects has two hosts that each send to the other or receive of it, whichever is ready:
// each meeting is one way, and both say which.
func TestListenerSelects(t *testing.T) {
	const rounds = 100
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx, "")
	require.NoError(t, err)
	near, err := dev.Subscribe(ctx, l.Target())
	require.NoError(t, err)
	far, err := l.Accept(ctx)
	require.NoError(t, err)

	var log [2][]string
	var wg sync.WaitGroup
	for side, ch := range []*Channel{near, far} {
		wg.Go(func() {
			big, in := make([]byte, 50_000), make([]byte, 50_000)
			msg, buf, n := make([]byte, 8), make([]byte, 8), 0
			for i := range rounds {
				big[0], msg[0] = byte(i), byte(i)
				send, receive := SendCase(ch, msg), ReceiveCase(ch, buf, &n)
				if i%2 == 1 {
					send, receive = SendIndCase(ch, big), ReceiveIndCase(ch, in)
				}
				chosen, err := Select(ctx, send, receive)
				if !assert.NoError(t, err) {
					return
				}
				from := chosen ^ side // 0: the near host sent it
				got := []byte{msg[0], buf[0], msg[0], in[0]}[chosen+i%2*2]
				log[side] = append(log[side], fmt.Sprint(from, got))
			}
		})
	}
	wg.Wait()
	require.Len(t, log[0], rounds)
	require.Equal(t, log[0], log[1])
}

// TestListenerEnds: a listener ends with the epoch of its device.
func TestListenerEnds(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	l, err := dev.Listen(ctx, "")
	require.NoError(t, err)
	accepted := make(chan error, 1)
	go func() {
		_, err := l.Accept(ctx)
		accepted <- err
	}()
	require.NoError(t, dev.Reset(ctx))
	require.ErrorIs(t, <-accepted, ErrDeviceLost)
	require.NoError(t, l.Close())
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = dev.Listen(ended, "")
	require.ErrorIs(t, err, ErrWithdrawn)
	_, err = dev.Subscribe(ctx, l.Target())
	require.ErrorIs(t, err, ErrNotSubscribed)
}
