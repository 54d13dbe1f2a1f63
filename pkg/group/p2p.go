package group

// The algorithms that send each package straight to its target, in one frame
// that is empty where there is nothing to say.

// isend starts all frames, takes what arrives in any order, and waits for the
// rest of its own (2 and 4).
func isend(s *exchangeStep) error {
	if s.g.near != nil {
		return postAll(s)
	}
	for _, to := range s.Targets() {
		if err := s.Start(to, s.Out(to)); err != nil {
			return err
		}
	}
	if err := s.takeAny(); err != nil {
		return err
	}
	return s.WaitAll()
}

// send sends to one target after the other, then takes what arrives (5).
func send(s *exchangeStep) error {
	if err := s.sendAll(); err != nil {
		return err
	}
	return s.takeAny()
}

// sendLoop is the algorithm of 2009: each source is received from by name, in order (6).
func sendLoop(s *exchangeStep) error {
	if err := s.sendAll(); err != nil {
		return err
	}
	var f frame
	for _, from := range s.Sources() {
		if err := s.Receive(from, &f); err != nil {
			return err
		}
		if err := s.Deliver(&f); err != nil {
			return err
		}
	}
	return nil
}

func (s *exchangeStep) sendAll() error {
	for _, to := range s.Targets() {
		if err := s.Send(to, s.Out(to)); err != nil {
			return err
		}
	}
	return nil
}

// takeAny delivers frames as they arrive, until every source is received.
func (s *exchangeStep) takeAny() error {
	if err := s.takeExpected(); err != nil {
		return err
	}
	var f frame
	for s.Missing() > 0 {
		if err := s.Receive(anySource, &f); err != nil {
			return err
		}
		if err := s.Deliver(&f); err != nil {
			return err
		}
	}
	return nil
}

// takeExpected delivers the frames of the sources in order, as long as nothing else arrives between
// and nobody is waited for long. Frames that are left are for the general receive.
func (s *exchangeStep) takeExpected() error {
	g := s.g
	if _, some := g.inbox.first(); some || g.expects == nil || g.flushing || len(g.sends.queue) > 0 {
		return nil
	}
	h := g.header(opExchange, 0, 0)
	for next, round := 0, 0; next < len(g.sources); {
		from := g.sources[next]
		at := g.member.link[from]
		data, came := g.expects.expect(at, h)
		switch {
		case came:
			g.stats.received(len(data))
			if err := s.hear(from, len(data)); err != nil {
				return err
			}
			s.hand(from, data)
			next++
		case !s.lookAgain(at, round):
			return nil
		default:
			round++
		}
	}
	return nil
}

// lookAgain is expecter.pause, measured.
func (s *exchangeStep) lookAgain(at, round int) bool {
	from := s.g.stats.clock()
	more := s.g.expects.pause(at, round)
	s.g.stats.waited(from)
	return more
}

// ssend meets each target in turn (3). A member that waits for its target takes
// what arrives meanwhile: all members send first, and none would be met else. A
// frame is copied and given back at once, for an answer may be behind it.
func ssend(s *exchangeStep) error {
	g := s.g
	for _, to := range s.Targets() {
		if err := s.credit(to); err != nil {
			return err
		}
		g.acks[to]++
		s.start(to, 0, flagSync, s.Out(to))
		for g.acks[to] > 0 || g.sends.steps > 0 {
			if err := s.meet(to); err != nil {
				return err
			}
		}
	}
	for s.Missing() > 0 {
		if err := s.meet(anySource); err != nil {
			return err
		}
	}
	return g.drain() // others wait for the answers
}

// meet takes one frame and answers it, or waits for somebody.
func (s *exchangeStep) meet(on int) error {
	g := s.g
	var f frame
	ok, err := s.tryReceive(anySource, 0, &f)
	switch {
	case err != nil:
		return err
	case ok:
		from := f.From
		if err := s.deliverCopy(&f); err != nil {
			return err
		}
		g.send(from, g.header(opAck, 0, 0), nil)
		return nil
	case g.flushSends() || on >= 0 && g.acks[on] == 0 && g.sends.steps == 0:
		return nil
	}
	return g.await(on)
}

// waitAny is modification #3: receives are posted for all sources before the
// first send, and each completion is looked for among all requests.
type waitAny struct{ posted []int }

func (w *waitAny) Exchange(s *exchangeStep) error {
	w.posted = append(w.posted[:0], s.Sources()...)
	for _, to := range s.Targets() {
		if err := s.Start(to, s.Out(to)); err != nil {
			return err
		}
	}
	var f frame
	for len(w.posted) > 0 {
		at, err := w.any(s, &f)
		if err != nil {
			return err
		}
		w.posted = append(w.posted[:at], w.posted[at+1:]...)
		if err := s.Deliver(&f); err != nil {
			return err
		}
	}
	return s.WaitAll()
}

// any returns the first of the posted receives that has completed. (MPI_Waitany)
func (w *waitAny) any(s *exchangeStep, f *frame) (int, error) {
	g := s.g
	for {
		for at, from := range w.posted {
			if g.inbox.take(from, f) {
				_, err := g.fits(0, f)
				return at, err
			}
		}
		if g.progress() {
			continue
		}
		if err := g.awaitAll(anySource); err != nil {
			return 0, err
		}
	}
}
