package group

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

// lock starts a call: every member makes the same ones in the same order. After
// nil its caller unlocks g.call.
func (g *Group) lock(op operation) error {
	if !g.call.TryLock() {
		return &Error{Op: op.String(), Rank: g.Rank(), Err: ErrBusy}
	}
	return nil
}

// open begins the step of a call. Results of the call before are invalid.
func (g *Group) open(ctx context.Context, op operation) {
	g.op = op
	g.fault = g.revoked
	g.stats.start()
	g.until = time.Time{}
	if g.options.Timeout > 0 {
		g.until = time.Now().Add(g.options.Timeout)
	}
	g.bind(ctx)
	g.releaseHeld()
	g.arena.reset()
	g.ints.reset()
	g.slices.reset()
	g.recall()
}

// begin opens the step of a call, unless there can be none.
func (g *Group) begin(ctx context.Context, op operation) error {
	if err := g.ready(ctx); err != nil {
		return g.report(op, err)
	}
	g.open(ctx, op)
	return nil
}

// ready returns why no call may begin.
func (g *Group) ready(ctx context.Context) error {
	switch {
	case g.closed.Load():
		return ErrClosed
	case g.broken != nil:
		return about(fmt.Errorf("%w: %w", ErrBroken, g.broken.Err), g.broken.Ranks...)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ErrCanceled, context.Cause(ctx))
	}
	return nil
}

// bind has the end of ctx wake this member. Calls with the same context again
// cost nothing. Contexts themselves need not be comparable.
func (g *Group) bind(ctx context.Context) {
	g.ctx = ctx
	done := ctx.Done()
	if done == g.waker.done || done == nil {
		return
	}
	if g.waker.stop != nil {
		g.waker.stop()
	}
	g.waker.done, g.waker.stop = done, context.AfterFunc(ctx, g.link.Wake)
}

// end finishes a call. An error breaks the group: the others are notified.
func (g *Group) end(err error) error {
	if err == nil {
		err = g.leftover()
	}
	g.stats.finish(err)
	if err == nil {
		g.step++
		return nil
	}
	failed := g.report(g.op, err)
	g.broken = failed
	g.sends.drop()
	g.withdraw()
	g.revoke(failed)
	return failed
}

// leftover finds frames of this step that nobody took.
func (g *Group) leftover() error {
	if g.fault != nil {
		return g.fault
	}
	if rank, some := g.inbox.first(); some {
		return aboutf([]int{rank}, ErrDisagree, "a second %v in this step", g.op)
	}
	return nil
}

// report makes an *Error of the failure of op.
func (g *Group) report(op operation, err error) *Error {
	var e *Error
	if !errors.As(err, &e) {
		e = about(err)
	}
	e.Op, e.Rank, e.Step = op.String(), g.member.rank, g.step
	return e
}

// revoke notifies the others that this member gave the epoch up, as far as there
// is room: who has none learns it by its deadline, or when this member leaves. In a
// join their error names the ranks that this member missed.
func (g *Group) revoke(why *Error) {
	var missed []byte
	if g.op == opHello && errors.Is(why, ErrLate) {
		for _, rank := range why.Ranks[:min(len(why.Ranks), missedMost)] {
			missed = binary.LittleEndian.AppendUint32(missed, uint32(rank))
		}
	}
	for rank, at := range g.member.link {
		if rank != g.member.rank && g.gone[at] == nil {
			_, _ = g.link.TrySend(at, g.header(opRevoke, 0, 0), missed)
		}
	}
}

func (g *Group) header(op operation, tag uint16, f frameFlags) frameHeader {
	return frameHeader{Step: g.step, Epoch: g.epoch, Op: op, Tag: tag, Flags: f}
}

// poll takes one frame from the link into g.frame; some is false if there is
// none. mine means that it is of this step.
func (g *Group) poll() (mine, some bool) {
	if !g.link.TryReceive(&g.frame) {
		return false, false
	}
	return g.accept(&g.frame), true
}

// accept sorts a frame that arrived. True leaves it to the caller: it is of this
// step, and its From is a rank of the group.
func (g *Group) accept(f *frame) bool {
	at := f.From
	switch {
	case f.End != nil:
		g.gone[at] = f.End
		g.lost++
	case f.Epoch > g.epoch:
		g.postpone(f)
		return false
	case f.Epoch < g.epoch || g.member.of[at] < 0:
		// of a group that is no more
	case f.Op >= opControl:
		g.control(f, g.member.of[at])
	case f.Step > g.step:
		g.postpone(f)
		return false
	case f.Step < g.step || f.Op != g.op:
		g.fail(aboutf([]int{g.member.of[at]}, ErrDisagree, "%v in step %d, here it is %v", f.Op, f.Step, g.op))
	default:
		f.From = g.member.of[at]
		g.stats.received(len(f.Data))
		return true
	}
	g.giveBack(f)
	return false
}

// postpone keeps a frame of a later step, and with it its place on the link. A
// proposal of the next epoch says that its sender gave this one up, and which step: one that it has
// finished ends here as well. A frame of an epoch beyond that: a member that joins or flushes is
// about to begin the epoch before.
func (g *Group) postpone(f *frame) {
	if f.Op == opPropose && f.Epoch == g.epoch+1 && f.Step <= g.step && g.member.of[f.From] >= 0 {
		g.fail(about(ErrRevoked, g.member.of[f.From]))
	}
	g.later = append(g.later, *f)
}

// recall looks at the frames that were kept for this step.
func (g *Group) recall() {
	all := g.later
	g.later = g.later[:0]
	for i := range all {
		g.frame = all[i]
		if g.accept(&g.frame) {
			g.inbox.put(&g.frame)
		}
	}
	clear(all[len(g.later):])
}

// control handles a frame that is not part of a step.
func (g *Group) control(f *frame, from int) {
	switch f.Op {
	case opAck:
		g.acks[from]--
	case opLast:
		g.lastAt[from] = f.Step + 1
	case opCredit:
		g.credit[from] = f.Step
	case opRevoke:
		g.revoked = about(ErrRevoked, from)
		g.missedBy(f.Data)
		if f.Step <= g.step { // else it has finished this one
			g.fail(g.revoked)
		}
	}
}

// fail has the step end with err, unless something ended it before.
func (g *Group) fail(err *Error) {
	if g.fault == nil {
		g.fault = err
	}
}

// progress does what can be done without waiting: it takes what has arrived and
// sends what there is room for. False: there was nothing.
func (g *Group) progress() bool {
	did := false
	for {
		mine, some := g.poll()
		if !some {
			break
		}
		did = true
		if mine {
			g.inbox.put(&g.frame)
		}
	}
	return g.flushSends() || did
}

// Values that stand for several ranks in place of one.
const (
	// anySource is every source.
	anySource = -1
	everyone  = -2
)

// await waits until something arrives. on is whom it waits for, which is what an
// error names: a rank, or anySource for all from which nothing was received in this step.
// It fails when time is up, and when a member has ended that is waited for or did
// not leave in peace.
func (g *Group) await(on int) error { return g.awaitFrames(on, 1) }

// awaitAll is await for an algorithm that has no use for a frame before the others are there.
// Nobody may need an answer to one meanwhile.
func (g *Group) awaitAll(on int) error {
	frames := 1
	if on < 0 && g.exchange.each == nil && g.options.Handler == nil {
		frames = g.exchange.missing
	}
	return g.awaitFrames(on, frames)
}

func (g *Group) awaitFrames(on, frames int) error {
	if err := g.trouble(on); err != nil {
		return err
	}
	from := g.stats.clock()
	g.wait(frames)
	g.stats.waited(from)
	return nil
}

// trouble returns why waiting makes no sense.
func (g *Group) trouble(on int) error {
	switch {
	case g.fault != nil:
		return g.fault
	case g.closed.Load():
		return ErrClosed
	case g.flushing && g.flushed():
		return errFlushed
	case g.ctx.Err() != nil:
		reason := ErrCanceled
		if errors.Is(g.ctx.Err(), context.DeadlineExceeded) {
			reason = ErrLate
		}
		return about(fmt.Errorf("%w: %w", reason, context.Cause(g.ctx)), g.awaited(on)...)
	case !g.until.IsZero() && !time.Now().Before(g.until):
		return about(ErrLate, g.awaited(on)...)
	case g.lost > 0:
		return g.missing(on)
	case g.op != opExchange && g.near != nil:
		if from, some := g.poster(); some {
			return aboutf([]int{from}, ErrDisagree, "%v in step %d, here it is %v", opExchange, g.step, g.op)
		}
	}
	return nil
}

// awaited lists the ranks that on stands for.
func (g *Group) awaited(on int) []int {
	if on >= 0 {
		return []int{on}
	}
	var ranks []int
	for r := range g.member.size() {
		if r != g.member.rank && !g.heard(r) && (on == everyone || g.isSource[r]) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// missing returns an error about members that are lost: those that died, those that
// are waited for, and in a flush those that never said where their data end.
func (g *Group) missing(on int) error {
	var dead []int
	for rank, at := range g.member.link {
		if g.gone[at] == ErrGone || g.gone[at] != nil && g.flushing && g.lastAt[rank] == 0 {
			dead = append(dead, rank)
		}
	}
	if len(dead) == 0 {
		for _, rank := range g.awaited(on) {
			if g.gone[g.member.link[rank]] != nil && !g.flushedAndLeft(rank) {
				dead = append(dead, rank)
			}
		}
	}
	if len(dead) > 0 {
		return about(ErrGone, dead...)
	}
	return nil
}

// flushedAndLeft reports whether a member that left may have flushed to the end. Then
// all have flushed, and the word of one from which this member has nothing yet is on its
// way; it shows whether this exchange counts.
func (g *Group) flushedAndLeft(rank int) bool {
	return g.flushing && g.lastAt[rank] > 0 && slices.Contains(g.lastAt, 0)
}

// hold keeps a frame until the next call.
func (g *Group) hold(f *frame) {
	g.held = append(g.held, *f)
	g.held[len(g.held)-1].From = g.member.link[f.From] // as the link knows it
}

func (g *Group) releaseHeld() {
	if g.expects != nil {
		g.expects.giveBack()
	}
	for i := range g.held {
		g.giveBack(&g.held[i])
	}
	clear(g.held)
	g.held = g.held[:0]
}

// copied is the Lease of a frame that the link has back already.
type copied struct{}

// giveBack gives a frame back to the link, as the link knows it.
func (g *Group) giveBack(f *frame) {
	if _, own := f.Lease.(copied); !own {
		g.link.Release(f)
	}
}

// release gives a frame of this step back to the link.
func (g *Group) release(f *frame) {
	g.back = *f
	g.back.From = g.member.link[f.From]
	g.giveBack(&g.back)
}
