package nfcomms

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// background ends with the test, or before that if something hangs.
func background(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// openFake returns a fake device.
func openFake(t testing.TB) *Device {
	dev, err := Open(background(t), "fake:")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// subscribeFake returns a channel of a fake device and the device's side of it.
func subscribeFake(t testing.TB, dev *Device, target Target) (*Channel, *fakeChannel) {
	ch, err := dev.Subscribe(background(t), target)
	require.NoError(t, err)
	return ch, ch.ch.(*fakeChannel)
}

// channel is a channel to target 16 of a fake device of its own.
func channel(t testing.TB) (*Channel, *fakeChannel) { return subscribeFake(t, openFake(t), 16) }

// running runs f beside the test and returns a function that waits for its end.
func running(t testing.TB, f func() error) (wait func()) {
	done := make(chan error, 1) // f ends also if nobody waits
	go func() { done <- f() }()
	return func() { t.Helper(); require.NoError(t, <-done) }
}

// null takes and gives everything at once, for counting allocations.
type null struct {
	fakeChannel
	got []byte
}

func (*null) Send(context.Context, []byte) error                           { return nil }
func (*null) Receive(_ context.Context, buf []byte) (int, error)           { return len(buf), nil }
func (n *null) SendInd(_ context.Context, data []byte) error               { n.got = data; return nil }
func (n *null) ReceiveInd(_ context.Context, data []byte) error            { n.got = data; return nil }
func (n *null) ReceiveFunc(_ context.Context, fn func([]byte) error) error { return fn(n.got) }

// nullChannel is a channel over null.
func nullChannel() (*Channel, *null) {
	n := new(null)
	return &Channel{dev: &Device{address: "null:"}, ch: n}, n
}
