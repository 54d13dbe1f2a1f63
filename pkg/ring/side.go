//go:build unix

package ring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Side is a [Reader] or a [Writer].
type Side interface {
	// base seals the interface.
	base() *side
}

func (s *side) base() *side { return s }

// Watch is the part of a side in a Poll.
type Watch struct {
	// On is whether Wait waits for the side.
	On bool
	s  *side
}

// side is what a writer and a reader have in common: the role they hold, the
// two heads, and how they wait.
type side struct {
	ring *Ring
	role role
	mine *head
	far  *head
	next func() (bool, error) // whether this side could continue; made once
	conn *net.UnixConn        // holds the role
	gone atomic.Bool          // the creator of the ring is lost
	end  atomic.Pointer[error]

	// call is held during a call: the memory is not unmapped under it.
	call sync.Mutex

	once sync.Once
	done chan struct{} // closed when the watch of conn has ended
}

// attach takes a role of the ring.
func (r *Ring) attach(ctx context.Context, as role) (*side, error) {
	conn, err := claimRole(ctx, r.name, as)
	if err != nil {
		return nil, fmt.Errorf("ring %q: %v: %w", r.name, as, err)
	}
	s := &side{ring: r, role: as, conn: conn, done: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = conn.Close()
		return nil, fmt.Errorf("ring %q: %v: %w", r.name, as, ErrClosed)
	}
	s.mine, s.far = r.area.head(as), r.area.head(as.other())
	r.sides[s] = true
	go s.watch()
	return s, nil
}

// watch waits for the end of the ring's creator.
func (s *side) watch() {
	defer close(s.done)
	b := make([]byte, 1)
	for {
		if _, err := s.conn.Read(b); err != nil {
			s.gone.Store(true)
			ring(s.ring.fds[s.role])
			return
		}
	}
}

// close gives the role up. Calls that wait end with ErrClosed.
func (s *side) close() { s.giveUp(true) }

// giveUp is close, which says so in the memory or leaves what is there.
func (s *side) giveUp(closed bool) {
	s.once.Do(func() {
		s.latch(ErrClosed)
		ring(s.ring.fds[s.role]) // a call of this side that sleeps
		s.call.Lock()            // the last call has left, and later ones find the latch
		defer s.call.Unlock()
		if closed { // only now: the first call of a side stores a status of its own
			s.mine.status.Store(statusClosed)
		}
		s.wake()
		// The creator closes the connection once it has recorded the role as free: the next process
		// that attaches after this call gets it.
		_ = s.conn.SetReadDeadline(time.Now().Add(askTime))
		_ = s.conn.CloseWrite()
		<-s.done
		_ = s.conn.Close()
		s.ring.mu.Lock()
		delete(s.ring.sides, s)
		s.ring.mu.Unlock()
	})
}

// latch makes err the outcome of every later call, unless there is one.
func (s *side) latch(err error) error {
	err = fmt.Errorf("ring %q: %v: %w", s.ring.name, s.role, err)
	if s.end.CompareAndSwap(nil, &err) {
		return err
	}
	return *s.end.Load()
}

// failed returns why this side is of no use any more.
func (s *side) failed() error {
	if e := s.end.Load(); e != nil {
		return *e
	}
	return nil
}

// corrupt latches that the far side published nonsense.
func (s *side) corrupt(format string, args ...any) error {
	return s.latch(fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...)))
}

// unreachable returns the error of a call whose buffer cannot be reached.
func (s *side) unreachable() error {
	return fmt.Errorf("ring %q: %v: %w", s.ring.name, s.role, ErrMemory)
}

// farEnd returns why the far side will do no more, nil while it may.
func (s *side) farEnd() error {
	switch s.far.status.Load() {
	case statusClosed:
		if s.role == roleReader {
			return EOF
		}
		return ErrReaderClosed
	case statusDied:
		return ErrPeerDied
	}
	if s.gone.Load() {
		return fmt.Errorf("%w: the process that created the ring", ErrPeerDied)
	}
	return nil
}

// ring writes an event, which wakes the process that sleeps on it.
func ring(f *os.File) {
	one := [8]byte{1}
	_, _ = f.Write(one[:]) // full: it is readable already
}

// move publishes the head's new position and wakes the far side if it sleeps.
func (s *side) move(pos uint64) {
	s.mine.pos.Store(int64(pos)) // SYNC: ring position, ring park
	s.wake()
}

// wake wakes the far side if it sleeps. The state that it waits for was stored before.
func (s *side) wake() {
	if s.far.parked.Load() != 0 && s.far.parked.Swap(0) != 0 {
		ring(s.ring.fds[s.role.other()])
	}
}

// look reports whether ready is true, or why it never will.
func (s *side) look(ready func() (bool, error)) (bool, error) {
	over := s.farEnd() // before the look: what was published precedes the end
	ok, err := ready()
	switch {
	case err != nil || ok:
		return ok, err
	case s.failed() != nil:
		return false, s.failed()
	case over == nil || errors.Is(over, EOF):
		return false, over
	}
	return false, s.latch(over)
}

// wait returns once ready is true. ready must be cheap; an error of it, the
// end of ctx and the end of the far side end the wait.
func (s *side) wait(ctx context.Context, ready func() (bool, error)) error {
	for round := 0; ; round++ {
		if ok, err := s.look(ready); ok || err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("ring %q: %v: %w", s.ring.name, s.role, context.Cause(ctx))
		}
		if !s.ring.wait.Pause(round) {
			s.park(ctx, ready)
		}
	}
}

// park sleeps until the far side moves, something ends, or ctx does.
func (s *side) park(ctx context.Context, ready func() (bool, error)) {
	s.mine.parked.Store(1) // SYNC: ring park
	defer s.mine.parked.Store(0)
	if ok, err := ready(); ok || err != nil || s.farEnd() != nil || s.failed() != nil {
		return
	}
	f := s.ring.fds[s.role]
	if ctx.Done() != nil {
		defer fdpass.Interrupt(ctx, f.SetReadDeadline)()
	}
	var b [8]byte
	_, _ = f.Read(b[:]) // an end of whatever kind is found by the next look
}
