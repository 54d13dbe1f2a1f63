package vfiouser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

const (
	// queued bounds the commands that wait for the one at work; then the client
	// waits.
	queued = 64
	// patience bounds the wait for a client that does not read its replies, or
	// does not answer a DMA access.
	patience = 20 * time.Second
	// greeting bounds the wait for the version of a client.
	greeting = 5 * time.Second
)

// Conn is one client of a device. Serve runs it; the other methods are safe for
// concurrent use.
type Conn struct {
	// Greeting is the time in which the client must agree on a version: until it ends, a device
	// has no other. It is set before Serve.
	Greeting time.Duration

	conn *net.UnixConn
	dev  Device
	log  *slog.Logger

	greeted bool // the version was agreed
	burst   line // that the last access wrote; none: it was no write

	send     sync.Mutex // guards writes, whole messages
	messages atomic.Uint64
	refused  atomic.Uint64
	posted   atomic.Uint64
	bars     [numBARs]struct{ reads, writes, bursts atomic.Uint64 }

	mu      sync.Mutex // guards what follows
	waiting map[uint16]chan *message
	nextID  uint16
	gone    bool
	chunk   uint64 // most data of a DMA message the client takes
}

// Stats counts the messages of a connection: all commands, those refused, those that wanted no
// reply, and accesses to each BAR.
type Stats struct {
	Messages, Refused, Posted uint64
	BARs                      [numBARs]Accesses
}

// Accesses counts those of a region. Writes in a row to one line of 64 bytes are a burst.
type Accesses struct {
	Reads  uint64 `json:"reads"`
	Writes uint64 `json:"writes"`
	Bursts uint64 `json:"bursts"`
}

// NewConn makes a server for the client behind a socket, which it then owns.
func NewConn(c *net.UnixConn, dev Device, log *slog.Logger) *Conn {
	return &Conn{Greeting: greeting, conn: c, dev: dev, log: log, waiting: make(map[uint16]chan *message), chunk: MaxTransfer}
}

// Serve answers the client until it has closed (nil), Close is called
// (net.ErrClosed), it did not agree on a version in time (os.ErrDeadlineExceeded),
// or what it sends cannot be understood.
func (c *Conn) Serve() error {
	if err := c.conn.SetReadDeadline(time.Now().Add(c.Greeting)); err != nil {
		return errors.Join(err, c.conn.Close())
	}
	commands := make(chan *message, queued)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m := range commands {
			c.handle(m)
		}
	}()
	err := c.receive(commands)
	c.hangUp()
	close(commands)
	<-done
	_ = c.conn.Close() // it may have been closed to end Serve
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

// receive sorts messages: replies are passed to their waiters, commands to the worker, in order.
func (c *Conn) receive(commands chan<- *message) error {
	in := newFramer(c.conn)
	for {
		m, err := in.next()
		if m == nil {
			return err
		}
		if err == nil && m.Flags&typeMask == FlagReply {
			c.deliver(m)
			continue
		}
		commands <- m
		if err != nil {
			return err
		}
	}
}

// Stats returns the counters.
func (c *Conn) Stats() Stats {
	s := Stats{Messages: c.messages.Load(), Refused: c.refused.Load(), Posted: c.posted.Load()}
	for i := range c.bars {
		b := &c.bars[i]
		s.BARs[i] = Accesses{Reads: b.reads.Load(), Writes: b.writes.Load(), Bursts: b.bursts.Load()}
	}
	return s
}

// Close ends Serve.
func (c *Conn) Close() error { return c.conn.Close() }

// handle answers one command.
func (c *Conn) handle(m *message) {
	c.messages.Add(1)
	var payload []byte
	var files []int
	err := c.check(m)
	if err == nil {
		payload, files, err = c.dispatch(m)
	}
	m.Close()
	if err != nil {
		c.refused.Add(1)
		level := slog.LevelWarn
		if m.Command == IRQInfo { // clients ask to find out what there is
			level = slog.LevelDebug
		}
		c.log.Log(context.Background(), level, "vfio-user: message refused",
			"command", m.Command, "id", m.ID, "err", err)
	}
	if m.Flags&FlagNoReply != 0 {
		c.posted.Add(1)
		return
	}
	if err := c.reply(m, payload, files, err); err != nil {
		c.log.Debug("vfio-user: reply not sent", "command", m.Command, "err", err)
		_ = c.conn.Close() // a reply that is lost in part leaves nothing to say
	}
}

// check refuses what no command may be.
func (c *Conn) check(m *message) error {
	switch {
	case m.Bad != nil:
		return m.Bad
	case m.Flags&typeMask != 0 || m.Flags&^knownFlags != 0 || m.Flags&FlagError != 0:
		return fmt.Errorf("command with flags %#x: %w", m.Flags, syscall.EINVAL)
	case !c.greeted && m.Command != Version:
		return fmt.Errorf("command before the version was agreed: %w", syscall.EINVAL)
	case len(m.Files) > 0 && m.Command != DMAMap && m.Command != SetIRQs:
		return fmt.Errorf("%d descriptors with a command that takes none: %w", len(m.Files), syscall.EINVAL)
	}
	return nil
}

// errnoOf is the errno that the client gets for an error.
func errnoOf(err error) uint32 {
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return uint32(e)
	}
	return uint32(syscall.EIO)
}

// reply answers a command.
func (c *Conn) reply(m *message, payload []byte, files []int, err error) error {
	h := Header{ID: m.ID, Command: m.Command, Flags: FlagReply}
	if err != nil {
		h.Flags |= FlagError
		h.Errno = errnoOf(err)
		payload, files = nil, nil
	}
	return c.write(h, payload, files)
}

// write sends one message.
func (c *Conn) write(h Header, payload []byte, files []int) error {
	h.Size = uint32(HeaderSize + len(payload))
	b := make([]byte, h.Size)
	h.Put(b)
	copy(b[HeaderSize:], payload)
	c.send.Lock()
	defer c.send.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	return fdpass.Send(c.conn, b, files...)
}
