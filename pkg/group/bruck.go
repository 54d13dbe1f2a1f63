package group

import "encoding/binary"

// bruck is the multi-step method: in round k a member sends to the one 2^k ahead
// all packages with at least that far to travel, in one frame. Packages travel over
// up to log n members, who need no more than log n frames each.
type bruck struct {
	blocks  []block
	buffers [][]byte // one for each round: what it sends
}

// block is a package on its way.
type block struct {
	to, from int
	data     []byte
}

func (b *bruck) Exchange(s *exchangeStep) error {
	b.blocks = b.blocks[:0]
	for _, p := range s.g.exchange.out {
		if len(p.Data) > 0 {
			b.blocks = append(b.blocks, block{p.Rank, s.Rank(), p.Data})
		}
	}
	n := s.Size()
	for round, d := 0, 1; d < n; round, d = round+1, 2*d {
		s.start((s.Rank()+d)%n, uint16(round), 0, b.leaving(s, round))
		var f frame
		if err := s.receive((s.Rank()-d+n)%n, uint16(round), &f); err != nil {
			return err
		}
		if err := b.arrived(s, &f); err != nil {
			return err
		}
	}
	return b.deliver(s)
}

// leaving takes out the blocks that are sent in a round, as one frame.
func (b *bruck) leaving(s *exchangeStep, round int) []byte {
	if round == len(b.buffers) {
		b.buffers = append(b.buffers, nil)
	}
	out := b.buffers[round][:0]
	kept := b.blocks[:0]
	for _, p := range b.blocks {
		if ahead := (p.to - s.Rank() + s.Size()) % s.Size(); ahead>>round&1 == 0 {
			kept = append(kept, p)
			continue
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(p.to))
		out = binary.LittleEndian.AppendUint32(out, uint32(p.from))
		out = binary.LittleEndian.AppendUint64(out, uint64(len(p.data)))
		out = append(out, p.data...)
		out = append(out, padding[:padded(len(out))-len(out)]...)
	}
	b.blocks, b.buffers[round] = kept, out
	return out
}

// arrived adds the blocks of a frame, which is held until the next call: each
// round receives from another source.
func (b *bruck) arrived(s *exchangeStep, f *frame) error {
	s.g.hold(f)
	n := uint32(s.Size())
	for rest := f.Data; len(rest) > 0; {
		if len(rest) < entryHeader {
			return aboutf([]int{f.From}, ErrDisagree, "a frame that ends in %d bytes", len(rest))
		}
		to, from := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint32(rest[4:])
		size := binary.LittleEndian.Uint64(rest[8:])
		rest = rest[entryHeader:]
		if to >= n || from >= n || size > uint64(len(rest)) {
			return aboutf([]int{f.From}, ErrDisagree, "a package of %d bytes from rank %d to rank %d", size, from, to)
		}
		b.blocks = append(b.blocks, block{int(to), int(from), rest[:size:size]})
		rest = rest[min(padded(int(size)), len(rest)):]
	}
	return nil
}

// deliver hands over the blocks, which are all at their targets, and counts the
// sources that sent none.
func (b *bruck) deliver(s *exchangeStep) error {
	for i := range b.blocks {
		p := &b.blocks[i]
		if p.to != s.Rank() || !s.Awaits(p.from) {
			return aboutf([]int{p.from}, ErrDisagree, "a package for rank %d, or a second one", p.to)
		}
		if err := s.found(&frame{From: p.from, Data: p.data}); err != nil {
			return err
		}
	}
	for _, from := range s.Sources() {
		if err := s.found(&frame{From: from}); err != nil {
			return err
		}
	}
	return nil
}
