package process

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// ErrCall is a call of the process that makes no sense.
var ErrCall = errors.New("the process made a call that makes no sense")

// Serve makes the calls of the process behind a channel on a member that has joined, until the
// process leaves; then it returns nil. A call that fails is the process's to handle. Any other end
// is an error: the end of the context, of the process (ErrClosed, with a *CrashError if it crashed)
// or of its device, bytes that are no call (ErrCall), or a result that the process refused. Then,
// too, Serve has closed g, which ends a step that ran: other members that wait for this one get
// ErrGone. The channel stays open.
func Serve(ctx context.Context, g *group.Group, ch *nfcomms.Channel) error {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &server{g: g, ch: ch, offers: make(chan nfcomms.Offer), taken: make(chan struct{})}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		cancel(s.watch(ctx))
	}()
	err := s.serve(ctx)
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause // of which err is the effect
	}
	cancel(nil)
	<-ended
	if s.stop != nil {
		s.stop()
	}
	if cerr := g.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("group: process at %v: %w", ch.Target(), err)
	}
	return nil
}

// server serves one process.
type server struct {
	g  *group.Group
	ch *nfcomms.Channel
	// The watcher passes each offer on and waits until it has been taken. During a step it waits
	// for the next one, so that the end of the process ends the step.
	offers chan nfcomms.Offer
	taken  chan struct{}

	joined   bool
	in, out  []byte          // blocks, used again
	packages []group.Package // of the call
	flushed  bool            // the call was a flush, and the last one
	// of a flush that has begun
	next func() ([]group.Package, error, bool)
	stop func()
}

// watch returns the reason why no offer follows.
func (s *server) watch(ctx context.Context) error {
	for {
		offer, err := s.ch.Next(ctx)
		if err != nil {
			return err
		}
		select {
		case s.offers <- offer:
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-s.taken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *server) serve(ctx context.Context) error {
	for {
		what, err := s.receive(ctx)
		if err != nil {
			return err
		}
		if what == callLeave {
			return nil
		}
		if err := s.call(ctx, what); err != nil {
			return err
		}
		if len(s.out) <= nfcomms.MessageSize {
			err = s.ch.Send(ctx, s.out)
		} else {
			err = s.ch.SendInd(ctx, s.out)
		}
		if err != nil {
			return err
		}
	}
}

// receive takes the next call, whose packages are in s.in.
func (s *server) receive(ctx context.Context) (call, error) {
	var offer nfcomms.Offer
	select {
	case offer = <-s.offers:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if offer.Size > maxCall {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrCall, offer.Size, maxCall)
	}
	size := int(offer.Size)
	if len(s.in) < max(size, nfcomms.MessageSize) {
		s.in = make([]byte, max(2*size, nfcomms.MessageSize))
	}
	var n int
	var err error
	if offer.Indirect {
		n, err = s.ch.ReceiveInd(ctx, s.in, size)
	} else {
		n, err = s.ch.Receive(ctx, s.in)
	}
	if err != nil {
		return 0, err
	}
	select {
	case s.taken <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.parse(s.in[:n])
}

// call makes a call of the process on its member and writes the answer.
func (s *server) call(ctx context.Context, what call) error {
	if s.joined != (what != callJoin) {
		return fmt.Errorf("%w: it joins first, and once", ErrCall)
	}
	if what != callFlush && s.stop != nil {
		s.stop() // the flush that has begun continues to its end
		s.next, s.stop = nil, nil
	}
	in, err := s.make(ctx, what)
	if errors.Is(err, ErrCall) {
		return err
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return s.answer(in, err)
}

// make returns the result of a call.
func (s *server) make(ctx context.Context, what call) ([]group.Package, error) {
	s.flushed = false
	switch what {
	case callJoin:
		s.joined = true
		return nil, nil
	case callExchange:
		return s.g.Exchange(ctx, s.packages)
	case callBarrier:
		return nil, s.g.Barrier(ctx)
	case callAllgather:
		if len(s.packages) != 1 {
			return nil, fmt.Errorf("%w: %d packages for all", ErrCall, len(s.packages))
		}
		all, err := s.g.Allgatherv(ctx, s.packages[0].Data)
		return byRank(all), err
	case callFlush:
		return s.flush(ctx)
	case callShrink:
		steps, err := s.g.Shrink(ctx)
		return stepsByRank(steps), err
	default:
		return nil, fmt.Errorf("%w: number %d", ErrCall, what)
	}
}

// flush returns the packages of one more step, if one follows.
func (s *server) flush(ctx context.Context) ([]group.Package, error) {
	if s.next == nil {
		s.next, s.stop = iter.Pull2(s.g.Flush(ctx))
	}
	in, err, more := s.next()
	s.flushed = !more
	if !more || err != nil {
		s.stop()
		s.next, s.stop = nil, nil
	}
	return in, err
}
