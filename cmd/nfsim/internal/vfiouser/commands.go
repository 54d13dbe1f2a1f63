package vfiouser

import (
	"fmt"
	"syscall"
)

// Flags of payloads.
const (
	mapRead  = 1 << 0
	mapWrite = 1 << 1
	unmapAll = 1 << 1

	deviceReset = 1 << 0
	devicePCI   = 1 << 1

	regionRead  = 1 << 0
	regionWrite = 1 << 1
	regionMap   = 1 << 2

	irqEventfd = 1 << 0
)

var errShort = fmt.Errorf("payload is too short: %w", syscall.EINVAL)

// dispatch runs a command and returns what its reply carries.
func (c *Conn) dispatch(m *message) (payload []byte, files []int, err error) {
	switch m.Command {
	case Version:
		payload, err = c.version(m)
	case DMAMap:
		err = c.mapDMA(m)
	case DMAUnmap:
		payload, err = c.unmapDMA(m)
	case DeviceInfo:
		payload, err = deviceInfo(m)
	case RegionInfo:
		payload, files, err = c.regionInfo(m)
	case IRQInfo:
		payload, err = c.irqInfo(m)
	case SetIRQs:
		err = c.setIRQs(m)
	case RegionRead:
		payload, err = c.readRegion(m)
	case RegionWrite:
		payload, err = c.writeRegion(m)
	case DeviceReset:
		err = c.reset(m)
	default: // migration, dirty pages, several writes at once
		err = fmt.Errorf("command %d: %w", m.Command, syscall.EOPNOTSUPP)
	}
	return payload, files, err
}

// sized starts a payload that opens with its own size, of which the client has
// room for n bytes or more.
func sized(m *message, n uint32) (reader, error) {
	r := reader{b: m.payload}
	if argsz := r.u32(); r.short || len(m.payload) < int(n) || argsz < n {
		return r, errShort
	}
	return r, nil
}

func (c *Conn) mapDMA(m *message) error {
	r, err := sized(m, 32)
	if err != nil {
		return err
	}
	flags, offset, address, size := r.u32(), r.u64(), r.u64(), r.u64()
	if flags&^(mapRead|mapWrite) != 0 || len(m.Files) > 1 || len(r.b) > 0 {
		return fmt.Errorf("DMA map with flags %#x and %d descriptors: %w", flags, len(m.Files), syscall.EINVAL)
	}
	file := -1
	if len(m.Files) == 1 {
		file = m.Files[0]
	}
	err = c.dev.MapDMA(Mapping{
		Address: address, Size: size, Offset: offset,
		Read: flags&mapRead != 0, Write: flags&mapWrite != 0, File: file,
	})
	if err != nil {
		return fmt.Errorf("DMA map of %d bytes at %#x: %w", size, address, err)
	}
	return nil
}

func (c *Conn) unmapDMA(m *message) ([]byte, error) {
	r, err := sized(m, 24)
	if err != nil {
		return nil, err
	}
	flags, address, size := r.u32(), r.u64(), r.u64()
	switch {
	case flags == unmapAll && address == 0 && size == 0:
		c.dev.UnmapAll()
	case flags == 0:
		if err := c.dev.UnmapDMA(address, size); err != nil {
			return nil, fmt.Errorf("DMA unmap of %d bytes at %#x: %w", size, address, err)
		}
	default:
		return nil, fmt.Errorf("DMA unmap with flags %#x: %w", flags, syscall.EINVAL)
	}
	return m.payload[:24], nil
}

func deviceInfo(m *message) ([]byte, error) {
	if _, err := sized(m, 16); err != nil {
		return nil, err
	}
	out := order.AppendUint32(nil, 16)
	out = order.AppendUint32(out, deviceReset|devicePCI)
	out = order.AppendUint32(out, NumRegions)
	return order.AppendUint32(out, NumIRQs), nil
}

func (c *Conn) regionInfo(m *message) (out []byte, files []int, err error) {
	r, err := sized(m, 32)
	if err != nil {
		return nil, nil, err
	}
	_, index := r.u32(), r.u32()
	if index >= NumRegions {
		return nil, nil, fmt.Errorf("region %d: %w", index, syscall.EINVAL)
	}
	region := c.dev.Region(int(index))
	var flags uint32
	if region.Read {
		flags |= regionRead
	}
	if region.Write {
		flags |= regionWrite
	}
	if region.Map {
		flags |= regionMap
		files = []int{region.File}
	}
	out = order.AppendUint32(nil, 32)
	out = order.AppendUint32(out, flags)
	out = order.AppendUint32(out, index)
	out = order.AppendUint32(out, 0) // no capabilities
	out = order.AppendUint64(out, region.Size)
	return order.AppendUint64(out, 0), files, nil // mapped from the file's start
}

// irqInfo describes a kind of interrupt. The set of vectors may grow one by one:
// no NORESIZE flag, with which a client would take all away for each new one.
func (c *Conn) irqInfo(m *message) ([]byte, error) {
	r, err := sized(m, 16)
	if err != nil {
		return nil, err
	}
	_, index := r.u32(), r.u32()
	if index >= irqError {
		return nil, fmt.Errorf("interrupt kind %d: %w", index, syscall.EINVAL)
	}
	var flags, count uint32
	if index == IRQMSIX {
		flags, count = irqEventfd, uint32(c.dev.Vectors())
	}
	out := order.AppendUint32(nil, 16)
	out = order.AppendUint32(out, flags)
	out = order.AppendUint32(out, index)
	return order.AppendUint32(out, count), nil
}

// region reads the head of an access and checks that it is in its region.
func (c *Conn) region(m *message) (r reader, index int, offset uint64, count uint32, err error) {
	r = reader{b: m.payload}
	offset = r.u64()
	at := r.u32()
	count = r.u32()
	if r.short {
		return r, 0, 0, 0, errShort
	}
	if at >= NumRegions || count == 0 || count > MaxTransfer {
		return r, 0, 0, 0, fmt.Errorf("access of %d bytes to region %d: %w", count, at, syscall.EINVAL)
	}
	size := c.dev.Region(int(at)).Size
	if offset > size || uint64(count) > size-offset {
		return r, 0, 0, 0, fmt.Errorf("access of %d bytes at %#x of region %d of %d bytes: %w",
			count, offset, at, size, syscall.EINVAL)
	}
	return r, int(at), offset, count, nil
}

// isBAR reports whether a region is one of the BARs.
func isBAR(index int) bool { return index < RegionBAR0+numBARs }

// lineSize is what a processor's write-combining buffer holds, in bytes.
const lineSize = 64

// line is one of a BAR, which is counted from 1 on.
type line struct {
	bar    int
	number uint64
}

// wrote counts a write of a BAR.
func (c *Conn) wrote(bar int, offset uint64) {
	at := line{bar + 1, offset / lineSize}
	c.bars[bar].writes.Add(1)
	if at != c.burst {
		c.bars[bar].bursts.Add(1)
	}
	c.burst = at
}

func (c *Conn) readRegion(m *message) ([]byte, error) {
	r, index, offset, count, err := c.region(m)
	if err != nil {
		return nil, err
	}
	if len(r.b) > 0 {
		return nil, fmt.Errorf("read with %d bytes of data: %w", len(r.b), syscall.EINVAL)
	}
	if isBAR(index) {
		c.bars[index].reads.Add(1)
		c.burst = line{}
	}
	out := make([]byte, accessSize+int(count))
	copy(out, m.payload)
	if err := c.dev.ReadRegion(index, offset, out[accessSize:]); err != nil {
		return nil, fmt.Errorf("read %d bytes at %#x of region %d: %w", count, offset, index, err)
	}
	return out, nil
}

func (c *Conn) writeRegion(m *message) ([]byte, error) {
	r, index, offset, count, err := c.region(m)
	if err != nil {
		return nil, err
	}
	if len(r.b) != int(count) {
		return nil, fmt.Errorf("write of %d bytes with %d: %w", count, len(r.b), syscall.EINVAL)
	}
	if isBAR(index) {
		c.wrote(index, offset)
	}
	if err := c.dev.WriteRegion(index, offset, r.b); err != nil {
		return nil, fmt.Errorf("write %d bytes at %#x of region %d: %w", count, offset, index, err)
	}
	return m.payload[:accessSize], nil
}

func (c *Conn) reset(m *message) error {
	if len(m.payload) > 0 {
		return fmt.Errorf("reset with %d bytes of payload: %w", len(m.payload), syscall.EINVAL)
	}
	return c.dev.Reset()
}
