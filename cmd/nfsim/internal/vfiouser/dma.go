package vfiouser

import (
	"fmt"
	"syscall"
	"time"
)

// ReadDMA reads client memory through the socket. It may be called while a
// method of the Device runs.
func (c *Conn) ReadDMA(address uint64, p []byte) error {
	return c.chunks(address, p, func(at uint64, part []byte) error {
		m, err := c.ask(DMARead, access(at, uint64(len(part))), nil)
		if err != nil {
			return err
		}
		return answered(m, at, part)
	})
}

// WriteDMA writes client memory through the socket, like ReadDMA.
func (c *Conn) WriteDMA(address uint64, p []byte) error {
	return c.chunks(address, p, func(at uint64, part []byte) error {
		m, err := c.ask(DMAWrite, access(at, uint64(len(part))), part)
		if err != nil {
			return err
		}
		return answered(m, at, nil)
	})
}

func (c *Conn) chunks(address uint64, p []byte, move func(at uint64, part []byte) error) error {
	c.mu.Lock()
	most := c.chunk
	c.mu.Unlock()
	for len(p) > 0 {
		n := min(uint64(len(p)), most)
		if err := move(address, p[:n]); err != nil {
			return fmt.Errorf("DMA of %d bytes at %#x: %w", n, address, err)
		}
		p, address = p[n:], address+n
	}
	return nil
}

func access(address, count uint64) []byte {
	b := make([]byte, accessSize)
	order.PutUint64(b, address)
	order.PutUint64(b[8:], count)
	return b
}

// answered checks a reply to a DMA access and takes its data.
func answered(m *message, address uint64, into []byte) error {
	if m.Flags&FlagError != 0 {
		return fmt.Errorf("refused by the client: %w", syscall.Errno(m.Errno))
	}
	r := reader{b: m.payload}
	at, count := r.u64(), r.u64()
	if r.short || at != address || into != nil && count != uint64(len(into)) || len(r.b) != len(into) {
		return fmt.Errorf("reply of %d bytes for %#x: %w", len(m.payload), at, syscall.EPROTO)
	}
	copy(into, r.b)
	return nil
}

// ask sends a command to the client and waits for its reply.
func (c *Conn) ask(cmd Command, payload, data []byte) (*message, error) {
	id, answer, err := c.expect()
	if err != nil {
		return nil, err
	}
	defer c.forget(id)
	if err := c.write(Header{ID: id, Command: cmd}, append(payload, data...), nil); err != nil {
		return nil, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case m := <-answer:
		if m == nil {
			return nil, syscall.ENOTCONN
		}
		if m.Command != cmd {
			return nil, fmt.Errorf("reply to command %d: %w", m.Command, syscall.EPROTO)
		}
		return m, nil
	case <-timer.C:
		return nil, syscall.ETIMEDOUT
	}
}

// expect reserves an id for a command to the client.
func (c *Conn) expect() (uint16, chan *message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return 0, nil, syscall.ENOTCONN
	}
	if len(c.waiting) >= 1<<15 {
		return 0, nil, syscall.EAGAIN
	}
	for c.waiting[c.nextID] != nil {
		c.nextID++
	}
	id, answer := c.nextID, make(chan *message, 1)
	c.nextID++
	c.waiting[id] = answer
	return id, answer, nil
}

func (c *Conn) forget(id uint16) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
}

// deliver passes a reply to its waiter. One without a waiter is late, or nonsense: it is dropped.
func (c *Conn) deliver(m *message) {
	m.Close()
	c.mu.Lock()
	answer := c.waiting[m.ID]
	delete(c.waiting, m.ID)
	c.mu.Unlock()
	if answer == nil {
		c.log.Debug("vfio-user: reply to nothing", "command", m.Command, "id", m.ID)
		return
	}
	answer <- m
}

// hangUp ends all waits for the client.
func (c *Conn) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = true
	for id, answer := range c.waiting {
		delete(c.waiting, id)
		close(answer)
	}
}
