package bridge

import (
	"context"
	"strconv"
)

// Board is the card that a device is, and its place on the bus.
type Board struct {
	// Address is its place: "0000:03:00.0".
	Address string
	// Vendor and Device are its PCI ids.
	Vendor, Device uint16
	// Serial is the card's own number, "00-1b-21-ff-ff-a0-b1-c2"; empty if it has none.
	Serial string
	// NUMA is the node of the machine that it is next to; negative where there is none.
	NUMA int
	// Link is what it is connected by.
	Link Link
	// Vectors is the number of interrupt vectors in use.
	Vectors int
	// Bars are the windows that it offers the host, in their order.
	Bars []Bar
}

// Link is a PCI Express link. Zero fields: nobody knows, as of a device that a machine
// emulates.
type Link struct {
	// Speed and MaxSpeed are in GT/s: 2.5, 5, 8, 16, 32, 64.
	Speed, MaxSpeed float64
	// Width and MaxWidth are in lanes.
	Width, MaxWidth int
}

// Bar is a window of a board.
type Bar struct {
	// Number is 0 to 5.
	Number int
	Kind   BarKind
	// Prefetchable: reads of it change nothing.
	Prefetchable bool
	// Address is where it is in the machine's memory or ports. Size is in bytes.
	Address, Size uint64
}

// BarKind is what a window is made of.
type BarKind int

// Kinds of windows.
const (
	BarIO       BarKind = iota // I/O ports
	BarMemory32                // memory, anywhere below 4 GiB
	BarMemory64                // memory, anywhere
)

var barKinds = [...]string{BarIO: "io", BarMemory32: "memory_32", BarMemory64: "memory_64"}

// String returns "io", "memory_32" or "memory_64".
func (k BarKind) String() string {
	if k < 0 || int(k) >= len(barKinds) {
		return "kind " + strconv.Itoa(int(k))
	}
	return barKinds[k]
}

// RegisterAccess is a Device whose registers and interrupts administrators may reach past
// its driver, to bring up or examine a card. A read may change what a card does, and a
// write may do anything to it: nothing else needs them.
//
// Errors: os.ErrPermission without the right, ErrNotSupported where it is switched off or the
// driver has no such access, ErrRange outside the memory of a bar, ErrInvalid for other wrong
// arguments. ErrBusy for a write to a register of the driver and while the device is being reset,
// ErrDeviceLost after its removal.
type RegisterAccess interface {
	Device
	// Peek reads width bytes, 4 or 8, at an offset of a bar. Bar 6 is the configuration
	// space, in words of 4 bytes.
	Peek(bar int, offset uint64, width int) (uint64, error)
	// Poke writes them. All of bar 6 is the driver's and the kernel's: ErrBusy.
	Poke(bar int, offset uint64, width int, value uint64) error
	// Interrupts returns how many interrupts of a vector there were since the driver
	// took the device.
	Interrupts(vector int) (uint64, error)
	// WaitInterrupt waits until there were more than after, and returns how many there
	// were by then; also with the error of a context that ended first.
	WaitInterrupt(ctx context.Context, vector int, after uint64) (uint64, error)
	// SwitchInterrupt switches a vector off, or on again; Close does the latter. While it is
	// off the driver looks for messages by itself, later than an interrupt would have it look.
	SwitchInterrupt(vector int, on bool) error
}
