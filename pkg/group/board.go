package group

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"
)

// Members of one Mesh need not send a step: each posts its packages where its targets can see them,
// and looks at the packages that its sources have posted. Small packages are copied to the board. A
// large one stays in the memory of its owner, and the target copies it from there while the owner
// waits. With Options.ZeroCopy all stay, and are read there. A member that is source and target of
// another has released the other's packages when the other has seen its next call.

// perEpoch are the exchanges of an epoch that a board holds. A member overwrites its packages of that
// many exchanges before. No member reads those any more. A source that is also a target has begun the
// exchange before this one, so it holds no view of the one before that. A member that is a target
// alone is one exchange behind (exchangeStep.credit). The next epoch has slates of its own: a member that has
// not begun it may look at one that does not count any more (Group.startOver). The epoch after that
// begins when all have been in the next.
const perEpoch = 4

// board is what a member shows the others. A target looks at two lines of the cache: at
// a slate, which is one, and at its place.
type board [2 * perEpoch]slate

// slate is what was posted in one exchange.
type slate struct {
	mark   atomic.Uint64 // of the exchange; what follows is its owner's to change until then
	step   uint64
	places []place // by place among the targets
	large  int     // how many of them are
	_      [2]uint64
}

// place has the package for one target.
type place struct {
	data  []byte
	to    int32
	state atomic.Uint32 // of a large one
}

// States of a large package.
const (
	offered uint32 = iota
	copying        // by its target
	taken
	withdrawn
)

// mark distinguishes the exchanges that use one slate; 0 is none.
func (g *Group) mark() uint64 { return uint64(g.epoch)<<32 | (g.exchanges+1)&math.MaxUint32 }

// slot is the place of this exchange on every board.
func (g *Group) slot() uint64 { return uint64(g.epoch)%2*perEpoch + g.exchanges%perEpoch }

// peer is a neighbour on the same Mesh.
type peer struct {
	rank   int
	at     int  // of a source: where this member was among its targets
	shared bool // of a target: packages for it stay with this member (Options.ZeroCopy)
	board  *board
	*meshLink
}

// meet finds the neighbours whose boards this member can look at.
func (g *Group) meet() {
	var here bool
	if g.near, here = g.link.(*meshLink); !here {
		return
	}
	g.toPeers, g.fromPeers = g.peers(g.targets), g.peers(g.sources)
	for _, to := range g.targets {
		g.oneWay = g.oneWay || !g.isSource[to]
	}
}

func (g *Group) peers(ranks []int) []peer {
	list := make([]peer, len(ranks))
	for i, rank := range ranks {
		far := &g.near.mesh.members[g.member.link[rank]]
		list[i] = peer{rank: rank, shared: g.options.ZeroCopy && g.isSource[rank], board: far.board, meshLink: far}
	}
	return list
}

// postAll is isend where members can look at each other's boards.
func postAll(s *exchangeStep) error {
	if s.g.near.came.Load() { // what ends a step, or a flush, is a frame
		s.g.progress()
	}
	if err := s.post(); err != nil {
		return err
	}
	next, err := s.inOrder(0)
	for try := 0; try < yields && err == nil && next < len(s.g.fromPeers); try++ {
		from := s.g.stats.clock()
		runtime.Gosched()
		s.g.stats.waited(from)
		next, err = s.inOrder(next)
	}
	if err == nil && next < len(s.g.fromPeers) {
		err = s.asPosted(next)
	}
	if err != nil {
		return err
	}
	return s.awaitTaken()
}

// inOrder hands over what sources have posted, up to one that has not. It returns
// which that is.
func (s *exchangeStep) inOrder(next int) (int, error) {
	g := s.g
	mark, slot := g.mark(), g.slot()
	for peers := g.fromPeers; next < len(peers); next++ {
		p := &peers[next].board[slot]
		if p.mark.Load() != mark {
			break
		}
		if ok, err := s.take(&peers[next], p); !ok {
			return next, err
		}
	}
	return next, nil
}

// asPosted waits for the sources from next on, in any order.
func (s *exchangeStep) asPosted(next int) error {
	x := &s.g.exchange
	x.looking = true
	x.pending = x.pending[:0]
	for ; next < len(s.g.fromPeers); next++ {
		x.pending = append(x.pending, next)
	}
	for {
		some, err := s.look()
		if err != nil || len(x.pending) == 0 {
			return err
		}
		if some || s.g.progress() {
			continue
		}
		if err := s.g.awaitAll(anySource); err != nil {
			return err
		}
	}
}

// post shows the targets what there is for them.
func (s *exchangeStep) post() error {
	g := s.g
	if g.oneWay {
		for _, to := range g.targets {
			if err := s.credit(to); err != nil {
				return err
			}
		}
	}
	slot := g.slot()
	p, room := &g.near.board[slot], &g.near.small[slot]
	if p.step, p.large = g.step, 0; len(p.places) != len(g.toPeers) {
		p.places = make([]place, len(g.toPeers))
	}
	room.reset()
	anyLeft := g.near.mesh.left.Load() > 0
	for i := range g.toPeers {
		to, at := &g.toPeers[i], &p.places[i]
		if anyLeft && to.closed.Load() && !g.flushing {
			g.fail(about(ErrGone, to.rank))
		}
		data := s.Out(to.rank)
		g.stats.sent(len(data))
		switch large := len(data) > smallFrame; {
		case large && to.shared:
			at.state.Store(taken) // in place
		case large:
			at.state.Store(offered)
			p.large++
		case len(data) > 0 && !to.shared:
			small := room.take(padded(len(data)))
			data = small[:copy(small, data)]
		}
		at.data, at.to = data[:len(data):len(data)], int32(to.rank)
	}
	p.mark.Store(g.mark()) // who leaves from here on may have it
	for i := range g.toPeers {
		g.toPeers[i].notify()
	}
	return nil
}

// look hands over what was posted since the last look.
func (s *exchangeStep) look() (some bool, err error) {
	g := s.g
	x := &g.exchange
	mark, slot := g.mark(), g.slot()
	left := x.pending[:0]
	for _, i := range x.pending {
		from := &g.fromPeers[i]
		p := &from.board[slot]
		if p.mark.Load() == mark {
			ok, err := s.take(from, p)
			if err != nil {
				return some, err
			}
			if ok {
				some = true
				continue
			}
		}
		left = append(left, i)
	}
	x.pending = left
	return some, nil
}

// take hands over the package that a source has posted; false if it withdrew it.
func (s *exchangeStep) take(from *peer, p *slate) (bool, error) {
	g := s.g
	if p.step != g.step {
		return false, aboutf([]int{from.rank}, ErrDisagree, "exchange in step %d, here it is %d", p.step, g.step)
	}
	if own := int32(g.member.rank); from.at >= len(p.places) || p.places[from.at].to != own {
		for from.at = 0; p.places[from.at].to != own; { // it is there: lists were compared
			from.at++
		}
	}
	at := &p.places[from.at]
	data := at.data
	if len(data) > smallFrame && at.state.Load() != taken { // by this member: it is to stay there
		if data = at.copy(g); data == nil {
			return false, nil
		}
		from.notify()
	}
	if size := g.options.EventSize; size > 0 && len(data)%size != 0 {
		return false, s.refuse(from.rank, len(data))
	}
	g.exchange.heardIn[from.rank] = g.step + 1 // once: nobody looks at it again
	g.exchange.missing--
	g.stats.received(len(data))
	s.hand(from.rank, data)
	return true, nil
}

// copy returns a member's own copy of a large package; nil if it was withdrawn.
func (p *place) copy(g *Group) []byte {
	if !p.state.CompareAndSwap(offered, copying) {
		return nil
	}
	own := g.bytes(len(p.data))
	copy(own, p.data)
	p.state.Store(taken)
	return own
}

// awaitTaken returns once the targets have copied what is large.
func (s *exchangeStep) awaitTaken() error {
	g := s.g
	x := &g.exchange
	p := &g.near.board[g.slot()]
	if p.large == 0 {
		return nil
	}
	for i := range p.places {
		if len(p.places[i].data) <= smallFrame {
			continue
		}
		for x.untaken = &p.places[i]; x.untaken.state.Load() != taken; {
			if g.progress() {
				continue
			}
			if err := g.await(g.targets[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// withdraw takes back what was posted in a step that failed: the large packages
// are the user's again.
func (g *Group) withdraw() {
	if g.near == nil {
		return
	}
	p := &g.near.board[g.slot()]
	if p.mark.Load() != g.mark() {
		return
	}
	p.mark.Store(0)
	for i := range p.places {
		if len(p.places[i].data) <= smallFrame || p.places[i].state.CompareAndSwap(offered, withdrawn) {
			continue
		}
		for p.places[i].state.Load() == copying {
			runtime.Gosched() // it takes no longer than a copy
		}
	}
}

// news reports whether a board has what this member waits for, or what
// does not fit its call.
func (g *Group) news() bool {
	x := &g.exchange
	switch {
	case x.untaken != nil:
		return x.untaken.state.Load() == taken
	case g.op == opExchange && !x.looking:
		return false
	}
	_, some := g.poster()
	return some
}

// poster returns a source that has posted this exchange and was not taken.
func (g *Group) poster() (int, bool) {
	for i := range g.fromPeers {
		from := &g.fromPeers[i]
		if p := &from.board[g.slot()]; p.mark.Load() == g.mark() && p.step <= g.step && !g.heard(from.rank) {
			return from.rank, true
		}
	}
	return 0, false
}

// wait is memberLink.Wait that news end as well.
func (g *Group) wait(frames int) {
	l := g.near
	if l == nil {
		g.link.Wait(frames, g.until)
		return
	}
	if !g.exchange.looking { // it has
		for range yields {
			runtime.Gosched()
			if l.came.Load() || g.news() {
				return
			}
		}
	}
	if g.news() || !l.park(frames) {
		return
	}
	if g.news() {
		l.unpark()
		return
	}
	l.sleep(g.until)
}

// notify counts something that was posted, or taken, for a member that waits.
func (l *meshLink) notify() {
	if l.parked.Load() > 0 {
		l.notified()
	}
}

func (l *meshLink) notified() {
	l.mu.Lock()
	wake := l.parked.Load() == 1
	l.parked.Store(max(l.parked.Load()-1, 0))
	l.mu.Unlock()
	if wake {
		l.Wake()
	}
}

// park says that the member waits for so many frames; false if some are there.
func (l *meshLink) park(frames int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.in.frames) > 0 || l.out != nil {
		return false
	}
	l.parked.Store(int32(max(frames, 1)))
	return true
}

func (l *meshLink) unpark() {
	l.mu.Lock()
	l.parked.Store(0)
	l.mu.Unlock()
}

// sleep returns when the member is woken, or at the time.
func (l *meshLink) sleep(until time.Time) {
	if until.IsZero() {
		<-l.wake
		return
	}
	if l.timer == nil {
		l.timer = time.NewTimer(time.Until(until))
	} else {
		l.timer.Reset(time.Until(until))
	}
	select {
	case <-l.wake:
		l.timer.Stop()
	case <-l.timer.C:
	}
}
