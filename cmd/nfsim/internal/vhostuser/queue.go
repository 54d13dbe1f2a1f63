package vhostuser

import "golang.org/x/sys/unix"

// Flags of descriptors and of the driver's ring.
const (
	descNext  = 1
	descWrite = 2

	noInterrupt = 1
	descSize    = 16
)

// maxChain is the most bytes a chain moves one way: an operation and its data.
const maxChain = opSize + maxAccess

// queue is a split virtqueue.
type queue struct {
	size              uint16 // 0: not set up
	desc, avail, used area
	taken, given      uint16 // indices, as in the rings
	waiting           uint16 // chains to take, when look looked
	quiet             bool   // then: the driver wants no calls
	ready, enabled    bool
}

// area is where one part of a queue lies in a file of guest memory.
type area struct {
	file int
	at   int64
}

func (a area) read(offset int, p []byte) error { return all(unix.Pread, a.file, p, a.at+int64(offset)) }
func (a area) write(offset int, p []byte) error {
	return all(unix.Pwrite, a.file, p, a.at+int64(offset))
}

// chain is what the driver hands over: bytes to read, and room for an answer.
type chain struct {
	head uint16
	out  []byte
	in   []span
	room int // of in
}

// span is a piece of guest memory.
type span struct {
	address uint64
	size    int
}

// look finds out how many chains there are to take.
func (q *queue) look() error {
	var head [4]byte
	if err := q.avail.read(0, head[:]); err != nil {
		return err
	}
	q.quiet = order.Uint16(head[:])&noInterrupt != 0
	q.waiting = order.Uint16(head[2:]) - q.taken
	if q.waiting > q.size {
		return malformed("%d buffers in a queue of %d", q.waiting, q.size)
	}
	return nil
}

// next takes a chain of those that wait.
func (q *queue) next(m memory) (*chain, error) {
	var entry [2]byte
	if err := q.avail.read(4+2*int(q.taken%q.size), entry[:]); err != nil {
		return nil, err
	}
	q.taken++
	q.waiting--
	return q.follow(m, order.Uint16(entry[:]))
}

// follow reads the chain that starts at a descriptor. What the driver changes
// later is not seen.
func (q *queue) follow(m memory, head uint16) (*chain, error) {
	c := &chain{head: head}
	at := head
	for range q.size {
		var d [descSize]byte
		if at >= q.size {
			return nil, malformed("descriptor %d in a queue of %d", at, q.size)
		}
		if err := q.desc.read(descSize*int(at), d[:]); err != nil {
			return nil, err
		}
		address, size, flags := order.Uint64(d[:]), order.Uint32(d[8:]), order.Uint16(d[12:])
		if err := c.add(m, address, size, flags); err != nil {
			return nil, err
		}
		if flags&descNext == 0 {
			return c, nil
		}
		at = order.Uint16(d[14:])
	}
	return nil, malformed("a chain of more than %d descriptors", q.size)
}

// add takes one descriptor: those to read come first.
func (c *chain) add(m memory, address uint64, size uint32, flags uint16) error {
	switch {
	case flags&^(descNext|descWrite) != 0:
		return malformed("descriptor flags %#x", flags)
	case size == 0 || size > maxChain:
		return malformed("descriptor of %d bytes", size)
	case flags&descWrite != 0:
		if c.room += int(size); c.room > maxChain {
			return malformed("room for %d bytes", c.room)
		}
		if _, _, err := m.find(address, uint64(size), byGuest); err != nil {
			return err
		}
		c.in = append(c.in, span{address, int(size)})
		return nil
	case len(c.in) > 0:
		return malformed("bytes to read after those to write")
	case len(c.out)+int(size) > maxChain:
		return malformed("%d bytes to read", len(c.out)+int(size))
	}
	from := len(c.out)
	c.out = append(c.out, make([]byte, size)...)
	return m.read(address, c.out[from:])
}

// answer writes p to the room of a chain, which has enough.
func (c *chain) answer(m memory, p []byte) error {
	for _, s := range c.in {
		n := min(s.size, len(p))
		if err := m.write(s.address, p[:n]); err != nil {
			return err
		}
		p = p[n:]
	}
	return nil
}

// give returns a chain with n bytes written.
func (q *queue) give(c *chain, n int) error {
	e := order.AppendUint32(nil, uint32(c.head))
	e = order.AppendUint32(e, uint32(n))
	if err := q.used.write(4+8*int(q.given%q.size), e); err != nil {
		return err
	}
	q.given++
	return q.used.write(2, order.AppendUint16(nil, q.given))
}
