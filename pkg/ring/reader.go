//go:build unix

package ring

import (
	"context"
	"fmt"
)

// Reader is the reading side of a ring. One goroutine uses it at a time; Close
// may be called by another.
type Reader struct {
	*side
	pos     uint64 // the packet under the head
	writer  int64  // the writer's head, as last seen
	started bool
	payload []byte // of the packet under the head, nil once it was released
}

// Reader takes the reading side. ErrBusy if it is taken; for the rest see
// [Ring.Writer].
func (r *Ring) Reader(ctx context.Context) (*Reader, error) {
	s, err := r.attach(ctx, roleReader)
	if err != nil {
		return nil, err
	}
	s.mine.pos.Store(0)
	s.mine.status.Store(statusWaiting)
	s.wake()
	d := &Reader{side: s}
	d.next = d.more
	return d, nil
}

// Close gives the side up: the writer gets ErrReaderClosed. It is idempotent.
func (d *Reader) Close() error {
	d.close()
	return nil
}

// Peek returns the next packet where it lies, and waits for it. The same packet
// is returned until Release. The bytes stay valid until the next Peek after
// Release; the writer, if it is hostile, may change them meanwhile.
//
// EOF once the writer closed and every packet was released, ErrPeerDied once it
// died and every packet was. ErrCorrupt and ErrClosed are for good.
func (d *Reader) Peek(ctx context.Context) ([]byte, error) {
	d.call.Lock()
	defer d.call.Unlock()
	return d.peek(ctx)
}

// peek is Peek. Must hold call.
func (d *Reader) peek(ctx context.Context) ([]byte, error) {
	if err := d.failed(); err != nil {
		return nil, err
	}
	if d.payload != nil {
		return d.payload, nil
	}
	if ok, err := d.more(); err != nil {
		return nil, err
	} else if !ok {
		if err := d.wait(ctx, d.next); err != nil {
			return nil, err
		}
	}
	return d.take()
}

// TryPeek is [Reader.Peek] for who does not wait: false if no packet is there
// yet. See [Poll] for waiting on several readers at once.
func (d *Reader) TryPeek() ([]byte, bool, error) {
	d.call.Lock()
	defer d.call.Unlock()
	if err := d.failed(); err != nil {
		return nil, false, err
	}
	if d.payload != nil {
		return d.payload, true, nil
	}
	if ok, err := d.look(d.next); !ok {
		return nil, false, err
	}
	p, err := d.take()
	return p, err == nil, err
}

// take moves the head to the next packet, which is there. Must hold call.
func (d *Reader) take() ([]byte, error) {
	if d.started {
		d.pos++
		d.move(d.pos) // the packet before is free
	} else {
		d.started = true
		d.mine.status.Store(statusRunning)
	}
	p, payload := d.ring.area.at(d.pos)
	got := *p // one copy, checked below
	if got.Number != d.pos+1 || int64(got.Length) > int64(len(payload)) {
		return nil, d.corrupt("packet %d says it is %d, of %d bytes", d.pos+1, got.Number, got.Length)
	}
	d.payload = payload[:got.Length:got.Length]
	return d.payload, nil
}

// Release is through with the packet that Peek returned: the next Peek moves on.
// Without a packet it does nothing.
func (d *Reader) Release() {
	d.call.Lock()
	defer d.call.Unlock()
	d.release()
}

// release is Release. Must hold call.
func (d *Reader) release() {
	if d.payload == nil || d.failed() != nil {
		return
	}
	d.payload = nil
	d.mine.done.Store(d.pos + 1)
	d.wake()
}

// Read copies the next packet into p and releases it. It returns its length;
// with ErrTooLarge p is too short and the packet stays.
func (d *Reader) Read(ctx context.Context, p []byte) (int, error) {
	d.call.Lock()
	defer d.call.Unlock()
	packet, err := d.peek(ctx)
	if err != nil {
		return 0, err
	}
	if len(packet) > len(p) {
		return 0, fmt.Errorf("ring %q: packet of %d bytes, buffer of %d: %w", d.ring.name, len(packet), len(p), ErrTooLarge)
	}
	n := copy(p, packet)
	d.release()
	return n, nil
}

// more reports whether the packet after the head is published: the writer's
// head is past it.
func (d *Reader) more() (bool, error) {
	next := int64(d.pos)
	if d.started {
		next++
	}
	if d.writer > next {
		return true, nil
	}
	at := d.far.pos.Load() // SYNC: ring position
	if at == posInit && !d.started {
		return false, nil
	}
	if at < d.writer || at > int64(d.pos)+int64(d.ring.area.packets)-1 {
		return false, d.corrupt("the writer went from %d to %d, the reader is at %d", d.writer, at, d.pos)
	}
	d.writer = at
	return at > next, nil
}
