package bridgetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/nfcomms/nfcomms/bridge"
)

// Card makes a card of a device that is none: bar 0 has 4 KiB of registers, all of which
// keep what is written, and vector 0 interrupts when Interrupt is called. Its configuration space
// has the word of its ids. It is for tests of what is above the bridge.
type Card struct {
	bridge.Device

	mu      sync.Mutex // guards what follows
	words   map[uint64]uint64
	count   uint64
	changed chan struct{} // closed by the next interrupt
	off     bool          // vector 0 is
	held    bool          // … and there was an interrupt
	refuse  error
}

var _ bridge.RegisterAccess = (*Card)(nil)

// NewCard returns a card over a device, which is the card's from then on.
func NewCard(dev bridge.Device) *Card {
	return &Card{Device: dev, words: make(map[uint64]uint64), changed: make(chan struct{})}
}

const (
	cardRegisters = 4096
	cardConfig    = 6 // in place of a bar
)

// Info describes the device and the card.
func (c *Card) Info() bridge.Info {
	info := c.Device.Info()
	info.Board = &bridge.Board{
		Address: "0000:03:00.0", Vendor: 0x1234, Device: 0x4e46, Serial: "00-1b-21-ff-ff-a0-b1-c2", NUMA: -1, Vectors: 1,
		Link: bridge.Link{Speed: 8, MaxSpeed: 16, Width: 4, MaxWidth: 8},
		Bars: []bridge.Bar{{Kind: bridge.BarMemory32, Address: 0xfe800000, Size: cardRegisters}},
	}
	return info
}

// Refuse makes registers and interrupts fail; nil ends that.
func (c *Card) Refuse(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refuse = err
}

// Interrupt is one of vector 0. While that is off, it is held back.
func (c *Card) Interrupt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held = c.off; !c.held {
		c.fire()
	}
}

// fire counts an interrupt. Must hold mu.
func (c *Card) fire() {
	c.count++
	close(c.changed)
	c.changed = make(chan struct{})
}

// check returns what is wrong with an access. Must hold mu.
func (c *Card) check(bar int, offset uint64, width int) error {
	switch {
	case c.refuse != nil:
		return c.refuse
	case width != 4 || offset%4 != 0:
		return fmt.Errorf("%d bytes at %#x: %w", width, offset, bridge.ErrInvalid)
	case bar != 0 || offset >= cardRegisters:
		return fmt.Errorf("bar %d at %#x: %w", bar, offset, bridge.ErrRange)
	}
	return nil
}

// Peek reads a register.
func (c *Card) Peek(bar int, offset uint64, width int) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bar == cardConfig && c.refuse == nil && offset == 0 && width == 4 {
		return 0x4e46_1234, nil
	}
	if err := c.check(bar, offset, width); err != nil {
		return 0, err
	}
	return c.words[offset], nil
}

// Poke writes a register.
func (c *Card) Poke(bar int, offset uint64, width int, value uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bar == cardConfig {
		return fmt.Errorf("configuration space: %w", bridge.ErrBusy)
	}
	if err := c.check(bar, offset, width); err != nil {
		return err
	}
	c.words[offset] = value
	return nil
}

// Interrupts counts those of vector 0.
func (c *Card) Interrupts(vector int) (uint64, error) {
	count, _, err := c.interrupts(vector)
	return count, err
}

func (c *Card) interrupts(vector int) (uint64, chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.refuse != nil:
		return 0, nil, c.refuse
	case vector != 0:
		return 0, nil, fmt.Errorf("vector %d of 1: %w", vector, bridge.ErrInvalid)
	}
	return c.count, c.changed, nil
}

// SwitchInterrupt switches vector 0.
func (c *Card) SwitchInterrupt(vector int, on bool) error {
	if _, _, err := c.interrupts(vector); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off = !on; on && c.held {
		c.held = false
		c.fire()
	}
	return nil
}

// WaitInterrupt waits for one of vector 0.
func (c *Card) WaitInterrupt(ctx context.Context, vector int, after uint64) (uint64, error) {
	for {
		count, changed, err := c.interrupts(vector)
		if err != nil || count > after {
			return count, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return count, fmt.Errorf("no interrupt of vector %d: %w", vector, ctx.Err())
		}
	}
}
