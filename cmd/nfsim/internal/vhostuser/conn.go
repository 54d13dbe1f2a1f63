package vhostuser

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// The queues of the device.
const (
	commandQueue   = 0
	interruptQueue = 1
	numQueues      = 2
)

// Conn is one client of a device. Serve runs it; Close and Stats are safe for
// concurrent use.
type Conn struct {
	conn *net.UnixConn
	dev  Device
	log  *slog.Logger

	messages, refused, posted atomic.Uint64

	caller *caller

	mu     sync.Mutex // guards what follows
	agreed uint64     // features of the protocol
	memory memory
	queues [numQueues]queue
	msix   *msix
	fault  error // why the connection was ended beside Serve
}

// NewConn makes a server for the client behind a socket, which it then owns.
func NewConn(c *net.UnixConn, dev Device, log *slog.Logger) *Conn {
	return &Conn{conn: c, dev: dev, log: log, caller: newCaller()}
}

// Stats returns the counters: messages are requests and accesses to the device.
func (c *Conn) Stats() vfiouser.Stats {
	return vfiouser.Stats{Messages: c.messages.Load(), Refused: c.refused.Load(), Posted: c.posted.Load()}
}

// Close ends Serve.
func (c *Conn) Close() error { return c.conn.Close() }

// Serve answers the client until it has gone (nil), Close is called
// (net.ErrClosed), what it sends makes no sense (ErrMalformed), or the device
// cannot be served.
func (c *Conn) Serve() error {
	vectors, err := c.listen()
	if err == nil {
		err = c.receive()
	}
	_ = c.conn.Close() // it may have been closed to end Serve
	c.caller.close()
	vectors.close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget()
	if c.fault != nil {
		return c.fault
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// forget gives back what the client shared, but for what the device has mapped.
// Must hold mu.
func (c *Conn) forget() {
	c.queues = [numQueues]queue{}
	c.memory.close()
	c.memory = nil
}

// message is one message as it came.
type message struct {
	Header
	fdpass.Set
	payload []byte
}

// receive handles messages, one after the other.
func (c *Conn) receive() error {
	in := fdpass.NewReader(c.conn)
	head := make([]byte, HeaderSize)
	for {
		m := &message{}
		err := in.Fill(head, &m.Set)
		if err == nil {
			m.Header, err = parseHeader(head)
		}
		if err == nil {
			m.payload = make([]byte, m.Size)
			err = fdpass.CutOff(in.Fill(m.payload, &m.Set))
		}
		if err == nil {
			err = guarded(func() error { return c.handle(m) })
		}
		m.Close()
		if err != nil {
			return err
		}
	}
}

// handle answers one message.
func (c *Conn) handle(m *message) error {
	if m.Bad != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, m.Bad)
	}
	if len(m.Files) > 0 && m.Request != SetMemTable && m.Request != SetBackendChannel {
		return malformed("%d descriptors with request %d", len(m.Files), m.Request)
	}
	c.messages.Add(1)
	value, asked, err := c.dispatch(m)
	if err != nil || !asked && m.Flags&FlagNeedReply == 0 {
		return err
	}
	b := Header{Request: m.Request, Flags: version | FlagReply, Size: 8}.Append(make([]byte, 0, HeaderSize+8))
	_, err = c.conn.Write(order.AppendUint64(b, value))
	return err
}

// vectors are the eventfds through which the device interrupts.
type vectors struct {
	files   []*os.File
	serving sync.WaitGroup
}

// listen gives every vector of the device an eventfd, and waits for them.
func (c *Conn) listen() (*vectors, error) {
	v := &vectors{}
	table, err := newMSIX(c.dev)
	if err != nil {
		return v, err
	}
	c.mu.Lock()
	c.msix = table
	c.mu.Unlock()
	for i := range c.dev.Vectors() {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
		if err != nil {
			return v, os.NewSyscallError("eventfd", err)
		}
		file := os.NewFile(uintptr(fd), "interrupt")
		v.files = append(v.files, file)
		if err := c.dev.AssignIRQ(i, fd); err != nil {
			return v, err
		}
		v.serving.Go(func() { c.serveVector(i, file) })
	}
	return v, nil
}

func (v *vectors) close() {
	for _, f := range v.files {
		f.Close()
	}
	v.serving.Wait()
}

// serveVector passes on the interrupts of a vector until its file is closed.
func (c *Conn) serveVector(vector int, file *os.File) {
	var count [8]byte
	for {
		if _, err := file.Read(count[:]); err != nil {
			return
		}
		c.mu.Lock()
		c.msix.fire(vector)
		err := guarded(c.interrupt)
		c.fault = cmp.Or(c.fault, err)
		c.mu.Unlock()
		if err != nil {
			_ = c.conn.Close() // ends Serve
			return
		}
	}
}
