//go:build linux

package vfio

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/shape"
	"github.com/nfcomms/nfcomms/internal/wire"
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

// bus carries accesses to a function. Its methods are safe for concurrent use.
type bus interface {
	arena.Device
	// window is where the function reaches memory.
	window() arena.Window
	// check refuses what is no PCI function that can be reset.
	check() error
	// reset is a reset of the function: what it did ends.
	reset() error
	// read reads a word of a region.
	read(region uint32, offset uint64) (uint32, error)
	// write writes bytes to a region, and returns when that is done.
	write(region uint32, offset uint64, b []byte) error
	// post writes a word to a region, and waits for nothing.
	post(region uint32, offset uint64, v uint32)
	// interrupt has vector 0 signal an eventfd.
	interrupt(eventfd int) error
	// mailboxes describes the BAR with the mailboxes. The file is the caller's.
	mailboxes() (place, error)
	// kick gives the request under way, and those that follow, little time or, again, the usual.
	kick(hasty bool)
	// kickAtEnd kicks when ctx ends, until the function that it returns is called.
	kickAtEnd(ctx context.Context) (undo func())
	// close gives the function back.
	close()
}

// place is where a BAR is mapped from.
type place struct {
	file         int
	offset, size uint64
}

var errUnmapped = fmt.Errorf("the BAR with the mailboxes cannot be mapped: %w", bridge.ErrNotSupported)

// checkInfo reads the description of a device, which a socket and the kernel give alike.
func checkInfo(info []byte) error {
	if flags := order.Uint32(info[4:]); flags&isPCI == 0 || flags&canReset == 0 || order.Uint32(info[8:]) <= regionConfig {
		return fmt.Errorf("%w: this is no PCI function that can be reset", bridge.ErrABI)
	}
	return nil
}

// function is an open PCI function.
type function struct {
	bus

	covering sync.Once // a bus that does not answer keeps copies of memory
}

// set writes a register, and returns when that is done.
func (f *function) set(register uint64, v uint32) error {
	return f.write(pci.BarRegisters, register, words(v))
}

// identify checks that a function is one that this back end drives.
func (f *function) identify() error {
	ids, err := f.read(regionConfig, configIDs)
	if err != nil {
		return err
	}
	if ids != pci.Device<<16|pci.Vendor {
		return fmt.Errorf("%w: PCI function %04x:%04x is another device", bridge.ErrABI, ids&0xffff, ids>>16)
	}
	if err := f.command(commandMemory); err != nil {
		return err
	}
	var is [3]uint32
	for i, register := range []uint64{pci.RegID, pci.RegVersion, pci.RegABI} {
		if is[i], err = f.read(pci.BarRegisters, register); err != nil {
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

// setShape says what the next epochs are to be like.
func (f *function) setShape(s shape.Shape) error {
	if s == (shape.Shape{}) {
		return nil
	}
	can, err := f.read(pci.BarRegisters, pci.RegCapabilities)
	if err != nil {
		return err
	}
	if can&pci.CapShape == 0 {
		return fmt.Errorf("this device has a shape of its own: %w", bridge.ErrNotSupported)
	}
	for i, v := range s.Registers() {
		if err := f.set(pci.RegShapeChannels+4*uint64(i), v); err != nil {
			return err
		}
	}
	return nil
}

// command sets what the function may do on the bus.
func (f *function) command(bits uint32) error {
	return f.write(regionConfig, configCommand, order.AppendUint16(nil, uint16(bits)))
}

// control has the function do something, and waits until it is done.
func (f *function) control(ctx context.Context, what uint32, patience time.Duration) error {
	if err := f.set(pci.RegControl, what); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(pollTime) {
		status, err := f.read(pci.BarRegisters, pci.RegStatus)
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
func (f *function) boot(ctx context.Context) error {
	if err := f.command(commandMemory); err != nil {
		return err
	}
	if err := f.control(ctx, pci.ControlReset, bootTime); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	status, err := f.read(pci.BarRegisters, pci.RegShapeStatus)
	if err != nil {
		return err
	}
	if err := bridge.Error(abi.Status(status)); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	return f.command(commandMemory | commandMaster)
}

// fence stops all DMA of the function. The error is what it did not do in time.
func (f *function) fence() error {
	err := f.control(context.Background(), pci.ControlQuiesce, fenceTime)
	if err != nil && f.Alive() {
		return f.command(commandMemory)
	}
	return err
}
