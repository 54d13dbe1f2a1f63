//go:build cgo

package device

import (
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/firmware"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Shape is what the SHAPE registers say of the next epoch. Zero: as the device
// likes.
type Shape struct {
	Channels, Mailboxes, Islands, Slots, Window uint32
	TargetTimeout                               time.Duration
	EMEM                                        uint64 // bytes
}

// Instance is one epoch of what runs behind the registers, from RESET to the next
// end. Once Fence returned no DMA runs, and none will.
type Instance interface {
	// Ring wakes an island that sleeps.
	Ring(island int)
	// Fence stops DMA for the rest of the epoch.
	Fence()
	// Close ends the epoch. left is a process that still computes, which
	// reaches nothing of the device any more; nil: there is none.
	Close() (left *firmware.Computing)
}

// Boot starts an epoch on a bus whose area is zero or about to be. The epoch
// differs from those of all epochs before. When quit is closed the epoch is not
// wanted any more.
type Boot func(bus *firmware.Bus, shape Shape, epoch uint32, quit <-chan struct{}) (Instance, abi.Status)

// Options of a Device.
type Options struct {
	// AreaSize is that of the mailbox BAR: a power of two, 4 KiB at least.
	AreaSize uint64
	// Vectors is the size of the MSI-X table, 1..17.
	Vectors int
	// Map offers the mailbox BAR for mapping. Otherwise the client reads and
	// writes it by messages.
	Map bool
	// Version and ABI are what the registers of that name say, major in the
	// upper half; 0: what this device is.
	Version, ABI uint32
	// Boot starts epochs.
	Boot Boot
	// Logger takes what an operator may want to know.
	Logger *slog.Logger
}

// Device is the PCI function. It starts as after a power-on: nothing runs until
// the host writes RESET. It implements vfiouser.Device.
type Device struct {
	options Options
	bus     *firmware.Bus
	log     *slog.Logger

	mu      sync.Mutex // guards what follows
	idle    sync.Cond  // BUSY cleared
	config  *config
	regs    registers
	running Instance // nil: off
	epoch   uint32
	dog     watchdog
	epochs  uint64
	absent  absence
	quit    chan struct{} // ends a boot; nil: there is none, or it was closed
}

var _ vfiouser.Device = (*Device)(nil)

// New makes a device. Close ends it.
func New(o Options) (*Device, error) {
	if o.AreaSize < abi.PageSize || o.AreaSize&(o.AreaSize-1) != 0 || o.AreaSize > 1<<40 {
		return nil, fmt.Errorf("mailbox BAR of %d bytes: want a power of two from 4 KiB to 1 TiB", o.AreaSize)
	}
	if o.Vectors < 1 || o.Vectors > pci.VectorsMax {
		return nil, fmt.Errorf("%d interrupt vectors: want 1..%d", o.Vectors, pci.VectorsMax)
	}
	bus, err := firmware.NewBus(o.AreaSize, o.Vectors)
	if err != nil {
		return nil, err
	}
	d := &Device{options: o, bus: bus, log: o.Logger, config: newConfig(o.AreaSize, o.Vectors)}
	d.idle.L = &d.mu
	d.regs.reset()
	return d, nil
}

// Close ends the device. The client must have closed.
func (d *Device) Close() {
	d.PowerOff()
	d.bus.Close()
}

// Bus returns the device's side of its bus.
func (d *Device) Bus() *firmware.Bus { return d.bus }

// Epochs counts those that were booted.
func (d *Device) Epochs() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.epochs
}

// PowerOff ends what runs and forgets all that a client set up.
func (d *Device) PowerOff() {
	// The running epoch is off, also after an error.
	_ = d.Reset()
	for v := range d.options.Vectors {
		_ = d.bus.Assign(v, -1) // the vector is there
	}
	d.bus.UnmapAll()
	d.mu.Lock()
	d.absent = isThere
	d.mu.Unlock()
}

// Vanish pulls the device out: from now on registers and config space read as
// ones and take nothing, until the client has closed.
func (d *Device) Vanish() {
	d.leave(isGone)
	d.bus.Master(false)
}

// FakeRemoval makes the device look as if it was pulled out: from now on registers read as ones and
// take nothing, until the client has left. The running epoch continues.
func (d *Device) FakeRemoval() { d.leave(seemsGone) }

// absence is how much of the device the host finds.
type absence int

const (
	isThere absence = iota
	seemsGone
	isGone
)

func (d *Device) leave(a absence) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.absent = a
}

// hides reports whether a region reads as ones and takes nothing.
func (d *Device) hides(index int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.absent == isGone || d.absent == seemsGone && index == pci.BarRegisters
}

// Reset is a bus reset: the function is as after a power-on, but for what the
// client mapped and assigned.
func (d *Device) Reset() error {
	d.mu.Lock()
	if d.quit != nil {
		close(d.quit)
		d.quit = nil
	}
	for d.regs.busy {
		d.idle.Wait()
	}
	d.dog.stop()
	instance := d.running
	d.running = nil
	d.config.reset()
	d.regs.reset()
	d.mu.Unlock()
	err := d.end(instance)
	d.bus.Master(false)
	d.bus.ClearInterrupts()
	d.bus.UseVectors(1)
	for i := range d.options.Vectors {
		d.bus.HoldOff(i, 0)
	}
	return err
}

// end ends an epoch and leaves the area zero.
func (d *Device) end(instance Instance) error {
	if instance == nil {
		return nil
	}
	instance.Fence()
	if left := instance.Close(); left != nil {
		d.log.Warn("a process still computes", "process", left.Process, "program", left.Program,
			"island", left.Island, "for", left.For)
	}
	d.bus.ClearInterrupts()
	return d.bus.ClearArea()
}

// Region describes a region.
func (d *Device) Region(index int) vfiouser.Region {
	r := vfiouser.Region{Read: true, Write: true}
	switch index {
	case pci.BarRegisters:
		r.Size = pci.RegistersSize
	case pci.BarMSIX:
		r.Size = pci.MSIXSize
	case pci.BarMailboxes:
		r.Size, r.Map, r.File = d.options.AreaSize, d.options.Map, d.bus.AreaFile()
	case vfiouser.RegionConfig:
		r.Size = configSize
	default:
		return vfiouser.Region{}
	}
	return r
}

// Vectors returns the size of the MSI-X table.
func (d *Device) Vectors() int { return d.options.Vectors }

// ReadRegion reads config space or a BAR.
func (d *Device) ReadRegion(index int, offset uint64, p []byte) error {
	if d.hides(index) {
		for i := range p {
			p[i] = 0xff
		}
		return nil
	}
	switch index {
	case pci.BarMailboxes:
		return d.bus.Load(offset, p)
	case pci.BarRegisters:
		if len(p) != 4 || offset%4 != 0 {
			return errWidth
		}
		order.PutUint32(p, d.readRegister(uint32(offset)))
	case pci.BarMSIX: // the emulator of the bus keeps the table
		var pba [8]byte
		order.PutUint64(pba[:], d.bus.Stats().Pending)
		for i := range p {
			if at := offset + uint64(i) - pci.MSIXPBA; at < uint64(len(pba)) {
				p[i] = pba[at]
			}
		}
	default:
		d.mu.Lock()
		defer d.mu.Unlock()
		d.config.read(offset, p)
	}
	return nil
}

var errWidth = fmt.Errorf("registers are read and written as whole words: %w", syscall.EINVAL)

// WriteRegion writes config space or a BAR.
func (d *Device) WriteRegion(index int, offset uint64, p []byte) error {
	if d.hides(index) {
		return nil
	}
	switch index {
	case pci.BarMailboxes:
		return d.store(offset, p)
	case pci.BarRegisters:
		if len(p) != 4 || offset%4 != 0 {
			return errWidth
		}
		d.writeRegister(uint32(offset), order.Uint32(p))
		return nil
	case pci.BarMSIX:
		return nil
	default:
		return d.writeConfig(offset, p)
	}
}

// store writes the mailbox area. A client that posts its writes may have seen an island awake that
// looked before this one arrived: on a bus what it reads back would have waited for the write.
func (d *Device) store(offset uint64, p []byte) error {
	err := d.bus.Store(offset, p)
	for island := range wire.IslandsMax {
		d.ring(island)
	}
	return err
}

// writeConfig writes config space; a function level reset is done when it
// returns.
func (d *Device) writeConfig(offset uint64, p []byte) error {
	d.mu.Lock()
	was := d.config.master()
	flr := d.config.write(offset, p)
	is := d.config.master()
	d.mu.Unlock()
	if flr {
		d.log.Info("function level reset")
		return d.Reset()
	}
	if was != is {
		d.bus.Master(is)
	}
	return nil
}

// MapDMA makes client memory reachable.
func (d *Device) MapDMA(m vfiouser.Mapping) error {
	return d.bus.Map(firmware.Range{
		Address: m.Address, Size: m.Size, Offset: m.Offset, Read: m.Read, Write: m.Write, File: m.File,
	})
}

// UnmapDMA takes client memory away.
func (d *Device) UnmapDMA(address, size uint64) error { return d.bus.Unmap(address, size) }

// UnmapAll takes all client memory away.
func (d *Device) UnmapAll() { d.bus.UnmapAll() }

// AssignIRQ gives a vector its eventfd.
func (d *Device) AssignIRQ(vector, file int) error { return d.bus.Assign(vector, file) }

// TriggerIRQ interrupts through a vector.
func (d *Device) TriggerIRQ(vector int) { d.bus.Fire(vector) }
