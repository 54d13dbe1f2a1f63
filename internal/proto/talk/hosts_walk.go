package talk

import (
	"fmt"
	"math/rand/v2"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// HostsWalk is a conversation of two hosts that chance writes, played to the device of tables and to
// another one. The same seed gives the same walk.
type HostsWalk struct {
	Model HostsModel

	other Hosts
	rand  *rand.Rand
	host  int // that puts a slot
	left  int // steps until the next conversation
	begin []HostsStep
	last  []string
}

// NewHostsWalk begins a walk along tables, to compare another device with.
func NewHostsWalk(table *proto.ConnectionTable, ends []proto.EndRow, other Hosts, seed uint64) *HostsWalk {
	return &HostsWalk{
		Model: HostsModel{Table: table, Ends: ends, Used: map[int]bool{}, UsedEnds: map[int]bool{}},
		other: other, rand: rand.New(rand.NewPCG(seed, 2)),
	}
}

// Step makes the next step, and returns how the devices differ after it.
func (w *HostsWalk) Step() error {
	if w.left--; w.left <= 0 || w.Model.end[0].state == proto.EndNone && w.Model.end[1].state == proto.EndNone && len(w.begin) == 0 {
		return w.opens()
	}
	if len(w.begin) > 0 && w.rand.IntN(3) > 0 {
		s := w.begin[0]
		w.begin = w.begin[1:]
		return w.event(s.Word, s.Host)
	}
	switch n := w.rand.IntN(200); {
	case n < 6:
		return w.event("time", 0)
	case n < 12:
		return w.event([]string{"slow", "quick", "quick"}[w.rand.IntN(3)], w.rand.IntN(2))
	case n == 12 && w.rand.IntN(3) == 0:
		return w.event("fail", w.rand.IntN(2))
	case n == 13:
		w.begin = nil
		return w.event("detach", w.rand.IntN(2))
	}
	if w.rand.IntN(3) == 0 {
		for range 1 + w.rand.IntN(2) {
			if err := w.deliver(true); err != nil {
				return err
			}
		}
	}
	return w.deliver(false)
}

// deliver has a host put a slot.
func (w *HostsWalk) deliver(late bool) error {
	host := w.rand.IntN(2)
	w.host = host
	s := w.slot(host)
	what := fmt.Sprintf("%c > %v", 'a'+host, &s)
	if late {
		what += ", late"
	}
	return w.both(what, func(d Hosts) error { return d.DeliverOf(host, &s, late) })
}

// opens begins a conversation.
func (w *HostsWalk) opens() error {
	w.left, w.last = 60, nil
	w.begin = []HostsStep{{Word: "connect"}, {Word: "subscribe"}, {Word: "accept"}, {Word: "subscribe", Host: 1}}
	if w.rand.IntN(2) == 0 {
		w.begin[1], w.begin[2], w.begin[3] = w.begin[2], w.begin[3], w.begin[1]
	}
	if w.rand.IntN(20) == 0 {
		w.begin = append(w.begin[:1:1], HostsStep{Word: "subscribe"}, HostsStep{Word: "refuse"})
	}
	next := [4]uint64{65530, 7, 65534, 300}
	return w.both(fmt.Sprint("open ", next), func(d Hosts) error { return d.OpenHosts(next) })
}

func (w *HostsWalk) event(what string, host int) error {
	return w.both(fmt.Sprintf("%s %c", what, 'a'+host), func(d Hosts) error { return d.Event(what, host) })
}

// both has both devices do something, and compares what they put for each host.
func (w *HostsWalk) both(what string, do func(Hosts) error) error {
	w.last = append(w.last, what)
	if err := do(&w.Model); err != nil {
		return err
	}
	if err := do(w.other); err != nil {
		return err
	}
	for host := range 2 {
		for {
			want, _ := w.Model.NextOf(host) // has no errors
			got, err := w.other.NextOf(host)
			if err != nil {
				return fmt.Errorf("%w; before: %q", err, w.last)
			}
			if difference := compareSlots(want, got); difference != "" {
				return fmt.Errorf("host %c: %s; before: %q", 'a'+host, difference, w.last)
			}
			if want == nil {
				break
			}
			w.last = append(w.last, fmt.Sprintf("%c < %v", 'a'+host, want))
		}
	}
	return nil
}

// near returns a number that fits, mostly.
func (w *HostsWalk) near(right uint64) uint64 {
	if w.rand.IntN(24) == 0 {
		return right + []uint64{1, ^uint64(0), 1 << 16}[w.rand.IntN(3)]
	}
	return right
}

// slot makes a slot of a host, which fits or crossed something.
func (w *HostsWalk) slot(host int) wire.Slot {
	end, d := &w.Model.end[host], abi.Direction(w.rand.IntN(2))
	h := end.half[d]
	s := said{id: h.Present(), half: d, keys: map[string]uint64{}}
	kinds := []wire.Type{wire.TypeWithdraw, wire.TypeAbort, wire.TypeIndList, wire.TypeIndList, wire.TypeWithdraw, wire.TypeDirect}
	size := end.size
	if d == abi.H2D {
		size = end.parked.Begin().Size
	}
	switch {
	case w.rand.IntN(40) == 0:
		s.kind, s.keys["halves"], s.keys["generation"] = wire.TypeClose, 1+w.rand.Uint64N(3), w.near(hostsOpen.Generation)
	case d == abi.H2D && h.State == proto.DeviceIdle:
		s.id++
		kinds = []wire.Type{wire.TypeDirect, wire.TypeDirect, wire.TypeIndBegin, wire.TypeEager, wire.TypeOffer, wire.TypeWithdraw}
	case h.State == proto.DeviceIdle:
		s.id++
		kinds = []wire.Type{wire.TypeReady, wire.TypeReady, wire.TypeEager, wire.TypeWithdraw}
	case h.State == proto.DeviceMoving && w.rand.IntN(4) > 0:
		kinds = []wire.Type{wire.TypeIndList}
	case h.State == proto.DeviceOffered && d == abi.D2H && w.rand.IntN(2) == 0:
		kinds = []wire.Type{wire.TypeIndList, wire.TypeIndList, wire.TypeEager}
	case h.State == proto.DeviceCommit:
		kinds = []wire.Type{wire.TypeFin, wire.TypeFin, wire.TypeFin, wire.TypeAbort}
	case d == abi.D2H:
		kinds = []wire.Type{wire.TypeAck, wire.TypeError, wire.TypeWithdrawn, wire.TypeFin, wire.TypeAbort, wire.TypeEager}
	}
	if s.keys["halves"] == 0 {
		s.kind = kinds[w.rand.IntN(len(kinds))]
	}
	w.fields(&s, d, size)
	slot, _ := s.slot(hostsOpen.split(size), &hostsOpen) // lists have their number
	if s.kind == wire.TypeDirect {
		slot.Payload[0] ^= w.rand.Uint64N(2)
	}
	return slot
}

// transferSizes are those of transfers between hosts, few, so that they often agree.
var transferSizes = []uint64{0, 100, 100, 5000, 61440}

// fields sets those of a kind.
func (w *HostsWalk) fields(s *said, d abi.Direction, size uint64) {
	s.id = w.near(s.id)
	switch s.kind {
	case wire.TypeIndBegin:
		s.keys["size"], s.keys["timeout"] = transferSizes[w.rand.IntN(len(transferSizes))], w.rand.Uint64N(2)
		s.keys["rsvd"] = w.near(0)
	case wire.TypeEager:
		if s.keys["size"] = 100; d == abi.D2H && w.rand.IntN(2) == 0 && size <= 5000 {
			s.keys["size"] = size
		}
		if w.rand.IntN(6) == 0 {
			s.keys["count"] = 5
		}
	case wire.TypeIndList:
		s.keys["list"] = w.near(0) & 0xffff
		if t := &w.Model.end[w.host].move[d]; w.Model.end[w.host].half[d].State == proto.DeviceMoving {
			s.keys["list"] = w.near(t.lists) & 0xffff
		}
		if w.rand.IntN(20) == 0 {
			s.keys["count"] = w.rand.Uint64N(8)
		}
	case wire.TypeAck:
		s.keys["state"] = uint64(wire.StateConsumed)
	case wire.TypeError:
		s.keys["status"] = 1 + w.rand.Uint64N(uint64(abi.StatusCount)) // one of them is none
		s.keys["outstanding"] = w.rand.Uint64N(100)
	case wire.TypeReady, wire.TypeOffer, wire.TypeWithdraw, wire.TypeWithdrawn:
		s.keys["rsvd"] = w.near(0)
	}
}
