package vfioclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfiouser"
	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Hello is what QEMU 11.1 says of itself.
const Hello = `{"capabilities":{"pgsizes":4096,"max_msg_fds":16,"max_dma_maps":65535,` +
	`"max_data_xfer_size":1048576,"migration":{"pgsize":4096,"max_bitmap_size":268435456},"write_multiple":true}}`

// ErrGone is returned when the server has hung up.
var ErrGone = errors.New("server has gone")

// Memory is what a server may read and write by messages.
type Memory interface {
	// ReadAt fills p, or fails.
	ReadAt(p []byte, address uint64) error
	// WriteAt takes all of p, or fails.
	WriteAt(p []byte, address uint64) error
}

// Reply is what the server answered. Files are the receiver's to close.
type Reply struct {
	vfiouser.Header
	Payload []byte
	Files   []int
}

// Client is one connection. Its methods are safe for concurrent use.
type Client struct {
	conn   *net.UnixConn
	memory Memory
	done   sync.WaitGroup

	send sync.Mutex

	mu      sync.Mutex // guards what follows
	next    uint16
	waiting map[uint16]chan Reply
	gone    bool
}

var order = binary.LittleEndian

// Pair returns the two ends of a socket.
func Pair() (client, server *net.UnixConn, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	a, errA := fileConn(fds[0])
	b, errB := fileConn(fds[1])
	return a, b, errors.Join(errA, errB)
}

func fileConn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "vfio-user")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return c.(*net.UnixConn), nil
}

// New makes a client, which owns the socket. memory may be nil: then DMA by
// messages is refused.
func New(conn *net.UnixConn, memory Memory) *Client {
	c := &Client{conn: conn, memory: memory, waiting: make(map[uint16]chan Reply)}
	c.done.Go(c.receive)
	return c
}

// Close hangs up and waits until nothing of the client runs.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.done.Wait()
	return err
}

// receive takes replies and DMA requests until the server has closed.
func (c *Client) receive() {
	for {
		r, err := Read(c.conn)
		if err != nil {
			break
		}
		if r.Flags&vfiouser.FlagReply == 0 {
			c.done.Go(func() { c.serve(r) })
			continue
		}
		c.mu.Lock()
		wait := c.waiting[r.ID]
		delete(c.waiting, r.ID)
		c.mu.Unlock()
		if wait != nil {
			wait <- r
		}
	}
	c.mu.Lock()
	c.gone = true
	for id, wait := range c.waiting {
		delete(c.waiting, id)
		close(wait)
	}
	c.mu.Unlock()
}

// Read takes one message from a socket.
func Read(conn *net.UnixConn) (Reply, error) {
	var r Reply
	var came fdpass.Set
	in := fdpass.NewReader(conn)
	head := make([]byte, vfiouser.HeaderSize)
	if err := in.Fill(head, &came); err != nil {
		return r, err
	}
	h, err := vfiouser.ParseHeader(head)
	r.Header, r.Files = h, came.Files
	if err = errors.Join(err, came.Bad); err != nil {
		came.Close()
		return r, err
	}
	r.Payload = make([]byte, h.Size-vfiouser.HeaderSize)
	_, err = io.ReadFull(conn, r.Payload)
	return r, err
}

// serve answers a DMA request.
func (c *Client) serve(r Reply) {
	h := vfiouser.Header{ID: r.ID, Command: r.Command, Flags: vfiouser.FlagReply}
	payload, err := c.access(r)
	if err != nil {
		h.Flags, h.Errno, payload = h.Flags|vfiouser.FlagError, uint32(syscall.EFAULT), nil
	}
	_ = c.Send(h, payload, nil) // the server may have ended
}

func (c *Client) access(r Reply) ([]byte, error) {
	if c.memory == nil || len(r.Payload) < 16 {
		return nil, syscall.EINVAL
	}
	address, count := order.Uint64(r.Payload), order.Uint64(r.Payload[8:])
	switch {
	case r.Command == vfiouser.DMARead && count <= vfiouser.MaxTransfer:
		out := append(r.Payload[:16:16], make([]byte, count)...)
		return out, c.memory.ReadAt(out[16:], address)
	case r.Command == vfiouser.DMAWrite && count == uint64(len(r.Payload)-16):
		return r.Payload[:16], c.memory.WriteAt(r.Payload[16:], address)
	}
	return nil, syscall.EINVAL
}

// Send writes one message as it is given; Size is filled in.
func (c *Client) Send(h vfiouser.Header, payload []byte, files []int) error {
	h.Size = uint32(vfiouser.HeaderSize + len(payload))
	b := make([]byte, vfiouser.HeaderSize, h.Size)
	h.Put(b)
	return c.SendRaw(append(b, payload...), files)
}

// SendRaw writes bytes as they are.
func (c *Client) SendRaw(b []byte, files []int) error {
	c.send.Lock()
	defer c.send.Unlock()
	return fdpass.Send(c.conn, b, files...)
}

// Expect reserves an id and returns a channel for its reply, which is
// closed if the server closes the connection.
func (c *Client) Expect() (id uint16, reply <-chan Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	wait := make(chan Reply, 1)
	if c.gone {
		close(wait)
	} else {
		c.waiting[c.next] = wait
	}
	return c.next, wait
}

// Ask sends a command and returns its reply; an error reply is returned as its
// syscall.Errno.
func (c *Client) Ask(cmd vfiouser.Command, payload []byte, files ...int) (Reply, error) {
	id, wait := c.Expect()
	if err := c.Send(vfiouser.Header{ID: id, Command: cmd}, payload, files); err != nil {
		return Reply{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	r, ok := <-wait
	if !ok {
		return r, ErrGone
	}
	if r.Command != cmd {
		return r, fmt.Errorf("reply to command %d, asked %d", r.Command, cmd)
	}
	if r.Flags&vfiouser.FlagError != 0 {
		return r, syscall.Errno(r.Errno)
	}
	return r, nil
}

// Post sends a command that wants no reply.
func (c *Client) Post(cmd vfiouser.Command, payload []byte) error {
	return c.Send(vfiouser.Header{Command: cmd, Flags: vfiouser.FlagNoReply}, payload, nil)
}
