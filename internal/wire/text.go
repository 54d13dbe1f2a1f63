package wire

import (
	"fmt"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// The names that nfc_abi.h gives, without their prefix. A number without a name is shown as such.
var (
	typeText = [TypeCount]string{
		"NONE", "DIRECT", "IND_BEGIN", "IND_LIST", "ACK", "DONE", "FIN", "WITHDRAW", "WITHDRAWN", "ABORT",
		"ABORTED", "CLOSE", "ERROR", "HELLO", "HEARTBEAT", "OFFER", "READY", "EAGER",
		"CALL", "ANSWER",
	}
	stateText = [StateCount]string{"CONSUMED", "READY", "MOVING", "REPEAT", "DONE", "FAILED"}
)

// name returns the name of n, or the number.
func name[T ~uint8 | ~uint16](names []string, n T) string {
	if int(n) < len(names) {
		return names[n]
	}
	return fmt.Sprint(uint64(n))
}

// String returns the name of enum nfc_type, as "IND_BEGIN".
func (t Type) String() string { return name(typeText[:], t) }

// String returns the name of enum nfc_state, as "MOVING".
func (s State) String() string { return name(stateText[:], s) }

// String returns the slot on one line, for traces and failures: its type, the header's fields and
// those of its payload. A value that no honest side puts is marked with "!", except in fields that
// only the other side can check: the epoch, the phase, the owner of the transaction.
func (s *Slot) String() string {
	h := Header(s.Header)
	l := line(h.Type().String())
	l.mark(h.Type() == TypeNone || h.Type() >= TypeCount)
	l.field("channel", h.Channel(), true)
	l.field("sequence", h.Sequence(), true)
	l.field("epoch", h.Epoch(), true)
	l.field("phase", h.Phase(), true)
	switch h.Type() {
	case TypeIndList:
		l.list(h, s.Gather())
	case TypeEager:
		l.eager(h, s.Eager())
	case TypeIndBegin:
		l.structure(h, s.Payload[0])
		l.field("size", s.Payload[1], s.Payload[1]>>48 == 0)
		l.field("timeout", s.Payload[2], true)
		l.reserved(s.Payload[3:])
	case TypeAck, TypeDone, TypeError, TypeAborted:
		l.structure(h, s.Payload[0])
		l.record(h.Type(), s.Ack())
	case TypeFin, TypeWithdraw, TypeWithdrawn, TypeAbort, TypeOffer, TypeReady:
		l.structure(h, s.Payload[0])
		l.direction(s.Note().Direction)
		l.status(s.Note().Status)
		l.reserved(s.Payload[2:])
	case TypeClose:
		c := s.Close()
		l.field("length", h.Length(), h.Length() == abi.PayloadSize)
		l.field("halves", c.Halves, c.Halves >= 1 && c.Halves <= 1<<abi.H2D|1<<abi.D2H)
		l.field("generation", c.Generation, uint16(c.Generation) == h.Sequence())
		l.status(c.Status)
		l.reserved(s.Payload[2:])
	case TypeHello:
		l.field("length", h.Length(), h.Length() == abi.PayloadSize)
		l.hello(s.Hello())
	case TypeHeartbeat:
		l.field("length", h.Length(), h.Length() == abi.PayloadSize)
		l.heartbeat(h, s.Heartbeat())
	case TypeCall:
		n := h.Length() & CallBytesMask
		l.field("length", n, h.Length()&^CallNow == n && n <= abi.PayloadSize)
		l.field("now", h.Length()&CallNow != 0, true)
		l = fmt.Appendf(l, " payload=%x", s.Bytes()[:min(n, abi.PayloadSize)])
	default:
		l.field("length", h.Length(), h.Length() <= abi.PayloadSize)
		l = fmt.Appendf(l, " payload=%x", s.Bytes()[:min(h.Length(), abi.PayloadSize)])
	}
	return string(l)
}

// line is the text of a slot as it grows.
type line []byte

// mark marks what was written last, if it is bad.
func (l *line) mark(bad bool) {
	if bad {
		*l = append(*l, '!')
	}
}

// field appends " name=value".
func (l *line) field(name string, value any, good bool) {
	*l = fmt.Appendf(*l, " %s=%v", name, value)
	l.mark(!good)
}

// structure appends what every payload begins with that is a struct of one transaction.
func (l *line) structure(h Header, id uint64) {
	l.field("length", h.Length(), h.Length() == abi.PayloadSize)
	l.field("transaction", id, uint16(id) == h.Sequence())
}

func (l *line) direction(d uint32) {
	if d <= uint32(abi.D2H) {
		l.field("direction", abi.Direction(d), true)
	} else {
		l.field("direction", d, false)
	}
}

func (l *line) status(n uint32) {
	if n < uint32(abi.StatusCount) {
		l.field("status", abi.Status(n), true)
	} else {
		l.field("status", n, false)
	}
}

// reserved appends words that are zero only if they are not.
func (l *line) reserved(words []uint64) {
	for _, w := range words {
		if w != 0 {
			*l = fmt.Appendf(*l, " reserved=%x!", words)
			return
		}
	}
}

func (l *line) list(h Header, g *Gather) {
	count := l.count(h, 1, ListEntries)
	l.field("list", g.Number(), true)
	l.field("outstanding", g.Outstanding(), true)
	l.entries(h, g.Entry[:], count)
}

// eager appends the fields of a transfer with its pages. The device may not be told how long a
// target to the host may stay unready.
func (l *line) eager(h Header, e *Eager) {
	count := l.count(h, 0, EagerEntries)
	l.field("transaction", e.Transaction, uint16(e.Transaction) == h.Sequence())
	l.field("size", e.Size, e.Size <= EagerBytes)
	l.field("timeout", e.TimeoutNS, e.TimeoutNS == 0 || h.Length()&ListD2H == 0)
	l.entries(h, e.Entry[:], count)
}

// count appends whose pages a header announces, and how many entries there are.
func (l *line) count(h Header, lo, hi int) int {
	count := h.Length() & ListCountMask
	l.field("direction", abi.Direction(h.Length()/ListD2H), true)
	l.field("count", count, count >= lo && count <= hi)
	return count
}

// entries appends page entries or runs, of which the first are in use. The last run may end before
// its last page does.
func (l *line) entries(h Header, entries []Entry, count int) {
	*l = append(*l, " entries="...)
	for i, e := range entries {
		switch {
		case i >= count:
			if e != 0 {
				*l = fmt.Appendf(*l, "[%#x]!", uint64(e))
			}
		case h.Length()&ListRuns != 0:
			*l = fmt.Appendf(*l, "[%#x..%#x]", e.RunAddress(), e.RunAddress()+e.RunLength())
			l.mark(e.RunAddress()+e.RunLength() > 1<<48)
		default:
			*l = fmt.Appendf(*l, "[%#x+%d]", e.Address(), e.Length())
			l.mark(e.Address()%abi.PageSize+uint64(e.Length()) > abi.PageSize)
		}
	}
}

func (l *line) record(t Type, a *Ack) {
	l.direction(a.Direction)
	l.field("state", a.State, a.State < StateCount)
	l.status(uint32(a.Status))
	l.field("processed", a.Processed, true)
	l.field("outstanding", a.Outstanding, true)
	l.field("lists", a.Lists, true)
	l.field("fault", a.FaultIndex, t == TypeDone || a.FaultIndex < ListEntries)
	l.field("begin", a.BeginNS, true)
	l.field("now", a.NowNS, a.NowNS >= a.BeginNS)
}

func (l *line) hello(h *Hello) {
	l.field("magic", fmt.Sprintf("%#x", h.Magic), h.Magic == Magic)
	l.field("version", fmt.Sprintf("%d.%d", h.Major, h.Minor), h.Major == abi.Major)
	l.field("capabilities", fmt.Sprintf("%#x", h.Capabilities), h.Capabilities&^CapKnown == 0)
	l.field("channels", h.Channels, h.Channels <= abi.ChannelsMax)
	l.field("mailboxes", h.Mailboxes, h.Mailboxes <= MailboxesMax)
	l.field("islands", h.Islands, h.Islands <= IslandsMax)
	l.field("slots", h.Slots, h.Slots <= SlotsMax)
	l.field("window", h.Window, h.Window <= WindowMax)
	l.field("beat", h.BeatMS, true)
	l.field("transfer", h.MaxTransfer, true)
	l.field("managers", fmt.Sprintf("%d/%d", h.ReadManagers, h.WriteManagers), true)
	l.field("contexts", h.Contexts, true)
	l.field("eager", h.Eager, h.Eager <= EagerEntries && (h.Eager != 0) == (h.Capabilities&CapEager != 0))
	l.reserved([]uint64{uint64(h.Rsvd)})
}

func (l *line) heartbeat(h Header, b *Heartbeat) {
	l.field("beat", b.Beat, uint16(b.Beat) == h.Sequence())
	l.field("now", b.NowNS, true)
	l.field("diagnostic", fmt.Sprintf("%#x", uint32(b.Diagnostic)), b.Diagnostic.Valid())
	l.field("processes", b.Processes, true)
	l.field("messages", b.Messages, true)
	l.field("bytes", b.Bytes, true)
	l.field("dropped", b.Dropped, true)
	l.field("parked", b.Parked, true)
}
