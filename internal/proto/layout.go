package proto

import (
	"errors"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Layout is where things are in a mailbox area, checked.
type Layout struct {
	Hello         wire.Hello // the device's; capabilities as agreed
	Epoch         uint32
	Size          uint64 // of the area, bytes
	ParkOffset    uint64
	MailboxOffset uint64
	MailboxStride uint64
}

// ErrABI is what Check returns for a device of another ABI.
var ErrABI = errors.New("another ABI")

// Capabilities are those that this host uses where the device has them.
const Capabilities = wire.CapLoad | wire.CapEager | wire.CapRuns | wire.CapRounds | wire.CapReady |
	wire.CapNames | wire.CapSum | wire.CapCalls | wire.CapMove | wire.CapNews

const (
	beatMSMax = 1 << 20
	sizeMax   = 1<<48 - 1 // of a transfer
)

// Check makes a layout of a private copy of the area's first page. room is how much memory there
// is. It returns [ErrABI], or another error for a device that makes no sense.
func Check(area *wire.Area, room uint64) (*Layout, error) {
	slot := area.DeviceHello
	l := &Layout{
		Hello: *slot.Hello(), Epoch: area.Epoch, Size: area.Size,
		ParkOffset: area.ParkOffset, MailboxOffset: area.MailboxOffset, MailboxStride: area.MailboxStride,
	}
	switch h := wire.Header(slot.Header); {
	case area.Magic != wire.Magic:
		return nil, fmt.Errorf("area with magic %#x", area.Magic)
	case area.Major != abi.Major:
		return nil, fmt.Errorf("%w: device has %d, host %d", ErrABI, area.Major, abi.Major)
	case h.Type() != wire.TypeHello || h.Length() != abi.PayloadSize || h.Epoch() != uint8(l.Epoch):
		return nil, fmt.Errorf("hello with header %#x", slot.Header)
	case l.Hello.Magic != wire.Magic || l.Hello.Rsvd != 0:
		return nil, fmt.Errorf("hello with magic %#x, reserved %#x", l.Hello.Magic, l.Hello.Rsvd)
	case l.Hello.Major != abi.Major:
		return nil, fmt.Errorf("%w: device has %d, host %d", ErrABI, l.Hello.Major, abi.Major)
	}
	if err := l.limits(); err != nil {
		return nil, err
	}
	l.agree()
	return l, l.places(room)
}

// agree leaves of the device's capabilities what the host accepts.
func (l *Layout) agree() {
	l.Hello.Capabilities &= Capabilities
	if l.Hello.Capabilities&wire.CapEager == 0 {
		l.Hello.Eager = 0
	}
}

// limits checks what the host's own arithmetic relies on.
func (l *Layout) limits() error {
	h := &l.Hello
	for _, f := range []struct {
		name          string
		value, lo, hi uint64
	}{
		{"channels", uint64(h.Channels), 1, abi.ChannelsMax},
		{"mailboxes", uint64(h.Mailboxes), 1, wire.MailboxesMax},
		{"islands", uint64(h.Islands), 1, wire.IslandsMax},
		{"slots", uint64(h.Slots), wire.SlotsMin, wire.SlotsMax},
		{"window", uint64(h.Window), 1, wire.WindowMax},
		{"heartbeat interval", uint64(h.BeatMS), 1, beatMSMax},
		{"largest transfer", h.MaxTransfer, 1, sizeMax},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("hello with %s %d, not %d..%d", f.name, f.value, f.lo, f.hi)
		}
	}
	if h.Eager > wire.EagerEntries || (h.Eager != 0) != (h.Capabilities&wire.CapEager != 0) {
		return fmt.Errorf("hello with %d entries of an eager transfer, capabilities %#x", h.Eager, h.Capabilities)
	}
	if h.Slots&(h.Slots-1) != 0 {
		return fmt.Errorf("hello with slots %d, not a power of two", h.Slots)
	}
	if h.Mailboxes%h.Islands != 0 || uint32(h.Mailboxes) > h.Channels {
		return fmt.Errorf("hello with mailboxes %d for %d islands and %d channels", h.Mailboxes, h.Islands, h.Channels)
	}
	return nil
}

// places makes sure that everything is inside the area, apart from everything else.
func (l *Layout) places(room uint64) error {
	if l.Size < wire.AreaSize || l.Size > room {
		return fmt.Errorf("area of %d bytes in %d", l.Size, room)
	}
	parkEnd, ok := l.span(l.ParkOffset, uint64(l.Hello.Channels), 4)
	if !ok || l.ParkOffset%4 != 0 || l.ParkOffset < wire.AreaSize {
		return fmt.Errorf("park words at %#x", l.ParkOffset)
	}
	need := wire.MailboxSize + 2*uint64(l.Hello.Slots)*wire.SlotSize
	if l.MailboxStride%wire.SlotSize != 0 || l.MailboxStride < need || l.MailboxStride > l.Size {
		return fmt.Errorf("mailbox stride %#x", l.MailboxStride)
	}
	mailboxesEnd, ok := l.span(l.MailboxOffset, uint64(l.Hello.Mailboxes), l.MailboxStride)
	if !ok || l.MailboxOffset%wire.SlotSize != 0 || l.MailboxOffset < wire.AreaSize ||
		l.MailboxOffset < parkEnd && l.ParkOffset < mailboxesEnd {
		return fmt.Errorf("mailboxes at %#x", l.MailboxOffset)
	}
	return nil
}

// span returns the end of n things of a size; false if they leave the area.
func (l *Layout) span(at, n, size uint64) (end uint64, ok bool) {
	if at > l.Size || n*size > l.Size-at { // n and size are bounded: no overflow
		return 0, false
	}
	return at + n*size, true
}

// Answer returns the host's hello: what it accepts of the device's offer.
func (l *Layout) Answer() (s wire.Slot) {
	h := &l.Hello
	s.Header = uint64(wire.MakeHeader(wire.TypeHello, abi.PayloadSize, uint8(l.Epoch), 0, 0))
	*s.Hello() = wire.Hello{
		Magic: wire.Magic, Major: abi.Major, Minor: abi.Minor, Capabilities: h.Capabilities,
		Channels: h.Channels, Mailboxes: h.Mailboxes, Islands: h.Islands, Slots: h.Slots,
		Window: h.Window, BeatMS: h.BeatMS, MaxTransfer: h.MaxTransfer,
		Eager: h.Eager,
	}
	return s
}

// Header checks the header of a message: EventNone if it may be looked at.
func (l *Layout) Header(h wire.Header) (Event, string) {
	switch {
	case h.Epoch() != uint8(l.Epoch):
		return EventStale, ""
	case h.Channel() >= l.Hello.Channels:
		return EventFault, "no such channel"
	case h.Type() != wire.TypeDirect && h.Type() != wire.TypeAnswer && h.Length() != abi.PayloadSize:
		return EventFault, "wrong length"
	}
	return EventNone, ""
}

// Room is a kind of message by how full it may make a ring.
type Room uint8

// Kinds of messages.
const (
	RoomList   Room = iota // gather lists leave half of the ring to everybody else
	RoomNormal             // what begins something
	RoomUrgent             // what ends something must get through when senders have filled the ring
)

const urgentSlots = 16

// Slots returns how many of a ring's slots may be in use after a message of the kind.
func (r Room) Slots(slots uint64) uint64 {
	switch r {
	case RoomList:
		return slots / 2
	case RoomNormal:
		return slots - min(urgentSlots, slots/4)
	}
	return slots
}
