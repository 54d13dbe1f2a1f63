package scripted

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/bridgetest"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// badHello is a first page that no device may show.
type badHello struct {
	name string
	lay  func(a *wire.Area)
	want error
}

// hello makes a row out of a wrong field of the device's hello.
func hello(name string, f func(h *wire.Hello)) badHello {
	return badHello{name, func(a *wire.Area) { f(a.DeviceHello.Hello()) }, bridge.ErrFault}
}

func page(name string, f func(a *wire.Area)) badHello {
	return badHello{name, f, bridge.ErrFault}
}

var badHellos = []badHello{
	page("magic", func(a *wire.Area) { a.Magic = 0 }),
	{"major", func(a *wire.Area) { a.Major = abi.Major + 1 }, bridge.ErrABI},
	{"major 0", func(a *wire.Area) { a.Major = 0 }, bridge.ErrABI},
	page("size 0", func(a *wire.Area) { a.Size = 0 }),
	page("size too big", func(a *wire.Area) { a.Size = 1 << 60 }),
	page("size too small", func(a *wire.Area) { a.Size = 8192 }),
	page("park words outside", func(a *wire.Area) { a.ParkOffset = a.Size - 4 }),
	page("park words far outside", func(a *wire.Area) { a.ParkOffset = 1<<64 - 8 }),
	page("park words over the first page", func(a *wire.Area) { a.ParkOffset = 128 }),
	page("park words unaligned", func(a *wire.Area) { a.ParkOffset++ }),
	page("mailboxes outside", func(a *wire.Area) { a.MailboxOffset = a.Size }),
	page("mailboxes far outside", func(a *wire.Area) { a.MailboxOffset = 1<<64 - 64 }),
	page("mailboxes over the first page", func(a *wire.Area) { a.MailboxOffset = 64 }),
	page("mailboxes over the park words", func(a *wire.Area) { a.MailboxOffset = a.ParkOffset }),
	page("mailboxes unaligned", func(a *wire.Area) { a.MailboxOffset += 8 }),
	page("stride 0", func(a *wire.Area) { a.MailboxStride = 0 }),
	page("stride too small", func(a *wire.Area) { a.MailboxStride -= 64 }),
	page("stride unaligned", func(a *wire.Area) { a.MailboxStride -= 8 }),
	page("stride without end", func(a *wire.Area) { a.MailboxStride = 1 << 63 }),
	page("state unknown", func(a *wire.Area) { a.State = 77 }),
	page("state fault", func(a *wire.Area) { a.State = wire.DeviceFault }),
	page("no hello", func(a *wire.Area) { a.DeviceHello.Header = 0 }),
	page("hello of another epoch", func(a *wire.Area) { a.Epoch += 5 }),
	page("hello of another type", func(a *wire.Area) { a.DeviceHello.Header ^= 1 }),
	hello("hello magic", func(h *wire.Hello) { h.Magic++ }),
	{"hello major", func(a *wire.Area) { a.DeviceHello.Hello().Major = 9 }, bridge.ErrABI},
	hello("channels 0", func(h *wire.Hello) { h.Channels = 0 }),
	hello("channels too many", func(h *wire.Hello) { h.Channels = abi.ChannelsMax + 1 }),
	hello("channels more than park words", func(h *wire.Hello) { h.Channels = abi.ChannelsMax }),
	hello("mailboxes 0", func(h *wire.Hello) { h.Mailboxes = 0 }),
	hello("mailboxes too many", func(h *wire.Hello) { h.Mailboxes = wire.MailboxesMax + 1 }),
	hello("mailboxes more than there are", func(h *wire.Hello) { h.Mailboxes = wire.MailboxesMax }),
	hello("mailboxes no multiple of islands", func(h *wire.Hello) { h.Islands, h.Mailboxes = 2, 1 }),
	hello("islands 0", func(h *wire.Hello) { h.Islands = 0 }),
	hello("islands too many", func(h *wire.Hello) { h.Islands = wire.IslandsMax + 1 }),
	hello("slots 0", func(h *wire.Hello) { h.Slots = 0 }),
	hello("slots too few", func(h *wire.Hello) { h.Slots = wire.SlotsMin / 2 }),
	hello("slots odd", func(h *wire.Hello) { h.Slots = 63 }),
	hello("slots too many", func(h *wire.Hello) { h.Slots = 2 * wire.SlotsMax }),
	hello("slots more than there are", func(h *wire.Hello) { h.Slots *= 2 }),
	hello("window 0", func(h *wire.Hello) { h.Window = 0 }),
	hello("window too big", func(h *wire.Hello) { h.Window = wire.WindowMax + 1 }),
	hello("beat 0", func(h *wire.Hello) { h.BeatMS = 0 }),
	hello("largest transfer 0", func(h *wire.Hello) { h.MaxTransfer = 0 }),
	hello("largest transfer over 48 bits", func(h *wire.Hello) { h.MaxTransfer = 1 << 48 }),
	hello("eager over the most", func(h *wire.Hello) { h.Capabilities, h.Eager = wire.CapEager, wire.EagerEntries+1 }),
	hello("eager without its capability", func(h *wire.Hello) { h.Capabilities, h.Eager = 0, 1 }),
	hello("capability of no eager entries", func(h *wire.Hello) { h.Capabilities, h.Eager = wire.CapEager, 0 }),
	hello("reserved field set", func(h *wire.Hello) { h.Rsvd = 1 }),
}

// openDevice opens a manager over a scripted device, and closes the device if that fails.
func openDevice(e *bridgetest.Env, h Hooks) (*Device, bridge.Device, error) {
	s, err := New(Shape{}, h)
	require.NoError(e, err)
	ctx, cancel := context.WithTimeout(e.Ctx(), 200*time.Millisecond)
	defer cancel()
	dev, err := mailbox.Open(ctx, s, bridge.Info{Driver: "script"}, nil)
	if err != nil {
		require.Nil(e, dev)
		if err := s.Close(); err != nil {
			require.ErrorIs(e, err, os.ErrClosed)
		}
	}
	return s, dev, err
}

// TestHello: a first page that makes no sense is refused before it is used.
func TestHello(t *testing.T) {
	for _, c := range badHellos {
		t.Run(c.name, func(t *testing.T) {
			e := bridgetest.NewEnv(t)
			_, _, err := openDevice(e, Hooks{Lay: c.lay})
			require.ErrorIs(t, err, c.want)
		})
	}
}

// TestHelloOpen: what a newer device may say is no reason to refuse it.
func TestHelloOpen(t *testing.T) {
	for name, lay := range map[string]func(a *wire.Area){
		"newer minor":         func(a *wire.Area) { a.Minor, a.DeviceHello.Hello().Minor = 9, 9 },
		"unknown capability":  func(a *wire.Area) { a.DeviceHello.Hello().Capabilities = 1 << 30 },
		"fewer channels":      func(a *wire.Area) { a.DeviceHello.Hello().Channels = 20 },
		"window of one":       func(a *wire.Area) { a.DeviceHello.Hello().Window = 1 },
		"no context to spare": func(a *wire.Area) { a.DeviceHello.Hello().Contexts = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			e := bridgetest.NewEnv(t)
			_, dev, err := openDevice(e, Hooks{Lay: lay})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, dev.Close()) })
			e.Echo(e.Subscribe(dev, abi.TargetLoopback), []byte("welcome"))
		})
	}
}

// TestHelloNever: a device that never gets ready is given up with the context,
// or when its time to boot is over.
func TestHelloNever(t *testing.T) {
	for name, state := range map[string]uint32{"off": wire.DeviceOff, "booting": wire.DeviceBooting + 1<<31} {
		t.Run(name, func(t *testing.T) {
			e := bridgetest.NewEnv(t)
			_, _, err := openDevice(e, Hooks{Lay: func(a *wire.Area) { a.State = state }})
			require.Error(t, err)
			ok := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, bridge.ErrDeviceLost) ||
				errors.Is(err, bridge.ErrFault)
			require.True(t, ok, "%v", err)
		})
	}
}

// TestHelloAfterReset: a device that comes back wrong stays out of use, and a
// later reset may still bring it back.
func TestHelloAfterReset(t *testing.T) {
	r := newRig(t, Shape{})
	ch := r.Subscribe(r.dev, abi.TargetLoopback)
	r.s.SetHooks(Hooks{Lay: func(a *wire.Area) { a.DeviceHello.Hello().Slots = 7 }})
	require.Error(t, r.dev.Reset(r.Ctx()))
	_, err := r.dev.Subscribe(r.Ctx(), abi.TargetLoopback)
	require.Error(t, err)
	requireTyped(t, err)
	require.Error(t, ch.Send(r.Ctx(), nil))
	r.recovers()
}
