package group

import "encoding/binary"

// The algorithms that give everything to everybody. The packages that a member has for others are
// one run of bytes, its share: for each package the target and the size, 8 bytes each, and the
// data, padded. Each member looks through all shares for what is its own.

const entryHeader = 16

// share writes this member's packages into one run of bytes.
func (s *exchangeStep) share() []byte {
	size := 0
	for _, p := range s.g.exchange.out {
		if len(p.Data) > 0 {
			size += entryHeader + padded(len(p.Data))
		}
	}
	b := s.g.bytes(size)
	at := 0
	for _, p := range s.g.exchange.out {
		if len(p.Data) > 0 {
			binary.LittleEndian.PutUint64(b[at:], uint64(p.Rank))
			binary.LittleEndian.PutUint64(b[at+8:], uint64(len(p.Data)))
			copy(b[at+entryHeader:], p.Data)
			at += entryHeader + padded(len(p.Data))
		}
	}
	return b
}

func padded(n int) int { return (n + align - 1) &^ (align - 1) }

// find hands over what the share of a member has for this one.
func (s *exchangeStep) find(from int, share []byte) error {
	f := frame{From: from}
	for len(share) > 0 {
		if len(share) < entryHeader {
			return aboutf([]int{from}, ErrDisagree, "a share that ends in %d bytes", len(share))
		}
		to, size := binary.LittleEndian.Uint64(share), binary.LittleEndian.Uint64(share[8:])
		share = share[entryHeader:]
		if size > uint64(len(share)) {
			return aboutf([]int{from}, ErrDisagree, "a share with a package of %d bytes in %d", size, len(share))
		}
		if to == uint64(s.Rank()) {
			f.Data = share[:size:size]
		}
		share = share[min(padded(int(size)), len(share)):]
	}
	return s.found(&f)
}

// found counts a source as received and hands over what it has, which is in this
// member's own memory.
func (s *exchangeStep) found(f *frame) error {
	if !s.Awaits(f.From) {
		return nil // no source: it has nothing
	}
	if err := s.hear(f.From, len(f.Data)); err != nil {
		return err
	}
	s.hand(f.From, f.Data)
	return nil
}

// findAll looks through all shares.
func (s *exchangeStep) findAll(shares [][]byte) error {
	for from, share := range shares {
		if from == s.Rank() {
			continue
		}
		if err := s.find(from, share); err != nil {
			return err
		}
	}
	return nil
}

// allgather gathers sizes, then shares (0 and 1).
func allgather(s *exchangeStep) error {
	own := s.share()
	c := s.g.collective()
	sizes, err := c.sizes(len(own))
	if err != nil {
		return err
	}
	if err := s.pause(sum(sizes)); err != nil {
		return err
	}
	shares, err := c.gather(own, sizes)
	if err != nil {
		return err
	}
	return s.findAll(shares)
}

func sum(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}

// fixedBuffer gathers a buffer of a fixed size, in which the size of the share
// and its beginning are; then eight times as much of those that are longer; then
// what is left (7).
func fixedBuffer(s *exchangeStep) error {
	own := s.share()
	c := s.g.collective()
	fixed := max(s.g.options.Buffer, 8)
	first := s.g.bytes(fixed)
	binary.LittleEndian.PutUint64(first, uint64(len(own)))
	sent := copy(first[8:], own)
	same := s.g.ints.take(s.Size())
	for i := range same {
		same[i] = fixed
	}
	heads, err := c.gather(first, same)
	if err != nil {
		return err
	}
	sizes := s.g.ints.take(s.Size())
	for i, b := range heads {
		if sizes[i], err = shareSize(i, b); err != nil {
			return err
		}
	}
	shares := newShares(s, sizes)
	shares.add(heads, 8)
	for _, most := range []int{8 * fixed, 0} {
		if sent, err = shares.more(c, own, sent, most); err != nil {
			return err
		}
	}
	return s.findAll(shares.whole)
}

// chunks gathers sizes, then the shares in chunks of a fixed size (8).
func chunks(s *exchangeStep) error {
	own := s.share()
	c := s.g.collective()
	sizes, err := c.sizes(len(own))
	if err != nil {
		return err
	}
	if err := s.pause(sum(sizes)); err != nil {
		return err
	}
	shares := newShares(s, sizes)
	for sent := 0; shares.left > 0; {
		if sent, err = shares.more(c, own, sent, s.g.options.Buffer); err != nil {
			return err
		}
	}
	return s.findAll(shares.whole)
}

// shares are those of all members, put together from several gathers.
type shares struct {
	s     *exchangeStep
	sizes []int
	whole [][]byte // by rank: room for all of it
	have  []int    // by rank: how much of it has arrived
	left  int      // bytes still to receive, of all
}

func newShares(s *exchangeStep, sizes []int) *shares {
	x := &s.g.exchange.shares
	*x = shares{s, sizes, s.g.slices.take(len(sizes)), s.g.ints.take(len(sizes)), sum(sizes)}
	for i, size := range sizes {
		x.whole[i], x.have[i] = s.g.bytes(size), 0
	}
	return x
}

// add appends what was gathered, after so many bytes of each that are not part of
// it; what is longer than the share is padding.
func (x *shares) add(parts [][]byte, skip int) {
	for i, p := range parts {
		n := copy(x.whole[i][x.have[i]:], p[skip:])
		x.have[i] += n
		x.left -= n
	}
}

// more gathers the next bytes of all shares, at most so many of each, 0: all. It
// returns how much of own was sent.
func (x *shares) more(c *collective, own []byte, sent, most int) (int, error) {
	if x.left == 0 {
		return sent, nil
	}
	g := x.s.g
	defer g.arena.back(g.arena.used, len(g.arena.chunk)) // many chunks use the same memory
	defer g.ints.back(g.ints.used, len(g.ints.chunk))
	defer g.slices.back(g.slices.used, len(g.slices.chunk))
	next := g.ints.take(len(x.sizes))
	for i, size := range x.sizes {
		next[i] = size - x.have[i]
		if most > 0 {
			next[i] = min(next[i], most)
		}
	}
	n := next[x.s.Rank()]
	parts, err := c.gather(own[sent:sent+n], next)
	if err == nil {
		x.add(parts, 0)
	}
	return sent + n, err
}
