//go:build cgo

package kdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/bridge/proto"
	"github.com/nfcomms/nfcomms/bridge/proto/talk"
	"github.com/nfcomms/nfcomms/bridge/scripted"
)

// talker plays conversations to a host that is reached through the fake module:
// what the host puts is made by calls of a channel, and what it makes of the
// device's slots shows in how they end.
type talker struct {
	*testing.T
	s     *scripted.Device
	dev   *Device
	ch    bridge.Channel
	loop  bridge.Channel // a loopback of the same mailbox
	id    uint32         // the channel's number on the device
	said  chan abi.Slot  // of the host on the channel
	calls [2]*talkCall   // under way, by direction
	close chan error     // of a close under way
	wake  chan struct{}
	ready bool   // the token came
	size  uint64 // of the device's offer
}

// talkCall is a call under way.
type talkCall struct {
	cancel context.CancelFunc
	done   chan error
}

// moments are conversations in which the host does something later than a call
// does it by itself, or asks where a call knows.
var moments = []string{
	"lies_transfer/done too early", "offer/a second offer while the first is taken back",
	"select/a target in an alternative counts", "select/a hint that nobody asked for is none the worse",
	"select/a target that closed is ready, as it refuses",
	"transfer_h2d/it is aborted while it moves", "transfer_h2d/it is aborted when all has moved",
}

// beyond reports whether a conversation has what no call can be made to do: put
// something at a chosen moment, or refuse an offer.
func beyond(c *talk.Conversation) bool {
	transfers, takesBack := false, false
	early := slices.ContainsFunc(c.Steps, func(s talk.Step) bool {
		t := abi.Header(s.Slot.Header).Type()
		puts := s.Kind == talk.HostPuts
		transfers = transfers || puts && t == abi.TypeIndBegin
		takesBack = takesBack || puts && t == abi.TypeWithdraw
		return s.Late || s.Kind == talk.Arrive || s.Kind == talk.HostDoes || puts && t == abi.TypeError ||
			puts && t == abi.TypeIndBegin && s.Slot.Begin().TimeoutNS != 0 ||
			s.Kind == talk.DevicePuts && t == abi.TypeAck && s.Slot.Ack().State == abi.StateRepeat
	})
	return c.DeviceOnly || early || slices.Contains(moments, c.Name) || transfers && takesBack // a call ends a transfer with ABORT
}

// TestTalk replays the conversations of the protocol: which calls they follow
// from, and which completions from them.
func TestTalk(t *testing.T) {
	list, err := talk.Load(os.DirFS("../proto/testdata"), proto.Default())
	require.NoError(t, err)
	played := 0
	for _, c := range list {
		if beyond(c) {
			continue
		}
		played++
		t.Run(c.Name, func(t *testing.T) {
			p := newTalker(t, &c.Open)
			for i := range c.Steps {
				s := &c.Steps[i]
				if err := p.step(s); err != nil {
					require.NoError(t, err, "%s:%d", c.File, s.Line)
				}
			}
			require.NoError(t, p.dev.Reset(patience(t)))
		})
	}
	t.Logf("replayed %d of %d", played, len(list))
	require.Greater(t, played, len(list)/2)
}

func newTalker(t *testing.T, o *talk.Open) *talker {
	p := &talker{T: t, said: make(chan abi.Slot, 256), wake: make(chan struct{}, 1), close: make(chan error, 1)}
	s, err := scripted.New(scripted.Shape{Channels: 64, Window: int(o.Window)},
		scripted.Hooks{Lay: func(a *abi.Area) { a.DeviceHello.Hello().MaxTransfer = o.Limit }})
	require.NoError(t, err)
	p.s = s
	p.dev = opened(t, scriptedModule(t, s))
	p.loop, err = p.dev.Subscribe(patience(t), abi.TargetLoopback)
	require.NoError(t, err)
	process, err := p.dev.Start(patience(t), bridge.Program{Name: "hold", First: 17, Targets: 1})
	require.NoError(t, err)
	p.id = uint32(process.First)
	s.SetHooks(scripted.Hooks{
		Give: func(m abi.Slot) []abi.Slot {
			if c := m.Control(); abi.Header(m.Header).Channel() == abi.TargetControl && c.Op == abi.ControlOpen {
				c.A, c.B, c.C = o.Next[abi.H2D], o.Next[abi.D2H], o.Generation
			}
			return []abi.Slot{m}
		},
		Mailbox: func(m *abi.Slot, own int) int {
			if abi.Header(m.Header).Channel() == abi.TargetControl {
				return own
			}
			return abi.TargetLoopback // also what belongs to another
		},
		Take: func(m *abi.Slot) bool {
			if abi.Header(m.Header).Channel() != p.id {
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
	case talk.HostPuts:
		p.begin(&s.Slot)
		return p.hear(&s.Slot)
	case talk.DevicePuts:
		m := s.Slot
		h := abi.Header(m.Header)
		if h.Channel() == talk.Channel {
			m.Header = uint64(abi.MakeHeader(h.Type(), h.Length(), h.Epoch(), h.Sequence(), p.id))
		}
		dropped := p.dev.Stats().Dropped
		p.s.Inject(m)
		return p.concludes(s, dropped)
	}
	return nil
}

// call makes a call of a half, unless one is under way.
func (p *talker) call(d abi.Direction, f func(ctx context.Context) error) {
	if p.calls[d] != nil {
		return
	}
	ctx, cancel := context.WithCancel(patience(p.T))
	c := &talkCall{cancel, make(chan error, 1)}
	p.calls[d] = c
	go func() { c.done <- f(ctx) }()
}

// begin makes the call that a slot of the host follows from, if it is not one
// under way.
func (p *talker) begin(m *abi.Slot) {
	h := abi.Header(m.Header)
	switch h.Type() {
	case abi.TypeDirect:
		message := slices.Clone(m.Bytes()[:h.Length()])
		p.call(abi.H2D, func(ctx context.Context) error {
			if p.ready {
				_, err := p.ch.TrySend(message, p.wake)
				return err
			}
			p.ch.Disarm(abi.H2D, p.wake)
			return p.ch.Send(ctx, message)
		})
	case abi.TypeIndBegin:
		data := make([]byte, m.Begin().Size)
		p.call(abi.H2D, func(ctx context.Context) error { return p.ch.SendInd(ctx, data) })
	case abi.TypeAck:
		p.call(abi.D2H, func(ctx context.Context) error {
			_, err := p.ch.Receive(ctx, make([]byte, abi.PayloadSize))
			return err
		})
	case abi.TypeIndList, abi.TypeFin:
		if h.Type() == abi.TypeIndList && h.Length()&abi.ListD2H != 0 || h.Type() == abi.TypeFin && m.Note().Direction == uint32(abi.D2H) {
			data := make([]byte, p.size)
			p.call(abi.D2H, func(ctx context.Context) error { return p.ch.ReceiveInd(ctx, data) })
		}
	case abi.TypeWithdraw, abi.TypeAbort:
		p.calls[m.Note().Direction&1].cancel()
	case abi.TypeOffer:
		require.NoError(p, p.ch.Arm(abi.H2D, p.wake))
	case abi.TypeClose:
		how := map[uint32]func() error{1: p.ch.CloseSend, 2: p.ch.CloseReceive, 3: p.ch.Close}[m.Close().Halves]
		go func() { p.close <- how() }()
	}
}

// hear compares the next slot of the host with what it must be.
func (p *talker) hear(want *abi.Slot) error {
	select {
	case got := <-p.said:
		w, g := abi.Header(want.Header), abi.Header(got.Header)
		if w.Type() != g.Type() || w.Sequence() != g.Sequence() || w.Type() != abi.TypeIndBegin && w.Length() != g.Length() {
			return fmt.Errorf("the host put %v, not %v", &got, want)
		}
		if g.Type() == abi.TypeFin {
			return p.ends(abi.Direction(got.Note().Direction), nil)
		}
		if g.Type() == abi.TypeAck {
			return p.ends(abi.D2H, nil)
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
func (p *talker) fails(a *abi.Ack) error {
	err, called := p.ended(abi.Direction(a.Direction))
	if status, _ := bridge.StatusOf(err); called && status != a.Status {
		return fmt.Errorf("the call ended with %v, not %v", err, a.Status)
	}
	return nil
}

// concludes checks what a host made of a slot.
func (p *talker) concludes(s *talk.Step, dropped uint64) error {
	err := p.loop.Send(patience(p.T), nil) // whoever gets the answer has read all before it
	if err == nil {
		_, err = p.loop.Receive(patience(p.T), nil)
	}
	if s.Event != proto.EventFault && err != nil {
		return err
	}
	switch s.Event {
	case proto.EventFault:
		for d := range p.calls {
			if err := p.ends(abi.Direction(d), bridge.ErrFault); err != nil {
				return err
			}
		}
		if err := p.ch.Send(patience(p.T), nil); !errors.Is(err, bridge.ErrFault) {
			return fmt.Errorf("a later call ended with %v", err)
		}
	case proto.EventDelivered:
		return p.ends(abi.H2D, nil)
	case proto.EventRefused, proto.EventFailed:
		return p.fails(s.Slot.Ack())
	case proto.EventAborted:
		return p.ends(abi.Direction(s.Slot.Ack().Direction), context.Canceled)
	case proto.EventWithdrawn:
		return p.ends(abi.H2D, bridge.ErrWithdrawn)
	case proto.EventStale:
		if p.dev.Stats().Dropped == dropped {
			return fmt.Errorf("it is not counted as dropped")
		}
	case proto.EventOffer:
		p.size = 0
		if abi.Header(s.Slot.Header).Type() == abi.TypeIndBegin {
			p.size = s.Slot.Begin().Size
		}
	case proto.EventReady:
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
