package scripted

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// Conclusion is what a host must make of a wrong reply.
type Conclusion int

const (
	// Undecided: chance decides which of the others it is, or where it strikes.
	Undecided Conclusion = iota
	// Faulted: the call and every later one end with a fault until a reset.
	Faulted
	// Dropped: the call works as if nothing had been, and the message is
	// counted as dropped.
	Dropped
	// Harmless: the call works as if nothing had been: the host has no use for
	// what is wrong.
	Harmless
	// Closed: the call works, and the channel is closed by the device.
	Closed
	// Waits: the call waits until its context ends, and is withdrawn.
	Waits
	// Lost: the device does not answer; the call ends with the device lost once
	// its context is over.
	Lost
	// Refused: the call ends with the row's status, and the device continues.
	Refused
)

// Wrong is one way to break the protocol: something in place of a message to the
// host.
type Wrong struct {
	// Name is the kind, a slash, and what exactly is wrong.
	Name string
	// Match reports whether it can be made of a message. Nil: of each of the
	// kind's types, on any channel.
	Match func(m *abi.Slot) bool
	// In is a call on a loopback in whose course the conclusion holds: Send,
	// Receive, SendInd, ReceiveInd, or one of the latter with Late, which
	// receives when all was read.
	In string
	// Nth of the messages that match, from 0, is the one of which it holds.
	Nth int
	// Want is the conclusion, and Status goes with Refused.
	Want   Conclusion
	Status abi.Status
	// Mute: it holds if the device gives nothing any more afterwards.
	Mute bool
	// Still: it holds if records of lists that were moving before do not
	// follow; with them it would hang on which side is faster.
	Still bool
	// Astray: what belongs to another mailbox goes through the one of the
	// channel that the call is on.
	Astray bool

	alter  func(m abi.Slot) []abi.Slot
	chance alteration
}

// alteration returns what is published in place of a message. old are the
// messages before it, the last one last.
type alteration func(r *rand.Rand, m abi.Slot, old []abi.Slot) []abi.Slot

// Alter returns what is published in place of a message. old are the messages
// before it, the last one last.
func (w *Wrong) Alter(r *rand.Rand, m abi.Slot, old []abi.Slot) []abi.Slot {
	if w.chance != nil {
		return w.chance(r, m, old)
	}
	return w.alter(m)
}

// Kind returns the name of the row's kind.
func (w *Wrong) Kind() string {
	kind, _, _ := strings.Cut(w.Name, "/")
	return kind
}

// Kind is rows that are wrong in the same way.
type Kind struct {
	Name, Help string
	Types      []abi.Type // of messages it makes sense for; nil: all
}

var (
	records    = []abi.Type{abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted}
	notes      = []abi.Type{abi.TypeWithdrawn, abi.TypeReady}
	aboutCalls = slices.Concat(notes, records)
	offers     = []abi.Type{abi.TypeDirect, abi.TypeIndBegin}
)

// Kinds are the kinds of the catalogue.
var Kinds = []Kind{
	{"count", "bytes or lists that were not moved are reported as moved", records[:2]},
	{"early", "a transfer is reported as done before it is", records[:1]},
	{"id", "another transaction is named", slices.Concat(aboutCalls, offers)},
	{"epoch", "the message is of another epoch", nil},
	{"type", "the type does not exist, or does not come from a device", nil},
	{"channel", "another channel, of those there are or not", nil},
	{"length", "longer than a payload, or a size beyond every limit", nil},
	{"phase", "the slot does not look new", nil},
	{"state", "a state or status that does not exist, or not there", records},
	{"direction", "the transaction of the other half, or of none", aboutCalls},
	{"reserved", "a reserved field is set", slices.Concat(notes, []abi.Type{abi.TypeIndBegin, abi.TypeClose, abi.TypeAck})},
	{"replay", "the message comes twice", nil},
	{"again", "an old message comes again", nil},
	{"drop", "the message never comes", nil},
	{"garbage", "random bytes come before the message", nil},
	{"note", "a note that nothing asked for", records[:1]},
	{"close", "a CLOSE that nothing asked for", records[:1]},
	{"offer", "an offer while another one is pending", offers},
	{"refuse", "a call is refused for no reason", records[:1]},
}

// Catalogue is every wrong reply there is.
var Catalogue = slices.Concat(byChance(), wrongAnswers(), wrongHeaders(), wrongNotes(), wrongOffers(),
	wrongMoves(abi.H2D), wrongMoves(abi.D2H), wrongEnds(abi.H2D), wrongEnds(abi.D2H), wrongSends())

// Fitting returns the rows of a kind that can be made of a message; those of
// every kind for "".
func Fitting(kind string, m *abi.Slot) (fit []*Wrong) {
	for i := range Catalogue {
		w := &Catalogue[i]
		if (kind == "" || w.Kind() == kind) && w.Fits(m) {
			fit = append(fit, w)
		}
	}
	return fit
}

// Fits reports whether the row can be made of a message.
func (w *Wrong) Fits(m *abi.Slot) bool {
	if w.Match != nil {
		return w.Match(m)
	}
	k := Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == w.Kind() })]
	return k.Types == nil || slices.Contains(k.Types, kindOf(m))
}

func kindOf(m *abi.Slot) abi.Type { return abi.Header(m.Header).Type() }

// of matches messages of a type on any channel but control.
func of(t abi.Type) func(m *abi.Slot) bool {
	return func(m *abi.Slot) bool {
		return kindOf(m) == t && abi.Header(m.Header).Channel() != abi.TargetControl
	}
}

// ackOf matches completion records in a state for a direction.
func ackOf(s abi.State, d abi.Direction) func(m *abi.Slot) bool {
	return func(m *abi.Slot) bool {
		a := m.Ack()
		return of(abi.TypeAck)(m) && a.State == s && a.Direction == uint32(d)
	}
}

// withHeader returns m with fields of its header replaced.
func withHeader(m abi.Slot, f func(h *header)) abi.Slot {
	h := abi.Header(m.Header)
	x := header{h.Type(), h.Length(), h.Epoch(), h.Sequence(), h.Channel()}
	f(&x)
	m.Header = uint64(abi.MakeHeader(x.kind, x.length, x.epoch, x.sequence, x.channel))
	return m
}

type header struct {
	kind     abi.Type
	length   int
	epoch    uint8
	sequence uint16
	channel  uint32
}

// withAck returns m with its completion record altered, and the sequence of the
// header kept right.
func withAck(m abi.Slot, f func(a *abi.Ack)) abi.Slot {
	f(m.Ack())
	return withHeader(m, func(h *header) { h.sequence = uint16(m.Ack().Transaction) })
}

// withNote is withAck for notes.
func withNote(m abi.Slot, f func(n *abi.Note)) abi.Slot {
	f(m.Note())
	return withHeader(m, func(h *header) { h.sequence = uint16(m.Note().Transaction) })
}

// only and both are what a Give hook returns.
func only(m ...abi.Slot) []abi.Slot { return m }
