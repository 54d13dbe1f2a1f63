//go:build linux

package vfio

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

// Of config space.
const (
	configIDs     = 0
	configCommand = 4

	commandMemory = 1 << 1
	commandMaster = 1 << 2
)

const (
	// bootTime bounds a RESET: a process that keeps an island delays it by a second.
	bootTime = 10 * time.Second
	// fenceTime bounds a QUIESCE.
	fenceTime = time.Second
	// pollTime is between two looks at STATUS.
	pollTime = 50 * time.Microsecond
)

// identify checks that a function is one that this back end drives.
func (c *conn) identify() error {
	ids, err := c.read(regionConfig, configIDs)
	if err != nil {
		return err
	}
	if ids != pci.Device<<16|pci.Vendor {
		return fmt.Errorf("%w: PCI function %04x:%04x is another device", bridge.ErrABI, ids&0xffff, ids>>16)
	}
	if err := c.command(commandMemory); err != nil {
		return err
	}
	var is [3]uint32
	for i, register := range []uint64{pci.RegID, pci.RegVersion, pci.RegABI} {
		if is[i], err = c.read(pci.BarRegisters, register); err != nil {
			return err
		}
	}
	switch id, version, firmware := is[0], is[1], is[2]; {
	case id != wire.Magic || version>>16 != pci.Major:
		err = fmt.Errorf("%w: id %#x, register interface %d.%d: this driver knows %d.x",
			bridge.ErrABI, id, version>>16, version&0xffff, pci.Major)
	case firmware>>16 != abi.Major:
		err = fmt.Errorf("%w: firmware of ABI %d.%d: this driver knows %d.x",
			bridge.ErrABI, firmware>>16, firmware&0xffff, abi.Major)
	}
	return err
}

// command sets what the function may do on the bus.
func (c *conn) command(bits uint32) error {
	payload := order.AppendUint16(access(regionConfig, configCommand, 2), uint16(bits))
	_, err := c.ask(cmdRegionWrite, payload)
	return err
}

// control has the function do something, and waits until it is done.
func (c *conn) control(ctx context.Context, what uint32, patience time.Duration) error {
	if err := c.write(pci.BarRegisters, pci.RegControl, what); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(pollTime) {
		status, err := c.read(pci.BarRegisters, pci.RegStatus)
		switch {
		case err != nil:
			return err
		case status == ^uint32(0):
			return fmt.Errorf("registers read as ones: %w", bridge.ErrDeviceLost)
		case status&pci.StatusBusy == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %w", bridge.ErrDeviceLost, ctx.Err())
		case time.Now().After(end):
			return fmt.Errorf("%w: busy after %v", bridge.ErrDeviceLost, patience)
		}
	}
}

// boot starts an epoch. The function does no DMA before the RESET has ended that of an epoch before.
func (c *conn) boot(ctx context.Context) error {
	if err := c.command(commandMemory); err != nil {
		return err
	}
	if err := c.control(ctx, pci.ControlReset, bootTime); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	status, err := c.read(pci.BarRegisters, pci.RegShapeStatus)
	if err != nil {
		return err
	}
	if err := bridge.Error(abi.Status(status)); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	return c.command(commandMemory | commandMaster)
}

// fence stops all DMA of the function. The error is what it did not do in time.
func (c *conn) fence() error {
	err := c.control(context.Background(), pci.ControlQuiesce, fenceTime)
	if err != nil && c.Alive() {
		return c.command(commandMemory)
	}
	return err
}

// mailboxes returns the size and the file of the BAR with the mailboxes, which is the caller's.
func (c *conn) mailboxes() (uint64, int, error) {
	size, file, err := c.region(pci.BarMailboxes)
	if err != nil {
		return 0, -1, err
	}
	if file < 0 {
		return 0, -1, fmt.Errorf("the BAR with the mailboxes cannot be mapped: %w", bridge.ErrNotSupported)
	}
	is, err := shmwire.SizeOf(file)
	if err != nil || is < size || size < abi.AreaSize {
		_ = unix.Close(file)
		return 0, -1, fmt.Errorf("%w: a BAR of %d bytes in a file of %d: %w", bridge.ErrFault, size, is, err)
	}
	return size, file, nil
}
