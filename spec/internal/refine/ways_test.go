package refine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// way is what a channel carries, and where to.
type way uint8

const (
	message  way = iota // from the host to the process
	toHost              // a message from the process to the host
	transfer            // from the host to the process, of one list
	fetch               // from the process to the host, of as many lists as a system says
)

// nothing is no slot.
const nothing = wire.TypeNone

func (w way) direction() abi.Direction {
	if w == toHost || w == fetch {
		return abi.D2H
	}
	return abi.H2D
}

// channel is the specification of a channel.
func (w way) channel(t *testing.T, c int) *Process {
	if w == transfer || w == fetch {
		return w.transactional(t, c)
	}
	return synchronous(t, c)
}

// turned are the actions of the sender by those of the receiver, and the other way round.
var turned = map[string]string{"send": "read", "sent": "got", "read": "send", "got": "sent"}

// event is an action of a call. The call that may be cancelled is the one that commits, which is the
// receiver's where a transfer goes to the host.
func (w way) event(what string, c int) Event {
	if other := turned[what]; w == fetch && other != "" {
		what = other
	}
	return event(what, c)
}

// heard is what a slot of the host is to the device.
var heard = map[wire.Type]proto.DeviceInput{
	wire.TypeDirect: proto.HearMessage, wire.TypeWithdraw: proto.HearWithdraw, wire.TypeAck: proto.HearAccept,
	wire.TypeWithdrawn: proto.HearWithdrawn, wire.TypeIndBegin: proto.HearBegin, wire.TypeIndList: proto.HearList,
	wire.TypeAbort: proto.HearAbort, wire.TypeFin: proto.HearFin,
}

// puts are slots of the device.
var puts = map[proto.Put]wire.Type{
	proto.PutConsumed: wire.TypeAck, proto.PutBack: wire.TypeWithdrawn, proto.PutDirect: wire.TypeDirect,
	proto.PutTakeBack: wire.TypeWithdraw, proto.PutDone: wire.TypeDone, proto.PutAborted: wire.TypeAborted,
	proto.PutBegin: wire.TypeIndBegin, proto.PutMoved: wire.TypeAck,
}

// returns ends the call of the process.
func returns(e *end, w way, how proto.Return) {
	switch {
	case how == proto.Succeeds && w == toHost:
		e.send = succeeded
	case how == proto.Succeeds:
		e.read = succeeded
	case how == proto.Fails && w == toHost:
		e.send = withdrawn
	case how == proto.Fails:
		e.read = aborted
	}
}

// ending is what a record is to a transfer of the host that moves.
func ending(kind wire.Type, send call) proto.Input {
	switch {
	case kind == wire.TypeAborted:
		return proto.TakeAborted
	case send == asked:
		return proto.TakeCrossed
	}
	return proto.TakeDone
}

// gives is the process that sends, and takes back what it offers.
func (r *rendezvous) gives(s system, c int, do func(Event, system)) {
	e, to := &s.end[c], s
	switch {
	case s.d2h.len == r.slots:
	case e.send == begun && e.device == proto.DeviceIdle:
		to.end[c].send = waits
		r.follow(to, c, proto.GiveMessage, do)
	case e.send == cancelled:
		to.end[c].send = asked
		r.follow(to, c, proto.Stop, do)
	}
}

// receives is the host that looks at an offer and takes it, or gives it back.
func (r *rendezvous) receives(s system, c int, do func(Event, system)) {
	e := &s.end[c]
	act := func(in proto.Input, kind wire.Type, read call) {
		step := r.host.Step(abi.D2H, e.stand, in)
		if !step.OK() || kind != nothing && s.h2d.len == r.slots {
			return
		}
		to := s
		to.end[c].stand, to.end[c].read = step.From(e.stand), read
		if kind != nothing {
			to.h2d = s.h2d.put(slot{kind, int8(c), e.id})
		}
		do(Tau, to)
	}
	if e.read == waits {
		act(proto.Hold, nothing, waits)
		act(proto.PutAccept, wire.TypeAck, succeeded)
	}
	act(proto.PutWithdrawn, wire.TypeWithdrawn, e.read)
}

// offered is the host that takes an offer, or WITHDRAW.
func (r *rendezvous) offered(s system, m slot, do func(Event, system)) {
	e := &s.end[m.channel]
	in := proto.TakeOffer
	if m.kind == wire.TypeWithdraw {
		in = proto.TakeWithdraw
	}
	if m.kind == wire.TypeWithdraw && m.id != e.id {
		do(Tau, s) // it is over
		return
	}
	step := r.host.Step(abi.D2H, e.stand, in)
	if !step.OK() || step.Event() == proto.EventFault || in == proto.TakeOffer && m.id != (e.id+1)%4 {
		do("fault", s)
		return
	}
	e.stand, e.id = step.From(e.stand), m.id
	do(Tau, s)
}

// transfers is what the host puts for a transfer.
func (r *rendezvous) transfers(s system, c int, do func(Event, system)) {
	e, to := &s.end[c], s
	state := e.stand.State()
	switch {
	case e.send == begun:
		to.end[c].listed = false
		r.put(to, c, proto.PutTransfer, wire.TypeIndBegin, waits, do)
	case e.send == cancelled:
		next := asked
		if r.impolite {
			next = withdrawn
		}
		r.put(s, c, proto.PutAbort, wire.TypeAbort, next, do)
	case e.send == waits && state == proto.StateComplete:
		r.put(s, c, proto.PutFin, wire.TypeFin, succeeded, do)
	case e.send == waits && !e.listed && s.h2d.len < r.slots:
		to.end[c].listed = true
		to.h2d = s.h2d.put(slot{wire.TypeIndList, int8(c), e.id})
		do(Tau, to)
	}
}

// takes is the process that takes a transfer, and the engine.
func (r *rendezvous) takes(s system, c int, do func(Event, system)) {
	e := &s.end[c]
	switch {
	case s.d2h.len == r.slots:
	case e.read == waits && e.device == proto.DeviceOffered:
		r.follow(s, c, proto.Take, do)
	case e.device == proto.DeviceMoving && e.marks&proto.DeviceEnding != 0:
		r.follow(s, c, proto.EngineQuiet, do)
	case e.device == proto.DeviceMoving && e.arrived:
		r.follow(s, c, proto.EngineDone, do)
	}
}

// fetches is the host that takes what a process offers, or ends that.
func (r *rendezvous) fetches(s system, c int, do func(Event, system)) {
	e, to := &s.end[c], s
	state := e.stand.State()
	switch {
	case s.h2d.len == r.slots && state != proto.StateIdle:
	case e.send == begun && state == proto.StateOffered:
		held := r.host.Step(abi.D2H, e.stand, proto.Hold)
		to.end[c].stand, to.end[c].sent, to.end[c].acked = held.From(e.stand), 1, 0
		r.put(to, c, proto.PutTransfer, wire.TypeIndList, waits, do)
	case e.send == cancelled:
		next := asked
		if r.impolite {
			next = withdrawn
		}
		r.put(s, c, proto.PutAbort, wire.TypeAbort, next, do)
	case e.send == waits && state == proto.StateComplete:
		r.put(s, c, proto.PutFin, wire.TypeFin, succeeded, do)
	case e.send == waits && state == proto.StateMoving && e.sent < r.lists && e.sent == e.acked: // a window of one
		to.end[c].sent++
		to.h2d = s.h2d.put(slot{wire.TypeIndList, int8(c), e.id})
		do(Tau, to)
	}
}

// offers is the process that offers a transfer, and the engine.
func (r *rendezvous) offers(s system, c int, do func(Event, system)) {
	e, to := &s.end[c], s
	switch {
	case s.d2h.len == r.slots:
	case e.read == waits && e.device == proto.DeviceIdle:
		to.end[c].came, to.end[c].moved = 0, 0
		r.follow(to, c, proto.GiveTransfer, do)
	case e.device == proto.DeviceMoving && e.marks&proto.DeviceEnding != 0:
		r.follow(s, c, proto.EngineQuiet, do)
	case e.device == proto.DeviceMoving && e.moved < e.came:
		to.end[c].moved++
		in := proto.EngineMoved
		if to.end[c].moved == r.lists {
			in = proto.EngineDone
		}
		r.follow(to, c, in, do)
	}
}

// fetched is the host that takes a slot about a transfer to it.
func (r *rendezvous) fetched(s system, m slot, do func(Event, system)) {
	e := &s.end[m.channel]
	in := proto.TakeRecord
	switch {
	case m.kind == wire.TypeIndBegin:
		in = proto.TakeOffer
	case m.id == e.id && e.stand.State() == proto.StateMoving && m.kind == wire.TypeAck && e.send != asked:
		e.acked++
		in = proto.TakeProgress
	case m.id == e.id && e.stand.State() == proto.StateMoving:
		in = ending(m.kind, e.send)
	}
	step := r.host.Step(abi.D2H, e.stand, in)
	if !step.OK() || step.Event() == proto.EventFault || in == proto.TakeOffer && m.id != (e.id+1)%4 || in == proto.TakeDone && e.sent != r.lists {
		do("fault", s)
		return
	}
	if in == proto.TakeOffer {
		e.id = m.id
	}
	if e.stand = step.From(e.stand); step.Event() == proto.EventAborted && e.send == asked {
		e.send = withdrawn
	}
	do(Tau, s)
}

// transactional is a channel of CSP that both sides commit: once a send and a read have met, a sender
// that gives up ends both, or neither.
func (w way) transactional(t *testing.T, c int) *Process {
	t.Helper()
	type state struct{ send, read call }
	event := w.event
	p, err := Explore(state{}, func(s state, do func(Event, state)) {
		met := s.read == begun
		switch s.send {
		case none:
			do(event("send", c), state{waits, s.read})
		case waits:
			do(event("cancel", c), state{cancelled, s.read})
			if met {
				do(Tau, state{succeeded, succeeded})
				do(Tau, state{asked, succeeded})
			}
		case asked: // it is to return, and may be cancelled until then
			do(event("cancel", c), state{succeeded, s.read})
			do(Tau, state{succeeded, s.read})
		case cancelled:
			if met {
				do(Tau, state{succeeded, succeeded})
				do(Tau, state{withdrawn, aborted})
			} else {
				do(Tau, state{withdrawn, s.read})
			}
		case succeeded:
			do(event("sent", c), state{none, s.read})
		case withdrawn:
			do(event("withdrawn", c), state{none, s.read})
		}
		switch s.read {
		case none:
			do(event("read", c), state{s.send, waits})
		case succeeded:
			do(event("got", c), state{s.send, none})
		case aborted:
			do(event("aborted", c), state{s.send, none})
		case waits:
			if s.send == waits || s.send == cancelled {
				do(Tau, state{s.send, begun})
			}
		}
	}, 100)
	require.NoError(t, err)
	return p
}

// TestWays: channels of other ways, beside each other over the same rings, refine theirs.
func TestWays(t *testing.T) {
	for _, ways := range [][]way{{message, toHost}, {transfer, toHost}, {transfer, fetch}} {
		r := &rendezvous{channels: len(ways), slots: int8(*slots), lists: 2, host: proto.Default(), device: proto.DefaultDevice()}
		copy(r.ways[:], ways)
		require.NoError(t, r.refines(t, FailuresDivergences), ways)
	}
}

// TestNoWays: with a transition that is another they do not.
func TestNoWays(t *testing.T) {
	for _, c := range []struct {
		way   way
		state proto.DeviceState
		input proto.DeviceInput
		to    func(r *proto.DeviceRow)
		model Model
	}{
		{toHost, proto.DeviceMessage, proto.HearAccept, func(r *proto.DeviceRow) { r.Return = proto.Fails }, Traces},
		{toHost, proto.DeviceMessage, proto.Stop, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }, Failures},
		{transfer, proto.DeviceCommit, proto.HearAbort, func(r *proto.DeviceRow) { r.Return = proto.Succeeds }, Traces},
		{transfer, proto.DeviceMoving, proto.EngineDone, func(r *proto.DeviceRow) { r.Next, r.Return = proto.DeviceIdle, proto.Succeeds }, Failures},
		{transfer, proto.DeviceMoving, proto.EngineQuiet, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }, Failures},
		{transfer, proto.DeviceMoving, proto.EngineQuiet, func(r *proto.DeviceRow) { r.Next = proto.DeviceMoving }, FailuresDivergences},
		{fetch, proto.DeviceCommit, proto.HearAbort, func(r *proto.DeviceRow) { r.Return = proto.Succeeds }, Traces},
		{fetch, proto.DeviceCommit, proto.HearAbort, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }, Failures},
		{fetch, proto.DeviceMoving, proto.EngineDone, func(r *proto.DeviceRow) { r.Next, r.Return = proto.DeviceIdle, proto.Succeeds }, Traces},
		{fetch, proto.DeviceMoving, proto.EngineMoved, func(r *proto.DeviceRow) { r.Put = proto.PutNothing }, Failures},
		{fetch, proto.DeviceMoving, proto.EngineMoved, func(r *proto.DeviceRow) { r.Put = proto.PutDone }, Traces},
		{fetch, proto.DeviceOffered, proto.HearList, func(r *proto.DeviceRow) { r.Next = proto.DeviceOffered }, Failures},
		{fetch, proto.DeviceMoving, proto.EngineQuiet, func(r *proto.DeviceRow) { r.Next = proto.DeviceMoving }, FailuresDivergences},
	} {
		host, device := tables(t, func(r *proto.DeviceRow) {
			if r.Direction == c.way.direction() && r.State == c.state && r.Input == c.input {
				c.to(r)
			}
		})
		r := &rendezvous{channels: 1, slots: 1, lists: 2, ways: [most]way{c.way}, host: host, device: device}
		require.Error(t, r.refines(t, c.model), "%v %v %v", c.way, c.state, c.input)
	}
	for _, w := range []way{transfer, fetch} {
		r := &rendezvous{channels: 1, slots: 1, lists: 2, ways: [most]way{w}, host: proto.Default(), device: proto.DefaultDevice(), impolite: true}
		require.Error(t, r.refines(t, Traces), w)
	}
}
