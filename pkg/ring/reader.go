//go:build unix

package ring

import (
	"context"
	"fmt"

	"github.com/nfcomms/nfcomms/internal/fault"
)

// Reader is the reading side of a ring. One goroutine uses it at a time; Close
// may be called by another.
type Reader struct {
	*side
	pos    uint64 // the packet under the head
	taken  uint64 // packets from there on that were looked at, 0 before the first
	writer int64  // the writer's head, as last seen
	// payload is that of the packet under the head, nil once it was released.
	payload []byte
}

// Reader takes the reading side. ErrBusy if it is taken; for the rest see
// [Ring.Writer].
func (r *Ring) Reader(ctx context.Context) (*Reader, error) {
	s, err := r.attach(ctx, roleReader)
	if err != nil {
		return nil, err
	}
	d := &Reader{side: s}
	d.next = d.more
	if err := d.start(); err != nil {
		return nil, err
	}
	return d, nil
}

// start publishes that the reader waits for the first packet, unless the side or the ring was closed: then
// the heads may be another pair's, or not be mapped.
func (d *Reader) start() error {
	d.call.Lock()
	defer d.call.Unlock()
	if err := d.failed(); err != nil {
		return err
	}
	d.mine.pos.Store(0)
	d.mine.status.Store(statusWaiting)
	d.wake()
	return nil
}

// Close gives the side up: the writer gets ErrReaderClosed. It is idempotent.
func (d *Reader) Close() error {
	d.close()
	return nil
}

// Peek returns the next packet in place, and waits for it. The same packet
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

// TryPeek is [Reader.Peek] without waiting: false if no packet is there yet. See [Poll] for waiting
// on several readers at once.
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

// PeekBatch is Peek for several packets: it fills into with those that are there, waits for the
// first, and returns how many. Release returns all of them, and the head moves past them at once.
// Fewer packets have room meanwhile, and a stream of small ones is several times as fast. Packets
// that were not released are returned again, first.
func (d *Reader) PeekBatch(ctx context.Context, into [][]byte) (int, error) {
	d.call.Lock()
	defer d.call.Unlock()
	if len(into) == 0 {
		return 0, d.failed()
	}
	first, err := d.peek(ctx)
	if err != nil {
		return 0, err
	}
	into[0] = first
	n := 1
	for next := d.pos + 1; n < len(into) && (next < d.pos+d.taken || int64(next) < d.writer); next++ {
		if into[n], err = d.contents(next); err != nil {
			return 0, err
		}
		n++
	}
	d.taken = max(d.taken, uint64(n))
	return n, nil
}

// take moves the head to the next packet, which is there. Must hold call.
func (d *Reader) take() ([]byte, error) {
	if d.taken > 0 {
		d.pos++
		d.move(d.pos) // the packet before is free
	} else {
		d.mine.status.Store(statusRunning)
	}
	d.taken = 1
	p, err := d.contents(d.pos)
	d.payload = p
	return p, err
}

// contents is the payload of a packet that was published. Must hold call.
func (d *Reader) contents(n uint64) ([]byte, error) {
	p, payload := d.ring.area.at(n)
	got := *p // one copy, checked below
	if got.Number != n+1 || int64(got.Length) > int64(len(payload)) {
		return nil, d.corrupt("packet %d says it is %d, of %d bytes", n+1, got.Number, got.Length)
	}
	return payload[:got.Length:got.Length], nil
}

// Release is through with what Peek or PeekBatch returned: the next one moves on.
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
	if d.taken > 1 { // the head stays on the last one, as after a Peek
		d.pos, d.taken = d.pos+d.taken-1, 1
		d.mine.pos.Store(int64(d.pos)) // SYNC: ring position, ring park
	}
	d.mine.done.Store(d.pos + 1)
	d.wake()
}

// Read copies the next packet into p and releases it. It returns its length;
// with ErrTooLarge p is too short, with ErrMemory it cannot be written, and the packet stays.
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
	n, err := fault.Copy(p, packet)
	if err != nil {
		return 0, d.unreachable()
	}
	d.release()
	return n, nil
}

// more reports whether the packet after the head is published: the writer's
// head is past it.
func (d *Reader) more() (bool, error) {
	next := int64(d.pos + d.taken)
	if d.writer > next {
		return true, nil
	}
	at := d.far.pos.Load() // SYNC: ring position
	if at == posInit && d.taken == 0 {
		return false, nil
	}
	if at < d.writer || at > int64(d.pos)+int64(d.ring.area.packets)-1 {
		return false, d.corrupt("the writer went from %d to %d, the reader is at %d", d.writer, at, d.pos)
	}
	d.writer = at
	return at > next, nil
}
