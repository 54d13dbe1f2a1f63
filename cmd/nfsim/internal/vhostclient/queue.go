package vhostclient

import (
	"bytes"
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostuser"
)

// Queues.
const (
	Commands   = 0
	Interrupts = 1
)

// Operations.
const (
	ConfigRead  = 1
	ConfigWrite = 2
	Load        = 3
	Store       = 4
	Set         = 5
	MSI         = 7
)

// Buffer returns the guest address of the buffer of a descriptor, and its bytes.
func (c *Client) Buffer(queue, i int) (uint64, []byte) {
	at := buffersAt + (queue*QueueSize+i)*BufferMax
	return Guest + uint64(at), c.Memory[at : at+BufferMax]
}

// Describe writes a descriptor.
func (c *Client) Describe(queue, i int, address uint64, size uint32, flags, next uint16) {
	d := c.Memory[queue*queueRoom+16*i:]
	order.PutUint64(d, address)
	order.PutUint32(d[8:], size)
	order.PutUint16(d[12:], flags)
	order.PutUint16(d[14:], next)
}

// Quiet says that no call is wanted for a queue.
func (c *Client) Quiet(queue int) { order.PutUint16(c.Memory[queue*queueRoom+availAt:], 1) }

// Offer makes the chain available that starts at a descriptor.
func (c *Client) Offer(queue int, head uint16) {
	avail := c.Memory[queue*queueRoom+availAt:]
	order.PutUint16(avail[4+2*(c.put[queue]%QueueSize):], head)
	c.put[queue]++
	c.Publish(queue, c.put[queue])
}

// Publish writes the index of a queue.
func (c *Client) Publish(queue int, index uint16) {
	order.PutUint16(c.Memory[queue*queueRoom+availAt+2:], index)
}

// Kick has the server look at a queue.
func (c *Client) Kick(queue int) error {
	_, err := c.Ask(vhostuser.VringKick, nil, uint32(queue), uint32(0))
	return err
}

// Take takes a chain back: its head and how much was written.
func (c *Client) Take(queue int) (head, n uint32, err error) {
	used := c.Memory[queue*queueRoom+usedAt:]
	if order.Uint16(used[2:]) == c.got[queue] {
		return 0, 0, fmt.Errorf("queue %d has nothing back", queue)
	}
	e := used[4+8*(c.got[queue]%QueueSize):]
	c.got[queue]++
	return order.Uint32(e), order.Uint32(e[4:]), nil
}

// Await waits for a call of a queue.
func (c *Client) Await(queue int) error {
	for !c.waiting[queue] {
		var b [vhostuser.HeaderSize + 8]byte
		if _, err := io.ReadFull(c.calls, b[:]); err != nil {
			return err
		}
		q := order.Uint32(b[vhostuser.HeaderSize:])
		if vhostuser.Request(order.Uint32(b[:])) != vhostuser.CallVring || q > 1 {
			return fmt.Errorf("call % x", b)
		}
		c.waiting[q] = true
	}
	c.waiting[queue] = false
	return nil
}

// Operation packs an operation and its data.
func Operation(op, bar byte, size int, offset uint64, data []byte) []byte {
	b := []byte{op, bar, 0, 0}
	b = order.AppendUint32(b, uint32(size))
	return append(order.AppendUint64(b, offset), data...)
}

// Do makes one operation through two descriptors and returns what was written.
func (c *Client) Do(operation []byte, room int) ([]byte, error) {
	outAt, out := c.Buffer(Commands, 0)
	inAt, in := c.Buffer(Commands, 1)
	copy(out, operation)
	flags := uint16(0)
	if room > 0 {
		flags = Next
	}
	c.Describe(Commands, 0, outAt, uint32(len(operation)), flags, 1)
	c.Describe(Commands, 1, inAt, uint32(room), Write, 0)
	c.Offer(Commands, 0)
	if err := c.Kick(Commands); err != nil {
		return nil, err
	}
	head, n, err := c.Take(Commands)
	if err == nil && (head != 0 || int(n) > room) {
		err = fmt.Errorf("chain %d back with %d bytes in %d", head, n, room)
	}
	if err != nil {
		return nil, err
	}
	return bytes.Clone(in[:n]), nil
}

// Read reads config space (ConfigRead) or a BAR (Load).
func (c *Client) Read(op, bar byte, offset uint64, n int) ([]byte, error) {
	return c.Do(Operation(op, bar, n, offset, nil), n)
}

// Write writes config space (ConfigWrite) or a BAR (Store).
func (c *Client) Write(op, bar byte, offset uint64, data []byte) error {
	_, err := c.Do(Operation(op, bar, len(data), offset, data), 0)
	return err
}

// Room gives the server a buffer for an interrupt.
func (c *Client) Room() {
	i := int(c.put[Interrupts] % QueueSize)
	at, _ := c.Buffer(Interrupts, i)
	c.Describe(Interrupts, i, at, 20, Write, 0)
	c.Offer(Interrupts, uint16(i))
}

// Interrupt takes an interrupt: the address and the value it was sent with.
func (c *Client) Interrupt() (address uint64, value uint32, err error) {
	head, n, err := c.Take(Interrupts)
	if err != nil {
		return 0, 0, err
	}
	_, b := c.Buffer(Interrupts, int(head%QueueSize))
	if n != 20 || b[0] != MSI || order.Uint32(b[4:]) != 4 {
		return 0, 0, fmt.Errorf("interrupt of %d bytes: % x", n, b[:20])
	}
	return order.Uint64(b[8:]), order.Uint32(b[16:]), nil
}
