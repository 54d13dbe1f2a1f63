package mailbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// bootTime bounds the wait for a device that boots.
const bootTime = time.Second

// memory is a mailbox area in the memory of this process.
type memory struct {
	proto.Layout
	base unsafe.Pointer
	area *wire.Area
}

// handshake waits until the device is ready, checks its hello and answers. Of the device's
// capabilities those of without are not used.
func handshake(ctx context.Context, base unsafe.Pointer, size uint64, without uint32) (memory, error) {
	if size < wire.AreaSize || base == nil || uintptr(base)%wire.SlotSize != 0 {
		return memory{}, fmt.Errorf("%w: mailbox area of %d bytes at %p", bridge.ErrFault, size, base)
	}
	m := memory{base: base, area: (*wire.Area)(base)}
	if err := awaitReady(ctx, &m.area.State); err != nil {
		return m, err
	}
	layout, err := proto.Check(m.firstPage(), size)
	switch {
	case errors.Is(err, proto.ErrABI):
		return m, fmt.Errorf("%w: %w", bridge.ErrABI, err)
	case err != nil:
		return m, fmt.Errorf("%w: %w", bridge.ErrFault, err)
	}
	m.Layout = *layout
	m.Hello.Capabilities &^= without
	m.answer()
	return m, nil
}

// firstPage copies what the layout is made of: the device may write it again at any time.
func (m *memory) firstPage() *wire.Area {
	a := m.area
	return &wire.Area{
		Magic: a.Magic, Major: a.Major, Minor: a.Minor, Size: a.Size, ParkOffset: a.ParkOffset,
		MailboxOffset: a.MailboxOffset, MailboxStride: a.MailboxStride, Epoch: a.Epoch, DeviceHello: a.DeviceHello,
	}
}

// answer writes the host's hello.
func (m *memory) answer() {
	s := m.Answer()
	m.area.HostHello.Payload = s.Payload
	atomic.StoreUint64(&m.area.HostHello.Header, s.Header)
}

// awaitReady waits for the boot to end.
func awaitReady(ctx context.Context, state *uint32) error {
	for end := time.Now().Add(bootTime); ; time.Sleep(100 * time.Microsecond) {
		switch s := atomic.LoadUint32(state); { // SYNC: state
		case s == wire.DeviceReady:
			return nil
		case s == wire.DeviceFault:
			return fmt.Errorf("%w: it failed to boot", bridge.ErrFault)
		case s > wire.DeviceFault:
			return fmt.Errorf("%w: unknown device state %d", bridge.ErrFault, s)
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wait for boot: %w", &bridge.WithdrawnError{Cause: err})
		}
		if time.Now().After(end) {
			return fmt.Errorf("%w: not ready after %v", bridge.ErrDeviceLost, bootTime)
		}
	}
}

// mailbox returns the rings of a mailbox and the words that count them.
func (m *memory) mailbox(i int) (h2d, d2h []wire.Slot, h2dHead, d2hHead *uint64) {
	at := unsafe.Add(m.base, m.MailboxOffset+uint64(i)*m.MailboxStride)
	heads, n := (*wire.Mailbox)(at), int(m.Hello.Slots)
	slots := unsafe.Add(at, wire.MailboxSize)
	h2d = unsafe.Slice((*wire.Slot)(slots), n)
	d2h = unsafe.Slice((*wire.Slot)(unsafe.Add(slots, n*wire.SlotSize)), n)
	return h2d, d2h, &heads.H2DHead.Word, &heads.D2HHead.Word
}

// park returns the park word of a channel.
func (m *memory) park(channel uint32) *uint32 {
	return (*uint32)(unsafe.Add(m.base, m.ParkOffset+4*uint64(channel)))
}

// info describes the device as the application sees it.
func (m *memory) info(base bridge.Info) bridge.Info {
	h := &m.Hello
	base.Major, base.Minor = int(h.Major), int(h.Minor)
	base.Epoch = m.Epoch
	base.Channels, base.Mailboxes = int(h.Channels), int(h.Mailboxes)
	base.Islands, base.Slots = int(h.Islands), int(h.Slots)
	base.Contexts = int(h.Contexts)
	base.ReadManagers, base.WriteManagers = int(h.ReadManagers), int(h.WriteManagers)
	base.Window, base.MaxTransfer = int(h.Window), h.MaxTransfer
	base.Beat = time.Duration(h.BeatMS) * time.Millisecond
	base.Runs = h.Capabilities&wire.CapRuns != 0
	base.CanLoad = h.Capabilities&wire.CapLoad != 0
	return base
}
