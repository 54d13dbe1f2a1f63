package group

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
)

// Shrink continues after a step has failed, without the members that are lost; it
// is called by all that are left, and waits for them. The members that stay keep
// their order and get ranks without gaps; Targets and Sources shrink likewise. No
// frame of a step before arrives any more.
//
// It returns, by new rank, how many steps each member has finished: where they
// differ by one, some have got the packages of the failed step and others have
// not, and the application decides what to repeat. Steps are counted on from the
// largest of them. A member that dies meanwhile may have one call last until others
// are in their next one: count steps, not calls.
//
// The members agree by flooding: each proposes the epoch and the members that are
// lost, takes over what others propose beyond that, and is done when all that are
// left propose the same.
func (g *Group) Shrink(ctx context.Context) ([]uint64, error) {
	if !g.call.TryLock() {
		return nil, &Error{Op: opPropose.String(), Rank: g.Rank(), Err: ErrBusy}
	}
	defer g.call.Unlock()
	g.op, g.fault = opPropose, nil
	g.bind(ctx)
	g.until = time.Now().Add(g.options.JoinTimeout)
	g.releaseHeld()
	g.releaseInbox()
	g.sends.reset(g.member.size())
	a := newAgreement(g)
	a.recall()
	if err := a.reach(); err != nil {
		g.broken = g.report(opPropose, err)
		return nil, g.broken
	}
	return a.enter(), nil
}

// agreement is one Shrink at one member. Ranks are those of the link.
type agreement struct {
	g         *Group
	epoch     uint32
	gone      []byte   // a bit for each rank
	theirs    [][]byte // what each member proposed last, nil: nothing of this epoch
	epochs    []uint32
	steps     []uint64
	announced bool // what this member proposes now has been sent
	changed   bool // what it proposes has, since the frames kept for later were looked at
}

func newAgreement(g *Group) *agreement {
	n := len(g.gone)
	a := &agreement{
		g: g, epoch: g.epoch + 1, gone: make([]byte, (n+7)/8),
		theirs: make([][]byte, n), epochs: make([]uint32, n), steps: make([]uint64, n),
	}
	for at := range n {
		if g.member.of[at] < 0 {
			a.strike(at)
		}
	}
	return a
}

func (a *agreement) strike(at int) {
	a.gone[at/8] |= 1 << (at % 8)
	a.change()
}

// change has this member propose anew. A member that is ahead has agreed on something else then.
func (a *agreement) change() { a.announced, a.changed = false, true }

func (a *agreement) struck(at int) bool { return a.gone[at/8]>>(at%8)&1 != 0 }

// recall looks at the frames that were kept for later steps.
func (a *agreement) recall() {
	all := a.g.later
	a.g.later = a.g.later[:0]
	for i := range all {
		a.g.frame = all[i]
		a.accept(&a.g.frame)
	}
	clear(all[len(a.g.later):])
}

// accept sorts a frame: others may be in the new epoch already.
func (a *agreement) accept(f *frame) {
	g := a.g
	switch {
	case f.End != nil:
		g.gone[f.From] = f.End
		g.lost++
	case f.Op == opPropose && f.Epoch > g.epoch && !a.ahead(f):
		a.heard(f)
	case f.Epoch > g.epoch:
		a.keep(f)
		return
	}
	g.giveBack(f)
}

// keep copies a frame of a later epoch and gives it back: what its member proposes may stand
// behind it, and this member needs that to get there.
func (a *agreement) keep(f *frame) {
	kept := *f
	if _, own := f.Lease.(copied); !own {
		kept.Data, kept.Lease = bytes.Clone(f.Data), copied{}
		a.g.link.Release(f)
	}
	a.g.later = append(a.g.later, kept)
}

// ahead reports whether a member proposes an epoch after the one that it agrees on with
// this one. Either it has finished that agreement, as all have proposed the same: so will
// this member, unless somebody dies. Or it knows of one whose flush had ended, which is
// an epoch further: so will this member.
func (a *agreement) ahead(f *frame) bool { return f.Epoch > a.epoch && a.agrees(f.From) }

// agrees reports whether a member proposes the same as this one.
func (a *agreement) agrees(at int) bool {
	return a.epochs[at] == a.epoch && bytes.Equal(a.theirs[at], a.gone)
}

// heard takes over what a member proposes beyond this one.
func (a *agreement) heard(f *frame) {
	if len(f.Data) != len(a.gone) {
		return // no member of a group that agreed when it joined
	}
	a.theirs[f.From] = bytes.Clone(f.Data)
	a.epochs[f.From], a.steps[f.From] = f.Epoch, f.Step
	if f.Epoch > a.epoch {
		a.epoch = f.Epoch
		a.change()
	}
	for i, bits := range f.Data {
		if bits&^a.gone[i] != 0 {
			a.gone[i] |= bits
			a.change()
		}
	}
}

// reach returns once all that are left propose the same.
func (a *agreement) reach() error {
	g := a.g
	for {
		did := false
		for g.link.TryReceive(&g.frame) {
			a.accept(&g.frame)
			did = true
		}
		for at, end := range g.gone {
			if end != nil && !a.struck(at) {
				a.strike(at)
			}
		}
		if a.changed {
			a.changed = false
			a.recall()
		}
		if a.struck(g.member.link[g.member.rank]) {
			return fmt.Errorf("%w: the others go on without this member", ErrGone)
		}
		if !a.announced {
			a.propose()
		}
		did = g.flushSends() || did
		missing := a.missing()
		if len(missing) == 0 && len(g.sends.queue) == 0 {
			return nil
		}
		if did {
			continue
		}
		if err := a.trouble(missing); err != nil {
			return err
		}
		g.link.Wait(1, g.until)
	}
}

// trouble returns why waiting makes no sense.
func (a *agreement) trouble(missing []int) error {
	g := a.g
	switch {
	case g.closed.Load():
		return ErrClosed
	case g.ctx.Err() != nil:
		return about(fmt.Errorf("%w: %w", ErrCanceled, context.Cause(g.ctx)), missing...)
	case !time.Now().Before(g.until):
		return about(ErrLate, missing...)
	}
	return nil
}

// propose sends it to all that are left. A proposal that waits for room still has an older state.
func (a *agreement) propose() {
	g := a.g
	a.announced = true
	g.sends.reset(g.member.size())
	h := frameHeader{Step: g.step, Epoch: a.epoch, Op: opPropose}
	for rank, at := range g.member.link {
		if rank != g.member.rank && !a.struck(at) {
			g.send(rank, h, bytes.Clone(a.gone))
		}
	}
}

// missing lists the members that do not yet propose the same.
func (a *agreement) missing() []int {
	var ranks []int
	for rank, at := range a.g.member.link {
		if rank != a.g.member.rank && !a.struck(at) && !a.agrees(at) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// enter makes the members that are left the group, and returns their steps.
func (a *agreement) enter() []uint64 {
	g := a.g
	old := g.member
	m := membership{of: slices.Repeat([]int{-1}, len(g.gone))}
	a.steps[old.link[old.rank]] = g.step
	var steps []uint64
	for rank, at := range old.link {
		if a.struck(at) {
			continue
		}
		if rank == old.rank {
			m.rank = len(m.link)
		}
		m.of[at] = len(m.link)
		m.link = append(m.link, at)
		steps = append(steps, a.steps[at])
	}
	still := func(ranks []int) []int {
		kept := []int{}
		for _, r := range ranks {
			if to := m.of[old.link[r]]; to >= 0 {
				kept = append(kept, to)
			}
		}
		return kept
	}
	targets, sources := still(g.targets), still(g.sources)
	g.admit(m)
	_ = g.connectEdges(targets, sources) // a part of what was right
	g.meet()
	g.nextEpoch(a.epoch)
	g.step = slices.Max(steps)
	g.broken, g.fault, g.flushing = nil, nil, false
	g.lost = 0
	return steps
}
