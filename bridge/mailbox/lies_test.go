package mailbox

import (
	"math/rand/v2"
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// classification is what the host must make of a bad reply.
type classification int

const (
	dropped classification = iota // it is about something that is over: counted, and nothing else
	latched                       // it cannot follow from what the host said: a fault
	either                        // chance decides which, or it is even a reply that may be
)

// lie is a bad reply of a device.
type lie struct {
	name string
	want classification
	when func(l *liar) bool // nil: always
	make func(l *liar) (wire.Header, wire.Slot)
}

// below returns a number from 0 to n-1, mostly a small one.
func (l *liar) below(n uint64) uint64 {
	if l.rand.IntN(2) == 0 {
		n = min(n, 4)
	}
	return l.rand.Uint64N(n)
}

// past and future are transactions before and after those that can be meant.
func (l *liar) past(d abi.Direction) uint64   { return l.id[d] - 1 - l.below(1<<40) }
func (l *liar) future(d abi.Direction) uint64 { return l.id[d] + 2 + l.below(1<<40) }

func (l *liar) direction() abi.Direction { return abi.Direction(l.rand.IntN(2)) }

// any of some values.
func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

var (
	answers  = []wire.Type{wire.TypeAck, wire.TypeDone, wire.TypeError, wire.TypeAborted}
	sayable  = append([]wire.Type{wire.TypeDirect, wire.TypeIndBegin, wire.TypeWithdraw, wire.TypeWithdrawn, wire.TypeClose, wire.TypeReady}, answers...)
	notNotes = []wire.Type{wire.TypeNone, wire.TypeIndList, wire.TypeFin, wire.TypeAbort, wire.TypeHello, wire.TypeHeartbeat, wire.TypeOffer, wire.TypeCount}
)

// record makes a completion record; the header fits.
func (l *liar) record(t wire.Type, a wire.Ack) (wire.Header, wire.Slot) {
	var s wire.Slot
	*s.Ack() = a
	return l.header(t, full, a.Transaction), s
}

// anyAck is a record whose fields may be anything but its transaction.
func (l *liar) anyAck(id uint64, d abi.Direction) wire.Ack {
	return wire.Ack{
		Transaction: id, Direction: uint32(d), Processed: l.below(1 << 62), Outstanding: l.below(1 << 62),
		Lists: uint32(l.below(1 << 32)), State: wire.State(l.below(1 << 16)), Status: abi.Status(l.below(1 << 16)),
	}
}

func (l *liar) noteOf(t wire.Type, n wire.Note) (wire.Header, wire.Slot) {
	var s wire.Slot
	*s.Note() = n
	return l.header(t, full, n.Transaction), s
}

func (l *liar) closeOf(o wire.Close) (wire.Header, wire.Slot) {
	var s wire.Slot
	*s.Close() = o
	return l.header(wire.TypeClose, full, o.Generation), s
}

func (l *liar) beginOf(o wire.Begin) (wire.Header, wire.Slot) {
	var s wire.Slot
	*s.Begin() = o
	return l.header(wire.TypeIndBegin, full, o.Transaction), s
}

// garbage fills a payload.
func (l *liar) garbage() (s wire.Slot) {
	for i := range s.Payload {
		s.Payload[i] = l.rand.Uint64()
	}
	return s
}

// reserved sets a bit in words that must be zero.
func (l *liar) reserved(h wire.Header, s wire.Slot, from int) (wire.Header, wire.Slot) {
	s.Payload[from+l.rand.IntN(7-from)] |= 1 << l.rand.IntN(64)
	return h, s
}

func sending(l *liar) bool   { return l.doing[abi.H2D] == message }
func moves(l *liar) bool     { return l.doing[abi.H2D] == transferring }
func idleD2H(l *liar) bool   { return l.doing[abi.D2H] != transferring }
func arrives(l *liar) bool   { return l.doing[abi.D2H] == transferring }
func transfers(l *liar) bool { return moves(l) || arrives(l) }
func oneTransfer(l *liar) abi.Direction {
	if moves(l) && (!arrives(l) || l.rand.IntN(2) == 0) {
		return abi.H2D
	}
	return abi.D2H
}

// lies are the bad replies, by name.
var lies = slices.Concat(staleLies(), headerLies(), bodyLies(), transferLies(), openLies(), cataloguedLies())

// staleLies are about what is over: another epoch, channel, subscription or
// transaction.
func staleLies() []lie {
	return []lie{
		{"message of another epoch", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			epoch := uint8(l.area.Epoch) + 1 + uint8(l.rand.IntN(255))
			return wire.MakeHeader(wire.Type(l.rand.IntN(128)), l.rand.IntN(256), epoch, uint16(l.rand.Uint32()), l.rand.Uint32()), l.garbage()
		}},
		{"message for a channel that is not open", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			id := fakeMailbox + 2*uint32(l.rand.IntN(fakeChannels/2))
			if id == fakeTarget {
				id += 2
			}
			return wire.MakeHeader(pick(l.rand, sayable...), full, uint8(l.area.Epoch), uint16(l.rand.Uint32()), id), l.garbage()
		}},
		{"record of the past", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			d := l.direction()
			return l.record(pick(l.rand, answers...), l.anyAck(l.past(d), d))
		}},
		{"withdrawn of the past", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.noteOf(wire.TypeWithdrawn, wire.Note{Transaction: l.past(abi.H2D)})
		}},
		{"withdraw of the past", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.noteOf(wire.TypeWithdraw, wire.Note{Transaction: l.past(abi.D2H), Direction: uint32(abi.D2H)})
		}},
		{"ready of the past", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.noteOf(wire.TypeReady, wire.Note{Transaction: l.past(abi.H2D)})
		}},
		{"message offered again", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.header(wire.TypeDirect, l.rand.IntN(full+1), l.id[abi.D2H]-l.below(30000)), l.garbage()
		}},
		{"transfer offered again", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.beginOf(wire.Begin{Transaction: l.past(abi.D2H), Size: l.rand.Uint64(), TimeoutNS: l.rand.Uint64()})
		}},
		{"close of another subscription", dropped, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.closeOf(wire.Close{Halves: 1 + l.rand.Uint32N(3), Generation: fakeGeneration - 1 - l.below(1<<40)})
		}},
	}
}

// headerLies are wrong in the first word.
func headerLies() []lie {
	header := func(t wire.Type, length int, channel uint32) func(l *liar) (wire.Header, wire.Slot) {
		return func(l *liar) (wire.Header, wire.Slot) {
			return wire.MakeHeader(t, length, uint8(l.area.Epoch), uint16(l.rand.Uint32()), channel), l.garbage()
		}
	}
	return []lie{
		{"type of no device", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return header(pick(l.rand, notNotes...), full, fakeTarget)(l)
		}},
		{"unknown type", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return header(wire.TypeCount+wire.Type(l.rand.IntN(128-int(wire.TypeCount))), full, fakeTarget)(l)
		}},
		{"record of another length", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return header(pick(l.rand, sayable[1:]...), (full+1+l.rand.IntN(255))%256, fakeTarget)(l)
		}},
		{"long message", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return header(wire.TypeDirect, full+1+l.rand.IntN(255-full), fakeTarget)(l)
		}},
		{"channel over the limit", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return header(pick(l.rand, sayable...), full, fakeChannels+l.rand.Uint32N(abi.ChannelsMax-fakeChannels))(l)
		}},
		{"channel of another mailbox", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return header(pick(l.rand, sayable...), full, fakeMailbox^1+2*uint32(l.rand.IntN(fakeChannels/2)))(l)
		}},
	}
}

// bodyLies are wrong in the payload.
func bodyLies() []lie {
	return []lie{
		{"record of the future", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			d := l.direction()
			return l.record(pick(l.rand, answers...), l.anyAck(l.future(d), d))
		}},
		{"record of another sequence", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			h, s := l.record(pick(l.rand, answers...), l.anyAck(l.id[0], l.direction()))
			return h ^ 1<<(24+l.rand.IntN(16)), s
		}},
		{"record of no direction", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.record(pick(l.rand, answers...), l.anyAck(l.id[0], 2+abi.Direction(l.below(1<<31))))
		}},
		{"message of the future", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.header(wire.TypeDirect, full, l.id[abi.D2H]+2+l.below(30000)), l.garbage()
		}},
		{"transfer of the future", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.beginOf(wire.Begin{Transaction: l.future(abi.D2H), Size: 1})
		}},
		{"transfer with reserved bits", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			h, s := l.beginOf(wire.Begin{Transaction: l.id[abi.D2H] + 1, Size: 1})
			return l.reserved(h, s, 3)
		}},
		{"transfer over the limit", latched, idleD2H, func(l *liar) (wire.Header, wire.Slot) {
			return l.beginOf(wire.Begin{Transaction: l.id[abi.D2H] + 1, Size: 1<<40 + 1 + l.below(1<<60)})
		}},
		{"second offer", latched, arrives, func(l *liar) (wire.Header, wire.Slot) {
			return l.beginOf(wire.Begin{Transaction: l.id[abi.D2H] + 1, Size: 1})
		}},
		{"note of the future", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			t := pick(l.rand, wire.TypeWithdraw, wire.TypeWithdrawn, wire.TypeReady)
			d := abi.H2D
			if t == wire.TypeWithdraw {
				d = abi.D2H
			}
			return l.noteOf(t, wire.Note{Transaction: l.future(d), Direction: uint32(d)})
		}},
		{"note of the wrong half", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			t, d := pick(l.rand, wire.TypeWithdrawn, wire.TypeReady), 1+l.rand.Uint32N(1<<31)
			if l.rand.IntN(3) == 0 {
				t, d = wire.TypeWithdraw, pick(l.rand, uint32(abi.H2D), 2+l.rand.Uint32N(1<<31))
			}
			return l.noteOf(t, wire.Note{Transaction: l.id[0], Direction: d})
		}},
		{"note with reserved bits", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			h, s := l.noteOf(wire.TypeReady, wire.Note{Transaction: l.id[abi.H2D] + 1})
			return l.reserved(h, s, 2)
		}},
		{"note of an unknown status", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.noteOf(wire.TypeReady, wire.Note{Transaction: l.id[abi.H2D] + 1, Status: uint32(abi.StatusCount) + l.rand.Uint32N(1<<20)})
		}},
		{"close of no half", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.closeOf(wire.Close{Halves: pick(l.rand, 0, 4+l.rand.Uint32N(1<<31)), Generation: fakeGeneration})
		}},
		{"close of the future", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.closeOf(wire.Close{Halves: 3, Generation: fakeGeneration + 1 + l.below(1<<40)})
		}},
		{"close with reserved bits", latched, nil, func(l *liar) (wire.Header, wire.Slot) {
			h, s := l.closeOf(wire.Close{Halves: 3, Generation: fakeGeneration})
			return l.reserved(h, s, 2)
		}},
		{"withdrawn unasked", latched, sending, func(l *liar) (wire.Header, wire.Slot) {
			return l.noteOf(wire.TypeWithdrawn, wire.Note{Transaction: l.id[abi.H2D]})
		}},
		{"message answered by progress", latched, sending, func(l *liar) (wire.Header, wire.Slot) {
			a := l.anyAck(l.id[abi.H2D], abi.H2D)
			a.State = pick(l.rand, wire.StateReady, wire.StateMoving, wire.StateRepeat, wire.StateDone, wire.StateCount)
			return l.record(pick(l.rand, answers...), a)
		}},
		{"message failed without a status", latched, sending, func(l *liar) (wire.Header, wire.Slot) {
			a := l.anyAck(l.id[abi.H2D], abi.H2D)
			a.State, a.Status = wire.StateFailed, pick(l.rand, abi.OK, abi.StatusCount)
			return l.record(wire.TypeError, a)
		}},
	}
}

// inTransfer makes a bad reply for a transfer under way from a record that could be true.
func inTransfer(name string, t wire.Type, change func(l *liar, d abi.Direction, a *wire.Ack)) lie {
	return lie{name, latched, transfers, func(l *liar) (wire.Header, wire.Slot) {
		d := oneTransfer(l)
		a := wire.Ack{
			Transaction: l.id[d], Direction: uint32(d), State: wire.StateMoving, Lists: uint32(l.sent[d]),
			Processed: l.cut[d].UpTo(l.sent[d]), Outstanding: l.cut[d].Size - l.cut[d].UpTo(l.sent[d]),
		}
		change(l, d, &a)
		return l.record(t, a)
	}}
}

// transferLies contradict the ledger.
func transferLies() []lie {
	return []lie{
		inTransfer("more lists acked than sent", wire.TypeAck, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.Lists += 1 + uint32(l.below(1<<30))
		}),
		inTransfer("more bytes processed than sent", wire.TypeAck, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.Processed += 1 + l.below(1<<60)
		}),
		inTransfer("progress with a status", wire.TypeAck, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.Status = 1 + abi.Status(l.rand.IntN(int(abi.StatusCount)-1))
		}),
		inTransfer("ready twice", wire.TypeAck, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.State = wire.StateReady
			if d == abi.H2D && !l.ready { // the first one may be
				a.State = wire.StateFailed
			}
		}),
		inTransfer("transfer consumed with bytes missing", wire.TypeAck, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.State = wire.StateConsumed
			if d == abi.H2D { // the host itself consumes what is sent to it
				a.Processed = l.cut[d].Size - 1 - l.rand.Uint64N(l.cut[d].Size)
				a.Outstanding = l.below(2) * (l.cut[d].Size - a.Processed)
			}
		}),
		inTransfer("unknown state or status", wire.TypeAck, func(l *liar, _ abi.Direction, a *wire.Ack) {
			a.State = wire.StateCount + wire.State(l.below(1<<15))
			if l.rand.IntN(2) == 0 {
				a.State, a.Status = wire.StateMoving, abi.StatusCount+abi.Status(l.below(1<<15))
			}
		}),
		inTransfer("repeat of a list never sent", wire.TypeAck, func(l *liar, _ abi.Direction, a *wire.Ack) {
			a.State = wire.StateRepeat
			a.Lists += uint32(l.below(1 << 30))
		}),
		inTransfer("done with bytes missing", wire.TypeDone, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.State = wire.StateDone
			a.Processed = l.cut[d].Size - 1 - l.rand.Uint64N(l.cut[d].Size)
			a.Outstanding = l.below(2) * (l.cut[d].Size - a.Processed)
		}),
		inTransfer("done with bytes to spare", wire.TypeDone, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.State, a.Outstanding = wire.StateDone, 0
			a.Processed = l.cut[d].Size + 1 + l.below(1<<60)
		}),
		inTransfer("failed in another state, or in no entry", wire.TypeError, func(l *liar, _ abi.Direction, a *wire.Ack) {
			a.Status = abi.ErrDMA
			if l.rand.IntN(2) == 0 {
				a.State, a.FaultIndex = wire.StateFailed, wire.ListEntries+uint32(l.below(1<<30))
			}
		}),
		inTransfer("aborted unasked", wire.TypeAborted, func(_ *liar, _ abi.Direction, a *wire.Ack) {
			a.State, a.Status = wire.StateFailed, abi.ErrAborted
		}),
		inTransfer("failed without a status", wire.TypeError, func(_ *liar, _ abi.Direction, a *wire.Ack) {
			a.State = wire.StateFailed
		}),
		inTransfer("failed past the end", wire.TypeError, func(l *liar, d abi.Direction, a *wire.Ack) {
			a.State, a.Status = wire.StateFailed, abi.ErrDMA
			a.Processed = l.cut[d].Size + 1 + l.below(1<<60)
		}),
	}
}

// openLies may be anything, also what the device might have said.
func openLies() []lie {
	near := func(l *liar) (wire.Header, wire.Slot) {
		d := l.direction()
		a := wire.Ack{
			Transaction: l.id[d], Direction: uint32(d), State: wire.State(l.rand.IntN(int(wire.StateCount) + 1)),
			Lists: uint32(l.sent[d] + l.below(3) - 1), Processed: l.cut[d].UpTo(l.sent[d]) + l.below(3) - 1,
			Status: abi.Status(l.below(uint64(abi.StatusCount) + 1)),
		}
		return l.record(pick(l.rand, answers...), a)
	}
	return []lie{
		{"bits flipped", either, nil, func(l *liar) (wire.Header, wire.Slot) {
			h, s := near(l)
			for range 1 + l.rand.IntN(3) {
				if at := l.rand.IntN(512); at < 64 {
					h ^= 1 << at
				} else {
					s.Payload[at/64-1] ^= 1 << (at % 64)
				}
			}
			return h &^ (1 << 7), s // the phase would only hide the slot
		}},
		{"garbage", either, nil, func(l *liar) (wire.Header, wire.Slot) {
			h := l.header(pick(l.rand, sayable...), pick(l.rand, full, l.rand.IntN(256)), l.id[l.direction()]+l.below(3)-1)
			return h, l.garbage()
		}},
		{"record that nearly fits", either, nil, near},
		{"close out of turn", either, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.closeOf(wire.Close{Halves: 1 + l.rand.Uint32N(3), Generation: fakeGeneration, Status: l.rand.Uint32N(uint32(abi.StatusCount))})
		}},
		{"offer out of turn", either, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.beginOf(wire.Begin{Transaction: l.id[abi.D2H] + 1, Size: l.below(1 << 20)})
		}},
		{"offer taken back", either, nil, func(l *liar) (wire.Header, wire.Slot) {
			return l.noteOf(wire.TypeWithdraw, wire.Note{Transaction: l.id[abi.D2H], Direction: uint32(abi.D2H)})
		}},
	}
}
