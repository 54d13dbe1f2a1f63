package refine

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

var (
	channels = flag.Int("channels", 2, "channels of TestRendezvous, at most 4")
	slots    = flag.Int("slots", 2, "slots of each ring of TestRendezvous, at most 3")
)

const (
	most   = 4          // channels
	places = 3          // of a ring
	bound  = 20_000_000 // states of a process
)

// slot is a message in a ring.
type slot struct {
	kind    wire.Type
	channel int8
	id      uint8 // modulo 4: no more are under way
}

// ring is a ring of slots.
type ring struct {
	slot [places]slot
	len  int8
}

func (r ring) put(s slot) ring {
	r.slot[r.len] = s
	r.len++
	return r
}

func (r ring) take() (slot, ring) {
	first := r.slot[0]
	copy(r.slot[:], r.slot[1:])
	r.slot[places-1] = slot{}
	r.len--
	return first, r
}

// call is the state of a call of one side.
type call uint8

const (
	none      call = iota
	begun          // the host's: its message is still to be put
	waits          // for the other side
	cancelled      // the host's: its context ended, WITHDRAW is still to be put
	asked          // … and was put
	succeeded
	withdrawn
	aborted // the reader's: the sender ended a transfer that both had begun
)

// end is one channel at both sides. Which side sends depends on its way.
type end struct {
	send, read call
	listed     bool        // a transfer's list is put
	arrived    bool        // … and is at the device, which moves the transfer
	sent       uint8       // lists of a transfer to the host that it put …
	acked      uint8       // … and that the device has moved, as the host knows
	came       uint8       // … that are at the device …
	moved      uint8       // … and that it has moved
	stand      proto.Stand // of the host's half
	id         uint8
	device     proto.DeviceState
	marks      proto.DeviceMarks
	next       uint8 // id at the device
}

// system is the host's half, the rings that the channels share, and the device's half.
type system struct {
	end      [most]end
	h2d, d2h ring
}

// rendezvous has the rules by which a system moves: the rows of both halves.
type rendezvous struct {
	channels int
	slots    int8  // of a ring
	lists    uint8 // of a transfer to the host
	host     *proto.Table
	device   *proto.DeviceTable
	ways     [most]way
	blocking bool // a manager waits for its target, as no row lets it
	impolite bool // a call that ends does not wait for the answer to WITHDRAW
}

func event(what string, c int) Event { return Event(fmt.Sprintf("%s.%d", what, c)) }

// steps calls do for what a system may do.
func (r *rendezvous) steps(s system, do func(Event, system)) {
	for c := range r.channels {
		r.user(s, c, do)
		switch r.ways[c] {
		case message:
			r.calls(s, c, do)
			r.reads(s, c, do)
		case toHost:
			r.gives(s, c, do)
			r.receives(s, c, do)
		case transfer:
			r.transfers(s, c, do)
			r.takes(s, c, do)
		case fetch:
			r.fetches(s, c, do)
			r.offers(s, c, do)
		}
	}
	r.drain(s, do)
	r.manager(s, do)
}

// user is what callers on both sides see: calls begin, end, and are cancelled.
func (r *rendezvous) user(s system, c int, do func(Event, system)) {
	set := func(e Event, send, read call) {
		to := s
		to.end[c].send, to.end[c].read = send, read
		do(e, to)
	}
	e, event := &s.end[c], r.ways[c].event
	switch e.send {
	case none:
		set(event("send", c), begun, e.read)
	case begun:
		set(event("cancel", c), withdrawn, e.read)
	case waits:
		set(event("cancel", c), cancelled, e.read)
	case succeeded:
		set(event("sent", c), none, e.read)
	case withdrawn:
		set(event("withdrawn", c), none, e.read)
	}
	switch e.read {
	case none:
		set(event("read", c), e.send, waits)
	case succeeded:
		set(event("got", c), e.send, none)
	case aborted:
		set(event("aborted", c), e.send, none)
	}
}

// calls is what the host puts for its calls.
func (r *rendezvous) calls(s system, c int, do func(Event, system)) {
	switch s.end[c].send {
	case begun:
		r.put(s, c, proto.PutMessage, wire.TypeDirect, waits, do)
	case cancelled:
		next := asked
		if r.impolite {
			next = withdrawn
		}
		r.put(s, c, proto.PutWithdraw, wire.TypeWithdraw, next, do)
	}
}

// put has the host put a slot for a call that sends, if a row lets it and there is room.
func (r *rendezvous) put(s system, c int, in proto.Input, kind wire.Type, next call, do func(Event, system)) {
	e := &s.end[c]
	step := r.host.Step(r.ways[c].direction(), e.stand, in)
	if s.h2d.len == r.slots || !step.OK() {
		return
	}
	to := s
	t := &to.end[c]
	t.stand, t.send = step.From(e.stand), next
	if step.Advances() {
		t.id = (e.id + 1) % 4
	}
	to.h2d = s.h2d.put(slot{kind, int8(c), t.id})
	do(Tau, to)
}

// drain is the host that takes a slot.
func (r *rendezvous) drain(s system, do func(Event, system)) {
	if s.d2h.len == 0 {
		return
	}
	to := s
	var m slot
	m, to.d2h = s.d2h.take()
	e := &to.end[m.channel]
	switch r.ways[m.channel] {
	case toHost:
		r.offered(to, m, do)
		return
	case fetch:
		r.fetched(to, m, do)
		return
	}
	in := proto.TakeRecord
	switch {
	case m.kind == wire.TypeWithdrawn:
		in = proto.TakeWithdrawn
	case m.id == e.id && e.stand.State() == proto.StateOffered:
		in = proto.TakeConsumed
	case m.id == e.id && e.stand.State() == proto.StateMoving:
		in = ending(m.kind, e.send)
	}
	step := r.host.Step(abi.H2D, e.stand, in)
	if !step.OK() || step.Event() == proto.EventFault {
		do("fault", to)
		return
	}
	e.stand = step.From(e.stand)
	switch {
	case e.send != waits && e.send != cancelled && e.send != asked:
	case step.Event() == proto.EventDelivered:
		e.send = succeeded
	case step.Event() == proto.EventWithdrawn, step.Event() == proto.EventAborted:
		e.send = withdrawn
	}
	do(Tau, to)
}

// manager is the device that takes a slot, once there is room for an answer.
func (r *rendezvous) manager(s system, do func(Event, system)) {
	if s.h2d.len == 0 || s.d2h.len == r.slots {
		return
	}
	m, rest := s.h2d.take()
	e := &s.end[m.channel]
	if r.blocking && m.kind == wire.TypeDirect && e.read != waits {
		return
	}
	to := s
	to.h2d = rest
	id := (e.next + 3) % 4
	if m.kind == wire.TypeDirect || m.kind == wire.TypeIndBegin {
		id = e.next
	}
	if m.id != id {
		do(Tau, to) // it is over
		return
	}
	r.follow(to, int(m.channel), heard[m.kind], do)
}

// follow has the device follow a row; without one nothing happens.
func (r *rendezvous) follow(s system, c int, in proto.DeviceInput, do func(Event, system)) {
	e := &s.end[c]
	half := proto.DeviceHalf{Direction: r.ways[c].direction(), State: e.device, Marks: e.marks, Next: uint64(e.next)}
	row, i := r.device.Step(half, in)
	if i >= 0 {
		half = half.From(row)
		e.arrived = half.State == proto.DeviceMoving && (e.arrived || in == proto.HearList || e.marks&proto.DeviceListed != 0)
		if in == proto.HearList && r.ways[c] == fetch {
			e.came++
		}
		e.device, e.marks, e.next = half.State, half.Marks, uint8(half.Next%4)
		present := (e.next + 3) % 4
		if kind, ok := puts[row.Put]; ok {
			s.d2h = s.d2h.put(slot{kind, int8(c), present})
		}
		returns(e, r.ways[c], row.Return)
	}
	do(Tau, s)
}

// reads is the process that takes what is parked.
func (r *rendezvous) reads(s system, c int, do func(Event, system)) {
	if e := &s.end[c]; e.read == waits && e.device == proto.DeviceMessage && s.d2h.len < r.slots {
		r.follow(s, c, proto.Take, do)
	}
}

// synchronous is a channel of CSP whose sender may give up: one send and one read meet, or neither.
// A call that is cancelled before it has returned may still succeed.
func synchronous(t *testing.T, c int) *Process {
	t.Helper()
	type state struct{ send, read call }
	p, err := Explore(state{}, func(s state, do func(Event, state)) {
		switch s.send {
		case none:
			do(event("send", c), state{waits, s.read})
		case waits:
			do(event("cancel", c), state{cancelled, s.read})
		case cancelled:
			do(Tau, state{withdrawn, s.read})
		case begun: // it has met the read, and may be cancelled until it returns
			do(Tau, state{succeeded, s.read})
			do(event("cancel", c), state{succeeded, s.read})
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
		case waits:
			if s.send == waits {
				do(Tau, state{begun, succeeded})
			}
			if s.send == cancelled {
				do(Tau, state{succeeded, succeeded})
			}
		}
	}, 100)
	require.NoError(t, err)
	return p
}

// refines compares a system with as many synchronous channels.
func (r *rendezvous) refines(t *testing.T, model Model) error {
	t.Helper()
	spec := r.ways[0].channel(t, 0)
	var err error
	for c := 1; c < r.channels; c++ {
		spec, err = Parallel(spec, r.ways[c].channel(t, c), func(Event) bool { return false }, bound)
		require.NoError(t, err)
	}
	var first system
	for c := range r.channels {
		first.end[c].next = 1
	}
	process, err := Explore(first, r.steps, bound)
	require.NoError(t, err)
	pairs, err := Refines(spec, process, model)
	t.Logf("%d channels: specification of %d states, process of %d, %d pairs: %v", r.channels, spec.States(), process.States(), pairs, err)
	return err
}

func tables(t *testing.T, change func(*proto.DeviceRow)) (*proto.Table, *proto.DeviceTable) {
	t.Helper()
	rows := proto.DeviceRows()
	for i := range rows {
		change(&rows[i])
	}
	d, err := proto.NewDeviceTable(rows)
	require.NoError(t, err)
	return proto.Default(), d
}

// TestRendezvous: host half, rings and device half, whose slots nobody sees, refine synchronous
// channels with cancellation in the failures-divergences model.
func TestRendezvous(t *testing.T) {
	r := &rendezvous{channels: *channels, slots: int8(*slots), host: proto.Default(), device: proto.DefaultDevice()}
	require.NoError(t, r.refines(t, FailuresDivergences))
}

// TestNoRendezvous: systems that are broken do not refine them. One in which a manager waits for its
// target does so in the traces model: only what it refuses tells.
func TestNoRendezvous(t *testing.T) {
	host, device := tables(t, func(*proto.DeviceRow) {})
	blocking := &rendezvous{channels: 2, slots: 1, host: host, device: device, blocking: true}
	require.NoError(t, blocking.refines(t, Traces))
	require.ErrorContains(t, blocking.refines(t, Failures), "it offers only")
	impolite := &rendezvous{channels: 2, slots: 1, host: host, device: device, impolite: true}
	require.Error(t, impolite.refines(t, Traces))
	_, silent := tables(t, func(r *proto.DeviceRow) {
		if r.Direction == abi.H2D && r.State == proto.DeviceMessage && r.Input == proto.HearWithdraw {
			r.Put = proto.PutNothing
		}
	})
	require.ErrorContains(t, (&rendezvous{channels: 2, slots: 1, host: host, device: silent}).refines(t, Failures), "it offers only")
	_, keeps := tables(t, func(r *proto.DeviceRow) {
		if r.Direction == abi.H2D && r.State == proto.DeviceMessage && r.Input == proto.HearWithdraw {
			r.Next = proto.DeviceMessage
		}
	})
	require.Error(t, (&rendezvous{channels: 2, slots: 1, host: host, device: keeps}).refines(t, Traces))
}
