package talk

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Walk is a conversation without an end that chance writes: the host does what it may, and the
// device puts what fits, nearly fits, or is garbage. The same seed gives the same walk.
type Walk struct {
	Events [proto.EventUnanswered + 1]int // how often the device's slots meant what

	m    Model
	rand *rand.Rand
	open bool // a conversation is open
	lies bool // the device lies, perhaps, in the present slot
}

// Line is one line to a host that is a [Program], and its answer by the table.
type Line struct {
	Text   string
	Answer string // the event alone, where the state is nobody's; empty for any state
}

// NewWalk begins a walk along a table.
func NewWalk(table *proto.Table, seed uint64) *Walk {
	return &Walk{m: Model{Table: table}, rand: rand.New(rand.NewPCG(seed, 0))}
}

// Next makes the next step.
func (w *Walk) Next() Line {
	if !w.open {
		w.open = true
		o := Open{Next: [2]uint64{65530, 65531}, Generation: 3, Window: 8, Limit: 1 << 40, Runs: w.rand.Uint64N(2)}
		_ = w.m.Open(&o) // has no errors; the sequence wraps soon
		return Line{o.line(), "ok"}
	}
	for range 8 {
		if w.rand.IntN(2) != 0 {
			break
		}
		if line, ok := w.host(abi.Direction(w.rand.IntN(2))); ok {
			return line
		}
	}
	return w.device()
}

// host does something that the host may do now; false if it did nothing.
func (w *Walk) host(d abi.Direction) (Line, bool) {
	ins := []proto.Input{
		proto.PutMessage, proto.PutCall, proto.PutTransfer, proto.PutEager, proto.PutWithdraw, proto.PutWithdrawn, proto.PutAccept, proto.PutRefuse,
		proto.PutAbort, proto.PutFin, proto.Hold, proto.Release, proto.PutClose, proto.Shut,
	}
	h, l := w.m.half[d], &w.m.ledger[d]
	if _, ok := l.Next(); ok && h.Stand.State() == proto.StateMoving && w.rand.IntN(4) != 0 {
		return w.list(d), true
	}
	in := ins[w.rand.IntN(len(ins))]
	found := proto.Marks(0)
	if h.Stand.State() == proto.StateMoving && d == abi.H2D && l.Accepted() {
		found = proto.MarkAccepted
	}
	rare := in == proto.PutClose || in == proto.Shut || in == proto.PutAbort
	if !w.m.Table.Step(d, h.Stand.With(found), in).OK() || rare && w.rand.IntN(16) != 0 {
		return Line{}, false
	}
	return w.do(d, in), true
}

// list puts the next gather list.
func (w *Walk) list(d abi.Direction) Line {
	l := &w.m.ledger[d]
	k, _ := l.Next()
	s := said{kind: wire.TypeIndList, id: w.m.half[d].ID, half: d, keys: map[string]uint64{"list": k}}
	return w.put(&s, l.Cut)
}

// do makes the host do what the table lets it.
func (w *Walk) do(d abi.Direction, in proto.Input) Line {
	id := w.m.half[d].ID
	s := said{id: id, half: d, keys: map[string]uint64{}}
	cut := w.m.open.split(w.m.offered)
	switch in {
	case proto.Hold, proto.Release, proto.Shut:
		return w.local(d, in)
	case proto.PutMessage:
		s.kind, s.id = wire.TypeDirect, id+1
	case proto.PutCall:
		s.kind, s.id = wire.TypeCall, id+1
	case proto.PutTransfer:
		s.kind, s.id = wire.TypeIndBegin, id+1
		s.keys["size"] = w.rand.Uint64N(1 << 19)
		if d == abi.D2H {
			if cut.Size == 0 {
				return w.device()
			}
			s.kind, s.id, s.keys = wire.TypeIndList, id, map[string]uint64{"list": 0}
		}
	case proto.PutEager:
		return w.eager(&s)
	case proto.PutAccept:
		s.kind = wire.TypeAck
	case proto.PutRefuse:
		s.kind = wire.TypeError
		s.keys["status"] = uint64(abi.ErrAborted)
	case proto.PutClose:
		s.kind, s.keys["halves"] = wire.TypeClose, 1<<d
	default:
		if w.m.state(d) == proto.StatePosted {
			s.id++
		}
		s.kind = map[proto.Input]wire.Type{
			proto.PutWithdraw: wire.TypeWithdraw, proto.PutWithdrawn: wire.TypeWithdrawn,
			proto.PutAbort: wire.TypeAbort, proto.PutFin: wire.TypeFin,
		}[in]
	}
	return w.put(&s, cut)
}

// eager gives the device pages: of an offer, for one, or for the next.
func (w *Walk) eager(s *said) Line {
	s.kind, s.keys["size"] = wire.TypeEager, w.rand.Uint64N(wire.EagerEntries*abi.PageSize+1)
	if w.m.state(s.half) == proto.StateIdle {
		s.id++
	} else if s.keys["size"] = w.m.offered; w.m.offered == 0 || w.m.offered > wire.EagerEntries*abi.PageSize {
		return w.device()
	}
	return w.put(s, proto.Split{})
}

// local does what needs no slot.
func (w *Walk) local(d abi.Direction, in proto.Input) Line {
	what := map[proto.Input]string{proto.Hold: "hold", proto.Release: "release", proto.Shut: "shut"}[in]
	state, _ := w.m.Do(what, d) // the table lets it
	return Line{fmt.Sprintf("%s %v", what, d), state.String()}
}

// put puts a slot of the host.
func (w *Walk) put(s *said, cut proto.Split) Line {
	slot, _ := s.slot(cut, &w.m.open) // lists have their number
	state, err := w.m.Put(&slot)
	answer := state.String()
	switch {
	case err != nil:
		answer = "no"
	case s.kind == wire.TypeClose: // it is about both halves
		answer = ""
	}
	return Line{"put " + words(&slot), answer}
}

// near returns a number that fits, or is a little off, or is anything.
func (w *Walk) near(right uint64) uint64 {
	if !w.lies {
		return right
	}
	switch w.rand.IntN(12) {
	case 0:
		return right + 1
	case 1:
		return right - 1
	case 2:
		return w.rand.Uint64N(1 << 48)
	case 3:
		return ^uint64(0)
	}
	return right
}

// device makes the device put something.
func (w *Walk) device() Line {
	d := abi.Direction(w.rand.IntN(2))
	s := said{id: w.m.half[d].ID, half: d, keys: map[string]uint64{}}
	w.lies = w.rand.IntN(64) == 0
	switch state := w.m.state(d); {
	case w.rand.IntN(32) == 0:
		w.close(&s)
	case w.lies && w.rand.IntN(4) == 0:
		s.kind, s.keys["list"], s.keys["length"] = wire.Type(w.rand.IntN(128)), 0, w.near(abi.PayloadSize)
	case state == proto.StateIdle && d == abi.D2H && w.rand.IntN(4) != 0,
		state == proto.StatePosted && w.rand.IntN(3) == 0:
		w.offer(&s)
	case state == proto.StateIdle || d == abi.D2H && state == proto.StateOffered || w.rand.IntN(16) == 0,
		state == proto.StatePosted && w.rand.IntN(2) == 0:
		w.note(&s)
	default:
		w.record(&s, state)
	}
	if w.lies && w.rand.IntN(2) == 0 {
		s.keys["sequence"] = w.near(s.id)
		s.keys["channel"], s.keys["epoch"] = w.near(Channel), w.near(Epoch)
	}
	slot, _ := s.slot(proto.Split{}, &w.m.open) // lists have their number
	return w.take(&slot)
}

// close makes the device close halves, or agree to the host's close.
func (w *Walk) close(s *said) {
	s.kind = wire.TypeClose
	s.keys["halves"], s.keys["generation"] = w.near(1+w.rand.Uint64N(3)), w.near(w.m.open.Generation)
	s.keys["rsvd"] = w.near(0)
}

// record makes a completion record that fits the state of its half, unless the device lies.
func (w *Walk) record(s *said, state proto.State) {
	l := &w.m.ledger[s.half]
	lists := l.Acked + w.rand.Uint64N(l.Sent-l.Acked+1)
	moved := max(l.Cut.UpTo(lists), l.Processed)
	if w.rand.IntN(4) == 0 { // and some of the next list
		moved += w.rand.Uint64N(l.Cut.UpTo(l.Sent) - min(moved, l.Cut.UpTo(l.Sent)) + 1)
	}
	says := map[string]uint64{"lists": lists, "processed": moved, "direction": uint64(s.half)}
	s.kind = wire.TypeAck
	if state == proto.StateGiven || state == proto.StatePosted {
		if state == proto.StatePosted {
			s.id++
		}
		state, says["processed"] = proto.StateOffered, w.m.half[s.half].Size
	}
	if state == proto.StateCalled {
		state = proto.StateOffered
		switch w.rand.IntN(4) {
		case 0:
			says["status"] = w.near(uint64(abi.ErrWithdrawn)) & 0xffff
		case 1, 2:
			s.kind, s.id = wire.TypeAnswer, w.near(s.id)
			s.keys["length"] = w.near(w.rand.Uint64N(abi.PayloadSize + 1))
			return
		}
	}
	switch n := w.rand.IntN(16); {
	case state == proto.StateOffered && n < 12:
		says["state"] = uint64(wire.StateConsumed)
	case n == 0 || state == proto.StateOffered:
		s.kind, says["status"], says["fault"] = wire.TypeError, 1+w.rand.Uint64N(uint64(abi.StatusCount)-1), w.rand.Uint64N(4)
	case l.Aborting && n < 8:
		s.kind = wire.TypeAborted
	case l.Sent == l.Lists && (n < 10 || l.Sent == 0):
		s.kind, says["processed"] = wire.TypeDone, l.Cut.Size
	case n < 13 && l.Sent > l.Acked:
		says["state"], says["status"], says["lists"] = uint64(wire.StateRepeat), uint64(abi.ErrBusy), l.Acked
	case !l.Ready && (l.Sent < l.Lists || n == 13):
		says["state"] = uint64(wire.StateReady)
	default:
		says["state"] = uint64(wire.StateMoving)
	}
	s.id = w.near(s.id)
	for _, key := range keys { // in an order that a seed repeats
		if value, ok := says[key]; ok {
			s.keys[key] = w.near(value)
		}
	}
}

// offer makes the device's next offer, mostly.
func (w *Walk) offer(s *said) {
	s.half = abi.D2H
	s.id = w.near(w.m.half[abi.D2H].ID + 1)
	s.kind = wire.TypeDirect
	s.keys["length"] = w.near(w.rand.Uint64N(abi.PayloadSize + 1))
	if w.rand.IntN(2) == 0 {
		s.kind = wire.TypeIndBegin
		size := w.rand.Uint64N(1 << 18)
		switch w.rand.IntN(3) {
		case 0: // what pages may be posted for
			size = w.rand.Uint64N(wire.EagerEntries*abi.PageSize + 1)
		case 1:
			size = w.m.half[abi.D2H].Size
		}
		s.keys = map[string]uint64{"size": w.near(size), "rsvd": w.near(0)}
	}
}

// note makes a note that mostly fits.
func (w *Walk) note(s *said) {
	s.kind = wire.TypeWithdraw
	if s.half == abi.H2D {
		s.kind = []wire.Type{wire.TypeWithdrawn, wire.TypeReady}[w.rand.IntN(2)]
	} else if st := w.m.state(abi.D2H); st == proto.StateIdle || st == proto.StatePosted || w.lies {
		s.kind = []wire.Type{wire.TypeWithdraw, wire.TypeOffer}[w.rand.IntN(2)]
	}
	if m := w.m.half[abi.H2D].Stand; s.kind == wire.TypeWithdrawn && !w.lies && m.Marks()&proto.MarkRecall == 0 {
		s.kind = wire.TypeReady // nobody asked
	}
	if m := w.m.half[abi.D2H].Stand; s.half == abi.D2H && m.State() == proto.StatePosted && (m.Marks()&proto.MarkRecall != 0 || w.lies) {
		s.kind = wire.TypeWithdrawn
	}
	s.id = w.m.half[s.half].ID
	if s.kind == wire.TypeReady || s.kind == wire.TypeOffer || s.kind == wire.TypeWithdrawn && s.half == abi.D2H {
		s.id++
	}
	s.id = w.near(s.id)
	s.keys["direction"], s.keys["status"] = w.near(uint64(s.half))&0xffffffff, w.near(0)&0xffffffff
}

// take gives a slot of the device to the host.
func (w *Walk) take(slot *wire.Slot) Line {
	event, state, _ := w.m.Take(slot) // has no errors
	w.Events[event]++
	answer := event.String()
	header := wire.Header(slot.Header)
	if event == proto.EventFault || event == proto.EventOver {
		w.open = false
	} else if header.Type() != wire.TypeClose && header.Channel() == Channel && header.Epoch() == Epoch {
		answer += " " + state.String()
	}
	return Line{"take " + words(slot), answer}
}

// Agrees reports whether a program's answer is the table's.
func (l Line) Agrees(answer string) bool {
	if l.Answer == "" {
		return !strings.HasPrefix(answer, "no ")
	}
	return answer == l.Answer || strings.HasPrefix(answer, l.Answer+" ")
}
