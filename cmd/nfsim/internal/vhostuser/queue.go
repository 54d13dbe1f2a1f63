package vhostuser

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
	desc, avail, used []byte // in guest memory
	taken, given      uint16 // indices, as in the rings
	waiting           uint16 // chains to take, when look looked
	quiet             bool   // then: the driver wants no calls
	silent            uint16 // chains given back without a call or an answer
	ready, enabled    bool
}

// chain is what the driver hands over: bytes to read, and room for an answer.
type chain struct {
	head uint16
	out  []byte
	in   [][]byte
	room int // of in
}

// look finds out how many chains there are to take.
func (q *queue) look() error {
	q.quiet = order.Uint16(q.avail)&noInterrupt != 0
	q.waiting = order.Uint16(q.avail[2:]) - q.taken
	if q.waiting > q.size {
		return malformed("%d buffers in a queue of %d", q.waiting, q.size)
	}
	return nil
}

// next takes a chain of those that wait.
func (q *queue) next(m memory) (*chain, error) {
	entry := q.avail[4+2*int(q.taken%q.size):]
	q.taken++
	q.waiting--
	return q.follow(m, order.Uint16(entry))
}

// follow reads the chain that starts at a descriptor. What the driver changes
// later is not seen.
func (q *queue) follow(m memory, head uint16) (*chain, error) {
	c := &chain{head: head}
	at := head
	for range q.size {
		if at >= q.size {
			return nil, malformed("descriptor %d in a queue of %d", at, q.size)
		}
		var d [descSize]byte
		copy(d[:], q.desc[descSize*int(at):])
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
	if flags&^(descNext|descWrite) != 0 || size == 0 || size > maxChain {
		return malformed("descriptor of %d bytes with flags %#x", size, flags)
	}
	b, err := m.find(address, uint64(size), byGuest)
	switch {
	case err != nil:
		return err
	case flags&descWrite != 0:
		if c.room += len(b); c.room > maxChain {
			return malformed("room for %d bytes", c.room)
		}
		c.in = append(c.in, b)
		return nil
	case len(c.in) > 0:
		return malformed("bytes to read after those to write")
	case len(c.out)+len(b) > maxChain:
		return malformed("%d bytes to read", len(c.out)+len(b))
	}
	c.out = append(c.out, b...)
	return nil
}

// give returns a chain, with p in its room, which is enough.
func (q *queue) give(c *chain, p []byte) {
	size := len(p)
	for _, room := range c.in {
		p = p[copy(room, p):]
	}
	e := q.used[4+8*int(q.given%q.size):]
	order.PutUint32(e, uint32(c.head))
	order.PutUint32(e[4:], uint32(size))
	q.given++
	order.PutUint16(q.used[2:], q.given)
}
