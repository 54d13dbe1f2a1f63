//go:build unix

package ring

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of a ring.
const (
	// MinPackets is the least size: of two packets the heads would wait for
	// each other for ever.
	MinPackets = 3
	// defaultPackets is a prime, so that a packet of one lap differs from
	// the same packet of the lap before in any pattern.
	defaultPackets = 61
	// defaultPacketSize is that of the report.
	defaultPacketSize = 8 << 10

	maxPackets = 1 << 30
	maxPacket  = 1 << 30
)

// Config is what Create makes. The zero value is valid.
type Config struct {
	// Packets is the size of the ring, at least MinPackets; 0 means 61.
	// It holds one packet less.
	Packets int
	// PacketSize is in bytes, a multiple of the page; 0 means 8 KiB.
	// 16 bytes of it are the packet's header.
	PacketSize int
	// Prewarm touches all memory at once, so that the first lap does not pay
	// for it.
	Prewarm bool
	// Wait is how sides wait that are opened through this Ring.
	Wait Wait
}

// Options are how a process uses a ring that another created. The zero value
// is valid.
type Options struct {
	// Wait is how the sides wait that are opened through this Ring.
	Wait Wait
	// Prewarm maps all memory at once, as that of Config does for the process
	// that creates the ring: each process has page tables of its own.
	Prewarm bool
}

// Ring is a ring that this process created or opened. Its methods are safe for
// concurrent use.
type Ring struct {
	name string
	area *area
	wait Wait
	fds  [2]*os.File // by role: the eventfd that wakes it
	mem  *os.File    // nil where the ring is another process's
	is   os.FileInfo // which file the memory is, where it is another process's
	own  *server     // nil where the ring is another process's

	firstTouch time.Duration // what Prewarm took; 0 without it

	mu     sync.Mutex
	sides  map[*side]bool
	closed bool
}

// Create makes a ring under a name, which other processes of this user open, and
// serves it until Close. ErrExists if the name is taken, ErrConfig for sizes
// that make no sense.
func Create(name string, c Config) (*Ring, error) {
	if c.Packets == 0 {
		c.Packets = defaultPackets
	}
	if c.PacketSize == 0 {
		c.PacketSize = defaultPacketSize
	}
	s, err := newShape(c.Packets, c.PacketSize)
	if err == nil {
		err = checkName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("create ring %q: %w", name, err)
	}
	r := &Ring{name: name, wait: c.Wait, sides: make(map[*side]bool)}
	if err := r.make(s, c.Prewarm); err != nil {
		r.release()
		return nil, fmt.Errorf("create ring %q: %w", name, err)
	}
	if r.own, err = serve(r); err != nil {
		r.release()
		return nil, fmt.Errorf("create ring %q: %w", name, err)
	}
	return r, nil
}

// make allocates what a ring consists of.
func (r *Ring) make(s shape, prewarm bool) error {
	fd, err := newMemory()
	if err != nil {
		return fmt.Errorf("make shared memory: %w", err)
	}
	r.mem = os.NewFile(uintptr(fd), "ring memory")
	if err := r.mem.Truncate(int64(s.bytes())); err != nil {
		return fmt.Errorf("make %d bytes of shared memory: %w", s.bytes(), err)
	}
	if err := seal(fd); err != nil {
		return fmt.Errorf("seal shared memory: %w", err)
	}
	for i := range r.fds {
		efd, err := newEvent()
		if err != nil {
			return fmt.Errorf("make event: %w", err)
		}
		r.fds[i] = os.NewFile(uintptr(efd), "ring event")
	}
	if r.area, err = mapArea(fd, s); err != nil {
		return err
	}
	if prewarm {
		if err := r.prewarm(); err != nil {
			return err
		}
	}
	r.area.init()
	return nil
}

// prewarm makes all pages present in this process, without a change of what they
// hold.
func (r *Ring) prewarm() error {
	start := time.Now()
	if err := populate(r.area.mem); err != nil {
		return fmt.Errorf("touch %d bytes: %w", len(r.area.mem), err)
	}
	r.firstTouch = time.Since(start)
	return nil
}

// Open attaches to the ring that another process created under a name, and
// waits that long for an answer. ErrNotExist if there is none, ErrPermission if
// it belongs to another user, ErrVersion or ErrPeer if it is not one that this
// package can use.
func Open(ctx context.Context, name string, o Options) (*Ring, error) {
	if err := checkName(name); err != nil {
		return nil, fmt.Errorf("open ring %q: %w", name, err)
	}
	r := &Ring{name: name, wait: o.Wait, sides: make(map[*side]bool)}
	files, err := fetch(ctx, name)
	if err == nil {
		defer files[0].Close() // the mapping keeps the memory
		r.fds[roleWriter], r.fds[roleReader] = files[1], files[2]
		var s shape
		if s, err = checkArea(int(files[0].Fd())); err == nil {
			r.area, err = mapArea(int(files[0].Fd()), s)
		}
		if err == nil {
			r.is, err = files[0].Stat()
		}
	}
	if err == nil && o.Prewarm {
		err = r.prewarm()
	}
	if err != nil {
		r.release()
		return nil, fmt.Errorf("open ring %q: %w", name, err)
	}
	return r, nil
}

// Name returns the name that the ring was created under.
func (r *Ring) Name() string { return r.name }

// Packets and Payload return the ring's size in packets and the bytes that one
// packet carries.
func (r *Ring) Packets() int { return int(r.area.packets) }

// Payload returns how many bytes a packet carries.
func (r *Ring) Payload() int { return r.area.payload() }

// Memory returns the memory of the packets, for processes that share memory by rules of
// their own and take neither side. It must not be used after Close.
func (r *Ring) Memory() []byte { return r.area.mem[r.area.data:] }

// Stats are the counters that a ring has for any attached process. All of it is read from memory
// that the sides write, and checked by nobody.
type Stats struct {
	// Generation grows each time both roles were given up.
	Generation uint64
	// Writer and Reader are the packets the heads stand on, -42 before a
	// side has started; Lag is how many are published and not yet released.
	Writer, Reader int64
	Lag            uint64
	// FirstTouch is what touching all memory took this process, 0 if it was not
	// done.
	FirstTouch time.Duration
}

// Stats reads the heads. It disturbs nobody.
func (r *Ring) Stats() (Stats, error) {
	r.mu.Lock() // keeps the mapping
	defer r.mu.Unlock()
	if r.closed {
		return Stats{}, fmt.Errorf("ring %q: %w", r.name, ErrClosed)
	}
	w, d := r.area.head(roleWriter), r.area.head(roleReader)
	s := Stats{
		Generation: atomic.LoadUint64(r.area.generation()),
		Reader:     d.pos.Load(), Writer: w.pos.Load(),
		FirstTouch: r.firstTouch,
	}
	if done := d.done.Load(); s.Writer > 0 && uint64(s.Writer) > done {
		s.Lag = uint64(s.Writer) - done
	}
	return s, nil
}

// Close gives the ring up: sides that this process holds are closed, and if it
// created the ring, the sides of others fail with ErrPeerDied. It is
// idempotent. Packets that Peek or Reserve returned must not be used afterwards.
func (r *Ring) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil
	}
	r.closed = true
	sides := make([]*side, 0, len(r.sides))
	for s := range r.sides {
		sides = append(sides, s)
	}
	r.mu.Unlock()
	for _, s := range sides { // before one side notifies the other of its end
		_ = s.latch(ErrClosed)
	}
	for _, s := range sides {
		s.close()
	}
	if r.own != nil {
		r.own.stop()
	}
	r.release()
	return nil
}

// release frees what make or Open got.
func (r *Ring) release() {
	if r.area != nil {
		r.area.unmap()
	}
	for _, f := range []*os.File{r.mem, r.fds[0], r.fds[1]} {
		if f != nil {
			_ = f.Close() // nothing is buffered
		}
	}
}
