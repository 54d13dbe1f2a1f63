package vhostuser

import (
	"bytes"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
)

// Operations of the command queue, and of the interrupt queue.
const (
	opConfigRead  = 1
	opConfigWrite = 2
	opRead        = 3
	opWrite       = 4
	opSet         = 5
	opMSI         = 7

	// opSize is that of an operation without its data, in bytes.
	opSize = 16
	// maxAccess is the most bytes one access moves.
	maxAccess = 1 << 20
)

// operation is one access by the guest.
type operation struct {
	op, bar byte
	size    int
	offset  uint64
	data    []byte // to write
}

// parseOperation reads what a chain of the command queue asks for.
func parseOperation(c *chain) (*operation, error) {
	if len(c.out) < opSize {
		return nil, malformed("operation of %d bytes", len(c.out))
	}
	size := order.Uint32(c.out[4:])
	o := &operation{op: c.out[0], bar: c.out[1], size: int(size), offset: order.Uint64(c.out[8:]), data: c.out[opSize:]}
	if size == 0 || size > maxAccess {
		return nil, malformed("operation %d on %d bytes", o.op, size)
	}
	need, room := 0, 0
	switch o.op {
	case opConfigRead, opRead:
		room = o.size
	case opConfigWrite, opWrite:
		need = o.size
	case opSet:
		need = 1
	default:
		return nil, malformed("operation %d", o.op)
	}
	if len(o.data) < need || c.room < room {
		return nil, malformed("operation %d on %d bytes with %d, and room for %d", o.op, o.size, len(o.data), c.room)
	}
	return o, nil
}

// carryOut makes one access and returns what it reads.
func (c *Conn) carryOut(o *operation) (answer []byte, err error) {
	index := int(o.bar)
	if o.op == opConfigRead || o.op == opConfigWrite {
		index = vfiouser.RegionConfig
	} else if index >= vfiouser.RegionBAR0+bars {
		return nil, malformed("access to BAR %d", index)
	}
	size := c.dev.Region(index).Size
	if o.offset > size || uint64(o.size) > size-o.offset {
		return nil, malformed("access of %d bytes at %#x of region %d of %d bytes", o.size, o.offset, index, size)
	}
	switch o.op {
	case opConfigRead, opRead:
		p := make([]byte, o.size)
		c.done(c.read(index, o.offset, p), index, o)
		return p, nil
	case opSet:
		c.done(c.write(index, o.offset, bytes.Repeat(o.data[:1], o.size)), index, o)
	default:
		c.done(c.write(index, o.offset, o.data[:o.size]), index, o)
	}
	return nil, nil
}

// bars is how many a function has.
const bars = 6

// done counts an access; one that the device refuses is lost on the bus.
func (c *Conn) done(err error, index int, o *operation) {
	c.messages.Add(1)
	if o.op != opConfigRead && o.op != opRead {
		c.posted.Add(1)
	}
	if err != nil {
		c.refused.Add(1)
		c.log.Warn("vhost-user: access refused", "region", index, "offset", o.offset, "size", o.size, "err", err)
	}
}

// read makes a read. What nobody answers reads as ones.
func (c *Conn) read(index int, offset uint64, p []byte) error {
	if index != vfiouser.RegionConfig && !c.msix.memory {
		return ones(p, nil)
	}
	err := c.dev.ReadRegion(index, offset, p)
	if err != nil {
		return ones(p, err)
	}
	if index == c.msix.bar {
		c.msix.read(offset, p)
	}
	return nil
}

func ones(p []byte, err error) error {
	for i := range p {
		p[i] = 0xff
	}
	return err
}

// write makes a write. What it changes of the way of interrupts takes effect at
// once.
func (c *Conn) write(index int, offset uint64, p []byte) error {
	if index != vfiouser.RegionConfig && !c.msix.memory {
		return nil
	}
	if err := c.dev.WriteRegion(index, offset, p); err != nil {
		return err
	}
	switch index {
	case vfiouser.RegionConfig:
		return c.msix.look(c.dev)
	case c.msix.bar:
		c.msix.write(offset, p)
	}
	return nil
}
