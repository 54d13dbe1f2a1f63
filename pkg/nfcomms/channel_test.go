package nfcomms

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

func TestDevicePassesOn(t *testing.T) {
	ctx := background(t)
	dev, err := Open(ctx, "fake:?managers=2", WithLogger(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	assert.Equal(t, "fake", dev.Info().Driver)
	assert.Equal(t, uint64(7), dev.Stats().Resets)
	p, err := dev.Start(ctx, Program{Name: "idle", Targets: 3})
	require.NoError(t, err)
	assert.Equal(t, Process{ID: 1, First: 16, Targets: 3}, p)
	require.NoError(t, dev.Stop(ctx, p.ID))
	name, err := dev.Load(ctx, []byte("idle"))
	require.NoError(t, err)
	assert.Equal(t, "idle", name)
	names, err := dev.programs(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"idle"}, names)
	m, err := dev.memory(ctx, abi.EMEM)
	require.NoError(t, err)
	assert.Equal(t, uint64(4096), m.Size)
	ch, _ := subscribeFake(t, dev, Loopback)
	assert.Equal(t, Loopback, ch.Target())
	assert.Equal(t, uint64(3), ch.Stats().Lists)
	require.NoError(t, dev.Close())
}

func TestMessages(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	wait := running(t, func() error {
		msg, err := far.read(ctx)
		if err != nil {
			return err
		}
		return far.write(ctx, append(msg, '!'))
	})
	require.NoError(t, ch.Send(ctx, []byte("hello")))
	o, err := ch.Next(ctx)
	require.NoError(t, err)
	assert.Equal(t, Offer{Size: 6}, o)
	buf := make([]byte, MessageSize)
	_, err = ch.Receive(ctx, buf[:5])
	require.ErrorIs(t, err, ErrTooLarge)
	n, err := ch.Receive(ctx, buf)
	require.NoError(t, err)
	assert.Equal(t, "hello!", string(buf[:n]))
	wait()
}

func TestTry(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	ok, err := SendCase(ch, []byte("x")).Try()
	require.NoError(t, err)
	assert.False(t, ok, "nobody reads")
	ok, err = ReceiveCase(ch, nil, nil).Try()
	require.NoError(t, err)
	assert.False(t, ok, "nothing is offered")
	wait := running(t, func() error { return far.write(ctx, []byte("ab")) })
	_, err = ch.Next(ctx)
	require.NoError(t, err)
	ok, err = ReceiveCase(ch, make([]byte, 1), nil).Try()
	require.ErrorIs(t, err, ErrTooLarge)
	assert.False(t, ok)
	n := 0
	ok, err = ReceiveCase(ch, make([]byte, 2), &n).Try()
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, 2, n)
	wait()
}

func TestExtendedRendezvous(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	released := make(chan struct{})
	wait := running(t, func() error {
		defer close(released)
		return far.write(ctx, []byte("data"))
	})
	boom := errors.New("boom")
	held := func() bool {
		select {
		case <-released:
			return false
		default:
			return true
		}
	}
	err := ch.ReceiveFunc(ctx, func([]byte) error { return boom })
	require.ErrorIs(t, err, boom)
	require.NoError(t, ch.ReceiveFunc(ctx, func(msg []byte) error {
		assert.Equal(t, "data", string(msg))
		assert.True(t, held())
		return nil
	}))
	wait()
}

func TestBuffers(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	boom := errors.New("boom")
	require.ErrorIs(t, ch.SendIndFunc(ctx, 8, func([]byte) error { return boom }), boom)
	wait := running(t, func() error {
		got, err := far.read(ctx)
		if err != nil {
			return err
		}
		if err := far.writeInd(ctx, got); !errors.Is(err, boom) {
			return errors.New("the device does not see the abort")
		}
		return far.writeInd(ctx, got)
	})
	require.NoError(t, ch.SendIndFunc(ctx, 5000, func(data []byte) error {
		assert.Len(t, data, 5000)
		assert.Zero(t, misaligned(data))
		data[4999] = 7
		return nil
	}))
	err := ch.ReceiveIndFunc(ctx, 5000, func([]byte) error { return boom })
	require.ErrorIs(t, err, boom)
	require.NoError(t, ch.ReceiveIndFunc(ctx, 5000, func(data []byte) error {
		assert.Equal(t, byte(7), data[4999])
		return nil
	}))
	wait()
}

func TestTransfers(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	wait := running(t, func() error {
		got, err := far.read(ctx)
		if err != nil {
			return err
		}
		return far.writeInd(ctx, got)
	})
	require.NoError(t, ch.SendInd(ctx, []uint32{1, 2, 3}, 8))
	o, err := ch.Next(ctx)
	require.NoError(t, err)
	assert.Equal(t, Offer{Indirect: true, Size: 8}, o)
	var back [3]uint32
	n, err := ch.ReceiveInd(ctx, &back, int(o.Size))
	require.NoError(t, err)
	assert.Equal(t, 8, n)
	assert.Equal(t, [3]uint32{1, 2, 0}, back)
	wait()
}

func TestSizesOfTheEndsDiffer(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	wait := running(t, func() error { return far.writeInd(ctx, make([]byte, 8)) })
	defer wait()
	n, err := ch.ReceiveInd(ctx, make([]byte, 16), 16)
	require.ErrorIs(t, err, ErrSizeMismatch)
	assert.Zero(t, n)
	var size *SizeError
	require.ErrorAs(t, err, &size)
	assert.Equal(t, SizeError{Host: 16, Device: 8}, *size)
	_, err = ch.Receive(ctx, make([]byte, 8))
	require.ErrorIs(t, err, ErrKindMismatch)
	_, err = ch.ReceiveInd(ctx, make([]byte, 8), 8)
	require.NoError(t, err, "neither took it")
}

func TestSecondReceiver(t *testing.T) {
	ch, far := channel(t)
	ctx, cancel := context.WithCancel(background(t))
	first := make(chan error, 1)
	go func() { _, err := ch.Receive(ctx, nil); first <- err }()
	require.NoError(t, far.until(ctx, func() bool { return far.half[1].reading }))
	_, err := ch.Receive(ctx, nil)
	require.ErrorIs(t, err, ErrBusy)
	cancel()
	require.ErrorIs(t, <-first, ErrWithdrawn)
}

func TestCancelledSend(t *testing.T) {
	ch, _ := channel(t)
	ctx, cancel := context.WithCancel(background(t))
	cancel()
	err := ch.Send(ctx, nil)
	require.ErrorIs(t, err, ErrWithdrawn)
	require.ErrorIs(t, err, context.Canceled)
}

func TestTyped(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	wait := running(t, func() error {
		for range 2 {
			got, err := far.read(ctx)
			if err == nil && len(got) <= MessageSize {
				err = far.write(ctx, got)
			} else if err == nil {
				err = far.writeInd(ctx, got)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	points := ChanOf[point](ch)
	require.NoError(t, points.Err())
	require.NoError(t, points.Send(ctx, point{3, -4}))
	// A type of another size does not take the message away.
	_, err := ChanOf[int32](ch).Receive(ctx)
	require.ErrorIs(t, err, ErrSizeMismatch)
	p, err := points.Receive(ctx)
	require.NoError(t, err)
	assert.Equal(t, point{3, -4}, p)
	large := ChanOf[[20]point](ch)
	want := [20]point{19: {1, 2}}
	require.NoError(t, large.Send(ctx, want))
	got, err := large.Receive(ctx)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	wait()
}

// TestVerify: a back end without checksums refuses them. That of the simulated device has them.
func TestVerify(t *testing.T) {
	ch, _ := channel(t)
	var op *OpError
	require.ErrorAs(t, ch.Verify(true), &op)
	require.Equal(t, "verify", op.Op)
	require.ErrorIs(t, op, ErrNotSupported)
}

// TestOptionsOfOtherCalls: a call refuses an option that it does not take.
func TestOptionsOfOtherCalls(t *testing.T) {
	ctx, dev := background(t), openFake(t)
	_, open := Open(ctx, "fake:", AnyUser())
	_, listen := dev.Listen(ctx, "mail", WithLogger(nil))
	_, dial := dev.Dial(ctx, "mail", WithLogger(nil))
	for op, err := range map[string]error{opOpen: open, opListen: listen, opDial: dial} {
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, "an option that "+op+" does not take")
	}
}
