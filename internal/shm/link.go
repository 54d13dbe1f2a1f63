//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/arena"
	"github.com/nfcomms/nfcomms/internal/fdpass"
	"github.com/nfcomms/nfcomms/internal/shmwire"
)

const (
	// answerTime bounds the wait for an answer of the device process …
	answerTime = 5 * time.Second
	// … and shortTime once calls wait for the end of the link.
	shortTime = 100 * time.Millisecond
	// lateTime bounds that of a put or a get whose context has ended.
	lateTime = 50 * time.Millisecond
	// leaveTime bounds the wait for it to forget this client.
	leaveTime = time.Second
)

// link is a connection to a device process: this process is a host of it as long as it
// lasts.
type link struct {
	conn  *net.UnixConn
	bell  *os.File // becomes readable when the device rings, ends with the device
	area  int      // memfd
	size  uint64
	epoch uint32
	place uint64 // whose device it is: shmwire.AddressOf a node, 0 without a fabric

	mu     sync.Mutex // guards requests, which are answered in order
	broken error      // why there is no answer any more
	silent bool       // a request was not answered in time

	timing sync.Mutex // guards short, and the deadline of conn
	short  bool       // calls wait for the end of the link

	opening sync.Mutex // guards access
	access  *access    // nil: nobody put or got yet

	over     sync.Once // close
	covering sync.Once // what it does not answer keeps copies of memory
}

// dial connects to a device process, and becomes a host of it with an epoch after the
// one given. While an island of the device has no processor it waits as long as ctx says.
func dial(ctx context.Context, o *options, after uint32) (*link, error) {
	var late error
	for {
		l, err := attach(ctx, o, after)
		switch {
		case err == nil:
			return l, nil
		case ctx.Err() != nil && late != nil:
			return nil, fmt.Errorf("%w: %w", err, late)
		case ctx.Err() != nil || !errors.Is(err, bridge.ErrTargetTimeout):
			return nil, err
		}
		late = err // the device has waited for half a second
	}
}

// attach is dial, once.
func attach(ctx context.Context, o *options, after uint32) (*link, error) {
	conn, err := fdpass.Dial(ctx, shmwire.Network, o.path)
	if err != nil {
		return nil, connectErr(o.path, err)
	}
	l := &link{conn: conn, area: -1}
	if err := l.greet(ctx, o, after); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// connectErr returns what to do about a device process that is not there.
func connectErr(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: no device process: start one with \"nfsim --shm %s\"", err, path)
	case errors.Is(err, syscall.ECONNREFUSED) && !isSocket(path):
		return fmt.Errorf("%s: %w: this is no socket", path, bridge.ErrInvalid)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: the device process of this socket has gone: start one with \"nfsim --shm %s\"", err, path)
	case errors.Is(err, syscall.EPROTOTYPE):
		return fmt.Errorf("%s: %w: this is no socket of a shared device", path, bridge.ErrInvalid)
	}
	return err
}

// isSocket reports whether there may be a socket at a path, abstract ones included.
func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().Type() == fs.ModeSocket
}

// trusted refuses a device process of a user who has no say here.
func trusted(c *net.UnixConn, o *options) error {
	peer, err := fdpass.PeerOf(c)
	if err != nil {
		return fmt.Errorf("ask who runs the device: %w", err)
	}
	if peer.UID == 0 || int(peer.UID) == os.Geteuid() || o.known && peer.UID == o.owner {
		return nil
	}
	return fmt.Errorf("the device of %s is run by another user (uid %d): %w: allow that with the option user=%d",
		o.path, peer.UID, fs.ErrPermission, peer.UID)
}

// greet says hello and takes what the device gives.
func (l *link) greet(ctx context.Context, o *options, after uint32) error {
	if err := trusted(l.conn, o); err != nil {
		return err
	}
	defer fdpass.Interrupt(ctx, l.conn.SetDeadline)()
	hello := shmwire.Message{Kind: shmwire.Hello, Epoch: after, Size: o.self}
	if o.far {
		hello.Address = shmwire.AddressOf(o.node)
	}
	answer, files, err := l.exchange(&hello, 2)
	switch {
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), err)
	case hungUp(err):
		err = fmt.Errorf("the device process of %s hung up: %w", o.path, bridge.ErrDeviceLost)
	case errors.Is(err, shmwire.ErrVersion):
		err = fmt.Errorf("%w: %w", bridge.ErrABI, err)
	case err == nil && answer.Status == 0 && o.far && answer.Address != hello.Address:
		err = fmt.Errorf("the device process of %s knows no other nodes: %w", o.path, bridge.ErrNotSupported)
	case err == nil:
		err = answer.Err()
	}
	if err == nil {
		err = shmwire.CheckMemory(files[0], answer.Size)
	}
	if err != nil {
		for _, fd := range files {
			_ = syscall.Close(fd)
		}
		return err
	}
	_ = syscall.SetNonblock(files[1], true) // it waits in the runtime's poller
	l.area, l.bell = files[0], os.NewFile(uintptr(files[1]), "nfcomms-doorbell")
	l.size, l.epoch, l.place = answer.Size, answer.Epoch, answer.Address
	return nil
}

// hungUp reports whether an error is the end of the other side.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// exchange sends a request and reads its answer. Must hold mu, or be alone.
func (l *link) exchange(m *shmwire.Message, files int, with ...int) (shmwire.Message, []int, error) {
	l.limit()
	defer func() { _ = l.conn.SetDeadline(time.Time{}) }() // it would wake an idle process
	if err := shmwire.Send(l.conn, m, with...); err != nil {
		return shmwire.Message{}, nil, err
	}
	answer, got, err := shmwire.Receive(l.conn, func(a *shmwire.Message) int {
		if a.Status != 0 {
			return 0
		}
		return files
	})
	if err == nil && answer.Kind != m.Kind {
		for _, fd := range got {
			_ = syscall.Close(fd)
		}
		return answer, nil, shmwire.ErrForeign
	}
	return answer, got, err
}

// limit bounds the exchange that follows.
func (l *link) limit() {
	l.timing.Lock()
	defer l.timing.Unlock()
	d := answerTime
	if l.short {
		d = shortTime
	}
	_ = l.conn.SetDeadline(time.Now().Add(d))
}

// shorten gives the request under way, and those that follow, little time: calls wait for their end.
func (l *link) shorten() {
	l.timing.Lock()
	defer l.timing.Unlock()
	if !l.short {
		l.short = true
		_ = l.conn.SetDeadline(time.Now().Add(shortTime))
	}
}

// ask makes a request that is answered without descriptors.
func (l *link) ask(m *shmwire.Message, with ...int) error {
	_, _, err := l.request(m, 0, with...)
	return err
}

// request makes a request that is answered with so many descriptors, which are the caller's.
// After an error that is no status there are no answers any more.
func (l *link) request(m *shmwire.Message, files int, with ...int) (shmwire.Message, []int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return shmwire.Message{}, nil, l.broken
	}
	answer, got, err := l.exchange(m, files, with...)
	if err != nil {
		l.broken = fmt.Errorf("%w: %w", bridge.ErrDeviceLost, err)
		l.silent = errors.Is(err, os.ErrDeadlineExceeded)
		return answer, nil, l.broken
	}
	return answer, got, answer.Err()
}

// close takes leave, and waits until the device has forgotten this host.
func (l *link) close() { l.over.Do(l.leave) }

func (l *link) leave() {
	defer l.endAccess() // it ends with the connection
	_ = l.conn.CloseWrite()
	if !l.isSilent() { // else nobody is there to wait for
		_ = l.conn.SetReadDeadline(time.Now().Add(leaveTime))
		var b [shmwire.Size]byte
		for {
			if n, err := l.conn.Read(b[:]); err != nil || n == 0 {
				break
			}
		}
	}
	_ = l.conn.Close()
	_ = l.bell.Close()
	_ = syscall.Close(l.area)
}

// endAccess ends puts and gets, if there are any.
func (l *link) endAccess() {
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.access != nil {
		l.access.end()
	}
}

// end says why there are no answers any more.
func (l *link) end(why error) {
	l.mu.Lock()
	l.broken = why
	l.mu.Unlock()
	l.opening.Lock()
	defer l.opening.Unlock()
	if l.access != nil {
		l.access.fail(why)
	}
}

// isSilent reports whether the device process does not answer.
func (l *link) isSilent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.silent
}

// why returns why there are no answers any more; nil: there are.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.broken
}

// Alive reports whether there still are answers.
func (l *link) Alive() bool { return l.why() == nil }

// MapMemory makes memory of this process known to the device.
func (l *link) MapMemory(m arena.Memory) error {
	return l.ask(&shmwire.Message{Kind: shmwire.Map, Address: m.Bus, Size: m.Size}, m.File)
}

// UnmapMemory ends that.
func (l *link) UnmapMemory(m arena.Memory) {
	_ = l.ask(&shmwire.Message{Kind: shmwire.Unmap, Address: m.Bus, Size: m.Size}) // a device that is gone has none
}
