package vhostclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vfioclient"
	"github.com/nfcomms/nfcomms/cmd/nfsim/internal/vhostuser"
	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Guest memory: its size, and its addresses for the device and for the client.
const (
	MemorySize = 1 << 20
	Guest      = 1 << 20
	User       = 7 << 32

	memoryOffset = 4096 // in its file
)

// QueueSize is the number of descriptors of a queue.
const QueueSize = 8

// Where the parts of a queue lie in guest memory, and its buffers behind them.
const (
	queueRoom = 4096
	availAt   = 1024
	usedAt    = 2048
	buffersAt = 2 * queueRoom
	BufferMax = 16384 // bytes of the buffer of one descriptor
)

// Flags of descriptors.
const (
	Next  = 1
	Write = 2
)

var order = binary.LittleEndian

// Client is one client with its memory. It is not safe for concurrent use.
type Client struct {
	Memory []byte // the guest's

	conn    *net.UnixConn
	file    int
	calls   *net.UnixConn // the server asks here
	theirs  *os.File      // its end, until it is sent
	put     [2]uint16     // chains made available
	got     [2]uint16     // chains taken back
	waiting [2]bool       // a call came and was not waited for yet
}

// New makes a client, which owns the socket.
func New(conn *net.UnixConn) (*Client, error) {
	c := &Client{conn: conn, file: -1}
	file, err := unix.MemfdCreate("guest", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	c.file = file
	if err = unix.Ftruncate(file, memoryOffset+MemorySize); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.Memory, err = unix.Mmap(file, memoryOffset, MemorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	ours, theirs, err := vfioclient.Pair()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.calls = ours
	c.theirs, err = theirs.File()
	if err := errors.Join(err, theirs.Close()); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close hangs up.
func (c *Client) Close() error {
	err := c.conn.Close()
	if c.calls != nil {
		err = errors.Join(err, c.calls.Close())
	}
	if c.theirs != nil {
		err = errors.Join(err, c.theirs.Close())
	}
	if c.Memory != nil {
		err = errors.Join(err, unix.Munmap(c.Memory))
	}
	return errors.Join(err, unix.Close(c.file))
}

// Channel returns the server's end of the channel of its requests.
func (c *Client) Channel() int { return int(c.theirs.Fd()) }

// File returns the file of guest memory.
func (c *Client) File() int { return c.file }

// Send sends a message of any kind.
func (c *Client) Send(b []byte, files ...int) error {
	return fdpass.Send(c.conn, b, files...)
}

// Message packs a message.
func Message(r vhostuser.Request, flags uint32, payload ...any) []byte {
	body := vfioclient.Words(payload...)
	return append(vhostuser.Header{Request: r, Flags: flags, Size: uint32(len(body))}.Append(nil), body...)
}

// version is that of all messages, and what a reply must have.
const (
	version = 1
	replied = version | vhostuser.FlagReply
)

// Ask sends a request that wants a reply, and returns that. io.EOF and its like:
// the server hung up.
func (c *Client) Ask(r vhostuser.Request, files []int, payload ...any) (uint64, error) {
	if err := c.Send(Message(r, version|vhostuser.FlagNeedReply, payload...), files...); err != nil {
		return 0, err
	}
	var b [vhostuser.HeaderSize + 8]byte
	if _, err := io.ReadFull(c.conn, b[:]); err != nil {
		return 0, err
	}
	if got := vhostuser.Request(order.Uint32(b[:])); got != r || order.Uint32(b[4:]) != replied || order.Uint32(b[8:]) != 8 {
		return 0, fmt.Errorf("request %d answered with % x", r, b)
	}
	return order.Uint64(b[vhostuser.HeaderSize:]), nil
}

// Setup does what a driver does until its queues work.
func (c *Client) Setup() error {
	for _, step := range []func() error{c.agree, c.Share, c.queues} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// agree agrees on features and hands over the channel.
func (c *Client) agree() error {
	if _, err := c.Ask(vhostuser.SetOwner, nil); err != nil {
		return err
	}
	features, err := c.Ask(vhostuser.GetFeatures, nil)
	if err != nil {
		return err
	}
	protocol, err := c.Ask(vhostuser.GetProtocolFeatures, nil)
	if err != nil {
		return err
	}
	if _, err := c.Ask(vhostuser.SetProtocolFeatures, nil, protocol); err != nil {
		return err
	}
	if _, err := c.Ask(vhostuser.SetBackendChannel, []int{c.Channel()}); err != nil {
		return err
	}
	_, err = c.Ask(vhostuser.SetFeatures, nil, features)
	return err
}

// Table is the payload that describes guest memory. There is room for a second
// region, as in what a kernel sends.
func Table() []any {
	return []any{
		uint32(1), uint32(0), uint64(Guest), uint64(MemorySize), uint64(User), uint64(memoryOffset), make([]byte, 32),
	}
}

// Share describes guest memory.
func (c *Client) Share() error {
	_, err := c.Ask(vhostuser.SetMemTable, []int{c.file}, Table()...)
	return err
}

// Place is the payload that says where a queue lies.
func Place(queue int) []any {
	at := uint64(User + queue*queueRoom)
	return []any{uint32(queue), uint32(0), at, at + usedAt, at + availAt, uint64(0)}
}

// queues sets up both queues.
func (c *Client) queues() error {
	for q := range 2 {
		for _, step := range []struct {
			r       vhostuser.Request
			payload []any
		}{
			{vhostuser.SetVringNum, []any{uint32(q), uint32(QueueSize)}},
			{vhostuser.SetVringBase, []any{uint32(q), uint32(0)}},
			{vhostuser.SetVringAddr, Place(q)},
			{vhostuser.SetVringEnable, []any{uint32(q), uint32(1)}},
		} {
			if _, err := c.Ask(step.r, nil, step.payload...); err != nil {
				return err
			}
		}
	}
	return nil
}
