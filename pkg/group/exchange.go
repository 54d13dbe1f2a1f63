package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/internal/fault"
)

// Exchange is one step: it gives out to the others and returns what they have
// for this member, in any order, one package for each source that has any
// bytes. All members call it; the algorithm decides how far one may be ahead.
//
// out has at most one package for a rank, and its bytes must not change before the call returns; no
// bytes are no package. The returned packages are this member's, to change as well, until its next
// call, which uses the memory again; so does a call that fails, and Close, after which memory of
// [Rings] must not be read. [Options.ZeroCopy] has other rules for both. After warm-up a step
// allocates nothing.
//
// With an error nothing is handed over. Arguments that make no sense change
// nothing (ErrRank, ErrEventSize); every other error breaks the group: see
// [Group.Shrink].
func (g *Group) Exchange(ctx context.Context, out []Package) ([]Package, error) {
	if err := g.run(ctx, out, nil); err != nil {
		return nil, err
	}
	return g.exchange.in, nil
}

// Packages is [Group.Exchange] that yields each package as it arrives; a package
// is valid until the next call. An error ends it, after packages that have been
// yielded. A loop that breaks off gets no more packages, but the step continues to
// its end.
func (g *Group) Packages(ctx context.Context, out []Package) iter.Seq2[Package, error] {
	return func(yield func(Package, error) bool) {
		more := true
		err := g.run(ctx, out, func(p Package) { more = more && yield(p, nil) })
		if err != nil && more {
			yield(Package{}, err)
		}
	}
}

// run is one exchange.
func (g *Group) run(ctx context.Context, out []Package, each func(Package)) error {
	if err := g.lock(opExchange); err != nil {
		return err
	}
	defer g.call.Unlock()
	return g.locked(ctx, out, each)
}

// locked is run for a caller that has locked the group.
func (g *Group) locked(ctx context.Context, out []Package, each func(Package)) error {
	err := g.ready(ctx)
	if err == nil {
		err = g.accepts(out)
	}
	if err != nil {
		return g.report(opExchange, err)
	}
	g.open(ctx, opExchange)
	return g.end(g.step1(each))
}

// step1 runs the algorithm once.
func (g *Group) step1(each func(Package)) error {
	x := &g.exchange
	x.each, x.in, x.missing = each, x.in[:0], len(g.sources)
	x.handled = each != nil || g.options.Handler != nil
	x.looking, x.untaken = false, nil
	err := g.exchanger.Exchange(&x.step)
	if err == nil {
		err = x.step.WaitAll()
	}
	if err == nil && x.missing > 0 {
		err = aboutf(g.awaited(anySource), ErrOptions, "algorithm %s ended before they were heard", g.algorithm.Name)
	}
	if err != nil {
		return err
	}
	g.exchanges++
	for _, from := range g.silent { // it has no other way to know how far this member is
		g.send(from, frameHeader{Step: g.exchanges, Epoch: g.epoch, Op: opCredit}, nil)
	}
	return nil
}

// accepts checks what is to be sent and notes where it is.
func (g *Group) accepts(out []Package) error {
	x := &g.exchange
	x.out = out
	x.outOf += maxSize // what outAt says of the call before is less
	for i := range out {
		p := &out[i]
		switch size := g.options.EventSize; {
		case p.Rank < 0 || p.Rank >= g.member.size():
			return aboutf([]int{p.Rank}, ErrRank, "a group of %d members", g.member.size())
		case p.Rank == g.member.rank:
			return aboutf([]int{p.Rank}, ErrRank, "a package to oneself")
		case !g.isTarget[p.Rank]:
			return aboutf([]int{p.Rank}, ErrRank, "it is no target of this member")
		case x.outAt[p.Rank] >= x.outOf:
			return aboutf([]int{p.Rank}, ErrRank, "it has two packages")
		case size > 0 && len(p.Data)%size != 0:
			return aboutf([]int{p.Rank}, ErrEventSize, "%d bytes, events of %d", len(p.Data), size)
		}
		x.outAt[p.Rank] = x.outOf + uint64(i)
	}
	at := 0
	readable := fault.Try(func() {
		for ; at < len(out); at++ {
			fault.Read(out[at].Data)
		}
	})
	if !readable {
		return aboutf([]int{out[at].Rank}, ErrMemory, "a package of %d bytes", len(out[at].Data))
	}
	return nil
}

// errFlushed ends a step that nobody needs any more.
var errFlushed = errors.New("all members have flushed")

// Flush announces that this member has no more data, and yields what the others still
// have for it, step by step, until all of them have flushed. Afterwards the group
// is as after Join; who has no more to do may leave. An error ends it, as one of
// Exchange; a member that left without having flushed is one (ErrGone).
func (g *Group) Flush(ctx context.Context) iter.Seq2[[]Package, error] {
	return func(yield func([]Package, error) bool) {
		for more := true; ; {
			done, err := g.flushStep(ctx)
			if err != nil {
				if more {
					yield(nil, err)
				}
				return
			}
			if done {
				return
			}
			more = more && yield(g.exchange.in, nil)
		}
	}
}

// flushStep is an exchange of a member without data, as long as anybody has some.
func (g *Group) flushStep(ctx context.Context) (done bool, err error) {
	if err := g.lock(opExchange); err != nil {
		return false, err
	}
	defer g.call.Unlock()
	if err := g.begin(ctx, opExchange); err != nil {
		return false, err
	}
	_ = g.accepts(nil) // nothing has nothing wrong
	if !g.flushing {
		g.flushing = true
		g.lastAt[g.member.rank] = g.exchanges + 1
		for to := range g.member.size() {
			if to != g.member.rank {
				g.send(to, frameHeader{Step: g.exchanges, Epoch: g.epoch, Op: opLast}, nil)
			}
		}
	}
	if err = errFlushed; !g.flushed() {
		if err = g.lostInFlush(); err == nil {
			err = g.step1(nil)
		}
	}
	if !errors.Is(err, errFlushed) {
		return false, g.end(err)
	}
	if err := g.startOver(); err != nil {
		return false, g.end(err)
	}
	return true, nil
}

// lostInFlush returns an error about members that ended without a word of where their
// data end: a flush of others that need not wait for them would never end.
func (g *Group) lostInFlush() error {
	if g.lost == 0 {
		return nil
	}
	return g.missing(g.member.rank) // waited for: nobody
}

// flushed reports whether the exchanges with data of all are over.
func (g *Group) flushed() bool {
	return !slices.Contains(g.lastAt, 0) && g.exchanges >= slices.Max(g.lastAt)-1
}

// startOver begins the next epoch with the same members. The last exchange with
// data has the same number at all of them; one that has ended, or only begun,
// after it moved nothing: it does not count, and what is under way of it is
// dropped when it arrives.
func (g *Group) startOver() error {
	g.flushing = false
	g.releaseInbox()
	g.sends.drop()
	if err := g.drain(); err != nil { // what this member has said of its end
		return err
	}
	g.step -= g.exchanges - (slices.Max(g.lastAt) - 1)
	g.nextEpoch(g.epoch + 1)
	return nil
}

// nextEpoch begins an epoch. Frames of the one before are dropped as they arrive.
func (g *Group) nextEpoch(epoch uint32) {
	g.releaseInbox()
	g.epoch, g.exchanges = epoch, 0
	g.revoked = nil
	clear(g.lastAt)
	clear(g.credit)
	clear(g.acks)
	clear(g.exchange.heardIn)
	g.exchanger = g.algorithm.start()
}

func (g *Group) releaseInbox() {
	var f frame
	for rank := range g.member.size() {
		for g.inbox.take(rank, &f) {
			g.release(&f)
		}
	}
	g.inbox.first() // starts its order anew
}

// helloFormat is what all members must say alike.
const helloFormat = "size %d, events of %d bytes, buffer %d, zero copy %t, algorithm %s"

// hello reports to the others how this member joined, and compares how they did.
func (g *Group) hello(ctx context.Context) error {
	g.call.Lock()
	defer g.call.Unlock()
	timeout := g.options.Timeout
	g.options.Timeout = g.options.JoinTimeout
	g.open(ctx, opHello)
	g.options.Timeout = timeout
	err := g.greet()
	switch {
	case errors.Is(err, ErrDisagree):
		g.linger()
	case errors.Is(err, ErrRevoked) && len(g.missed) > 0:
		err = g.missedByOthers()
	}
	if err := g.end(err); err != nil {
		return err
	}
	g.nextEpoch(1)
	g.step = 0
	g.stats.joined()
	return nil
}

// missedMost is how many ranks a member that gives a join up names to the others.
const missedMost = 16

// missedBy keeps the ranks that another member, which gives a join up, says that it missed.
func (g *Group) missedBy(said []byte) {
	for ; g.op == opHello && len(said) >= 4 && len(g.missed) < missedMost; said = said[4:] {
		if rank := binary.LittleEndian.Uint32(said); rank < uint32(g.member.size()) {
			g.missed = append(g.missed, int(rank))
		}
	}
}

// missedByOthers is the error of a join that another member gave up because it was late: about the
// ranks that one of the two missed.
func (g *Group) missedByOthers() error {
	by := g.fault.Ranks[0]
	ranks := append(g.awaited(everyone), g.missed...)
	slices.Sort(ranks)
	ranks = slices.DeleteFunc(slices.Compact(ranks), func(rank int) bool { return rank == by })
	return about(fmt.Errorf("%w: rank %d waits no longer", ErrLate, by), ranks...)
}

func (g *Group) greet() error {
	o := &g.options
	s := &g.exchange.step
	own := fmt.Sprintf(helloFormat, o.Size, o.EventSize, o.Buffer, o.ZeroCopy, o.Algorithm)
	for to := range o.Size {
		if to != o.Rank { // first how it sees the other: target, source
			s.start(to, 0, 0, append([]byte{flag(g.isTarget[to]), flag(g.isSource[to])}, own...))
		}
	}
	for range o.Size - 1 {
		var f frame
		if err := s.receiveOf(everyone, &f); err != nil {
			return err
		}
		if err := g.agrees(&f, own); err != nil {
			return err
		}
		g.exchange.heardIn[f.From] = g.step + 1
		s.Release(&f)
	}
	c := g.collective()
	c.tag = 1
	return c.barrier() // nobody joins where others do not
}

// lingerTime is how long a member that refuses to join stays to say why.
const lingerTime = time.Second

// linger waits until the others have received how this member wanted to join.
func (g *Group) linger() {
	g.until = time.Now().Add(lingerTime)
	for g.sends.steps > 0 && time.Now().Before(g.until) && g.ctx.Err() == nil && !g.closed.Load() {
		if !g.progress() {
			g.link.Wait(1, g.until)
		}
	}
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// agrees compares how another member joined with how this one did.
func (g *Group) agrees(f *frame, own string) error {
	at := []int{f.From}
	if len(f.Data) < 2 {
		return aboutf(at, ErrDisagree, "it said %d bytes", len(f.Data))
	}
	if theirs := string(f.Data[2:]); theirs != own {
		return aboutf(at, ErrDisagree, "it has %s; here it is %s", theirs, own)
	}
	if f.Data[0] != flag(g.isSource[f.From]) || f.Data[1] != flag(g.isTarget[f.From]) {
		return aboutf(at, ErrDisagree, "its targets and sources do not fit this member's")
	}
	return nil
}
