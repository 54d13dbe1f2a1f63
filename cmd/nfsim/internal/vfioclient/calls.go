package vfioclient

import (
	"fmt"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// Flags of payloads.
const (
	Readable = 1
	Writable = 2

	IRQNone    = 0x21 // trigger, without data
	IRQBool    = 0x22
	IRQEventfd = 0x24
)

// Words packs 32-bit and 64-bit fields.
func Words(fields ...any) []byte {
	var b []byte
	for _, f := range fields {
		switch v := f.(type) {
		case uint16:
			b = order.AppendUint16(b, v)
		case uint32:
			b = order.AppendUint32(b, v)
		case uint64:
			b = order.AppendUint64(b, v)
		case []byte:
			b = append(b, v...)
		case string:
			b = append(append(b, v...), 0)
		default:
			panic(fmt.Sprintf("vfioclient: field of type %T", f))
		}
	}
	return b
}

// Version agrees on the version and returns what the server says of itself.
func (c *Client) Version() (string, error) {
	r, err := c.Ask(vfiouser.Version, Words(uint16(0), uint16(0), Hello))
	if err != nil {
		return "", err
	}
	if len(r.Payload) < 5 {
		return "", fmt.Errorf("version reply of %d bytes", len(r.Payload))
	}
	return string(r.Payload[4 : len(r.Payload)-1]), nil
}

// MapDMA maps memory of a file; file -1: without one.
func (c *Client) MapDMA(address, size, offset uint64, flags uint32, file int) error {
	var files []int
	if file >= 0 {
		files = []int{file}
	}
	_, err := c.Ask(vfiouser.DMAMap, Words(uint32(32), flags, offset, address, size), files...)
	return err
}

// UnmapDMA takes it away.
func (c *Client) UnmapDMA(address, size uint64) error {
	_, err := c.Ask(vfiouser.DMAUnmap, Words(uint32(24), uint32(0), address, size))
	return err
}

// UnmapAll takes everything away.
func (c *Client) UnmapAll() error {
	_, err := c.Ask(vfiouser.DMAUnmap, Words(uint32(24), uint32(2), uint64(0), uint64(0)))
	return err
}

// Region describes a region; with the flag to map it there is a file.
func (c *Client) Region(index uint32) (size uint64, flags uint32, file int, err error) {
	r, err := c.Ask(vfiouser.RegionInfo, Words(uint32(32), uint32(0), index, uint32(0), uint64(0), uint64(0)))
	if err != nil {
		return 0, 0, -1, err
	}
	if len(r.Payload) != 32 {
		return 0, 0, -1, fmt.Errorf("region info of %d bytes", len(r.Payload))
	}
	file = -1
	if len(r.Files) == 1 {
		file = r.Files[0]
	}
	return order.Uint64(r.Payload[16:]), order.Uint32(r.Payload[4:]), file, nil
}

// Read reads a region.
func (c *Client) Read(region uint32, offset uint64, p []byte) error {
	r, err := c.Ask(vfiouser.RegionRead, Words(offset, region, uint32(len(p))))
	if err != nil {
		return err
	}
	if len(r.Payload) != 16+len(p) {
		return fmt.Errorf("read of %d bytes answered with %d", len(p), len(r.Payload)-16)
	}
	copy(p, r.Payload[16:])
	return nil
}

// Write writes a region and waits until it is done.
func (c *Client) Write(region uint32, offset uint64, p []byte) error {
	_, err := c.Ask(vfiouser.RegionWrite, Words(offset, region, uint32(len(p)), p))
	return err
}

// PostWrite writes a region and does not wait.
func (c *Client) PostWrite(region uint32, offset uint64, p []byte) error {
	return c.Post(vfiouser.RegionWrite, Words(offset, region, uint32(len(p)), p))
}

// Read32 reads a word of a region.
func (c *Client) Read32(region uint32, offset uint64) (uint32, error) {
	var b [4]byte
	err := c.Read(region, offset, b[:])
	return order.Uint32(b[:]), err
}

// Write32 writes a word of a region.
func (c *Client) Write32(region uint32, offset uint64, v uint32) error {
	return c.Write(region, offset, Words(v))
}

// SetIRQs assigns, takes away or fires MSI-X vectors.
func (c *Client) SetIRQs(flags, start, count uint32, data []byte, files ...int) error {
	_, err := c.Ask(vfiouser.SetIRQs,
		Words(uint32(20+len(data)), flags, uint32(vfiouser.IRQMSIX), start, count, data), files...)
	return err
}

// Reset is a bus reset.
func (c *Client) Reset() error {
	_, err := c.Ask(vfiouser.DeviceReset, nil)
	return err
}
