package group

import (
	"math/rand/v2"
	"time"
)

// exchangeStep is one exchange as an [exchanger] sees it: what it sends, from which members it
// receives, and ways to do both. Its results are valid in this step.
type exchangeStep struct{ g *Group }

// exchange is the state of a group's exchanges.
type exchange struct {
	step    exchangeStep
	out     []Package
	outAt   []uint64 // by rank: the place in out, of the call that outOf says
	outOf   uint64
	heardIn []uint64 // by rank: 1 + the step in which it was received last
	missing int      // sources not received yet
	in      []Package
	each    func(Package) // takes packages as they arrive, nil: they are collected
	handled bool          // by each, or Options.Handler
	looking bool          // at boards
	pending []int         // sources, by place in fromPeers, that have posted nothing yet
	untaken *place        // the large package that a target has not copied yet
	random  *rand.Rand

	collective collective
	shares     shares
}

func (x *exchange) reset(n int) {
	x.outAt, x.outOf, x.heardIn = make([]uint64, n), 0, make([]uint64, n)
}

// Rank and Size are those of the group.
func (s *exchangeStep) Rank() int { return s.g.member.rank }

// Size is the number of members.
func (s *exchangeStep) Size() int { return s.g.member.size() }

// Targets are the ranks that this member sends a frame to in each step.
func (s *exchangeStep) Targets() []int { return s.g.targets }

// Sources are the ranks that this member gets a frame from in each step.
func (s *exchangeStep) Sources() []int { return s.g.sources }

// Sends reports whether a rank is one of the targets.
func (s *exchangeStep) Sends(to int) bool { return s.g.isTarget[to] }

// Awaits reports whether a frame from a rank is still missing in this step.
func (s *exchangeStep) Awaits(from int) bool { return s.g.isSource[from] && !s.g.heard(from) }

// Missing is how many ranks Awaits is true of.
func (s *exchangeStep) Missing() int { return s.g.exchange.missing }

// Out returns the bytes for a rank, none if there are none.
func (s *exchangeStep) Out(to int) []byte {
	x := &s.g.exchange
	if at := x.outAt[to] - x.outOf; at < maxSize {
		return x.out[at].Data
	}
	return nil
}

// Start puts the frame for a target on its way and does not wait: data must stay
// as they are until WaitAll. (MPI_Isend)
func (s *exchangeStep) Start(to int, data []byte) error {
	if err := s.credit(to); err != nil {
		return err
	}
	s.start(to, 0, 0, data)
	return nil
}

func (s *exchangeStep) start(to int, tag uint16, f frameFlags, data []byte) {
	s.g.send(to, s.g.header(s.g.op, tag, f), data)
}

// credit waits where a target that sends nothing back is two exchanges behind:
// nothing else would bound what waits for it.
func (s *exchangeStep) credit(to int) error {
	g := s.g
	for !g.isSource[to] && g.credit[to]+2 <= g.exchanges {
		if g.progress() {
			continue
		}
		if err := g.await(to); err != nil {
			return err
		}
	}
	return nil
}

// WaitAll returns once all that was started is sent. (MPI_Waitall)
func (s *exchangeStep) WaitAll() error {
	g := s.g
	for g.sends.steps > 0 {
		if g.progress() {
			continue
		}
		if err := g.await(g.sends.queue[0].to); err != nil {
			return err
		}
	}
	return nil
}

// Send returns once the frame for a target is no longer there and its data may change.
// (MPI_Send)
func (s *exchangeStep) Send(to int, data []byte) error {
	if err := s.Start(to, data); err != nil {
		return err
	}
	return s.WaitAll()
}

// Receive waits for the frame of a source, or of any, into f. Its data are valid
// until it is given to Release or Deliver. (MPI_Recv)
func (s *exchangeStep) Receive(from int, f *frame) error { return s.receive(from, 0, f) }

func (s *exchangeStep) receive(from int, tag uint16, f *frame) error {
	return s.receiveOn(from, from, tag, f)
}

// receiveOf receives from any; an error names those that on stands for.
func (s *exchangeStep) receiveOf(on int, f *frame) error { return s.receiveOn(anySource, on, 0, f) }

func (s *exchangeStep) receiveOn(from, on int, tag uint16, f *frame) error {
	for {
		ok, err := s.tryReceive(from, tag, f)
		if ok || err != nil {
			return err
		}
		if s.g.flushSends() {
			continue
		}
		if err := s.g.awaitAll(on); err != nil {
			return err
		}
	}
}

// tryReceive is receive without waiting.
func (s *exchangeStep) tryReceive(from int, tag uint16, f *frame) (bool, error) {
	g := s.g
	if from == anySource {
		return s.tryAny(tag, f), nil
	}
	for {
		if g.inbox.take(from, f) {
			return g.fits(tag, f)
		}
		mine, some := g.poll()
		switch {
		case !some:
			return false, nil
		case mine && from == g.frame.From:
			*f = g.frame // the inbox has none of it: it is the oldest
			return g.fits(tag, f)
		case mine:
			g.inbox.put(&g.frame)
		}
	}
}

// tryAny is tryReceive from any source. Frames of another phase stay: their
// sources are ahead.
func (s *exchangeStep) tryAny(tag uint16, f *frame) bool {
	g := s.g
	if from, some := g.inbox.find(tag); some {
		return g.inbox.take(from, f)
	}
	for {
		mine, some := g.poll()
		switch {
		case !some:
			return false
		case mine && g.frame.Tag == tag:
			*f = g.frame
			return true
		case mine:
			g.inbox.put(&g.frame)
		}
	}
}

// fits checks that a frame is of the phase that this member is in.
func (g *Group) fits(tag uint16, f *frame) (bool, error) {
	if f.Tag == tag {
		return true, nil
	}
	g.release(f)
	return false, aboutf([]int{f.From}, ErrDisagree, "phase %d of this %v, here it is %d", f.Tag, g.op, tag)
}

// heard reports whether a rank was received in this step.
func (g *Group) heard(rank int) bool { return g.exchange.heardIn[rank] == g.step+1 }

// Deliver hands the package in a frame over, in place, and counts its source
// as received. Later frames of that source may not arrive before the next call.
func (s *exchangeStep) Deliver(f *frame) error {
	s.g.hold(f)
	if err := s.hear(f.From, len(f.Data)); err != nil {
		return err
	}
	s.hand(f.From, f.Data)
	return nil
}

// deliverCopy is Deliver of a copy: the next frame of the source may arrive at once.
func (s *exchangeStep) deliverCopy(f *frame) error {
	data := s.g.bytes(len(f.Data))
	copy(data, f.Data)
	s.Release(f)
	if err := s.hear(f.From, len(f.Data)); err != nil {
		return err
	}
	s.hand(f.From, data)
	return nil
}

// hear counts the source of so many bytes as received, once.
func (s *exchangeStep) hear(from, bytes int) error {
	g := s.g
	if size := g.options.EventSize; !s.Awaits(from) || size > 0 && bytes%size != 0 {
		return s.refuse(from, bytes)
	}
	g.exchange.heardIn[from] = g.step + 1
	g.exchange.missing--
	return nil
}

// refuse says what is wrong with what a rank sent.
func (s *exchangeStep) refuse(from, bytes int) error {
	if !s.Awaits(from) {
		return aboutf([]int{from}, ErrDisagree, "a second frame in this step, or one of no source")
	}
	return aboutf([]int{from}, ErrEventSize, "%d bytes, events of %d", bytes, s.g.options.EventSize)
}

// Release gives a frame back that was received.
func (s *exchangeStep) Release(f *frame) { s.g.release(f) }

// hand gives a package to the user. No bytes are no package.
func (s *exchangeStep) hand(from int, data []byte) {
	x := &s.g.exchange
	switch {
	case len(data) == 0:
	case x.handled:
		s.handle(Package{from, data})
	default:
		x.in = append(x.in, Package{from, data})
	}
}

// handle gives a package to the handler or the loop that takes packages as they arrive.
func (s *exchangeStep) handle(p Package) {
	x := &s.g.exchange
	if s.g.options.Handler != nil {
		s.g.options.Handler(p)
	}
	if x.each != nil {
		x.each(p)
	} else {
		x.in = append(x.in, p)
	}
}

// pause waits for Options.Delay, for so many bytes gathered.
func (s *exchangeStep) pause(bytes int) error {
	d := s.g.options.Delay
	t := d.PerByte*time.Duration(bytes) + d.PerMember*time.Duration(s.Size())
	if t <= 0 {
		return nil
	}
	if d.Random {
		x := &s.g.exchange
		if x.random == nil {
			x.random = rand.New(rand.NewPCG(d.Seed, uint64(s.Rank())))
		}
		t = time.Duration(2 * x.random.Float64() * float64(t))
	}
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-s.g.ctx.Done():
		return s.g.trouble(anySource)
	}
}
