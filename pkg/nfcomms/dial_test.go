//go:build cgo

package nfcomms

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// TestDial has a name lead to its listener, of this node and from another.
func TestDial(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=2x1x1")
	node, err := dev.node(ctx, abi.MakeNode(1, 0, 0))
	require.NoError(t, err)
	for name, at := range map[string]*Device{"mail": dev, "0.0.0/mail": dev, "1.0.0/mail": node} {
		l, err := at.Listen(ctx, "mail")
		require.NoError(t, err)
		require.Equal(t, "mail", l.Name())
		near, err := dev.Dial(ctx, name)
		require.NoError(t, err)
		far, err := l.Accept(ctx)
		require.NoError(t, err)
		require.Equal(t, []string{name, "mail"}, []string{near.Name(), far.Name()})
		sent := SendCase(near, []byte(name)).Start(ctx)
		buf := make([]byte, MessageSize)
		n, err := far.Receive(ctx, buf)
		require.NoError(t, err)
		require.Equal(t, name, string(buf[:n]))
		_, err = sent.Wait(ctx)
		require.NoError(t, err)
		require.NoError(t, near.Close())
		require.EqualError(t, near.Send(ctx, nil), `send sim:?torus=2x1x1 "`+name+`": closed`)
		require.NoError(t, far.Close())
		require.NoError(t, l.Close())
	}
}

// TestDialWaits has a host dial before the other listens; a context ends the wait.
func TestDialWaits(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	for wait := 10 * time.Millisecond; ; wait *= 2 { // until the device had the time to answer once
		short, cancel := context.WithTimeout(ctx, wait)
		_, err := dev.Dial(short, "mail")
		cancel()
		require.ErrorIs(t, err, ErrWithdrawn)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if errors.Is(err, ErrNotSubscribed) {
			break
		}
	}

	dialed := make(chan error, 1)
	go func() {
		_, err := dev.Dial(ctx, "mail", AnyUser())
		dialed <- err
	}()
	l, err := dev.Listen(ctx, "mail", AnyUser())
	require.NoError(t, err)
	_, err = l.Accept(ctx)
	require.NoError(t, err)
	require.NoError(t, <-dialed)
}

// TestDialEndsWithTheEpoch has a reset, and a close, end a wait for a name.
func TestDialEndsWithTheEpoch(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:")
	dial := func() <-chan error {
		dialed := make(chan error, 1)
		go func() {
			_, err := dev.Dial(ctx, "mail")
			dialed <- err
		}()
		return dialed
	}
	for dialed := dial(); ; { // which may begin after a reset, or after several
		require.NoError(t, dev.Reset(ctx))
		if len(dialed) == 1 {
			require.ErrorIs(t, <-dialed, ErrDeviceLost)
			break
		}
	}
	dialed := dial()
	require.NoError(t, dev.Close())
	require.ErrorIs(t, <-dialed, ErrClosed)
}

// TestDialRefuses has texts that are no names, and nodes that are not of the fabric.
func TestDialRefuses(t *testing.T) {
	ctx := background(t)
	dev := openSim(t, "sim:?torus=2x1x1")
	for _, name := range []string{"", "a b", "9.9.9/mail", "x/mail", "1.0.0/"} {
		_, err := dev.Dial(ctx, name)
		require.ErrorIs(t, err, ErrInvalid, "%q", name)
	}
	_, err := dev.Listen(ctx, "a b")
	require.EqualError(t, err, `listen sim:?torus=2x1x1 "a b": invalid argument: `+
		`a name is a letter and up to 22 letters, digits, dots, underscores and hyphens`)
}
