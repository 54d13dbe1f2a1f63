package hostile

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// event is what a fault counts.
type event int

const (
	onMessage event = iota // to the host
	onTake                 // of a message of the host
	onDMA
	onInterrupt
	onReset
)

// kind is one way to break the rules.
type kind struct {
	name, help string
	event      event
	types      []abi.Type // of messages it makes sense for; nil: all
	control    bool       // looks at the control channel, too
	alter      alteration // of a message; nil: it does something else
}

// alteration returns what is published in place of a message. old are the
// messages before it, the last one last.
type alteration func(r *rand.Rand, m abi.Slot, old []abi.Slot) []abi.Slot

var (
	records = []abi.Type{abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted}
	notes   = []abi.Type{abi.TypeWithdrawn, abi.TypeReady}
	offers  = []abi.Type{abi.TypeDirect, abi.TypeIndBegin, abi.TypeIndList} // of the host
)

// lies are the kinds that alter messages.
var lies = []kind{
	{name: "count", help: "bytes or lists that were not moved are reported as moved", types: records[:2], alter: wrongCount},
	{name: "early", help: "a transfer is reported as done before it is", types: records[:1], alter: earlyDone},
	{name: "id", help: "another transaction is named", types: append(slices.Clone(notes), records...), alter: wrongID},
	{name: "epoch", help: "the message is of another epoch", alter: header(func(r *rand.Rand, f *fields) { f.epoch += 1 + uint8(r.IntN(255)) })},
	{name: "type", help: "the type does not exist, or does not come from a device", alter: header(wrongType)},
	{name: "channel", help: "another channel, of those there are or not", alter: header(wrongChannel)},
	{name: "length", help: "longer than a payload", alter: header(func(r *rand.Rand, f *fields) { f.length = 57 + r.IntN(199) })},
	{name: "phase", help: "the slot does not look new", alter: func(_ *rand.Rand, m abi.Slot, _ []abi.Slot) []abi.Slot { m.Header ^= 1 << 7; return []abi.Slot{m} }},
	{name: "state", help: "a state or status that does not exist", types: records, alter: wrongState},
	{name: "direction", help: "the transaction of the other half, or of none", types: append(slices.Clone(notes), records...), alter: wrongDirection},
	{name: "reserved", help: "a reserved field is set", types: append(slices.Clone(notes), abi.TypeIndBegin, abi.TypeClose), alter: reservedSet},
	{name: "replay", help: "the message comes twice", alter: func(_ *rand.Rand, m abi.Slot, _ []abi.Slot) []abi.Slot { return []abi.Slot{m, m} }},
	{name: "again", help: "an old message comes again", alter: again},
	{name: "drop", help: "the message never comes", alter: func(*rand.Rand, abi.Slot, []abi.Slot) []abi.Slot { return nil }},
	{name: "garbage", help: "random bytes come before the message", alter: garbage},
}

// kinds lists what can go wrong.
var kinds = append(slices.Clone(lies), []kind{
	{name: "random", help: "any of the above", alter: anyOf},
	{name: "flip", help: "from then on slots and the area page change while the host reads them", control: true},
	{name: "lose", help: "a message, an offer or a list of the host never arrives", event: onTake, types: offers},
	{name: "overreach", help: "DMA goes on past both ends of a page entry", event: onDMA},
	{name: "wild", help: "DMA writes to a page nearby that was never named", event: onDMA},
	{name: "scribble", help: "DMA writes to memory it was to read", event: onDMA},
	{name: "late", help: "DMA writes once more to an entry after its transfer ended", event: onDMA},
	{name: "irq-drop", help: "an interrupt never comes", event: onInterrupt},
	{name: "irq-dup", help: "an interrupt comes twice, whatever HOLDOFF says", event: onInterrupt},
	{name: "irq-storm", help: "all vectors fire, five thousand times", event: onInterrupt},
	{name: "mute", help: "no heartbeat any more", control: true},
	{name: "hang", help: "nothing at all any more, until RESET", control: true},
	{name: "gone", help: "registers and config space read as ones, as if it was pulled out", control: true},
	{name: "fake-removal", help: "registers read as ones, but config space does not, and DMA goes on", control: true},
	{name: "die", help: "the process ends, with exit code 3", control: true},
	{name: "stuck", help: "a RESET is never done", event: onReset},
}...)

// Kinds describes the kinds, one a line.
func Kinds() string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-12s %s\n", k.name, k.help)
	}
	return b.String()
}

// where are the names of what WHERE may say.
var where = map[string]abi.Type{
	"direct": abi.TypeDirect, "begin": abi.TypeIndBegin, "ack": abi.TypeAck, "done": abi.TypeDone,
	"withdrawn": abi.TypeWithdrawn, "aborted": abi.TypeAborted, "close": abi.TypeClose,
	"error": abi.TypeError, "ready": abi.TypeReady, "list": abi.TypeIndList,
}

// fault is one entry of a plan.
type fault struct {
	kind         // with what WHERE says
	first, every uint64
	onlyControl  bool
	seen         uint64
}

// Plan says what goes wrong. The zero Plan: nothing.
type Plan struct{ faults []*fault }

// Parse reads a plan.
func Parse(text string) (Plan, error) {
	var p Plan
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		f, err := parseFault(entry)
		if err != nil {
			return p, fmt.Errorf("fault %q: %w", entry, err)
		}
		p.faults = append(p.faults, f)
	}
	if len(p.faults) == 0 {
		return p, fmt.Errorf("no fault in %q", text)
	}
	return p, nil
}

func parseFault(entry string) (*fault, error) {
	rest, at, narrowed := strings.Cut(entry, ":")
	rest, every, again := strings.Cut(rest, "+")
	name, first, late := strings.Cut(rest, "@")
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return nil, fmt.Errorf("kind %q is not one of:\n%s", name, Kinds())
	}
	f := &fault{kind: kinds[i], first: 1}
	if late {
		if err := number(first, &f.first); err != nil {
			return nil, err
		}
	}
	if again {
		if err := number(every, &f.every); err != nil {
			return nil, err
		}
	}
	if narrowed {
		return f, f.narrow(at)
	}
	return f, nil
}

func number(s string, to *uint64) (err error) {
	if *to, err = strconv.ParseUint(s, 10, 32); err != nil || *to == 0 {
		return fmt.Errorf("%q: want a number from 1", s)
	}
	return nil
}

// narrow makes a fault look at less.
func (f *fault) narrow(at string) error {
	t, known := where[at]
	switch {
	case at == "dma" && f.alter == nil && f.control:
		f.event = onDMA
	case f.event != onMessage && f.event != onTake:
		return fmt.Errorf("%s does not look at messages: no %q", f.name, at)
	case at == "control" && f.event == onMessage:
		f.onlyControl, f.control, f.types = true, true, nil
	case known && (f.types == nil && t != abi.TypeIndList || slices.Contains(f.types, t)):
		f.types = []abi.Type{t}
	default:
		return fmt.Errorf("%s does not look at %q", f.name, at)
	}
	return nil
}

// matches reports whether a fault looks at a message.
func (f *fault) matches(m *abi.Slot) bool {
	h := abi.Header(m.Header)
	isControl := h.Channel() == abi.TargetControl
	if isControl && !f.control || !isControl && f.onlyControl {
		return false
	}
	return f.types == nil || slices.Contains(f.types, h.Type())
}

// due counts an event and reports whether the fault strikes.
func (f *fault) due() bool {
	f.seen++
	if f.seen < f.first {
		return false
	}
	return f.seen == f.first || f.every != 0 && (f.seen-f.first)%f.every == 0
}
