//go:build unix

package ring

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/internal/fault"
)

// Writer is the writing side of a ring. One goroutine uses it at a time; Close
// may be called by another.
type Writer struct {
	*side
	pos     uint64 // the packet under the head
	reader  int64  // the reader's head, as last seen
	started bool

	hasReader, hasRoom func() (bool, error) // made once: waiting allocates nothing
}

// Writer takes the writing side. ErrBusy if it is taken. Where the side before
// has died or closed, it waits until the reader has left as well: both start
// anew, in the next generation.
func (r *Ring) Writer(ctx context.Context) (*Writer, error) {
	s, err := r.attach(ctx, roleWriter)
	if err != nil {
		return nil, err
	}
	w := &Writer{side: s}
	w.hasReader, w.hasRoom, w.next = w.readerThere, w.room, w.ready
	return w, nil
}

// Close gives the side up: the reader gets EOF after the last packet that was
// committed. It is idempotent.
func (w *Writer) Close() error {
	w.close()
	return nil
}

// Reserve returns the payload of the packet under the head, to be written in place. It never waits:
// the packet is the writer's until Commit. Its contents before that are arbitrary. Nil once the
// side is closed or of no use any more.
func (w *Writer) Reserve() []byte {
	w.call.Lock()
	defer w.call.Unlock()
	if w.failed() != nil {
		return nil
	}
	_, payload := w.ring.area.at(w.pos)
	return payload
}

// Commit publishes the first n bytes of what Reserve returned and moves the head
// on; while the reader stands on the packet after it, it waits. With an
// error nothing is published, and Commit may be called again. ErrTooLarge if n
// is more than a packet carries; ErrReaderClosed, ErrPeerDied, ErrCorrupt and
// ErrClosed are for good.
func (w *Writer) Commit(ctx context.Context, n int) error {
	if n < 0 || n > w.ring.Payload() {
		return fmt.Errorf("ring %q: commit of %d bytes, at most %d: %w", w.ring.name, n, w.ring.Payload(), ErrTooLarge)
	}
	w.call.Lock()
	defer w.call.Unlock()
	return w.commit(ctx, n)
}

// commit is Commit. Must hold call.
func (w *Writer) commit(ctx context.Context, n int) error {
	if err := w.failed(); err != nil {
		return err
	}
	if !w.started {
		if err := w.wait(ctx, w.hasReader); err != nil {
			return err
		}
		w.start()
	}
	w.label(n)
	if ok, err := w.room(); err != nil {
		return err
	} else if !ok {
		if err := w.wait(ctx, w.hasRoom); err != nil {
			return err
		}
	}
	w.pos++
	w.move(w.pos)
	return nil
}

// WriteBatch publishes copies of packets, each as one, and returns how many: all of
// them without an error. With [ErrMemory] the next one cannot be read. The head moves once for as many as there is room for, which
// for small packets is several times as fast as a Write of each.
func (w *Writer) WriteBatch(ctx context.Context, packets [][]byte) (int, error) {
	for _, p := range packets {
		if len(p) > w.ring.Payload() {
			return 0, fmt.Errorf("ring %q: packet of %d bytes, at most %d: %w", w.ring.name, len(p), w.ring.Payload(), ErrTooLarge)
		}
	}
	w.call.Lock()
	defer w.call.Unlock()
	if err := w.failed(); err != nil {
		return 0, err
	}
	n := 0
	for n < len(packets) {
		if ok, err := w.next(); err != nil {
			return n, err
		} else if !ok {
			if err := w.wait(ctx, w.next); err != nil {
				return n, err
			}
		}
		if !w.started {
			w.start()
		}
		if w.rooms() < len(packets)-n {
			if err := w.see(); err != nil {
				return n, err
			}
		}
		more := packets[n : n+min(len(packets)-n, w.rooms())]
		before := w.pos
		there := fault.Try(func() { w.fill(more) })
		w.move(w.pos)
		n += int(w.pos - before)
		if !there {
			return n, w.unreachable()
		}
	}
	return n, nil
}

// fill copies packets to under the head and moves on by as many. Must hold call.
func (w *Writer) fill(packets [][]byte) {
	for _, p := range packets {
		_, payload := w.ring.area.at(w.pos)
		w.label(copy(payload, p))
		w.pos++
	}
}

// rooms is how many packets the head may move on by, as far as is known.
func (w *Writer) rooms() int {
	return int(w.reader + int64(w.ring.area.packets) - 1 - int64(w.pos))
}

// TryCommit is [Writer.Commit] without waiting: false if the head cannot move on yet, because no
// reader has attached or the ring is full. See [Poll] for waiting on several writers at once.
func (w *Writer) TryCommit(n int) (bool, error) {
	if n < 0 || n > w.ring.Payload() {
		return false, fmt.Errorf("ring %q: commit of %d bytes, at most %d: %w", w.ring.name, n, w.ring.Payload(), ErrTooLarge)
	}
	w.call.Lock()
	defer w.call.Unlock()
	if err := w.failed(); err != nil {
		return false, err
	}
	if ok, err := w.look(w.next); !ok {
		return false, err
	}
	if !w.started {
		w.start()
	}
	w.label(n)
	w.pos++
	w.move(w.pos)
	return true, nil
}

// Wake lets the reader's present or next Poll return: the
// two share an event beside the ring.
func (w *Writer) Wake() { ring(w.ring.fds[roleReader]) }

// start publishes that the writer runs. Must hold call.
func (w *Writer) start() {
	w.mine.pos.Store(0)
	w.mine.status.Store(statusRunning)
	w.started = true
}

// label writes the header of the packet under the head. Must hold call.
func (w *Writer) label(n int) {
	p, _ := w.ring.area.at(w.pos)
	*p = packet{Number: w.pos + 1, Length: uint32(n)}
}

// ready reports whether the head may move on, whatever that takes.
func (w *Writer) ready() (bool, error) {
	if !w.started {
		if ok, err := w.readerThere(); !ok {
			return false, err
		}
	}
	return w.room()
}

// Write publishes a copy of p as one packet; see Commit. Nothing is published if p cannot be read
// ([ErrMemory]).
func (w *Writer) Write(ctx context.Context, p []byte) error {
	if len(p) > w.ring.Payload() {
		return fmt.Errorf("ring %q: packet of %d bytes, at most %d: %w", w.ring.name, len(p), w.ring.Payload(), ErrTooLarge)
	}
	w.call.Lock()
	defer w.call.Unlock()
	if err := w.failed(); err != nil {
		return err
	}
	_, payload := w.ring.area.at(w.pos)
	n, err := fault.Copy(payload, p)
	if err != nil {
		return w.unreachable()
	}
	return w.commit(ctx, n)
}

// Flush waits until the reader has released every packet that was committed.
func (w *Writer) Flush(ctx context.Context) error {
	w.call.Lock()
	defer w.call.Unlock()
	if err := w.failed(); err != nil {
		return err
	}
	return w.wait(ctx, func() (bool, error) {
		done := w.far.done.Load()
		if done > w.pos {
			return false, w.corrupt("the reader released %d of %d packets", done, w.pos)
		}
		return done == w.pos, nil
	})
}

// readerThere reports whether a reader has attached.
func (w *Writer) readerThere() (bool, error) {
	return w.far.status.Load() != statusInit, nil
}

// room reports whether the head may move on: the reader's head does not stand
// on the packet after it.
func (w *Writer) room() (bool, error) {
	if w.rooms() > 0 {
		return true, nil
	}
	if err := w.see(); err != nil {
		return false, err
	}
	return w.rooms() > 0, nil
}

// see looks where the reader's head stands.
func (w *Writer) see() error {
	at := w.far.pos.Load() // SYNC: ring position
	if at < w.reader || at > 0 && at >= int64(w.pos) {
		return w.corrupt("the reader went from %d to %d, the writer is at %d", w.reader, at, w.pos)
	}
	w.reader = at
	return nil
}
