package scripted

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
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
	Match func(m *wire.Slot) bool
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

	alter  func(m wire.Slot) []wire.Slot
	chance alteration
}

// alteration returns what is published in place of a message. old are the
// messages before it, the last one last.
type alteration func(r *rand.Rand, m wire.Slot, old []wire.Slot) []wire.Slot

// Alter returns what is published in place of a message. old are the messages
// before it, the last one last.
func (w *Wrong) Alter(r *rand.Rand, m wire.Slot, old []wire.Slot) []wire.Slot {
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
	Types      []wire.Type // of messages it makes sense for; nil: all
}

var (
	records    = []wire.Type{wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted}
	notes      = []wire.Type{wire.TypeWithdrawn, wire.TypeReady}
	aboutCalls = slices.Concat(notes, records)
	offers     = []wire.Type{wire.TypeDirect, wire.TypeIndBegin}
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
	{"reserved", "a reserved field is set", slices.Concat(notes, []wire.Type{wire.TypeIndBegin, wire.TypeClose, wire.TypeAck})},
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
func Fitting(kind string, m *wire.Slot) (fit []*Wrong) {
	for i := range Catalogue {
		w := &Catalogue[i]
		if (kind == "" || w.Kind() == kind) && w.Fits(m) {
			fit = append(fit, w)
		}
	}
	return fit
}

// Fits reports whether the row can be made of a message.
func (w *Wrong) Fits(m *wire.Slot) bool {
	if w.Match != nil {
		return w.Match(m)
	}
	k := Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == w.Kind() })]
	return k.Types == nil || slices.Contains(k.Types, kindOf(m))
}

func kindOf(m *wire.Slot) wire.Type { return wire.Header(m.Header).Type() }

// of matches messages of a type on any channel but control.
func of(t wire.Type) func(m *wire.Slot) bool {
	return func(m *wire.Slot) bool {
		return kindOf(m) == t && wire.Header(m.Header).Channel() != abi.TargetControl
	}
}

// ackOf matches completion records in a state for a direction.
func ackOf(s wire.State, d abi.Direction) func(m *wire.Slot) bool {
	return func(m *wire.Slot) bool {
		a := m.Ack()
		return of(wire.TypeAck)(m) && a.State == s && a.Direction == uint32(d)
	}
}

// withHeader returns m with fields of its header replaced.
func withHeader(m wire.Slot, f func(h *header)) wire.Slot {
	h := wire.Header(m.Header)
	x := header{h.Type(), h.Length(), h.Epoch(), h.Sequence(), h.Channel()}
	f(&x)
	m.Header = uint64(wire.MakeHeader(x.kind, x.length, x.epoch, x.sequence, x.channel))
	return m
}

type header struct {
	kind     wire.Type
	length   int
	epoch    uint8
	sequence uint16
	channel  uint32
}

// withAck returns m with its completion record altered, and the sequence of the
// header kept right.
func withAck(m wire.Slot, f func(a *wire.Ack)) wire.Slot {
	f(m.Ack())
	return withHeader(m, func(h *header) { h.sequence = uint16(m.Ack().Transaction) })
}

// withNote is withAck for notes.
func withNote(m wire.Slot, f func(n *wire.Note)) wire.Slot {
	f(m.Note())
	return withHeader(m, func(h *header) { h.sequence = uint16(m.Note().Transaction) })
}

// only and both are what a Give hook returns.
func only(m ...wire.Slot) []wire.Slot { return m }
