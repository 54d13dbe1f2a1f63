//go:build cgo

package kdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/mailbox"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/proto/talk"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// talker plays conversations to a host that is reached through the fake module:
// what the host puts is made by calls of a channel, and what it makes of the
// device's slots shows in how they end.
type talker struct {
	*testing.T
	s       *scripted.Device
	dev     *Device
	ch      bridge.Channel
	loop    bridge.Channel // a loopback of the same mailbox
	id      uint32         // the channel's number on the device
	said    chan wire.Slot // of the host on the channel
	calls   [2]*talkCall   // under way, by direction
	close   chan error     // of closes under way
	shuts   bool           // a close of the d2h half is under way
	wake    chan struct{}
	armed   bool   // it waits for its token
	ready   bool   // the token came
	asks    bool   // the device takes questions
	moves   bool   // the last that was sent is a transfer
	size    uint64 // of the device's offer
	message bool   // it is one
}

// talkCall is a call under way.
type talkCall struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan error
	// Of a receive as an extended rendezvous: its function is entered, and how it returns.
	held, decide chan error
}

// hold is the function of an extended rendezvous.
func (c *talkCall) hold() error {
	c.held <- nil
	select {
	case err := <-c.decide:
		return err
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

// errLeft leaves an offer where it is, or refuses it.
var errLeft = errors.New("left")

// TestTalk replays the conversations of the protocol: which calls they follow from, and which
// completions from them.
func TestTalk(t *testing.T) {
	list, err := talk.Load(os.DirFS("../proto/testdata"), proto.Default())
	require.NoError(t, err)
	for _, c := range list {
		if c.DeviceOnly != "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			if c.NotByCalls != "" {
				t.Log(c.NotByCalls)
				return
			}
			stall := time.Duration(0)
			if asksBack(c) {
				stall = 2 * time.Second // passes of the audit are so far apart
				t.Parallel()
			}
			p := newTalker(t, &c.Open, capabilities(c), stall)
			for i := range c.Steps {
				s := &c.Steps[i]
				if err := p.step(s); err != nil {
					require.NoError(t, err, "%s:%d", c.File, s.Line)
				}
			}
			require.NoError(t, p.dev.Reset(patience(t)))
		})
	}
}

// capabilities are those that the host uses in a conversation: others it must do without.
func capabilities(c *talk.Conversation) (all uint32) {
	for _, s := range c.Steps {
		switch wire.Header(s.Slot.Header).Type() {
		case wire.TypeEager:
			all |= wire.CapEager
		case wire.TypeCall:
			all |= wire.CapCalls
		}
	}
	return all
}

// asksBack reports whether a transfer is taken back before its target has it. No call does
// that, but the audit, of an offer that the device does not count as parked.
func asksBack(c *talk.Conversation) bool {
	moves := false
	for _, s := range c.Steps {
		if t := wire.Header(s.Slot.Header).Type(); s.Kind == talk.HostPuts && (t == wire.TypeDirect || t == wire.TypeIndBegin) {
			moves = t == wire.TypeIndBegin
		} else if s.Kind == talk.HostPuts && t == wire.TypeWithdraw && moves {
			return true
		}
	}
	return false
}

// newTalker opens a device with capabilities, whose host finds out within stall that it lost an offer,
// 0 for its default, and a channel on it.
func newTalker(t *testing.T, o *talk.Open, capabilities uint32, stall time.Duration) *talker {
	p := &talker{T: t, said: make(chan wire.Slot, 256), wake: make(chan struct{}, 1), close: make(chan error, 2)}
	shape := scripted.Shape{Channels: 64, Window: int(o.Window), Runs: int(o.Runs)}
	if capabilities&wire.CapEager != 0 {
		shape.Eager = wire.EagerEntries
	}
	p.asks = capabilities&wire.CapCalls != 0
	s, err := scripted.New(shape, scripted.Hooks{Lay: func(a *wire.Area) {
		a.DeviceHello.Hello().MaxTransfer = o.Limit
		a.DeviceHello.Hello().Capabilities |= capabilities & wire.CapCalls
	}})
	require.NoError(t, err)
	p.s = s
	// The test answers for the device: a busy machine may run it late.
	p.dev = opened(t, scriptedModule(t, s, &mailbox.Options{Stall: stall, Answer: time.Minute}))
	p.loop, err = p.dev.Subscribe(patience(t), abi.TargetLoopback)
	require.NoError(t, err)
	process, err := p.dev.Start(patience(t), bridge.Program{Name: "hold", First: 17, Targets: 1})
	require.NoError(t, err)
	p.id = uint32(process.First)
	s.SetHooks(scripted.Hooks{
		Give: func(m wire.Slot) []wire.Slot {
			if c := m.Control(); wire.Header(m.Header).Channel() == abi.TargetControl && c.Op == wire.ControlOpen {
				c.A, c.B, c.C = o.Next[abi.H2D], o.Next[abi.D2H], o.Generation
			}
			return []wire.Slot{m}
		},
		Mailbox: func(m *wire.Slot, own int) int {
			if wire.Header(m.Header).Channel() == abi.TargetControl {
				return own
			}
			return abi.TargetLoopback // also what belongs to another
		},
		Take: func(m *wire.Slot) bool {
			if wire.Header(m.Header).Channel() != p.id {
				return true
			}
			p.said <- *m
			return false
		},
	})
	p.ch, err = p.dev.Subscribe(patience(t), process.First)
	require.NoError(t, err)
	return p
}

func (p *talker) step(s *talk.Step) error {
	switch s.Kind {
	case talk.HostDoes:
		return p.does(s.Words[0])
	case talk.HostPuts:
		p.begin(&s.Slot)
		return p.hear(&s.Slot)
	case talk.DevicePuts:
		m := s.Slot
		h := wire.Header(m.Header)
		if h.Channel() == talk.Channel {
			m.Header = uint64(wire.MakeHeader(h.Type(), h.Length(), h.Epoch(), h.Sequence(), p.id))
		}
		dropped := p.dev.Stats().Dropped
		p.s.Inject(m)
		return p.concludes(s, dropped)
	}
	return nil
}

// call makes a call of a half, unless one is under way.
func (p *talker) call(d abi.Direction, f func(c *talkCall) error) {
	if p.calls[d] != nil {
		return
	}
	ctx, cancel := context.WithCancel(patience(p.T))
	c := &talkCall{ctx, cancel, make(chan error, 1), make(chan error, 1), make(chan error, 1)}
	p.calls[d] = c
	go func() { c.done <- f(c) }()
}

// begin makes the call that a slot of the host follows from, if it is not one
// under way, or lets that one continue.
func (p *talker) begin(m *wire.Slot) {
	h := wire.Header(m.Header)
	switch h.Type() {
	case wire.TypeDirect:
		p.moves = false
		message := slices.Clone(m.Bytes()[:h.Length()])
		p.send(func(ctx context.Context) error { return p.ch.Send(ctx, message) },
			func(context.Context) (bool, error) { return p.ch.TrySend(message, p.wake) })
	case wire.TypeCall:
		p.moves = false
		p.ask(slices.Clone(m.Bytes()[:h.Length()&wire.CallBytesMask]))
	case wire.TypeIndBegin:
		p.sendInd(m.Begin())
	case wire.TypeEager:
		if h.Length()&wire.ListD2H != 0 {
			data := p.buffer(m.Eager().Size)
			p.call(abi.D2H, func(c *talkCall) error { return p.ch.ReceiveInd(c.ctx, data) })
		} else {
			p.sendInd(m.Begin())
			p.moves = false
		}
	case wire.TypeIndList:
		if h.Length()&wire.ListD2H != 0 {
			p.receiveInd()
		}
	case wire.TypeAck:
		p.receive()
		p.calls[abi.D2H].decide <- nil
	case wire.TypeError:
		p.receiveInd()
		p.calls[abi.D2H].decide <- errLeft
	case wire.TypeFin:
		if m.Note().Direction == uint32(abi.D2H) {
			p.receiveInd()
			p.calls[abi.D2H].decide <- nil
		}
	case wire.TypeWithdraw:
		if d := abi.Direction(m.Note().Direction); d == abi.D2H || !p.moves { // else the audit asks it back
			p.calls[d].cancel()
		}
	case wire.TypeAbort:
		if c := p.calls[m.Note().Direction&1]; c != nil {
			c.cancel()
		}
	case wire.TypeOffer:
		p.armed = true
		require.NoError(p, p.ch.Arm(abi.H2D, p.wake))
	case wire.TypeClose:
		if !p.shuts {
			how := map[uint32]func() error{1: p.ch.CloseSend, 2: p.ch.CloseReceive, 3: p.ch.Close}[m.Close().Halves]
			go func() { p.close <- how() }()
		}
	}
}

// buffer begins a page: of how many pages one consists must not depend on the allocator. Transfers of
// gigabytes touch few of their pages, all of which the race detector would shadow in the heap.
func (p *talker) buffer(size uint64) []byte {
	b, err := syscall.Mmap(-1, 0, int(max(size, 1)), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	require.NoError(p, err)
	p.Cleanup(func() { _ = syscall.Munmap(b) })
	return b[:size:size]
}

// sendInd begins a transfer to the device.
func (p *talker) sendInd(b *wire.Begin) {
	p.moves = true
	data := p.buffer(b.Size)
	whole := p.ch.SendInd
	if b.TimeoutNS != 0 { // the deadline is for the target, and far
		whole = func(ctx context.Context, data []byte) error {
			ctx, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			return p.ch.SendInd(ctx, data)
		}
	}
	p.send(func(ctx context.Context) error { return whole(ctx, data) },
		func(ctx context.Context) (bool, error) { return p.ch.TrySendInd(ctx, data, p.wake) })
}

// ask makes a call whose message is a question.
func (p *talker) ask(message []byte) {
	ch, buf := p.ch.(bridge.Caller), make([]byte, abi.PayloadSize)
	p.send(func(ctx context.Context) error {
		_, err := ch.Call(ctx, message, buf)
		return err
	}, func(ctx context.Context) (bool, error) {
		_, ok, err := ch.TryCall(ctx, message, buf, p.wake)
		return ok, err
	})
}

// send makes a call that sends: with the place of the waiter that was woken, if one was.
func (p *talker) send(whole func(context.Context) error, try func(context.Context) (bool, error)) {
	ready := p.ready
	p.ready = false
	p.call(abi.H2D, func(c *talkCall) error {
		if !ready {
			p.ch.Disarm(abi.H2D, p.wake)
			return whole(c.ctx)
		}
		ok, err := try(c.ctx)
		if !ok && err == nil {
			err = bridge.ErrWithdrawn
		}
		return err
	})
}

// receive begins to take a message, whose commit the conversation decides.
func (p *talker) receive() {
	p.call(abi.D2H, func(c *talkCall) error {
		return p.ch.ReceiveFunc(c.ctx, func([]byte) error { return c.hold() })
	})
}

// receiveInd is receive for a transfer.
func (p *talker) receiveInd() {
	size := p.size
	p.call(abi.D2H, func(c *talkCall) error {
		return p.ch.ReceiveIndFunc(c.ctx, size, func() ([]byte, error) { return p.buffer(size), nil },
			func([]byte) error { return c.hold() })
	})
}

// does makes the host look at a message, leave it there, or shut the half.
func (p *talker) does(what string) error {
	switch c := p.calls[abi.D2H]; {
	case what == "hold" && p.message:
		p.receive()
		return <-p.calls[abi.D2H].held
	case what == "release":
		c.decide <- errLeft
		return p.ends(abi.D2H, errLeft)
	case what == "shut":
		p.shuts = true
		go func() { p.close <- p.ch.CloseReceive() }()
	}
	return nil
}

// hear compares the next slot of the host with what it must be.
func (p *talker) hear(want *wire.Slot) error {
	select {
	case got := <-p.said:
		w, g := wire.Header(want.Header), wire.Header(got.Header)
		placed := w.Type() == wire.TypeIndBegin || w.Type() == wire.TypeEager // the length depends on where the buffer begins
		if w.Type() != g.Type() || w.Sequence() != g.Sequence() || !placed && w.Length() != g.Length() {
			return fmt.Errorf("the host put %v, not %v", &got, want)
		}
		if g.Type() == wire.TypeFin {
			return p.ends(abi.Direction(got.Note().Direction), nil)
		}
		if g.Type() == wire.TypeAck {
			return p.ends(abi.D2H, nil)
		}
		if g.Type() == wire.TypeError {
			return p.ends(abi.D2H, errLeft)
		}
		return nil
	case <-time.After(time.Minute):
		return fmt.Errorf("the host did not put %v", want)
	}
}

// ended is what the call of a half ended with, if there is one.
func (p *talker) ended(d abi.Direction) (err error, called bool) {
	c := p.calls[d]
	if c == nil {
		return nil, false
	}
	p.calls[d] = nil
	defer c.cancel()
	return <-c.done, true
}

// ends requires that the call of a half, if there is one, ends with an error, nil
// for none.
func (p *talker) ends(d abi.Direction, want error) error {
	if err, called := p.ended(d); called && !errors.Is(err, want) {
		return fmt.Errorf("the call ended with %v, not %v", err, want)
	}
	return nil
}

// fails requires that the call that a record is about ends with its status.
func (p *talker) fails(a *wire.Ack) error {
	err, called := p.ended(abi.Direction(a.Direction))
	if errors.Is(err, context.Canceled) { // it crossed the record
		return nil
	}
	if status, _ := bridge.StatusOf(err); called && status != a.Status {
		return fmt.Errorf("the call ended with %v, not %v", err, a.Status)
	}
	return nil
}

// aborted requires that a call ends with the reason for its ABORT.
func (p *talker) aborted(d abi.Direction) error {
	err, called := p.ended(d)
	for _, reason := range []error{context.Canceled, bridge.ErrClosed, bridge.ErrDMA} {
		if !called || errors.Is(err, reason) {
			return nil
		}
	}
	return fmt.Errorf("the call ended with %v", err)
}

// leaves requires that a receive, if there is one, takes nothing for one of these reasons.
func (p *talker) leaves(reasons ...error) error {
	err, called := p.ended(abi.D2H)
	if !called || slices.ContainsFunc(reasons, func(r error) bool { return errors.Is(err, r) }) {
		return nil
	}
	return fmt.Errorf("the call ended with %v", err)
}

// concludes checks what a host made of a slot.
func (p *talker) concludes(s *talk.Step, dropped uint64) error {
	err := p.loop.Send(patience(p.T), nil) // its answer shows that all before it was read
	if err == nil {
		_, err = p.loop.Receive(patience(p.T), nil)
	}
	if s.Event != proto.EventFault && err != nil {
		return err
	}
	switch s.Event {
	case proto.EventFault:
		for d, c := range p.calls {
			if c != nil {
				c.decide <- nil // it may be in its function
			}
			if err := p.ends(abi.Direction(d), bridge.ErrFault); err != nil {
				return err
			}
		}
		if err := p.ch.Send(patience(p.T), nil); !errors.Is(err, bridge.ErrFault) {
			return fmt.Errorf("a later call ended with %v", err)
		}
	case proto.EventDelivered:
		if c := p.calls[abi.H2D]; p.asks && c != nil && c.ctx.Err() != nil {
			return p.ends(abi.H2D, bridge.ErrUnanswered)
		}
		return p.ends(abi.Direction(s.Slot.Ack().Direction), nil)
	case proto.EventAnswered:
		return p.ends(abi.H2D, nil)
	case proto.EventUnanswered:
		return p.ends(abi.H2D, bridge.ErrUnanswered)
	case proto.EventRefused, proto.EventFailed:
		return p.fails(s.Slot.Ack())
	case proto.EventAborted:
		return p.aborted(abi.Direction(s.Slot.Ack().Direction))
	case proto.EventWithdrawn:
		if abi.Direction(s.Slot.Note().Direction) == abi.D2H {
			return p.leaves(bridge.ErrWithdrawn, bridge.ErrClosed)
		}
		if c := p.calls[abi.H2D]; p.moves && c.ctx.Err() == nil {
			return nil // it was asked back, and is offered again
		}
		return p.ends(abi.H2D, bridge.ErrWithdrawn)
	case proto.EventStale:
		if p.dev.Stats().Dropped == dropped {
			return fmt.Errorf("it is not counted as dropped")
		}
	case proto.EventOffer:
		if err := p.leaves(bridge.ErrSizeMismatch, bridge.ErrKindMismatch, bridge.ErrWithdrawn); err != nil {
			return err
		}
		p.size, p.message = 0, wire.Header(s.Slot.Header).Type() == wire.TypeDirect
		if wire.Header(s.Slot.Header).Type() == wire.TypeIndBegin {
			p.size = s.Slot.Begin().Size
		}
	case proto.EventReady:
		if !p.armed {
			return nil
		}
		p.armed = false
		select {
		case <-p.wake:
			p.ready = true
		case <-time.After(time.Minute):
			return errors.New("no token came")
		}
	case proto.EventOver:
		return <-p.close
	}
	return nil
}
