//go:build unix

package ring

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

const (
	// askTime is how long a connection may take to say what it wants: longer than a process waits for
	// a processor.
	askTime = 10 * time.Second
	// acceptAgain passes after a failure to accept.
	acceptAgain = 10 * time.Millisecond
	// connections bounds those that are open at a time.
	connections = 64
)

// server hands out the ring of this process and keeps the books of its roles.
// None of its decisions depends on the shared memory.
type server struct {
	ring *Ring
	l    *net.UnixListener
	wg   sync.WaitGroup
	room chan struct{} // a token for each connection
	quit chan struct{} // closed by stop

	mu      sync.Mutex
	open    map[*net.UnixConn]bool
	silent  []*net.UnixConn  // those that have not said what they want, oldest first
	held    [2]*net.UnixConn // who holds a role
	used    bool             // a role was given up in this generation
	waiting []*claim         // for the next generation
	stopped bool
}

// claim is a connection that waits for a role.
type claim struct {
	role role
	conn *net.UnixConn
}

func serve(r *Ring) (*server, error) {
	l, err := net.ListenUnix("unixpacket", socketName(r.name))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: another process serves it", ErrExists)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	s := &server{ring: r, l: l, open: make(map[*net.UnixConn]bool), room: make(chan struct{}, connections), quit: make(chan struct{})}
	s.wg.Add(1)
	go s.accept()
	return s, nil
}

func (s *server) accept() {
	defer s.wg.Done()
	for {
		select {
		case s.room <- struct{}{}:
		default:
			s.makeRoom()
			select {
			case s.room <- struct{}{}:
			case <-s.quit:
				return
			}
		}
		c, err := s.l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no descriptors, say: some will be free again
			<-s.room
			select {
			case <-time.After(acceptAgain):
				continue
			case <-s.quit:
				return
			}
		}
		if !s.enter(c) {
			_ = c.Close()
			return
		}
		go func() {
			defer s.wg.Done()
			s.handle(c)
			s.leave(c)
			<-s.room
		}()
	}
}

func (s *server) enter(c *net.UnixConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return false
	}
	s.open[c] = true
	s.silent = append(s.silent, c)
	s.wg.Add(1)
	return true
}

// makeRoom releases the connection that has been silent for longest: many that say
// nothing keep those that do waiting no longer than it takes to accept them.
func (s *server) makeRoom() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.silent {
		if saysNothing(c) {
			s.silent = slices.Delete(s.silent, i, i+1)
			_ = c.Close() // its handler finds that, and leaves
			return
		}
	}
}

// saysNothing reports whether nothing has arrived from a connection, not even its end.
func saysNothing(c *net.UnixConn) bool {
	_, err := peek(c)
	return errors.Is(err, unix.EAGAIN)
}

// hungUp reports whether the client of a connection has closed it.
func hungUp(c *net.UnixConn) bool {
	n, err := peek(c)
	return n == 0 && !errors.Is(err, unix.EAGAIN)
}

// peek returns how many bytes there are to read, one at most, without a wait.
func peek(c *net.UnixConn) (n int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	closed := raw.Control(func(fd uintptr) {
		n, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		n = max(n, 0)
	})
	return n, errors.Join(closed, err)
}

// heard takes a connection from those that are silent.
func (s *server) heard(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.silent, c); i >= 0 {
		s.silent = slices.Delete(s.silent, i, i+1)
	}
}

// stop ends the service: every connection is closed, and all holders of a role see that.
func (s *server) stop() {
	s.mu.Lock()
	s.stopped = true
	close(s.quit)
	_ = s.l.Close()
	for c := range s.open {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// handle serves one connection until it ends.
func (s *server) handle(c *net.UnixConn) {
	_ = c.SetReadDeadline(time.Now().Add(askTime))
	b := make([]byte, requestSize+1)
	n, err := c.Read(b) // first: a connection closed with data unread loses the answer
	s.heard(c)
	if err != nil {
		return
	}
	if trusted(c) != nil {
		_, _ = c.Write(message(answerDenied))
		return
	}
	want, err := parse(b[:n])
	if err != nil {
		_, _ = c.Write(message(answerOK)) // has our version for the peer
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	switch role(want) {
	case wantMemory:
		_ = s.hand(c)
	case roleWriter, roleReader:
		s.claim(c, role(want))
	}
}

// hand gives the descriptors to the peer.
func (s *server) hand(c *net.UnixConn) error {
	var fds []int
	for _, f := range []*os.File{s.ring.mem, s.ring.fds[roleWriter], s.ring.fds[roleReader]} {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		if err := raw.Control(func(fd uintptr) { fds = append(fds, int(fd)) }); err != nil {
			return err
		}
	}
	return fdpass.Send(c, message(answerOK), fds...)
}

// claim gives a role to a connection, now or in the next generation, and waits
// until its process releases it or dies.
func (s *server) claim(c *net.UnixConn, r role) {
	pidfd := s.watch(c)
	if pidfd != nil {
		defer pidfd.Close()
	}
	if !s.grant(c, r) {
		return
	}
	b := make([]byte, 1)
	for {
		if _, err := c.Read(b); err != nil {
			return // closed, or its process has ended
		}
	}
}

// watch closes the connection when the peer's process dies, although some
// descendant of it may hold a copy of its socket.
func (s *server) watch(c *net.UnixConn) *os.File {
	peer, err := fdpass.PeerOf(c)
	if err != nil || int(peer.PID) == os.Getpid() {
		return nil
	}
	fd, err := openProcess(peer.PID)
	if err != nil {
		return nil // the client is gone: the socket says so
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	raw, err := f.SyscallConn()
	if err != nil {
		return f
	}
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		err := raw.Read(func(fd uintptr) bool {
			n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			return n > 0
		})
		if err == nil {
			_ = c.Close()
		}
	}()
	return f
}

// grant answers a claim; false if the role is taken.
func (s *server) grant(c *net.UnixConn, r role) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := s.before(r); other != nil; other = s.before(r) {
		if !hungUp(other) {
			_, _ = c.Write(message(answerBusy))
			return false
		}
		s.take(other) // its handler has not noticed yet
	}
	if s.used {
		s.waiting = append(s.waiting, &claim{r, c})
		_, _ = c.Write(message(answerWait))
		return true
	}
	return s.give(c, r)
}

// before returns the connection that holds a role, or waits for it in a generation
// that has begun to end; nil if there is none. Must hold mu.
func (s *server) before(r role) *net.UnixConn {
	if !s.used {
		return s.held[r]
	}
	for _, w := range s.waiting {
		if w.role == r {
			return w.conn
		}
	}
	return nil
}

// give grants a role, unless its process has ended meanwhile. Must hold mu.
func (s *server) give(c *net.UnixConn, r role) bool {
	if _, err := c.Write(message(answerOK)); err != nil {
		return false
	}
	s.held[r] = c
	return true
}

// leave forgets a connection that ended.
func (s *server) leave(c *net.UnixConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer c.Close() // last: a side that closes waits for it
	delete(s.open, c)
	s.take(c)
}

// take takes the role of a connection that ended, or its place among those that
// wait. Must hold mu.
func (s *server) take(c *net.UnixConn) {
	for i, w := range s.waiting {
		if w.conn == c {
			s.waiting = slices.Delete(s.waiting, i, i+1)
			return
		}
	}
	for r, holder := range s.held {
		if holder == c {
			s.held[r] = nil
			s.used = true
			s.markGone(role(r))
		}
	}
	// A creator that stops leaves the heads to those who still look at them.
	if s.used && s.held == [2]*net.UnixConn{} && !s.stopped {
		s.next()
	}
}

// markGone marks the head of a role whose process has ended, and wakes both sides.
func (s *server) markGone(r role) {
	h := s.ring.area.head(r)
	if h.status.Load() != statusClosed {
		h.status.Store(statusDied)
	}
	for _, f := range s.ring.fds {
		ring(f)
	}
}

// next starts the next generation, with those who wait for it.
func (s *server) next() {
	s.used = false
	s.ring.area.restart()
	waiting := s.waiting
	s.waiting = nil
	for _, w := range waiting {
		s.give(w.conn, w.role)
	}
}
