//go:build linux

package vfio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/pci"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

const (
	// answerTime bounds the wait for an answer of the serving process …
	answerTime = 5 * time.Second
	// … and kickTime once calls wait for the end of the connection.
	kickTime = 100 * time.Millisecond
)

// conn is a connection to a process that serves the function. One request is under way at a time. Its
// methods are safe for concurrent use.
type conn struct {
	socket *net.UnixConn
	raw    syscall.RawConn
	broken atomic.Pointer[error] // why there are no answers any more

	asking sync.Mutex // guards the order of answers, and the next two
	reader *fdpass.Reader
	next   uint16

	sending sync.Mutex // guards whole messages

	timing sync.Mutex // guards hasty, and the deadline of the socket
	hasty  bool       // calls wait for the end of the connection
}

// dial connects, and agrees on the version. A process that serves somebody else answers when that one
// has gone.
func dial(ctx context.Context, path string) (*conn, error) {
	socket, err := fdpass.Dial(ctx, "unix", path)
	if err != nil {
		return nil, dialErr(path, err)
	}
	c := &conn{socket: socket, reader: fdpass.NewReader(socket)}
	c.raw, err = socket.SyscallConn()
	if err == nil {
		err = c.trust(path)
	}
	if err == nil {
		defer fdpass.Interrupt(ctx, socket.SetDeadline)()
		err = c.greet()
	}
	if err == nil {
		return c, nil
	}
	c.close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("no answer from the process of %s: another client may have the device: %w", path, bridge.ErrBusy)
	}
	return nil, err
}

func dialErr(path string, err error) error {
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%w: nobody serves the function: start a process with \"nfsim --vfio-user %s\"", err, path)
	}
	return err
}

// trust refuses a process of a user who has no say here.
func (c *conn) trust(path string) error {
	peer, err := fdpass.PeerOf(c.socket)
	if err != nil {
		return fmt.Errorf("ask who serves the function: %w", err)
	}
	if peer.UID == 0 || int(peer.UID) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("the function of %s is served by another user (uid %d): %w", path, peer.UID, os.ErrPermission)
}

// greet agrees on the version: 0 of the protocol.
func (c *conn) greet() error {
	payload := append(append(words(0), hello...), 0)
	answer, err := c.ask(cmdVersion, payload)
	switch {
	case err != nil:
		return fmt.Errorf("agree on a version: %w", err)
	case len(answer) < 4 || order.Uint16(answer) != 0:
		return fmt.Errorf("%w: the other side speaks another version of vfio-user", bridge.ErrABI)
	}
	return nil
}

// close ends the connection; what the device did for this process ends with it.
func (c *conn) close() {
	c.breaks(fmt.Errorf("device %w", bridge.ErrClosed))
	_ = c.socket.Close()
}

// breaks notes why there are no answers any more, once.
func (c *conn) breaks(why error) { c.broken.CompareAndSwap(nil, &why) }

// Alive reports whether there still are answers.
func (c *conn) Alive() bool { return c.broken.Load() == nil }

// limit bounds what follows.
func (c *conn) limit() {
	c.timing.Lock()
	defer c.timing.Unlock()
	d := answerTime
	if c.hasty {
		d = kickTime
	}
	_ = c.socket.SetDeadline(time.Now().Add(d))
}

// kick gives the request under way, and those that follow, little time or, again, the usual.
func (c *conn) kick(hasty bool) {
	c.timing.Lock()
	defer c.timing.Unlock()
	if hasty && !c.hasty {
		_ = c.socket.SetDeadline(time.Now().Add(kickTime))
	}
	c.hasty = hasty
}

// kickAtEnd kicks when ctx ends. After the returned function requests have the usual time, also where ctx
// ends meanwhile.
func (c *conn) kickAtEnd(ctx context.Context) (undo func()) {
	return fdpass.Interrupt(ctx, func(t time.Time) error {
		c.kick(!t.IsZero())
		return nil
	})
}

// ask makes a request that is answered without descriptors.
func (c *conn) ask(command uint16, payload []byte, files ...int) ([]byte, error) {
	answer, came, err := c.request(command, payload, files...)
	came.Close()
	return answer, err
}

// request makes a request. The descriptors of the answer are the caller's. After an error that is no
// status there are no answers any more.
func (c *conn) request(command uint16, payload []byte, files ...int) ([]byte, fdpass.Set, error) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if why := c.broken.Load(); why != nil {
		return nil, fdpass.Set{}, *why
	}
	c.next++
	c.limit()
	defer func() { _ = c.socket.SetDeadline(time.Time{}) }() // it would wake an idle process
	err := c.send(message(c.next, command, 0, payload), files...)
	var h header
	var answer []byte
	var came fdpass.Set
	if err == nil {
		h, answer, came, err = c.receive()
	}
	if err == nil && (h.id != c.next || h.command != command) {
		err = fmt.Errorf("answer to command %d in place of %d: %w", h.command, command, syscall.EPROTO)
	}
	if err != nil {
		came.Close()
		c.breaks(fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err))
		return nil, fdpass.Set{}, *c.broken.Load()
	}
	if h.flags&flagError != 0 {
		came.Close()
		return nil, fdpass.Set{}, fmt.Errorf("command %d: %w", command, syscall.Errno(h.status))
	}
	return answer, came, nil
}

func (c *conn) send(b []byte, files ...int) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return fdpass.Send(c.socket, b, files...)
}

// receive takes the next answer. A request of the other side is refused: its device has descriptors of all
// memory that it may reach.
func (c *conn) receive() (h header, payload []byte, came fdpass.Set, err error) {
	for {
		var b [headerSize]byte
		if err = c.reader.Fill(b[:], &came); err == nil {
			h, err = parseHeader(b[:])
		}
		if err == nil {
			payload = make([]byte, h.size-headerSize)
			err = c.reader.Fill(payload, &came)
		}
		if err = errors.Join(err, came.Bad); err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("the serving process hung up: %w", err)
			}
			return h, nil, came, err
		}
		if h.flags&typeMask == flagReply {
			return h, payload, came, nil
		}
		came.Close()
		refusal := message(h.id, h.command, flagReply|flagError, nil)
		order.PutUint32(refusal[12:], uint32(syscall.EOPNOTSUPP))
		if err = c.send(refusal); err != nil {
			return h, nil, came, err
		}
	}
}

// post writes to a region, and waits for nothing: a socket without room for a few bytes is one whose
// reader has stopped, and a message is sent whole or not at all.
func (c *conn) post(region uint32, offset uint64, v uint32) {
	b := message(0, cmdRegionWrite, flagNoReply, append(access(region, offset, 4), words(v)...))
	c.sending.Lock()
	defer c.sending.Unlock()
	var err error
	unsent := c.raw.Control(func(fd uintptr) {
		_, err = unix.SendmsgN(int(fd), b, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	})
	if err = errors.Join(unsent, err); err != nil {
		c.breaks(fmt.Errorf("%w: ring: %w", bridge.ErrDeviceLost, err))
	}
}

// MapMemory makes memory of this process known to the device.
func (c *conn) MapMemory(m arena.Memory) error {
	payload := order.AppendUint64(words(32, mapReadWrite), 0)
	_, err := c.ask(cmdMapDMA, order.AppendUint64(order.AppendUint64(payload, m.Bus), m.Size), m.File)
	return err
}

// UnmapMemory ends that.
func (c *conn) UnmapMemory(m arena.Memory) {
	payload := order.AppendUint64(words(24, 0), m.Bus)
	_, _ = c.ask(cmdUnmapDMA, order.AppendUint64(payload, m.Size)) // a device that is gone has none
}

// window is that of a device that knows memory by its addresses here.
func (c *conn) window() arena.Window { return arena.Window{} }

// read reads a word of a region.
func (c *conn) read(region uint32, offset uint64) (uint32, error) {
	answer, err := c.ask(cmdRegionRead, access(region, offset, 4))
	if err != nil {
		return 0, err
	}
	if len(answer) != headerSize+4 { // as long as a header is what precedes the data
		return 0, short("a register", answer)
	}
	return order.Uint32(answer[headerSize:]), nil
}

// write writes bytes to a region, and returns when that is done.
func (c *conn) write(region uint32, offset uint64, b []byte) error {
	_, err := c.ask(cmdRegionWrite, append(access(region, offset, len(b)), b...))
	return err
}

// reset is a reset of the function: what it did ends.
func (c *conn) reset() error {
	_, err := c.ask(cmdReset, nil)
	return err
}

// interrupt has vector 0 signal an eventfd.
func (c *conn) interrupt(eventfd int) error {
	_, err := c.ask(cmdSetIRQs, words(20, triggerByFile, irqMSIX, 0, 1), eventfd)
	return err
}

// mailboxes describes the BAR with the mailboxes. The file is the caller's.
func (c *conn) mailboxes() (place, error) {
	payload := append(words(32, 0, pci.BarMailboxes, 0), make([]byte, 16)...)
	answer, came, err := c.request(cmdRegionInfo, payload)
	if err != nil {
		return place{}, err
	}
	if len(answer) != 32 {
		came.Close()
		return place{}, short("the description of a region", answer)
	}
	at := place{size: order.Uint64(answer[16:])}
	if order.Uint32(answer[4:])&regionMap == 0 || len(came.Files) != 1 || order.Uint64(answer[24:]) != 0 {
		came.Close()
		return place{}, errUnmapped
	}
	at.file = came.Files[0]
	if is, err := shmwire.SizeOf(at.file); err != nil || is < at.size {
		came.Close()
		return place{}, fmt.Errorf("%w: a BAR of %d bytes in a file of %d: %w", bridge.ErrFault, at.size, is, err)
	}
	return at, nil
}

// check refuses what is no PCI function that can be reset.
func (c *conn) check() error {
	answer, err := c.ask(cmdDeviceInfo, words(16, 0, 0, 0))
	if err != nil {
		return err
	}
	if len(answer) != 16 {
		return short("the description of a device", answer)
	}
	return checkInfo(answer)
}
