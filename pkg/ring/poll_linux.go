package ring

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poll waits for several sides of rings at once, where a call of each would have
// to wait for its own. One goroutine uses it at a time, but for Wake; no side in it
// may be closed while Wait runs.
type Poll struct {
	epoll  *os.File // is readable when one of the events is
	conn   syscall.RawConn
	wake   int // the eventfd that Wake writes
	wait   Wait
	sides  []*Watch
	events []unix.EpollEvent
	drain  func(epoll uintptr) bool // made once: waiting allocates nothing
}

// NewPoll makes a Poll without sides, which waits in the given way.
func NewPoll(w Wait) (*Poll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	p := &Poll{epoll: os.NewFile(uintptr(fd), "ring poll"), wait: w, wake: -1}
	p.drain = p.drained
	if p.conn, err = p.epoll.SyscallConn(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if p.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, errors.Join(fmt.Errorf("make event: %w", err), p.Close())
	}
	if err := p.add(p.wake); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// add has the epoll watch an eventfd.
func (p *Poll) add(event int) error {
	p.events = append(p.events, unix.EpollEvent{})
	var err error
	ctl := func(fd uintptr) {
		e := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(event)}
		err = unix.EpollCtl(int(fd), unix.EPOLL_CTL_ADD, event, &e)
	}
	if cerr := p.conn.Control(ctl); cerr != nil {
		return cerr
	}
	if err != nil {
		return fmt.Errorf("watch event: %w", err)
	}
	return nil
}

// Add makes Wait wait for a side as well, while its Watch is On, as it is at first. It waits for a
// packet if it reads, for room if it writes, for its end in any case.
func (p *Poll) Add(side Side) (*Watch, error) {
	s := side.base()
	raw, err := s.ring.fds[s.role].SyscallConn()
	if err != nil {
		return nil, err
	}
	var added error
	if err := raw.Control(func(fd uintptr) { added = p.add(int(fd)) }); err != nil {
		return nil, err
	}
	if added != nil {
		return nil, added
	}
	w := &Watch{On: true, s: s}
	p.sides = append(p.sides, w)
	return w, nil
}

// Wait returns once a side that is On can continue or has ended, Wake was called, or
// the deadline has passed; the zero time is none. It may return early.
func (p *Poll) Wait(until time.Time) {
	for round := range spins + yields { // then it sleeps in any case: Wake and the time are events
		if p.Ready() {
			return
		}
		if !p.wait.Pause(round) {
			break
		}
	}
	for _, w := range p.sides {
		if w.On {
			w.s.mine.parked.Store(1) // SYNC: ring park
		}
	}
	if !p.Ready() {
		_ = p.epoll.SetReadDeadline(until) // a file in the runtime's poller has deadlines
		_ = p.conn.Read(p.drain)           // an end of whatever kind is found by the next look
	}
	for _, w := range p.sides {
		if w.On {
			w.s.mine.parked.Store(0)
		}
	}
}

// Ready reports whether a side that is On can continue or has ended.
func (p *Poll) Ready() bool {
	for _, w := range p.sides {
		if !w.On {
			continue
		}
		if ok, err := w.s.look(w.s.next); ok || err != nil {
			return true
		}
	}
	return false
}

// drained takes the events that have arrived, and reports whether one has.
func (p *Poll) drained(epoll uintptr) bool {
	n, _ := unix.EpollWait(int(epoll), p.events, 0)
	var b [8]byte
	for i := range max(n, 0) {
		_, _ = unix.Read(int(p.events[i].Fd), b[:])
	}
	return n > 0
}

// Wake has a Wait return that runs, or the next one.
func (p *Poll) Wake() {
	one := [8]byte{1}
	_, _ = unix.Write(p.wake, one[:]) // full: it is readable already
}

// Close frees what the Poll holds. The sides stay as they are.
func (p *Poll) Close() error {
	if p.wake >= 0 {
		_ = unix.Close(p.wake)
	}
	return p.epoll.Close()
}
