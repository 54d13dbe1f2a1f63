package mailbox

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
)

// bootTime bounds the wait for a device that boots.
const bootTime = time.Second

// layout is where things lie in a mailbox area, checked against its size.
type layout struct {
	base     unsafe.Pointer
	size     uint64
	area     *abi.Area
	hello    abi.Hello
	epoch    uint32
	channels int
	boxes    int
	islands  int
	slots    int
	parkAt   uint64
	boxAt    uint64
	stride   uint64
}

// handshake waits until the device is ready, checks what it says and answers.
func handshake(ctx context.Context, base unsafe.Pointer, size uint64) (layout, error) {
	l := layout{base: base, size: size}
	if size < uint64(unsafe.Sizeof(abi.Area{})) || base == nil || uintptr(base)%abi.SlotSize != 0 {
		return l, fmt.Errorf("%w: mailbox area of %d bytes at %p", bridge.ErrFault, size, base)
	}
	l.area = (*abi.Area)(base)
	if err := awaitReady(ctx, &l.area.State); err != nil {
		return l, err
	}
	if err := l.check(); err != nil {
		return l, err
	}
	l.answer()
	return l, nil
}

// awaitReady waits for the boot to end.
func awaitReady(ctx context.Context, state *uint32) error {
	for end := time.Now().Add(bootTime); ; time.Sleep(100 * time.Microsecond) {
		switch s := atomic.LoadUint32(state); {
		case s == abi.DeviceReady:
			return nil
		case s == abi.DeviceFault:
			return fmt.Errorf("%w: it failed to boot", bridge.ErrFault)
		case s > abi.DeviceFault:
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

// check copies what the device says of itself and validates the copy.
func (l *layout) check() error {
	a := l.area
	magic, major := a.Magic, a.Major
	if magic != abi.Magic {
		return fmt.Errorf("%w: area magic %#x", bridge.ErrFault, magic)
	}
	if major != abi.Major {
		return fmt.Errorf("%w: device has ABI %d, host %d", bridge.ErrABI, major, abi.Major)
	}
	slot := a.DeviceHello
	l.hello = *slot.Hello()
	l.epoch = a.Epoch
	h := abi.Header(slot.Header)
	if h.Type() != abi.TypeHello || h.Length() != abi.PayloadSize || h.Epoch() != uint8(l.epoch) {
		return fmt.Errorf("%w: hello with header %#x", bridge.ErrFault, slot.Header)
	}
	if err := l.checkHello(); err != nil {
		return err
	}
	l.parkAt, l.boxAt, l.stride = a.ParkOffset, a.BoxOffset, a.BoxStride
	return l.checkPlaces(a.Size)
}

// checkHello validates version and limits.
func (l *layout) checkHello() error {
	h := &l.hello
	if h.Magic != abi.Magic || h.Rsvd != 0 {
		return fmt.Errorf("%w: hello with magic %#x, reserved %#x", bridge.ErrFault, h.Magic, h.Rsvd)
	}
	if h.Major != abi.Major {
		return fmt.Errorf("%w: device has ABI %d, host %d", bridge.ErrABI, h.Major, abi.Major)
	}
	for _, f := range []struct {
		name          string
		value, lo, hi uint64
	}{
		{"channels", uint64(h.Channels), 1, abi.ChannelsMax},
		{"mailboxes", uint64(h.Mailboxes), 1, abi.MailboxesMax},
		{"islands", uint64(h.Islands), 1, abi.IslandsMax},
		{"slots", uint64(h.Slots), abi.SlotsMin, abi.SlotsMax},
		{"window", uint64(h.Window), 1, abi.WindowMax},
		{"beat", uint64(h.BeatMS), 1, 1 << 20},
		{"largest transfer", h.MaxTransfer, 1, 1<<48 - 1},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("%w: hello with %s %d, not %d..%d", bridge.ErrFault, f.name, f.value, f.lo, f.hi)
		}
	}
	if h.Slots&(h.Slots-1) != 0 {
		return fmt.Errorf("%w: hello with slots %d, not a power of two", bridge.ErrFault, h.Slots)
	}
	if h.Mailboxes%h.Islands != 0 || uint32(h.Mailboxes) > h.Channels {
		return fmt.Errorf("%w: hello with mailboxes %d for %d islands and %d channels", bridge.ErrFault, h.Mailboxes, h.Islands, h.Channels)
	}
	l.channels, l.boxes = int(h.Channels), int(h.Mailboxes)
	l.islands, l.slots = int(h.Islands), int(h.Slots)
	return nil
}

// checkPlaces makes sure that everything lies inside the area, apart from
// everything else.
func (l *layout) checkPlaces(size uint64) error {
	if size != l.size {
		return fmt.Errorf("%w: area of %d bytes says %d", bridge.ErrFault, l.size, size)
	}
	parkEnd, ok := l.span(l.parkAt, uint64(l.channels), 4)
	if !ok || l.parkAt%4 != 0 || l.parkAt < uint64(unsafe.Sizeof(abi.Area{})) {
		return fmt.Errorf("%w: park words at %#x", bridge.ErrFault, l.parkAt)
	}
	need := uint64(unsafe.Sizeof(abi.Mailbox{})) + 2*uint64(l.slots)*abi.SlotSize
	if l.stride%abi.SlotSize != 0 || l.stride < need || l.stride > l.size {
		return fmt.Errorf("%w: mailbox stride %#x", bridge.ErrFault, l.stride)
	}
	boxEnd, ok := l.span(l.boxAt, uint64(l.boxes), l.stride)
	if !ok || l.boxAt%abi.SlotSize != 0 || l.boxAt < uint64(unsafe.Sizeof(abi.Area{})) ||
		l.boxAt < parkEnd && l.parkAt < boxEnd {
		return fmt.Errorf("%w: mailboxes at %#x", bridge.ErrFault, l.boxAt)
	}
	return nil
}

// span returns the end of n things of a size; false if they leave the area.
func (l *layout) span(at, n, size uint64) (end uint64, ok bool) {
	if at > l.size || n*size > l.size-at { // n and size are bounded: no overflow
		return 0, false
	}
	return at + n*size, true
}

// answer writes the host's hello: what it accepts of the device's offer.
func (l *layout) answer() {
	slot := abi.Slot{}
	*slot.Hello() = abi.Hello{
		Magic: abi.Magic, Major: abi.Major, Minor: abi.Minor,
		Capabilities: l.hello.Capabilities & abi.CapKnown,
		Channels:     l.hello.Channels,
		Mailboxes:    l.hello.Mailboxes,
		Islands:      l.hello.Islands,
		Slots:        l.hello.Slots,
		Window:       l.hello.Window,
		BeatMS:       l.hello.BeatMS,
		MaxTransfer:  l.hello.MaxTransfer,
	}
	l.area.HostHello.Payload = slot.Payload
	h := abi.MakeHeader(abi.TypeHello, abi.PayloadSize, uint8(l.epoch), 0, 0)
	atomic.StoreUint64(&l.area.HostHello.Header, uint64(h))
}

// mailbox returns the rings of a mailbox and the words that count them.
func (l *layout) mailbox(i int) (h2d, d2h []abi.Slot, h2dHead, d2hHead *uint64) {
	at := unsafe.Add(l.base, l.boxAt+uint64(i)*l.stride)
	m := (*abi.Mailbox)(at)
	slots := unsafe.Add(at, unsafe.Sizeof(*m))
	h2d = unsafe.Slice((*abi.Slot)(slots), l.slots)
	d2h = unsafe.Slice((*abi.Slot)(unsafe.Add(slots, l.slots*abi.SlotSize)), l.slots)
	return h2d, d2h, &m.H2DHead.Word, &m.D2HHead.Word
}

// park returns the park word of a channel.
func (l *layout) park(channel uint32) *uint32 {
	return (*uint32)(unsafe.Add(l.base, l.parkAt+4*uint64(channel)))
}

// info describes the device as the application sees it.
func (l *layout) info(base bridge.Info) bridge.Info {
	h := &l.hello
	base.Major, base.Minor = int(h.Major), int(h.Minor)
	base.Epoch = l.epoch
	base.Channels, base.Mailboxes, base.Islands, base.Slots = l.channels, l.boxes, l.islands, l.slots
	base.Contexts = int(h.Contexts)
	base.ReadManagers, base.WriteManagers = int(h.ReadManagers), int(h.WriteManagers)
	base.Window, base.MaxTransfer = int(h.Window), h.MaxTransfer
	base.Beat = time.Duration(h.BeatMS) * time.Millisecond
	base.CanLoad = h.Capabilities&abi.CapLoad != 0
	return base
}
