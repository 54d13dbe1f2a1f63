package hostile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// event is what a fault counts.
type event int

const (
	onMessage event = iota // to the host
	onTake                 // of a message of the host
	onDMA
	onInterrupt
	onReset
	onHead      // of how many messages of the host were taken
	onPublished // of a message to the host
)

// kind is one way to break the rules.
type kind struct {
	name, help string
	event      event
	types      []wire.Type // of messages it makes sense for; nil: all
	control    bool        // looks at the control channel, too
	wrong      string      // rows of package scripted's catalogue, a kind or anyKind
}

// anyKind is for rows of all kinds.
const anyKind = "*"

// offers are what a host says that a device may lose.
var offers = []wire.Type{wire.TypeDirect, wire.TypeIndBegin, wire.TypeIndList}

// kinds lists the faults.
var kinds = append(catalogued(), []kind{
	{name: "random", help: "any of the above", wrong: anyKind},
	{name: "flip", help: "from then on slots and the area page change while the host reads them", control: true},
	{name: "ahead", help: "more messages of the host were taken than it put, says a counter", event: onHead},
	{name: "behind", help: "a counter of messages that were taken decreases", event: onHead},
	{name: "rewrite", help: "a slot is written again, otherwise, after it was published", event: onPublished},
	{name: "lose", help: "a message, an offer or a list of the host never arrives", event: onTake, types: offers},
	{name: "overreach", help: "DMA continues past both ends of a page entry", event: onDMA},
	{name: "wild", help: "DMA writes to a page nearby that was never named", event: onDMA},
	{name: "scribble", help: "DMA writes to memory it was to read", event: onDMA},
	{name: "late", help: "DMA writes once more to an entry after its transfer ended", event: onDMA},
	{name: "stale", help: "DMA writes once more to an entry when the next RESET begins", event: onDMA},
	{name: "irq-drop", help: "an interrupt is not raised", event: onInterrupt},
	{name: "irq-dup", help: "an interrupt is raised twice, whatever HOLDOFF says", event: onInterrupt},
	{name: "irq-storm", help: "all vectors fire, five thousand times", event: onInterrupt},
	{name: "mute", help: "no heartbeat any more", control: true},
	{name: "hang", help: "nothing at all any more, until RESET", control: true},
	{name: "gone", help: "registers and config space read as ones, as if it was pulled out", control: true},
	{name: "fake-removal", help: "registers read as ones, but config space does not, and DMA continues", control: true},
	{name: "die", help: "the process ends, with exit code 3", control: true},
	{name: "stuck", help: "a RESET is never done", event: onReset},
}...)

// catalogued are the kinds of wrong replies.
func catalogued() []kind {
	var all []kind
	for _, k := range scripted.Kinds {
		all = append(all, kind{name: k.Name, help: k.Help, types: k.Types, wrong: k.Name})
	}
	return all
}

// Kinds describes the kinds, one a line.
func Kinds() string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-13s %s\n", k.name, k.help)
	}
	return b.String()
}

// where are the names of what WHERE may say.
var where = map[string]wire.Type{
	"direct": wire.TypeDirect, "begin": wire.TypeIndBegin, "ack": wire.TypeAck, "done": wire.TypeDone,
	"withdrawn": wire.TypeWithdrawn, "aborted": wire.TypeAborted, "close": wire.TypeClose,
	"error": wire.TypeError, "ready": wire.TypeReady, "list": wire.TypeIndList,
}

// fault is one entry of a plan.
type fault struct {
	kind         // with what WHERE says
	first, every uint64
	onlyControl  bool
	seen         uint64
}

// Plan is what a hostile device does. The zero Plan: nothing.
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
	case at == "dma" && f.wrong == "" && f.control:
		f.event = onDMA
	case f.event != onMessage && f.event != onTake && f.event != onPublished:
		return fmt.Errorf("%s does not look at messages: no %q", f.name, at)
	case at == "control" && f.event == onMessage:
		f.onlyControl, f.control, f.types = true, true, nil
	case known && (f.types == nil && t != wire.TypeIndList || slices.Contains(f.types, t)):
		f.types = []wire.Type{t}
	default:
		return fmt.Errorf("%s does not look at %q", f.name, at)
	}
	return nil
}

// matches reports whether a fault looks at a message.
func (f *fault) matches(m *wire.Slot) bool {
	h := wire.Header(m.Header)
	isControl := h.Channel() == abi.TargetControl
	if isControl && !f.control || !isControl && f.onlyControl {
		return false
	}
	if f.types != nil && !slices.Contains(f.types, h.Type()) {
		return false
	}
	return f.wrong == "" || len(f.rows(m)) > 0
}

// rows are those of the catalogue that can be made of a message.
func (f *fault) rows(m *wire.Slot) []*scripted.Wrong {
	if f.wrong == anyKind {
		return scripted.Fitting("", m)
	}
	return scripted.Fitting(f.wrong, m)
}

// due counts an event and reports whether the fault strikes.
func (f *fault) due() bool {
	f.seen++
	if f.seen < f.first {
		return false
	}
	return f.seen == f.first || f.every != 0 && (f.seen-f.first)%f.every == 0
}
