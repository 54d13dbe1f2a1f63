//go:build cgo

package device

import (
	"cmp"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Limits of registers.
const (
	holdOffMax  = 10000 // microseconds
	watchdogMax = 3600_000
)

// registers holds what the host wrote, and what a RESET left.
type registers struct {
	vectors, holdOff, watchdog uint32
	holdOffs                   [pci.VectorsMax]uint32 // of each vector
	shape                      [7]uint32              // from RegShapeChannels on
	shapeStatus                abi.Status
	control                    uint32
	busy, booting              bool
	bitten, fenced             bool
}

func (r *registers) reset() { *r = registers{vectors: 1} }

// shapeOf turns the registers into a shape.
func (r *registers) shapeOf() Shape {
	at := func(reg int) uint32 { return r.shape[(reg-pci.RegShapeChannels)/4] }
	return Shape{
		Channels: at(pci.RegShapeChannels), Mailboxes: at(pci.RegShapeMailboxes),
		Islands: at(pci.RegShapeIslands), Slots: at(pci.RegShapeSlots), Window: at(pci.RegShapeWindow),
		TargetTimeout: time.Duration(at(pci.RegShapeTimeout)) * time.Millisecond,
		EMEM:          uint64(at(pci.RegShapeEMEM)) * abi.PageSize,
	}
}

// readRegister returns the word at an offset; what is not there reads as zero.
func (d *Device) readRegister(at uint32) uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch at {
	case pci.RegID:
		return wire.Magic
	case pci.RegVersion:
		return cmp.Or(d.options.Version, pci.Major<<16|pci.Minor)
	case pci.RegABI:
		return cmp.Or(d.options.ABI, abi.Major<<16|abi.Minor)
	case pci.RegCapabilities:
		return pci.CapShape | pci.CapHoldoff | pci.CapWatchdog | pci.CapVectorHoldoff
	case pci.RegStatus:
		return d.statusLocked()
	case pci.RegControl:
		return d.regs.control
	case pci.RegEpoch:
		if d.running == nil {
			return 0
		}
		return d.epoch
	case pci.RegVectors:
		return d.regs.vectors
	case pci.RegHoldoff:
		return d.regs.holdOff
	case pci.RegWatchdog:
		return d.regs.watchdog
	case pci.RegDMAFaults:
		return uint32(d.bus.Stats().Faults)
	case pci.RegMessages:
		return uint32(d.bus.Stats().Interrupts)
	case pci.RegShapeStatus:
		return uint32(d.regs.shapeStatus)
	}
	if at >= pci.RegShapeChannels && at <= pci.RegShapeEMEM {
		return d.regs.shape[(at-pci.RegShapeChannels)/4]
	}
	if v, ok := d.vectorAt(at); ok {
		return d.regs.holdOffs[v]
	}
	return 0
}

// statusLocked computes STATUS. Must hold mu.
func (d *Device) statusLocked() uint32 {
	status := uint32(wire.DeviceOff)
	switch {
	case d.running != nil:
		status = wire.DeviceReady
		if !d.regs.fenced && d.config.master() {
			status |= pci.StatusDMA
		}
	case d.regs.booting:
		status = wire.DeviceBooting
	}
	if d.regs.busy {
		status |= pci.StatusBusy
	}
	if d.regs.bitten {
		status |= pci.StatusWatchdog
	}
	return status
}

// writeRegister takes a word; what cannot be written keeps its value.
func (d *Device) writeRegister(at, v uint32) {
	if at >= pci.RegDoorbell && at < pci.RegDoorbell+4*wire.IslandsMax {
		d.ring(int(at-pci.RegDoorbell) / 4)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch at {
	case pci.RegControl:
		d.controlLocked(v)
	case pci.RegVectors:
		if v >= 1 && v <= uint32(d.options.Vectors) {
			d.regs.vectors = v
			d.bus.UseVectors(int(v))
		}
	case pci.RegHoldoff:
		d.regs.holdOff = min(v, holdOffMax)
		for i := range d.options.Vectors {
			d.holdOffLocked(i, d.regs.holdOff)
		}
	case pci.RegHostBeat:
		d.dog.feed(d.regs.watchdog)
	case pci.RegWatchdog:
		d.regs.watchdog = min(v, watchdogMax)
		d.armLocked()
	default:
		if at >= pci.RegShapeChannels && at <= pci.RegShapeEMEM {
			d.regs.shape[(at-pci.RegShapeChannels)/4] = v
		}
		if vector, ok := d.vectorAt(at); ok {
			d.holdOffLocked(vector, min(v, holdOffMax))
		}
	}
}

// vectorAt returns the vector whose VECTOR_HOLDOFF is at an offset.
func (d *Device) vectorAt(at uint32) (vector int, ok bool) {
	vector = (int(at) - pci.RegVectorHoldoff) / 4
	return vector, at >= pci.RegVectorHoldoff && vector < d.options.Vectors
}

// holdOffLocked keeps two interrupts of a vector so many microseconds apart. Must hold mu.
func (d *Device) holdOffLocked(vector int, us uint32) {
	d.regs.holdOffs[vector] = us
	d.bus.HoldOff(vector, us)
}

// ring wakes an island of the present epoch.
func (d *Device) ring(island int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running != nil {
		d.running.Ring(island)
	}
}
