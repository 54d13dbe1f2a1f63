package mailbox

import (
	"context"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

func TestOpenShakesHands(t *testing.T) {
	f := newFake(t)
	d := f.open()
	h := *f.area.HostHello.Hello()
	require.Equal(t, wire.TypeHello, wire.Header(f.area.HostHello.Header).Type())
	require.EqualValues(t, wire.Magic, h.Magic)
	require.EqualValues(t, abi.Major, h.Major)
	require.EqualValues(t, wire.CapLoad, h.Capabilities)
	require.EqualValues(t, fakeWindow, h.Window)
	info := d.Info()
	require.Equal(t, "fake:", info.Address)
	require.Equal(t, "fake", info.Driver)
	require.Equal(t, fakeChannels, info.Channels)
	require.Equal(t, fakeMailboxes, info.Mailboxes)
	require.Equal(t, fakeSlots, info.Slots)
	require.Equal(t, fakeWindow, info.Window)
	require.EqualValues(t, 1, info.Epoch)
	require.True(t, info.CanLoad)
}

func TestOpenAcceptsOnlyKnownCapabilities(t *testing.T) {
	f := newFake(t)
	f.area.DeviceHello.Hello().Capabilities = ^uint32(0)
	f.area.DeviceHello.Hello().Eager = wire.EagerEntries
	f.open()
	require.EqualValues(t, proto.Capabilities&^wire.CapRounds, f.area.HostHello.Hello().Capabilities)
}

func TestOpenRefusesNonsense(t *testing.T) {
	for _, c := range []struct {
		name string
		want error
		mend func(a *wire.Area, h *wire.Hello)
	}{
		{"area magic", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.Magic++ }},
		{"area major", bridge.ErrABI, func(a *wire.Area, _ *wire.Hello) { a.Major++ }},
		{"area size", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.Size++ }},
		{"area size zero", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.Size = 0 }},
		{"park in the first page", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.ParkOffset = 64 }},
		{"park unaligned", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.ParkOffset++ }},
		{"park outside", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.ParkOffset = a.Size - 4 }},
		{"park far outside", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.ParkOffset = ^uint64(3) }},
		{"park in a mailbox", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.ParkOffset = a.MailboxOffset + 64 }},
		{"boxes in the first page", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxOffset = 0 }},
		{"boxes unaligned", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxOffset += 8 }},
		{"boxes outside", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxOffset += a.MailboxStride }},
		{"boxes far outside", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxOffset = ^uint64(63) }},
		{"stride short", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxStride = 2048 }},
		{"stride unaligned", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxStride -= 8 }},
		{"stride huge", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.MailboxStride = 1 << 63 }},
		{"state fault", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.State = wire.DeviceFault }},
		{"state unknown", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.State = 77 }},
		{"epoch", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.Epoch++ }},
		{"hello type", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.DeviceHello.Header++ }},
		{"hello length", bridge.ErrFault, func(a *wire.Area, _ *wire.Hello) { a.DeviceHello.Header += 1 << 8 }},
		{"hello magic", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Magic++ }},
		{"hello major", bridge.ErrABI, func(_ *wire.Area, h *wire.Hello) { h.Major++ }},
		{"no channels", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Channels = 0 }},
		{"many channels", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Channels = abi.ChannelsMax + 1 }},
		{"channels over the area", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Channels = abi.ChannelsMax }},
		{"no mailboxes", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Mailboxes = 0 }},
		{"many mailboxes", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Mailboxes = wire.MailboxesMax + 1 }},
		{"mailboxes over the area", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Mailboxes++ }},
		{"no islands", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Islands = 0 }},
		{"many islands", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Islands = wire.IslandsMax + 1 }},
		{"few slots", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Slots = wire.SlotsMin / 2 }},
		{"many slots", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Slots = wire.SlotsMax * 2 }},
		{"odd slots", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Slots = 24 }},
		{"slots over the stride", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Slots = 64 }},
		{"no window", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Window = 0 }},
		{"wide window", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Window = wire.WindowMax + 1 }},
		{"no beat", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.BeatMS = 0 }},
		{"slow beat", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.BeatMS = 1 << 31 }},
		{"no transfers", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.MaxTransfer = 0 }},
		{"transfers over 48 bits", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.MaxTransfer = 1 << 48 }},
		{"reserved", bridge.ErrFault, func(_ *wire.Area, h *wire.Hello) { h.Rsvd = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			c.mend(f.area, f.area.DeviceHello.Hello())
			d, err := Open(context.Background(), f, bridge.Info{}, nil)
			require.ErrorIs(t, err, c.want)
			require.Nil(t, d)
		})
	}
}

// odd is a port whose area is not one.
type odd struct {
	*fake
	base unsafe.Pointer
	size uint64
}

func (o odd) Area() (unsafe.Pointer, uint64) { return o.base, o.size }

func TestOpenRefusesAnAreaThatIsNone(t *testing.T) {
	f := newFake(t)
	for _, o := range []odd{
		{f, nil, f.lay.Size},
		{f, f.lay.base, uint64(unsafe.Sizeof(wire.Area{})) - 1},
		{f, unsafe.Add(f.lay.base, 8), f.lay.Size - 8},
	} {
		_, err := Open(context.Background(), o, bridge.Info{}, nil)
		require.ErrorIs(t, err, bridge.ErrFault)
	}
}

func TestOpenWaitsForBoot(t *testing.T) {
	f := newFake(t)
	f.area.State = wire.DeviceBooting
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Open(ctx, f, bridge.Info{}, nil)
	require.ErrorIs(t, err, context.Canceled)
	_, err = Open(context.Background(), f, bridge.Info{}, nil)
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
}

func TestHealthAndWatch(t *testing.T) {
	f := newFake(t)
	d := f.open()
	f.until("a heartbeat", func() bool {
		h, err := d.Health()
		return err == nil && h.Beat > 0 && h.Processes == 3 && h.Queued == 7
	})
	c := f.subscribe(d)
	wait := f.async(func() error { return c.Send(context.Background(), []byte("x")) })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.mute.Store(true) // the device dies
	require.ErrorIs(t, wait(), bridge.ErrDeviceLost)
	require.EqualValues(t, 1, f.fences.Load())
	_, err := d.Health()
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrDeviceLost)
	f.mute.Store(false)
	require.NoError(t, d.Reset(context.Background()))
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrDeviceLost, "channels of the old epoch")
	require.NoError(t, c.Close())
	c = f.subscribe(d)
	wait = f.async(func() error { return c.Send(context.Background(), []byte("x")) })
	f.expect(fakeMailbox, wire.TypeDirect)
	f.ack(wire.TypeAck, wire.Ack{Transaction: 1, State: wire.StateConsumed})
	require.NoError(t, wait())
	require.EqualValues(t, 1, d.Stats().Resets)
	require.EqualValues(t, 2, d.Info().Epoch)
}

// TestResetWaitsForEveryCall: a call of either half may still work on the area of
// the old epoch. It can be waited for again.
func TestResetWaitsForEveryCall(t *testing.T) {
	for _, direction := range []abi.Direction{abi.H2D, abi.D2H} {
		f, d, c := setup(t)
		h := c.half(uint32(direction))
		require.True(t, h.queue.try(), "a call")
		ctx, cancel := context.WithCancel(context.Background())
		wait := f.async(func() error { return d.Reset(ctx) })
		f.until("the epoch is fenced", func() bool { return h.shut.Load()&shutDown != 0 })
		cancel()
		require.ErrorIs(t, wait(), context.Canceled)
		require.EqualValues(t, 1, f.area.Epoch, "it went on under a call")
		h.queue.unlock()
		require.NoError(t, d.Reset(context.Background()))
	}
}

func TestResetThatFailsCanBeTriedAgain(t *testing.T) {
	f := newFake(t)
	d := f.open()
	f.noBoot = true
	require.ErrorIs(t, d.Reset(context.Background()), bridge.ErrNoMemory)
	_, err := d.Subscribe(context.Background(), fakeTarget)
	require.ErrorIs(t, err, bridge.ErrDeviceLost)
	f.noBoot = false
	require.NoError(t, d.Reset(context.Background()))
	f.subscribe(d)
}

// TestCloseAgainSaysNothing: the target may have been subscribed again.
func TestCloseAgainSaysNothing(t *testing.T) {
	f, _, c := setup(t)
	wait := f.async(c.Close)
	f.expect(fakeMailbox, wire.TypeClose)
	f.close(3, fakeGeneration)
	require.NoError(t, wait())
	for _, again := range []func() error{c.Close, c.CloseSend, c.CloseReceive} {
		require.NoError(t, again())
		require.False(t, f.pending(fakeMailbox), "the device was told again")
	}
}

func TestCloseIsIdempotentAndEndsEverything(t *testing.T) {
	f := newFake(t)
	d := f.open()
	c := f.subscribe(d)
	data := pages(100)
	calls := []func() error{
		f.async(func() error { return c.SendInd(context.Background(), data) }),
		f.async(func() error { _, err := c.Receive(context.Background(), nil); return err }),
	}
	f.expect(fakeMailbox, wire.TypeIndBegin)
	f.asleep(d, 2)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	for _, wait := range calls {
		require.ErrorIs(t, wait(), bridge.ErrClosed)
	}
	require.EqualValues(t, 1, f.fences.Load(), "DMA is off before a buffer is given back")
	_, err := d.Subscribe(context.Background(), fakeTarget)
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.ErrorIs(t, d.Reset(context.Background()), bridge.ErrClosed)
	require.ErrorIs(t, c.Send(context.Background(), nil), bridge.ErrClosed)
	_, err = d.Health()
	require.ErrorIs(t, err, bridge.ErrClosed)
	require.NoError(t, c.Close())
}
