package nfcomms

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/bridge"
)

// past returns the device as administrators reach it past its driver.
func (d *Device) past() (bridge.RegisterAccess, error) {
	if r, ok := d.dev.(bridge.RegisterAccess); ok {
		return r, nil
	}
	return nil, fmt.Errorf("%w: the device has no registers", ErrNotSupported)
}

// Peek reads width bytes, 4 or 8, at an offset of a bar of the card, past its driver: for
// administrators who bring up or examine a card. Info.Board has the bars. It needs
// CAP_SYS_ADMIN (os.ErrPermission), and is off unless the kernel module was told otherwise
// (ErrNotSupported, as for a device that is no card). ErrRange outside the bar, ErrInvalid
// for another width or an offset that is no multiple of it, ErrBusy while the device is
// being reset, ErrDeviceLost of one that is gone. Each access is in the kernel's log.
func (d *Device) Peek(bar int, offset uint64, width int) (value uint64, err error) {
	r, err := d.past()
	if err == nil {
		value, err = r.Peek(bar, offset, width)
	}
	return value, d.fail(opPeek, 0, err)
}

// Poke writes what Peek reads. ErrBusy as well for what is the driver's own: registers that
// it writes, interrupt vectors and mailboxes.
func (d *Device) Poke(bar int, offset uint64, width int, value uint64) error {
	r, err := d.past()
	if err == nil {
		err = r.Poke(bar, offset, width, value)
	}
	return d.fail(opPoke, 0, err)
}

// Interrupts returns how many interrupts of a vector there were since the driver took the
// device. Rights and errors are those of Peek; ErrInvalid for a vector that is not in use.
func (d *Device) Interrupts(vector int) (count uint64, err error) {
	r, err := d.past()
	if err == nil {
		count, err = r.Interrupts(vector)
	}
	return count, d.fail(opInterrupts, 0, err)
}

// WaitInterrupt waits until there were more interrupts of a vector than after, a number of
// Interrupts, and returns how many there were by then; also with the error of a context that
// ended first. The driver serves them as ever.
func (d *Device) WaitInterrupt(ctx context.Context, vector int, after uint64) (count uint64, err error) {
	r, err := d.past()
	if err == nil {
		count, err = r.WaitInterrupt(ctx, vector, after)
	}
	return count, d.fail(opInterrupts, 0, err)
}
