package talk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// DeviceWalk is a conversation without an end that chance writes, played to the device of a table
// and to another one: the process makes calls, and the host puts what fits, what crossed something,
// or garbage. The same seed gives the same walk.
type DeviceWalk struct {
	Model  DeviceModel
	Events map[string]int // how often the device put which slots

	other Device
	rand  *rand.Rand
	left  int // steps until the next conversation
	last  []string
}

// NewDeviceWalk begins a walk along a table, to compare another device with.
func NewDeviceWalk(table *proto.DeviceTable, other Device, seed uint64) *DeviceWalk {
	return &DeviceWalk{
		Model: DeviceModel{Table: table, Used: map[int]bool{}}, Events: map[string]int{},
		other: other, rand: rand.New(rand.NewPCG(seed, 1)),
	}
}

// Step makes the next step, and returns how the devices differ after it.
func (w *DeviceWalk) Step() error {
	if w.left--; w.left <= 0 || w.Model.closed {
		w.left, w.last = 40, nil
		o := Open{
			Next: [2]uint64{65530, 65531}, Generation: 3, Window: 1 << w.rand.IntN(5), Limit: 1 << 40, Runs: w.rand.Uint64N(2),
		}
		return w.both(o.line(), func(d Device) error { return d.Open(&o) })
	}
	if !w.Model.busy && w.rand.IntN(2) == 0 || w.rand.IntN(60) == 0 {
		return w.calls()
	}
	if w.rand.IntN(12) == 0 {
		words := slices.Concat([]string{"device"}, engineWords[w.rand.IntN(len(engineWords))])
		return w.both(fmt.Sprint(words), func(d Device) error { return d.Call(words) })
	}
	s := w.host()
	return w.both("deliver "+s.String(), func(d Device) error { return d.Deliver(&s) })
}

// both has both devices do something, and compares what they put and return.
func (w *DeviceWalk) both(what string, do func(Device) error) error {
	w.last = append(w.last, what)
	if err := do(&w.Model); err != nil {
		return fmt.Errorf("the table's device: %w", err)
	}
	if err := do(w.other); err != nil {
		return fmt.Errorf("%w; before: %q", err, w.last)
	}
	for {
		want, _ := w.Model.Next() // has no errors
		got, err := w.other.Next()
		if err != nil {
			return err
		}
		if difference := compareSlots(want, got); difference != "" {
			return fmt.Errorf("%s; before: %q", difference, w.last)
		}
		if want == nil {
			break
		}
		w.Events[wire.Header(want.Header).Type().String()]++
		w.last = append(w.last, "< "+want.String())
	}
	if !w.Model.done {
		return nil
	}
	want, _ := w.Model.Returned() // it is done
	got, err := w.other.Returned()
	if err == nil && got != want {
		err = fmt.Errorf("the call returns %d, not %d", got, want)
	}
	if err != nil {
		return fmt.Errorf("%w; before: %q", err, w.last)
	}
	return nil
}

// compareSlots returns how two slots of a device differ; empty if they do not. Clocks, and counts of
// records that do not end anything, are up to the device.
func compareSlots(want, got *wire.Slot) string {
	if want == nil || got == nil {
		if want == got {
			return ""
		}
		return fmt.Sprintf("the device put %v, not %v", got, want)
	}
	w, g := *want, *got
	w.Header, g.Header = w.Header&^(1<<7), g.Header&^(1<<7)
	switch wire.Header(w.Header).Type() {
	case wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted:
		for _, a := range []*wire.Ack{w.Ack(), g.Ack()} {
			*a = wire.Ack{
				Transaction: a.Transaction, Direction: a.Direction, State: a.State, Status: a.Status,
				Processed: a.Processed, Outstanding: a.Outstanding,
			}
			if a.State == wire.StateReady {
				a.Processed, a.Outstanding = 0, 0
			}
		}
	}
	if w != g {
		return fmt.Sprintf("the device put %v, not %v", got, want)
	}
	return ""
}

// engineWords are how the device may be; most often it works.
var engineWords = [][]string{{"works"}, {"works"}, {"works"}, {"slow"}, {"slow"}, {"busy", "1"}, {"fails"}, {"hasty"}}

// sizes are those of transfers, few, so that they often agree.
var sizes = []uint64{0, 100, 5000, 24576, 24577, 61440}

func (w *DeviceWalk) bytes() uint64 { return sizes[w.rand.IntN(len(sizes))] }

// calls makes the process call something, or has it stop.
func (w *DeviceWalk) calls() error {
	n := func(n uint64) string { return strconv.FormatUint(n, 10) }
	words := []string{"stop"}
	switch kind := w.rand.IntN(36); {
	case kind >= 32 && !w.Model.busy:
		words = []string{"reply", n([]uint64{0, 8, 56, 57}[w.rand.IntN(4)])}
	case kind >= 28 && !w.Model.busy:
		words = []string{"question", n([]uint64{0, 8, 56}[w.rand.IntN(3)])}
	case w.Model.busy || kind == 0:
		w.left = min(w.left, 6)
	case kind < 6:
		words = []string{"read", n([]uint64{0, 8, 56}[w.rand.IntN(3)])}
	case kind < 12:
		words = []string{"read_ind", n([]uint64{w.bytes(), w.bytes(), w.bytes(), memory}[w.rand.IntN(4)])}
	case kind < 15:
		words = []string{"write", n(w.rand.Uint64N(abi.PayloadSize + 2))}
	case kind < 20:
		words = []string{"write_ind", n(w.bytes())}
	case kind < 23:
		words = []string{"wait"}
	case kind < 27:
		words = []string{"take", n(w.bytes())}
	default:
		words = []string{"close", []string{"h2d", "d2h", "both"}[w.rand.IntN(3)]}
	}
	return w.both(fmt.Sprint(words), func(d Device) error { return d.Call(words) })
}

// near returns a number that fits, mostly.
func (w *DeviceWalk) near(right uint64) uint64 {
	switch w.rand.IntN(24) {
	case 0:
		return right + 1
	case 1:
		return right - 1
	case 2:
		return w.rand.Uint64N(1 << 48)
	}
	return right
}

// host makes a slot of the host.
func (w *DeviceWalk) host() wire.Slot {
	m, d := &w.Model, abi.Direction(w.rand.IntN(2))
	h, t := m.half[d], &m.transfer[d]
	s := said{id: h.Present(), half: d, keys: map[string]uint64{}}
	cut := m.open.split(t.size)
	switch kind := w.rand.IntN(16); {
	case kind == 0:
		s.kind = []wire.Type{wire.TypeFin, wire.TypeAbort, wire.TypeWithdrawn, wire.TypeWithdraw, wire.TypeAck}[w.rand.IntN(5)]
	case kind == 1 && (h.State == proto.DeviceEager || w.rand.IntN(8) == 0):
		s.kind, s.keys["halves"], s.keys["generation"] = wire.TypeClose, w.near(1+w.rand.Uint64N(3)), w.near(3)
	case kind == 2 && w.rand.IntN(8) == 0:
		s.kind = wire.Type(w.rand.IntN(int(wire.TypeCount)))
		s.keys["list"] = 0
	case h.State == proto.DeviceIdle:
		w.begins(&s)
	case h.State == proto.DeviceMessage || h.State == proto.DeviceQuestion || h.State == proto.DeviceTaken || h.State == proto.DeviceCommit:
		w.ends(&s)
	case kind < 6 || h.State == proto.DeviceEager && kind < 14:
		w.ends(&s)
	case d == abi.D2H && h.State == proto.DeviceOffered && kind < 11:
		s.kind, s.keys["size"] = wire.TypeEager, t.size
	default:
		s.kind, s.keys["list"] = wire.TypeIndList, t.lists
		if d == abi.H2D && h.State == proto.DeviceOffered {
			s.keys["list"] = 0
		}
		s.keys["list"] = w.near(s.keys["list"]) & 0xffff
	}
	w.lie(&s)
	slot, _ := s.slot(cut, &m.open) // lists have their number
	return slot
}

// begins offers something, or posts pages, or asks.
func (w *DeviceWalk) begins(s *said) {
	s.id++
	s.keys["size"] = w.bytes()
	kinds := []wire.Type{wire.TypeDirect, wire.TypeDirect, wire.TypeCall, wire.TypeCall, wire.TypeIndBegin, wire.TypeIndBegin, wire.TypeEager, wire.TypeOffer}
	if s.half == abi.D2H {
		kinds = []wire.Type{wire.TypeEager, wire.TypeEager, wire.TypeWithdraw, wire.TypeReady}
	}
	s.kind = kinds[w.rand.IntN(len(kinds))]
	if s.kind == wire.TypeEager {
		s.keys["size"] = []uint64{0, 100, 5000}[w.rand.IntN(3)]
	}
	if s.kind != wire.TypeDirect && s.half == abi.H2D && w.rand.IntN(6) == 0 {
		s.keys["timeout"], s.keys["now"] = 1, 1
	}
}

// ends answers or ends what is under way.
func (w *DeviceWalk) ends(s *said) {
	kinds := []wire.Type{wire.TypeFin, wire.TypeFin, wire.TypeAbort, wire.TypeWithdraw, wire.TypeDirect}
	if s.half == abi.D2H {
		kinds = []wire.Type{wire.TypeFin, wire.TypeFin, wire.TypeAbort, wire.TypeWithdrawn, wire.TypeAck, wire.TypeError}
	}
	s.kind = kinds[w.rand.IntN(len(kinds))]
	switch s.kind {
	case wire.TypeAck:
		s.keys["state"] = uint64(wire.StateConsumed)
	case wire.TypeError:
		s.keys["status"] = 1 + w.rand.Uint64N(uint64(abi.StatusCount)-1)
	}
}

// lie changes a field now and then.
func (w *DeviceWalk) lie(s *said) {
	s.id = w.near(s.id)
	if w.rand.IntN(12) != 0 {
		return
	}
	keys := []string{"count", "outstanding", "rsvd", "epoch", "channel", "sequence", "length", "status", "size", "direction"}
	key := keys[w.rand.IntN(len(keys))]
	s.keys[key] = w.near(s.keys[key])
	switch key {
	case "count":
		s.keys[key] = w.rand.Uint64N(8)
	case "length":
		if s.kind != wire.TypeIndList && s.kind != wire.TypeEager {
			s.keys[key] = 50 + w.rand.Uint64N(12)
		} else {
			delete(s.keys, key)
		}
	case "status", "direction":
		s.keys[key] &= 0xff
	case "epoch":
		s.keys[key] = 2
	case "channel":
		s.keys[key] = 6
	}
}
