package admin

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/internal/over"
)

// Operations, as OpError.Op has them.
const (
	opPeek       = "peek"
	opPoke       = "poke"
	opInterrupts = "wait for interrupt"
	opSwitch     = "switch interrupt"
)

// past returns the device as administrators reach it past its driver, and how its errors get their
// context.
func past(dev *nfcomms.Device) (r bridge.RegisterAccess, fail func(op string, err error) error, err error) {
	d := over.Of(dev)
	r, ok := d.Bridge.(bridge.RegisterAccess)
	if !ok {
		err = fmt.Errorf("%w: the device has no registers", nfcomms.ErrNotSupported)
	}
	return r, d.Fail, err
}

// Peek reads width bytes, 4 or 8, at an offset of a bar of the card, past its driver: for
// administrators who bring up or examine a card. Info.Board has the bars. It needs
// CAP_SYS_ADMIN (os.ErrPermission), and is off unless the kernel module allows it
// (ErrNotSupported, as for a device that is no card). ErrRange outside the bar, ErrInvalid
// for another width or an offset that is no multiple of it, ErrBusy while the device is
// being reset, ErrDeviceLost of one that is lost. Each access is in the kernel's log. Bar
// 6 is the card's configuration space, in words of 4 bytes; it needs no more than CAP_SYS_ADMIN,
// and the first 64 bytes not even that.
func Peek(dev *nfcomms.Device, bar int, offset uint64, width int) (value uint64, err error) {
	r, fail, err := past(dev)
	if err == nil {
		value, err = r.Peek(bar, offset, width)
	}
	return value, fail(opPeek, err)
}

// Poke writes what Peek reads. ErrBusy as well for what is the driver's own: registers that
// it writes, interrupt vectors, mailboxes and all of bar 6.
func Poke(dev *nfcomms.Device, bar int, offset uint64, width int, value uint64) error {
	r, fail, err := past(dev)
	if err == nil {
		err = r.Poke(bar, offset, width, value)
	}
	return fail(opPoke, err)
}

// Interrupts returns how many interrupts of a vector there were since the driver took the
// device. Rights and errors are those of Peek; ErrInvalid for a vector that is not in use.
func Interrupts(dev *nfcomms.Device, vector int) (count uint64, err error) {
	r, fail, err := past(dev)
	if err == nil {
		count, err = r.Interrupts(vector)
	}
	return count, fail(opInterrupts, err)
}

// WaitInterrupt waits until there were more interrupts of a vector than after, a number of
// Interrupts, and returns how many there were by then; also with the error of a context that
// ended first. The driver serves them as ever.
func WaitInterrupt(ctx context.Context, dev *nfcomms.Device, vector int, after uint64) (count uint64, err error) {
	r, fail, err := past(dev)
	if err == nil {
		count, err = r.WaitInterrupt(ctx, vector, after)
	}
	return count, fail(opInterrupts, err)
}

// SwitchInterrupt switches a vector off, or on again, as closing the device does. While it is off
// the driver looks for messages by itself, so that calls are slower: by up to 25 ms where an answer
// must arrive. An interrupt that was held back is counted once the vector is on. Rights and errors are
// those of Interrupts; ErrBusy while the device is being reset, ErrNotSupported of an older module.
func SwitchInterrupt(dev *nfcomms.Device, vector int, on bool) error {
	r, fail, err := past(dev)
	if err == nil {
		err = r.SwitchInterrupt(vector, on)
	}
	return fail(opSwitch, err)
}
