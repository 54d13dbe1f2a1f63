package nfcomms

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpError(t *testing.T) {
	tests := []struct {
		err  *OpError
		text string
		late bool
	}{
		{&OpError{opSend, "sim:", 17, "", ErrClosed}, "send sim: target 17: closed", false},
		{&OpError{opSend, "sim:", 17, "mail", ErrClosed}, `send sim: "mail": closed`, false},
		{&OpError{opOpen, "sim:", 0, "", ErrScheme}, "open sim: unknown address scheme", false},
		{&OpError{opOpen, "shm:/run/a", 0, "", ErrBusy}, "open shm:/run/a: in use", false},
		{&OpError{opSelect, "", 0, "", ErrInvalid}, "select: invalid argument", false},
		{&OpError{opSend, "sim:", 1, "", ErrTargetTimeout}, "send sim: target 1: target not ready in time", true},
		{&OpError{opSend, "sim:", 1, "", &WithdrawnError{Cause: context.DeadlineExceeded}},
			"send sim: target 1: withdrawn: context deadline exceeded", true},
		{&OpError{opSend, "sim:", 1, "", &WithdrawnError{Cause: context.Canceled}},
			"send sim: target 1: withdrawn: context canceled", false},
		{&OpError{opWait, "sim:", 1, "", context.Canceled}, "wait sim: target 1: context canceled", false},
		{&OpError{opLoad, "sim:", 0, "", fmt.Errorf("read: %w", os.ErrDeadlineExceeded)},
			"load sim: read: i/o timeout", true},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			assert.EqualError(t, tt.err, tt.text)
			assert.ErrorIs(t, tt.err, tt.err.Err)
			assert.Equal(t, tt.late, tt.err.Timeout())
		})
	}
	assert.ErrorIs(t, tests[0].err, net.ErrClosed)
	assert.NoError(t, wrap(opSend, "sim:", 1, nil))
}

func TestStripeErrorText(t *testing.T) {
	err := &StripeError{Index: 1, Target: 18, Offset: 4096, Size: 100, Delivered: []bool{true, false}, Err: ErrDMA}
	assert.EqualError(t, err, "stripe 1 (bytes 4096 to 4196, target 18), 1 of 2 delivered: page not reachable by DMA")
	assert.ErrorIs(t, err, ErrDMA)
}

func TestArticles(t *testing.T) {
	assert.Equal(t, "an interface", article(reflect.Interface))
	assert.Equal(t, "a pointer", article(reflect.UnsafePointer))
	assert.Equal(t, "a Go channel", article(reflect.Chan))
	assert.Equal(t, "a map", article(reflect.Map))
}

// wants is one call with bad input and its outcome.
type wants struct {
	name   string
	op     string
	target Target
	call   func(ctx context.Context) error
	err    error
}

func (w wants) check(t *testing.T, address string) {
	t.Run(w.name, func(t *testing.T) {
		err := w.call(background(t))
		require.ErrorIs(t, err, w.err)
		var op *OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, w.op, op.Op)
		assert.Equal(t, address, op.Device)
		assert.Equal(t, w.target, op.Target)
		var inner *OpError
		assert.False(t, errors.As(op.Err, &inner), "wrapped once")
	})
}

// refusesToOpen requires for each address that Open fails with its error.
func refusesToOpen(t *testing.T, addresses map[string]error) {
	t.Helper()
	for address, want := range addresses {
		wants{address, opOpen, 0, func(ctx context.Context) error {
			dev, err := Open(ctx, address)
			assert.Nil(t, dev)
			return err
		}, want}.check(t, address)
	}
}

func TestOpenRefuses(t *testing.T) {
	refusesToOpen(t, map[string]error{
		"":                            ErrScheme,
		"sim":                         ErrScheme,
		":x":                          ErrScheme,
		"nowhere:":                    ErrScheme,
		"fake:?colour=1":              ErrOption,
		"fake:?managers=1&managers=2": ErrOption,
		"fake:?a=%zz":                 ErrOption,
	})
}

func TestDeviceRefuses(t *testing.T) {
	dev := openFake(t)
	subscribeFake(t, dev, 20)
	dir := t.TempDir()
	image := filepath.Join(dir, "program.so")
	require.NoError(t, os.WriteFile(image, []byte("another"), 0o600))
	huge := filepath.Join(dir, "huge.so")
	require.NoError(t, os.WriteFile(huge, nil, 0o600))
	require.NoError(t, os.Truncate(huge, 60<<30))
	load := func(path string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := dev.LoadFile(ctx, path); return err }
	}
	subscribe := func(target Target) func(context.Context) error {
		return func(ctx context.Context) error {
			ch, err := dev.Subscribe(ctx, target)
			assert.Nil(t, ch)
			return err
		}
	}
	for _, w := range []wants{
		{"no target", opSubscribe, 100, subscribe(100), ErrNotSubscribed},
		{"control channel", opSubscribe, 0, subscribe(0), ErrNotSubscribed},
		{"subscribed twice", opSubscribe, 20, subscribe(20), ErrBusy},
		{"no program", opStart, 30, func(ctx context.Context) error {
			_, err := dev.Start(ctx, Program{Name: "nothing", First: 30, Targets: 1})
			return err
		}, ErrNoProgram},
		{"no process", opStop, 0, func(ctx context.Context) error { return dev.Stop(ctx, 9) }, ErrInvalid},
		{"no memory type", opMemory, 0, func(ctx context.Context) error {
			_, err := dev.memory(ctx, 4)
			return err
		}, ErrInvalid},
		{"another ABI", opLoad, 0, load(image), ErrABI},
		{"endless image", opLoad, 0, load("/dev/zero"), ErrInvalid},
		{"huge image", opLoad, 0, load(huge), ErrTooLarge},
		{"no image", opLoad, 0, load(filepath.Join(dir, "none.so")), fs.ErrNotExist},
		{"reset", opReset, 0, dev.Reset, ErrNotSupported},
		{"health", opHealth, 0, func(context.Context) error { _, err := dev.Health(); return err }, ErrDeviceLost},
	} {
		w.check(t, "fake:")
	}
}

// TestChannelRefuses is the table of bad input at a channel.
func TestChannelRefuses(t *testing.T) {
	ch, _ := channel(t)
	buf := make([]byte, 8)
	none := func([]byte) error { return nil }
	typed := ChanOf[order](ch)
	assert.ErrorIs(t, typed.Err(), ErrPointers)
	assert.Same(t, ch, typed.Channel())
	for _, w := range []wants{
		{"message over 56 bytes", opSend, 16, func(ctx context.Context) error {
			return ch.Send(ctx, make([]byte, 57))
		}, ErrTooLarge},
		{"try over 56 bytes", opSend, 16, func(context.Context) error {
			_, err := SendCase(ch, make([]byte, 57)).Try()
			return err
		}, ErrTooLarge},
		{"send negative size", opSendInd, 16, func(ctx context.Context) error {
			return ch.SendInd(ctx, buf, -1)
		}, ErrSize},
		{"send buffer shorter than size", opSendInd, 16, func(ctx context.Context) error {
			return ch.SendInd(ctx, buf, 9)
		}, ErrSize},
		{"send two sizes", opSendInd, 16, func(ctx context.Context) error {
			return ch.SendInd(ctx, buf, 4, 4)
		}, ErrSize},
		{"receive two sizes", opReceiveInd, 16, func(ctx context.Context) error {
			_, err := ch.ReceiveInd(ctx, buf, 4, 4)
			return err
		}, ErrSize},
		{"receive negative size", opReceiveInd, 16, func(ctx context.Context) error {
			_, err := ch.ReceiveInd(ctx, buf, -1)
			return err
		}, ErrSize},
		{"receive buffer shorter than size", opReceiveInd, 16, func(ctx context.Context) error {
			_, err := ch.ReceiveInd(ctx, buf, 9)
			return err
		}, ErrSize},
		{"receive into a value", opReceiveInd, 16, func(ctx context.Context) error {
			_, err := ch.ReceiveInd(ctx, 5, 4)
			return err
		}, ErrInvalid},
		{"send pointers", opSendInd, 16, func(ctx context.Context) error {
			return ch.SendInd(ctx, order{}, 1)
		}, ErrPointers},
		{"fill negative size", opSendInd, 16, func(ctx context.Context) error {
			return ch.SendIndFunc(ctx, -1, none)
		}, ErrSize},
		{"fill more than the host has", opSendInd, 16, func(ctx context.Context) error {
			return ch.SendIndFunc(ctx, 1<<52, none)
		}, ErrNoMemory},
		{"buffer of negative size", opReceiveInd, 16, func(ctx context.Context) error {
			return ch.ReceiveIndFunc(ctx, -1, none)
		}, ErrSize},
		{"typed send", opSend, 16, func(ctx context.Context) error {
			return typed.Send(ctx, order{})
		}, ErrPointers},
		{"typed receive", opReceive, 16, func(ctx context.Context) error {
			_, err := typed.Receive(ctx)
			return err
		}, ErrPointers},
		{"future of a bad size", opSendInd, 16, func(ctx context.Context) error {
			_, err := SendIndCase(ch, buf, 9).Start(ctx).Wait(ctx)
			return err
		}, ErrSize},
	} {
		w.check(t, "fake:")
	}
}

func TestClosedChannelRefuses(t *testing.T) {
	ch, _ := channel(t)
	require.NoError(t, ch.Close())
	require.NoError(t, ch.Close(), "idempotent")
	require.NoError(t, ch.CloseSend())
	require.NoError(t, ch.CloseReceive())
	buf := make([]byte, 8)
	none := func([]byte) error { return nil }
	for _, w := range []wants{
		{"send", opSend, 16, func(ctx context.Context) error { return ch.Send(ctx, buf) }, ErrClosed},
		{"receive", opReceive, 16, func(ctx context.Context) error { _, err := ch.Receive(ctx, buf); return err }, ErrClosed},
		{"in place", opReceive, 16, func(ctx context.Context) error { return ch.ReceiveFunc(ctx, none) }, ErrClosed},
		{"try send", opSend, 16, func(context.Context) error { _, err := SendCase(ch, buf).Try(); return err }, ErrClosed},
		{"try receive", opReceive, 16, func(context.Context) error { _, err := ReceiveCase(ch, buf, nil).Try(); return err }, ErrClosed},
		{"next", opNext, 16, func(ctx context.Context) error { _, err := ch.Next(ctx); return err }, ErrClosed},
		{"transfer out", opSendInd, 16, func(ctx context.Context) error { return ch.SendInd(ctx, buf, 8) }, ErrClosed},
		{"transfer in", opReceiveInd, 16, func(ctx context.Context) error {
			_, err := ch.ReceiveInd(ctx, buf, 8)
			return err
		}, ErrClosed},
		{"filled", opSendInd, 16, func(ctx context.Context) error { return ch.SendIndFunc(ctx, 8, none) }, ErrClosed},
		{"lent", opReceiveInd, 16, func(ctx context.Context) error { return ch.ReceiveIndFunc(ctx, 8, none) }, ErrClosed},
		{"typed", opSend, 16, func(ctx context.Context) error { return ChanOf[int](ch).Send(ctx, 1) }, ErrClosed},
		{"large typed", opSendInd, 16, func(ctx context.Context) error {
			return ChanOf[[8]uint64](ch).Send(ctx, [8]uint64{})
		}, ErrClosed},
		{"large typed receive", opReceiveInd, 16, func(ctx context.Context) error {
			_, err := ChanOf[[8]uint64](ch).Receive(ctx)
			return err
		}, ErrClosed},
	} {
		w.check(t, "fake:")
	}
}

func TestClosedDeviceRefuses(t *testing.T) {
	dev := openFake(t)
	ch, _ := subscribeFake(t, dev, 16)
	require.NoError(t, dev.Close())
	require.NoError(t, dev.Close(), "idempotent")
	_, err := dev.Subscribe(background(t), 17)
	assert.ErrorIs(t, err, ErrClosed)
	assert.ErrorIs(t, ch.Send(background(t), nil), ErrClosed)
}

func TestReadImageBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	image, err := readImage(path, 10)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(image))
	_, err = readImage(path, 9)
	require.ErrorIs(t, err, ErrTooLarge)
}
