package talk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/proto"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Values that all conversations have in common.
const (
	Channel = 5       // the channel
	Epoch   = 1       // of the device
	Address = 1 << 20 // bus address of the buffer of every transfer
	length  = 8       // bytes of a message, if not named
)

var (
	typeNames   = texts(wire.TypeCount)
	stateNames  = texts(wire.StateCount)
	statusNames = texts(abi.StatusCount)
	keys        = []string{
		"length", "size", "timeout", "processed", "outstanding", "lists", "fault", "list", "count", "pages", "sum", "halves",
		"now", "generation", "epoch", "channel", "sequence", "state", "status", "direction", "rsvd",
	}
)

// texts lists the names below count.
func texts[T interface {
	~uint8 | ~uint16
	fmt.Stringer
}](count T) []string {
	var list []string
	for n := T(0); n < count; n++ {
		list = append(list, n.String())
	}
	return list
}

// said is what a line names of a slot.
type said struct {
	kind wire.Type
	id   uint64
	half abi.Direction
	keys map[string]uint64
}

// parseSlot reads the words of a slot. half is the half that is meant when none is named.
func parseSlot(words []string, half abi.Direction) (*said, error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("a slot is missing")
	}
	s := &said{half: half, keys: map[string]uint64{}}
	if i := slices.Index(typeNames, words[0]); i >= 0 {
		s.kind = wire.Type(i)
	} else if n, err := strconv.ParseUint(words[0], 0, 7); err == nil {
		s.kind = wire.Type(n)
	} else {
		return nil, fmt.Errorf("unknown type %q", words[0])
	}
	words = words[1:]
	if s.kind != wire.TypeClose {
		if len(words) == 0 {
			return nil, fmt.Errorf("the transaction is missing")
		}
		id, err := strconv.ParseUint(words[0], 0, 64)
		if err != nil {
			return nil, fmt.Errorf("unknown transaction %q", words[0])
		}
		s.id, words = id, words[1:]
	}
	for _, w := range words {
		if err := s.word(w); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// word takes one word after the transaction.
func (s *said) word(w string) error {
	key, value, has := strings.Cut(w, "=")
	switch {
	case has && slices.Contains(keys, key):
		n, err := strconv.ParseUint(value, 0, 64)
		if err != nil {
			return fmt.Errorf("unknown number in %q", w)
		}
		return s.set(key, n)
	case w == "h2d" || w == "d2h":
		s.half = abi.H2D
		if w == "d2h" {
			s.half = abi.D2H
		}
		if s.kind == wire.TypeClose {
			return s.set("halves", 1<<s.half)
		}
		return nil
	case w == "both" && s.kind == wire.TypeClose:
		return s.set("halves", 1<<abi.H2D|1<<abi.D2H)
	case slices.Contains(stateNames, w):
		return s.set("state", uint64(slices.Index(stateNames, w)))
	case slices.Contains(statusNames, w):
		return s.set("status", uint64(slices.Index(statusNames, w)))
	}
	return fmt.Errorf("unknown word %q", w)
}

// set takes the value of a field, which must not have one.
func (s *said) set(key string, n uint64) error {
	if _, twice := s.keys[key]; twice {
		return fmt.Errorf("%s twice", key)
	}
	s.keys[key] = n
	return nil
}

// get returns the value of a field, or what it is if the line does not name it.
func (s *said) get(key string, otherwise uint64) uint64 {
	if n, ok := s.keys[key]; ok {
		return n
	}
	return otherwise
}

// slot makes the slot. cut is the buffer of the half's transfer.
func (s *said) slot(cut proto.Split, o *Open) (wire.Slot, error) {
	var slot wire.Slot
	size := uint64(abi.PayloadSize)
	sequence := s.id
	switch s.kind {
	case wire.TypeDirect, wire.TypeCall, wire.TypeAnswer:
		size = length
		for i := range slot.Bytes() {
			slot.Bytes()[i] = byte(s.id) + byte(i)
		}
	case wire.TypeIndBegin:
		*slot.Begin() = wire.Begin{Transaction: s.id, Size: s.get("size", 0), TimeoutNS: s.get("timeout", 0)}
		slot.Payload[3] |= s.get("rsvd", 0)
	case wire.TypeIndList:
		n, err := s.list(cut, slot.Gather())
		if err != nil {
			return slot, err
		}
		size = n
	case wire.TypeEager:
		size = s.eager(slot.Eager())
	case wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted:
		*slot.Ack() = s.record()
	case wire.TypeClose:
		sequence = s.get("generation", o.Generation)
		*slot.Close() = wire.Close{
			Halves: uint32(s.get("halves", 0)), Status: uint32(s.get("status", 0)), Generation: sequence,
		}
		slot.Payload[2] |= s.get("rsvd", 0)
	default:
		*slot.Note() = wire.Note{
			Transaction: s.id, Direction: uint32(s.get("direction", uint64(s.half))), Status: uint32(s.get("status", 0)),
		}
		slot.Payload[2] |= s.get("rsvd", 0)
	}
	size = s.get("length", size)
	bytes := min(size, abi.PayloadSize)
	if s.kind == wire.TypeCall {
		size |= s.get("now", 0) * wire.CallNow
	}
	slot.Header = uint64(wire.MakeHeader(s.kind, int(size), uint8(s.get("epoch", Epoch)),
		uint16(s.get("sequence", sequence)), uint32(s.get("channel", Channel))))
	if s.kind == wire.TypeDirect || s.kind == wire.TypeCall || s.kind == wire.TypeAnswer {
		clear(slot.Bytes()[bytes:])
	}
	return slot, nil
}

// record makes a completion record.
func (s *said) record() wire.Ack {
	state, status := uint64(wire.StateFailed), uint64(abi.OK)
	switch s.kind {
	case wire.TypeDone:
		state = uint64(wire.StateDone)
	case wire.TypeAborted:
		status = uint64(abi.ErrAborted)
	}
	return wire.Ack{
		Transaction: s.id, Processed: s.get("processed", 0), Outstanding: s.get("outstanding", 0),
		Lists: uint32(s.get("lists", 0)), State: wire.State(s.get("state", state)),
		Status: abi.Status(s.get("status", status)), FaultIndex: uint32(s.get("fault", 0)),
		Direction: uint32(s.get("direction", uint64(s.half))),
	}
}

// list writes a gather list of a buffer and returns the header's length.
func (s *said) list(cut proto.Split, g *wire.Gather) (uint64, error) {
	k, ok := s.keys["list"]
	if !ok {
		return 0, fmt.Errorf("list=N is missing")
	}
	n := 0
	if k < cut.Lists() {
		n = cut.Fill(k, g)
	}
	if pages, named := s.keys["pages"]; named {
		g.Entry[0] = wire.MakeRun(g.Entry[0].RunAddress(), int(pages))
	}
	outstanding := s.get("outstanding", g.Outstanding())
	g.Tail = wire.MakeTail(outstanding, uint16(k))
	size := s.get("count", uint64(n)) | s.get("sum", 0)*wire.ListSum
	if s.half == abi.D2H {
		size |= wire.ListD2H
	}
	return size, nil
}

// eager writes a transfer with its pages and returns the header's length.
func (s *said) eager(e *wire.Eager) uint64 {
	cut := proto.Split{Address: Address, Size: s.get("size", 0)}
	n := 0
	if cut.IsEager(wire.EagerEntries) {
		n = cut.FillEager(e)
	}
	e.Transaction, e.Size, e.TimeoutNS = s.id, cut.Size, s.get("timeout", 0)
	e.Entry[wire.EagerEntries-1] |= wire.Entry(s.get("rsvd", 0))
	n = int(s.get("count", uint64(n)) | s.get("sum", 0)*wire.ListSum)
	if s.half == abi.D2H {
		n |= wire.ListD2H
	}
	return uint64(n)
}

// match reports whether a device's slot is what the line names.
func (s *said) match(want, got *wire.Slot) error {
	w, g := wire.Header(want.Header), wire.Header(got.Header)
	if w.WithPhase(0)&^(1<<7) != g&^(1<<7) {
		return fmt.Errorf("header %v, not %v", got, want)
	}
	switch g.Type() {
	case wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted:
		return s.matchRecord(want.Ack(), got.Ack())
	case wire.TypeDirect, wire.TypeAnswer:
		if want.Payload != got.Payload {
			return fmt.Errorf("message %x, not %x", *got.Bytes(), *want.Bytes())
		}
	case wire.TypeIndBegin:
		if w, g := want.Begin(), got.Begin(); w.Transaction != g.Transaction || w.Size != g.Size {
			return fmt.Errorf("%v, not %v", got, want)
		}
	case wire.TypeClose:
		if w, g := want.Close(), got.Close(); w.Halves != g.Halves || w.Generation != g.Generation {
			return fmt.Errorf("%v, not %v", got, want)
		}
	default:
		if w, g := want.Note(), got.Note(); w.Transaction != g.Transaction || w.Direction != g.Direction {
			return fmt.Errorf("%v, not %v", got, want)
		}
	}
	return nil
}

// matchRecord compares what the line names of a record.
func (s *said) matchRecord(want, got *wire.Ack) error {
	pairs := []struct {
		key       string
		want, got uint64
		always    bool
	}{
		{"transaction", want.Transaction, got.Transaction, true},
		{"direction", uint64(want.Direction), uint64(got.Direction), true},
		{"state", uint64(want.State), uint64(got.State), true},
		{"status", uint64(want.Status), uint64(got.Status), true},
		{"processed", want.Processed, got.Processed, false},
		{"outstanding", want.Outstanding, got.Outstanding, false},
		{"lists", uint64(want.Lists), uint64(got.Lists), false},
		{"fault", uint64(want.FaultIndex), uint64(got.FaultIndex), false},
	}
	for _, p := range pairs {
		if _, named := s.keys[p.key]; (named || p.always) && p.want != p.got {
			return fmt.Errorf("record with %s %d, not %d", p.key, p.got, p.want)
		}
	}
	return nil
}
