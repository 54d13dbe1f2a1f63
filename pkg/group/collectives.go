package group

import (
	"context"
	"encoding/binary"

	"github.com/nfcomms/nfcomms/internal/fault"
)

// The collectives run in rounds of doubling distance, in which what a member
// knows doubles: log n rounds, and each member receives each byte once. Phases of
// one step are distinguished by tags, a round each.

// Barrier returns once every member has called it.
func (g *Group) Barrier(ctx context.Context) error {
	if err := g.lock(opBarrier); err != nil {
		return err
	}
	defer g.call.Unlock()
	if err := g.begin(ctx, opBarrier); err != nil {
		return err
	}
	return g.end(g.collective().barrier())
}

// Allgather gives data to all members and returns what each gave, by rank. All give the same number
// of bytes: ErrDisagree names one that does not. The returned slices are valid until the next call.
func (g *Group) Allgather(ctx context.Context, data []byte) ([][]byte, error) {
	if err := g.lock(opAllgather); err != nil {
		return nil, err
	}
	defer g.call.Unlock()
	if err := g.beginWith(ctx, opAllgather, data); err != nil {
		return nil, err
	}
	sizes := g.ints.take(g.member.size())
	for i := range sizes {
		sizes[i] = len(data)
	}
	c := g.collective()
	all, err := c.gather(data, sizes)
	return all, g.end(err)
}

// Allgatherv is Allgather of any number of bytes from each.
func (g *Group) Allgatherv(ctx context.Context, data []byte) ([][]byte, error) {
	if err := g.lock(opAllgather); err != nil {
		return nil, err
	}
	defer g.call.Unlock()
	if err := g.beginWith(ctx, opAllgather, data); err != nil {
		return nil, err
	}
	c := g.collective()
	sizes, err := c.sizes(len(data))
	if err != nil {
		return nil, g.end(err)
	}
	all, err := c.gather(data, sizes)
	return all, g.end(err)
}

// Reduce combines what the members give into acc of the root, in a tree: op
// combines another member's bytes into acc, in whatever order, so it must be
// associative and commutative. acc of the others is used up. All give the same
// number of bytes.
func (g *Group) Reduce(ctx context.Context, root int, acc []byte, op func(acc, in []byte)) error {
	if err := g.lock(opReduce); err != nil {
		return err
	}
	defer g.call.Unlock()
	if root < 0 || root >= g.member.size() {
		return g.report(opReduce, aboutf([]int{root}, ErrRank, "a group of %d members", g.member.size()))
	}
	if !fault.Writable(acc) {
		return g.report(opReduce, aboutf(nil, ErrMemory, "%d bytes", len(acc)))
	}
	if err := g.begin(ctx, opReduce); err != nil {
		return err
	}
	return g.end(g.collective().reduce(root, acc, op))
}

// beginWith is begin of a step that gives data, once they can be read.
func (g *Group) beginWith(ctx context.Context, op operation, data []byte) error {
	if !fault.Try(func() { fault.Read(data) }) {
		return g.report(op, aboutf(nil, ErrMemory, "%d bytes", len(data)))
	}
	return g.begin(ctx, op)
}

// collective is a step made of gathers; its tags count the rounds.
type collective struct {
	*exchangeStep
	tag uint16
}

func (g *Group) collective() *collective {
	g.exchange.collective = collective{exchangeStep: &g.exchange.step}
	return &g.exchange.collective
}

func (c *collective) barrier() error {
	n := c.Size()
	var f frame
	for d := 1; d < n; d *= 2 {
		c.start((c.Rank()+d)%n, c.tag, 0, nil)
		if err := c.receive((c.Rank()-d+n)%n, c.tag, &f); err != nil {
			return err
		}
		c.Release(&f)
		c.tag++
	}
	return c.WaitAll()
}

// sizes gathers one number of each member.
func (c *collective) sizes(own int) ([]int, error) {
	const word = 8
	n := c.Size()
	same := c.g.ints.take(n)
	for i := range same {
		same[i] = word
	}
	b := c.g.bytes(word)
	binary.LittleEndian.PutUint64(b, uint64(own))
	all, err := c.gather(b, same)
	if err != nil {
		return nil, err
	}
	for i, b := range all {
		if same[i], err = shareSize(i, b); err != nil {
			return nil, err
		}
	}
	return same, nil
}

// maxShare bounds what a member has for all in one step; room is made for as much as it
// says.
const maxShare = 4 << 30

// shareSize reads the size that a member says.
func shareSize(from int, b []byte) (int, error) {
	size := binary.LittleEndian.Uint64(b)
	if size > maxShare {
		return 0, aboutf([]int{from}, ErrDisagree, "%d bytes for all, at most %d", size, maxShare)
	}
	return int(size), nil
}

// gather gives data to all and returns what each gave, by rank; sizes is how
// much that is. The bytes are in rotated order, own first, so that each round
// sends a prefix and appends what it receives.
func (c *collective) gather(data []byte, sizes []int) ([][]byte, error) {
	n, rank := c.Size(), c.Rank()
	ends := c.g.ints.take(n) // ends[i] is where the bytes of rank+i end
	total := 0
	for i := range n {
		total += sizes[(rank+i)%n]
		ends[i] = total
	}
	buf := c.g.bytes(total)
	copy(buf, data)
	var f frame
	for have := 1; have < n; {
		d := have
		some := min(have, n-have)
		c.start((rank-d+n)%n, c.tag, 0, buf[:ends[some-1]])
		from := (rank + d) % n
		if err := c.receive(from, c.tag, &f); err != nil {
			return nil, err
		}
		want := buf[ends[have-1]:ends[have+some-1]]
		if len(f.Data) != len(want) {
			got := len(f.Data)
			c.Release(&f)
			return nil, aboutf([]int{from}, ErrDisagree, "%d bytes of %d members, here it is %d", got, some, len(want))
		}
		copy(want, f.Data)
		c.Release(&f)
		have += some
		c.tag++
	}
	return c.parts(buf, ends), c.WaitAll()
}

// parts cuts a gathered buffer by rank.
func (c *collective) parts(buf []byte, ends []int) [][]byte {
	n, rank := c.Size(), c.Rank()
	all := c.g.slices.take(n)
	from := 0
	for i, end := range ends {
		all[(rank+i)%n] = buf[from:end:end]
		from = end
	}
	return all
}

func (c *collective) reduce(root int, acc []byte, op func(acc, in []byte)) error {
	n := c.Size()
	at := (c.Rank() - root + n) % n // in the tree, the root is 0
	var f frame
	for d := 1; d < n; d *= 2 {
		if at&d != 0 {
			c.start((at-d+root)%n, 0, 0, acc)
			return c.WaitAll()
		}
		if at+d >= n {
			continue
		}
		from := (at + d + root) % n
		if err := c.receive(from, 0, &f); err != nil {
			return err
		}
		if len(f.Data) != len(acc) {
			got := len(f.Data)
			c.Release(&f)
			return aboutf([]int{from}, ErrDisagree, "%d bytes, here it is %d", got, len(acc))
		}
		op(acc, f.Data)
		c.Release(&f)
	}
	return nil
}
