package vfiouser

import (
	"fmt"
	"syscall"
)

// Flags of SetIRQs: what the data is, and what to do.
const (
	irqDataNone    = 1 << 0
	irqDataBool    = 1 << 1
	irqDataEventfd = 1 << 2
	irqTrigger     = 1 << 5
)

// setIRQs assigns, takes away or tests interrupt vectors.
func (c *Conn) setIRQs(m *message) error {
	r, err := sized(m, 20)
	if err != nil {
		return err
	}
	flags, index, start, count := r.u32(), r.u32(), r.u32(), r.u32()
	vectors := uint32(c.dev.Vectors())
	if index < IRQMSIX && count == 0 && flags == irqDataNone|irqTrigger {
		return nil // kinds the device does not have are off already
	}
	if index != IRQMSIX || start > vectors || count > vectors-start {
		return fmt.Errorf("interrupts %d..+%d of kind %d: %w", start, count, index, syscall.EINVAL)
	}
	if flags != irqDataEventfd|irqTrigger && len(m.Files) > 0 {
		return fmt.Errorf("%d descriptors for interrupt flags %#x: %w", len(m.Files), flags, syscall.EINVAL)
	}
	switch flags {
	case irqDataEventfd | irqTrigger:
		return c.assign(m, int(start), int(count))
	case irqDataNone | irqTrigger:
		if count == 0 {
			return c.takeAll()
		}
		return c.trigger(int(start), int(count), nil)
	case irqDataBool | irqTrigger:
		if len(r.b) != int(count) {
			return errShort
		}
		return c.trigger(int(start), int(count), r.b)
	default: // the owner of the table masks MSI-X vectors
		return fmt.Errorf("interrupt flags %#x: %w", flags, syscall.EINVAL)
	}
}

// assign gives vectors their eventfds; without any it takes them away.
func (c *Conn) assign(m *message, start, count int) error {
	if n := len(m.Files); n != 0 && n != count {
		return fmt.Errorf("%d descriptors for %d vectors: %w", n, count, syscall.EINVAL)
	}
	for i := range count {
		file := -1
		if len(m.Files) > 0 {
			file = m.Files[i]
		}
		if err := c.dev.AssignIRQ(start+i, file); err != nil {
			return fmt.Errorf("assign vector %d: %w", start+i, err)
		}
	}
	return nil
}

// takeAll takes every vector's eventfd away.
func (c *Conn) takeAll() error {
	for v := range c.dev.Vectors() {
		if err := c.dev.AssignIRQ(v, -1); err != nil {
			return fmt.Errorf("take vector %d away: %w", v, err)
		}
	}
	return nil
}

// trigger fires vectors, all or those whose byte in only is not zero.
func (c *Conn) trigger(start, count int, only []byte) error {
	for i := range count {
		if only == nil || only[i] != 0 {
			c.dev.TriggerIRQ(start + i)
		}
	}
	return nil
}
