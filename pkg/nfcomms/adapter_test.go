package nfcomms

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAsReceiver(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	msgs, ended := AsReceiver(ctx, ch)
	wait := running(t, func() error {
		for _, msg := range []string{"a", "bc", ""} {
			if err := far.write(ctx, []byte(msg)); err != nil {
				return err
			}
		}
		return far.CloseReceive()
	})
	var got []string
	for msg := range msgs {
		got = append(got, string(msg))
	}
	assert.Equal(t, []string{"a", "bc", ""}, got)
	require.NoError(t, ended(), "a close is the regular end")
	wait()
}

func TestAsReceiverIsARendezvous(t *testing.T) {
	ch, far := channel(t)
	ctx, cancel := context.WithCancel(background(t))
	msgs, ended := AsReceiver(ctx, ch)
	written := make(chan error, 1)
	go func() { written <- far.write(background(t), []byte("kept")) }()
	require.NoError(t, far.until(ctx, func() bool { o := far.half[1].offer; return o != nil && o.taken }))
	select {
	case err := <-written:
		t.Fatalf("the device was released before anybody took the message: %v", err)
	default:
	}
	cancel()
	require.ErrorIs(t, ended(), ErrWithdrawn)
	_, open := <-msgs
	assert.False(t, open)
	// Nobody took it, so it is still there.
	buf := make([]byte, 8)
	n, err := ch.Receive(background(t), buf)
	require.NoError(t, err)
	assert.Equal(t, "kept", string(buf[:n]))
	require.NoError(t, <-written)
}

func TestAsReceiverReportsErrors(t *testing.T) {
	ch, far := channel(t)
	require.NoError(t, far.Close())
	far.half[1] = fakeHalf{reading: true} // somebody else receives
	msgs, ended := AsReceiver(background(t), ch)
	_, open := <-msgs
	assert.False(t, open)
	err := ended()
	require.ErrorIs(t, err, ErrBusy)
	var op *OpError
	require.ErrorAs(t, err, &op)
	assert.Equal(t, opAsReceiver, op.Op)
}

// TestAsReceiverLetsGo closes in every way while the adapter holds a message
// that nobody takes: nothing may wait for it.
func TestAsReceiverLetsGo(t *testing.T) {
	for name, tt := range map[string]struct {
		end  func(dev *Device, ch *Channel) error
		want error
	}{
		"channel": {func(_ *Device, ch *Channel) error { return ch.Close() }, nil},
		"half":    {func(_ *Device, ch *Channel) error { return ch.CloseReceive() }, nil},
		"device":  {func(dev *Device, _ *Channel) error { return dev.Close() }, nil},
		"reset": {func(dev *Device, _ *Channel) error {
			_ = dev.Reset(context.Background()) // the fake has none
			return nil
		}, ErrDeviceLost},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := background(t)
			dev := openFake(t)
			ch, far := subscribeFake(t, dev, 16)
			_, ended := AsReceiver(ctx, ch)
			written := make(chan error, 1)
			go func() { written <- far.write(ctx, []byte("held")) }()
			require.NoError(t, far.until(ctx, func() bool { o := far.half[1].offer; return o != nil && o.taken }))
			require.NoError(t, tt.end(dev, ch))
			require.ErrorIs(t, ended(), tt.want)
			require.NoError(t, ch.Close())
			require.ErrorIs(t, <-written, ErrClosed)
			_, late := AsReceiver(ctx, ch)
			require.NoError(t, late(), "closed already")
		})
	}
}

func TestAsSender(t *testing.T) {
	ctx := background(t)
	ch, far := channel(t)
	msgs, ended := AsSender(ctx, ch)
	var got []string
	wait := running(t, func() error {
		for range 2 {
			msg, err := far.read(ctx)
			if err != nil {
				return err
			}
			got = append(got, string(msg))
		}
		return nil
	})
	msgs <- []byte("a")
	msgs <- []byte("b")
	close(msgs)
	require.NoError(t, ended())
	wait()
	assert.Equal(t, []string{"a", "b"}, got)
}

func TestAsSenderDiscardsAfterAnError(t *testing.T) {
	ch, far := channel(t)
	msgs, ended := AsSender(background(t), ch)
	wait := running(t, func() error { _, err := far.read(background(t)); return err })
	msgs <- []byte("ok")
	wait()
	msgs <- make([]byte, 57)
	msgs <- []byte("never")
	close(msgs)
	err := ended()
	require.ErrorIs(t, err, ErrTooLarge)
	assert.ErrorContains(t, err, "message 1 and those after it were not delivered")
}

func TestAsSenderEndsWithItsContext(t *testing.T) {
	for _, closed := range []bool{false, true} {
		ch, far := channel(t)
		ctx, cancel := context.WithCancel(background(t))
		msgs, ended := AsSender(ctx, ch)
		if closed {
			require.NoError(t, far.Close())
			msgs <- nil
			msgs <- nil // the first one has failed by now
		}
		cancel()
		err := ended()
		if closed {
			require.ErrorIs(t, err, ErrClosed)
		} else {
			require.ErrorIs(t, err, ErrWithdrawn)
		}
	}
}
