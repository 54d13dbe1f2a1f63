//go:build unix

package ring

import (
	"context"
	"fmt"
	"os"

	"github.com/nfcomms/nfcomms/internal/fdpass"
)

// Holder holds a side for another, which makes the moves in the memory itself, as a process of a device
// does. It passes wake-ups on. One goroutine calls Wait at a time; the rest
// is safe for concurrent use.
type Holder struct {
	s   *side
	mem *os.File // of the ring's memory
}

// HoldWriter takes the writing side for another. For errors see [Ring.Writer].
func (r *Ring) HoldWriter(ctx context.Context) (*Holder, error) { return r.hold(ctx, roleWriter) }

// HoldReader takes the reading side for another.
func (r *Ring) HoldReader(ctx context.Context) (*Holder, error) { return r.hold(ctx, roleReader) }

func (r *Ring) hold(ctx context.Context, as role) (*Holder, error) {
	s, err := r.attach(ctx, as)
	if err != nil {
		return nil, err
	}
	h := &Holder{s, r.mem}
	if h.mem == nil {
		h.mem, err = r.fetchMemory(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return h, nil
}

// fetchMemory asks the process that created the ring for its memory, which Open had and closed: few
// rings have a holder. Another ring may have the name by now.
func (r *Ring) fetchMemory(ctx context.Context) (*os.File, error) {
	files, err := fetch(ctx, r.name)
	if err != nil {
		return nil, fmt.Errorf("ring %q: %w", r.name, err)
	}
	_, _ = files[1].Close(), files[2].Close()
	if is, err := files[0].Stat(); err != nil || !os.SameFile(is, r.is) {
		_ = files[0].Close()
		return nil, fmt.Errorf("ring %q: %w: another has its name", r.name, ErrPeerDied)
	}
	return files[0], nil
}

// File is the ring's memory, by the layout of docs/ring.md. It belongs to the holder.
func (h *Holder) File() *os.File { return h.mem }

// Wait sleeps until the other side wakes this one, and returns nil; it may do so without a reason. An
// error is the end of ctx, ErrClosed, or ErrPeerDied: the process that created the ring has ended.
func (h *Holder) Wait(ctx context.Context) error {
	h.s.call.Lock() // the files stay open
	defer h.s.call.Unlock()
	if err := h.s.failed(); err != nil {
		return err
	}
	f := h.s.ring.fds[h.s.role]
	defer fdpass.Interrupt(ctx, f.SetReadDeadline)()
	var b [8]byte
	_, err := f.Read(b[:])
	switch {
	case h.s.failed() != nil:
		return h.s.failed()
	case h.s.gone.Load():
		return h.s.latch(fmt.Errorf("%w: the process that created the ring", ErrPeerDied))
	case ctx.Err() != nil:
		return fmt.Errorf("ring %q: %v: %w", h.s.ring.name, h.s.role, context.Cause(ctx))
	}
	return err
}

// Wake wakes the other side, if it sleeps.
func (h *Holder) Wake() { ring(h.s.ring.fds[h.s.role.other()]) }

// Ended reports whether the side was closed in the memory.
func (h *Holder) Ended() bool {
	r := h.s.ring
	r.mu.Lock() // keeps the mapping
	defer r.mu.Unlock()
	return !r.closed && h.s.mine.status.Load() == statusClosed
}

// Close gives the role up, when nobody makes moves any more: the other side sees the close, or, where
// the side was not closed in the memory, a death. It is idempotent.
func (h *Holder) Close() error {
	h.s.giveUp(false)
	if h.s.ring.mem == nil {
		_ = h.mem.Close()
	}
	return nil
}
