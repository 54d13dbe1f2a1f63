package mailbox

import (
	"math/rand/v2"
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
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
	make func(l *liar) (abi.Header, abi.Slot)
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
	answers  = []abi.Type{abi.TypeAck, abi.TypeDone, abi.TypeError, abi.TypeAborted}
	sayable  = append([]abi.Type{abi.TypeDirect, abi.TypeIndBegin, abi.TypeWithdraw, abi.TypeWithdrawn, abi.TypeClose, abi.TypeReady}, answers...)
	notNotes = []abi.Type{abi.TypeNone, abi.TypeIndList, abi.TypeFin, abi.TypeAbort, abi.TypeHello, abi.TypeHeartbeat, abi.TypeOffer, abi.TypeCount}
)

// record makes a completion record; the header fits.
func (l *liar) record(t abi.Type, a abi.Ack) (abi.Header, abi.Slot) {
	var s abi.Slot
	*s.Ack() = a
	return l.header(t, full, a.Transaction), s
}

// anyAck is a record whose fields may be anything but its transaction.
func (l *liar) anyAck(id uint64, d abi.Direction) abi.Ack {
	return abi.Ack{
		Transaction: id, Direction: uint32(d), Processed: l.below(1 << 62), Outstanding: l.below(1 << 62),
		Lists: uint32(l.below(1 << 32)), State: abi.State(l.below(1 << 16)), Status: abi.Status(l.below(1 << 16)),
	}
}

func (l *liar) noteOf(t abi.Type, n abi.Note) (abi.Header, abi.Slot) {
	var s abi.Slot
	*s.Note() = n
	return l.header(t, full, n.Transaction), s
}

func (l *liar) closeOf(o abi.Close) (abi.Header, abi.Slot) {
	var s abi.Slot
	*s.Close() = o
	return l.header(abi.TypeClose, full, o.Generation), s
}

func (l *liar) beginOf(o abi.Begin) (abi.Header, abi.Slot) {
	var s abi.Slot
	*s.Begin() = o
	return l.header(abi.TypeIndBegin, full, o.Transaction), s
}

// garbage fills a payload.
func (l *liar) garbage() (s abi.Slot) {
	for i := range s.Payload {
		s.Payload[i] = l.rand.Uint64()
	}
	return s
}

// reserved sets a bit in words that must be zero.
func (l *liar) reserved(h abi.Header, s abi.Slot, from int) (abi.Header, abi.Slot) {
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
		{"message of another epoch", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			epoch := uint8(l.area.Epoch) + 1 + uint8(l.rand.IntN(255))
			return abi.MakeHeader(abi.Type(l.rand.IntN(128)), l.rand.IntN(256), epoch, uint16(l.rand.Uint32()), l.rand.Uint32()), l.garbage()
		}},
		{"message for a channel that is not open", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			id := fakeMailbox + 2*uint32(l.rand.IntN(fakeChannels/2))
			if id == fakeTarget {
				id += 2
			}
			return abi.MakeHeader(pick(l.rand, sayable...), full, uint8(l.area.Epoch), uint16(l.rand.Uint32()), id), l.garbage()
		}},
		{"record of the past", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			d := l.direction()
			return l.record(pick(l.rand, answers...), l.anyAck(l.past(d), d))
		}},
		{"withdrawn of the past", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.noteOf(abi.TypeWithdrawn, abi.Note{Transaction: l.past(abi.H2D)})
		}},
		{"withdraw of the past", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.noteOf(abi.TypeWithdraw, abi.Note{Transaction: l.past(abi.D2H), Direction: uint32(abi.D2H)})
		}},
		{"ready of the past", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.noteOf(abi.TypeReady, abi.Note{Transaction: l.past(abi.H2D)})
		}},
		{"message offered again", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.header(abi.TypeDirect, l.rand.IntN(full+1), l.id[abi.D2H]-l.below(30000)), l.garbage()
		}},
		{"transfer offered again", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.beginOf(abi.Begin{Transaction: l.past(abi.D2H), Size: l.rand.Uint64(), TimeoutNS: l.rand.Uint64()})
		}},
		{"close of another subscription", dropped, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.closeOf(abi.Close{Halves: 1 + l.rand.Uint32N(3), Generation: fakeGeneration - 1 - l.below(1<<40)})
		}},
	}
}

// headerLies are wrong in the first word.
func headerLies() []lie {
	header := func(t abi.Type, length int, channel uint32) func(l *liar) (abi.Header, abi.Slot) {
		return func(l *liar) (abi.Header, abi.Slot) {
			return abi.MakeHeader(t, length, uint8(l.area.Epoch), uint16(l.rand.Uint32()), channel), l.garbage()
		}
	}
	return []lie{
		{"type of no device", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return header(pick(l.rand, notNotes...), full, fakeTarget)(l)
		}},
		{"unknown type", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return header(abi.TypeCount+abi.Type(l.rand.IntN(128-int(abi.TypeCount))), full, fakeTarget)(l)
		}},
		{"record of another length", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return header(pick(l.rand, sayable[1:]...), (full+1+l.rand.IntN(255))%256, fakeTarget)(l)
		}},
		{"long message", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return header(abi.TypeDirect, full+1+l.rand.IntN(255-full), fakeTarget)(l)
		}},
		{"channel over the limit", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return header(pick(l.rand, sayable...), full, fakeChannels+l.rand.Uint32N(abi.ChannelsMax-fakeChannels))(l)
		}},
		{"channel of another mailbox", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return header(pick(l.rand, sayable...), full, fakeMailbox^1+2*uint32(l.rand.IntN(fakeChannels/2)))(l)
		}},
	}
}

// bodyLies are wrong in the payload.
func bodyLies() []lie {
	return []lie{
		{"record of the future", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			d := l.direction()
			return l.record(pick(l.rand, answers...), l.anyAck(l.future(d), d))
		}},
		{"record of another sequence", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			h, s := l.record(pick(l.rand, answers...), l.anyAck(l.id[0], l.direction()))
			return h ^ 1<<(24+l.rand.IntN(16)), s
		}},
		{"record of no direction", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.record(pick(l.rand, answers...), l.anyAck(l.id[0], 2+abi.Direction(l.below(1<<31))))
		}},
		{"message of the future", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.header(abi.TypeDirect, full, l.id[abi.D2H]+2+l.below(30000)), l.garbage()
		}},
		{"transfer of the future", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.beginOf(abi.Begin{Transaction: l.future(abi.D2H), Size: 1})
		}},
		{"transfer with reserved bits", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			h, s := l.beginOf(abi.Begin{Transaction: l.id[abi.D2H] + 1, Size: 1})
			return l.reserved(h, s, 3)
		}},
		{"transfer over the limit", latched, idleD2H, func(l *liar) (abi.Header, abi.Slot) {
			return l.beginOf(abi.Begin{Transaction: l.id[abi.D2H] + 1, Size: 1<<40 + 1 + l.below(1<<60)})
		}},
		{"second offer", latched, arrives, func(l *liar) (abi.Header, abi.Slot) {
			return l.beginOf(abi.Begin{Transaction: l.id[abi.D2H] + 1, Size: 1})
		}},
		{"note of the future", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			t := pick(l.rand, abi.TypeWithdraw, abi.TypeWithdrawn, abi.TypeReady)
			d := abi.H2D
			if t == abi.TypeWithdraw {
				d = abi.D2H
			}
			return l.noteOf(t, abi.Note{Transaction: l.future(d), Direction: uint32(d)})
		}},
		{"note of the wrong half", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			t, d := pick(l.rand, abi.TypeWithdrawn, abi.TypeReady), 1+l.rand.Uint32N(1<<31)
			if l.rand.IntN(3) == 0 {
				t, d = abi.TypeWithdraw, pick(l.rand, uint32(abi.H2D), 2+l.rand.Uint32N(1<<31))
			}
			return l.noteOf(t, abi.Note{Transaction: l.id[0], Direction: d})
		}},
		{"note with reserved bits", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			h, s := l.noteOf(abi.TypeReady, abi.Note{Transaction: l.id[abi.H2D] + 1})
			return l.reserved(h, s, 2)
		}},
		{"note of an unknown status", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.noteOf(abi.TypeReady, abi.Note{Transaction: l.id[abi.H2D] + 1, Status: uint32(abi.StatusCount) + l.rand.Uint32N(1<<20)})
		}},
		{"close of no half", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.closeOf(abi.Close{Halves: pick(l.rand, 0, 4+l.rand.Uint32N(1<<31)), Generation: fakeGeneration})
		}},
		{"close of the future", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.closeOf(abi.Close{Halves: 3, Generation: fakeGeneration + 1 + l.below(1<<40)})
		}},
		{"close with reserved bits", latched, nil, func(l *liar) (abi.Header, abi.Slot) {
			h, s := l.closeOf(abi.Close{Halves: 3, Generation: fakeGeneration})
			return l.reserved(h, s, 2)
		}},
		{"withdrawn unasked", latched, sending, func(l *liar) (abi.Header, abi.Slot) {
			return l.noteOf(abi.TypeWithdrawn, abi.Note{Transaction: l.id[abi.H2D]})
		}},
		{"message answered by progress", latched, sending, func(l *liar) (abi.Header, abi.Slot) {
			a := l.anyAck(l.id[abi.H2D], abi.H2D)
			a.State = pick(l.rand, abi.StateReady, abi.StateMoving, abi.StateRepeat, abi.StateDone, abi.StateCount)
			return l.record(pick(l.rand, answers...), a)
		}},
		{"message failed without a status", latched, sending, func(l *liar) (abi.Header, abi.Slot) {
			a := l.anyAck(l.id[abi.H2D], abi.H2D)
			a.State, a.Status = abi.StateFailed, pick(l.rand, abi.OK, abi.StatusCount)
			return l.record(abi.TypeError, a)
		}},
	}
}

// inTransfer makes a lie about a transfer under way from a record that could be true.
func inTransfer(name string, t abi.Type, change func(l *liar, d abi.Direction, a *abi.Ack)) lie {
	return lie{name, latched, transfers, func(l *liar) (abi.Header, abi.Slot) {
		d := oneTransfer(l)
		a := abi.Ack{
			Transaction: l.id[d], Direction: uint32(d), State: abi.StateMoving, Lists: uint32(l.sent[d]),
			Processed: l.cut[d].UpTo(l.sent[d]), Outstanding: l.cut[d].Size - l.cut[d].UpTo(l.sent[d]),
		}
		change(l, d, &a)
		return l.record(t, a)
	}}
}

// transferLies contradict the ledger.
func transferLies() []lie {
	return []lie{
		inTransfer("more lists acked than sent", abi.TypeAck, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.Lists += 1 + uint32(l.below(1<<30))
		}),
		inTransfer("more bytes processed than sent", abi.TypeAck, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.Processed += 1 + l.below(1<<60)
		}),
		inTransfer("progress with a status", abi.TypeAck, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.Status = 1 + abi.Status(l.rand.IntN(int(abi.StatusCount)-1))
		}),
		inTransfer("ready twice", abi.TypeAck, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.State = abi.StateReady
			if d == abi.H2D && !l.ready { // the first one may be
				a.State = abi.StateFailed
			}
		}),
		inTransfer("transfer consumed with bytes missing", abi.TypeAck, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.State = abi.StateConsumed
			if d == abi.H2D { // what goes to the host is its own to consume
				a.Processed = l.cut[d].Size - 1 - l.rand.Uint64N(l.cut[d].Size)
				a.Outstanding = l.below(2) * (l.cut[d].Size - a.Processed)
			}
		}),
		inTransfer("unknown state or status", abi.TypeAck, func(l *liar, _ abi.Direction, a *abi.Ack) {
			a.State = abi.StateCount + abi.State(l.below(1<<15))
			if l.rand.IntN(2) == 0 {
				a.State, a.Status = abi.StateMoving, abi.StatusCount+abi.Status(l.below(1<<15))
			}
		}),
		inTransfer("repeat of a list never sent", abi.TypeAck, func(l *liar, _ abi.Direction, a *abi.Ack) {
			a.State = abi.StateRepeat
			a.Lists += uint32(l.below(1 << 30))
		}),
		inTransfer("done with bytes missing", abi.TypeDone, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.State = abi.StateDone
			a.Processed = l.cut[d].Size - 1 - l.rand.Uint64N(l.cut[d].Size)
			a.Outstanding = l.below(2) * (l.cut[d].Size - a.Processed)
		}),
		inTransfer("done with bytes to spare", abi.TypeDone, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.State, a.Outstanding = abi.StateDone, 0
			a.Processed = l.cut[d].Size + 1 + l.below(1<<60)
		}),
		inTransfer("failed in another state, or in no entry", abi.TypeError, func(l *liar, _ abi.Direction, a *abi.Ack) {
			a.Status = abi.ErrDMA
			if l.rand.IntN(2) == 0 {
				a.State, a.FaultIndex = abi.StateFailed, abi.ListEntries+uint32(l.below(1<<30))
			}
		}),
		inTransfer("aborted unasked", abi.TypeAborted, func(_ *liar, _ abi.Direction, a *abi.Ack) {
			a.State, a.Status = abi.StateFailed, abi.ErrAborted
		}),
		inTransfer("failed without a status", abi.TypeError, func(_ *liar, _ abi.Direction, a *abi.Ack) {
			a.State = abi.StateFailed
		}),
		inTransfer("failed past the end", abi.TypeError, func(l *liar, d abi.Direction, a *abi.Ack) {
			a.State, a.Status = abi.StateFailed, abi.ErrDMA
			a.Processed = l.cut[d].Size + 1 + l.below(1<<60)
		}),
	}
}

// openLies may be anything, also what the device might have said.
func openLies() []lie {
	near := func(l *liar) (abi.Header, abi.Slot) {
		d := l.direction()
		a := abi.Ack{
			Transaction: l.id[d], Direction: uint32(d), State: abi.State(l.rand.IntN(int(abi.StateCount) + 1)),
			Lists: uint32(l.sent[d] + l.below(3) - 1), Processed: l.cut[d].UpTo(l.sent[d]) + l.below(3) - 1,
			Status: abi.Status(l.below(uint64(abi.StatusCount) + 1)),
		}
		return l.record(pick(l.rand, answers...), a)
	}
	return []lie{
		{"bits flipped", either, nil, func(l *liar) (abi.Header, abi.Slot) {
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
		{"garbage", either, nil, func(l *liar) (abi.Header, abi.Slot) {
			h := l.header(pick(l.rand, sayable...), pick(l.rand, full, l.rand.IntN(256)), l.id[l.direction()]+l.below(3)-1)
			return h, l.garbage()
		}},
		{"record that nearly fits", either, nil, near},
		{"close out of turn", either, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.closeOf(abi.Close{Halves: 1 + l.rand.Uint32N(3), Generation: fakeGeneration, Status: l.rand.Uint32N(uint32(abi.StatusCount))})
		}},
		{"offer out of turn", either, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.beginOf(abi.Begin{Transaction: l.id[abi.D2H] + 1, Size: l.below(1 << 20)})
		}},
		{"offer taken back", either, nil, func(l *liar) (abi.Header, abi.Slot) {
			return l.noteOf(abi.TypeWithdraw, abi.Note{Transaction: l.id[abi.D2H], Direction: uint32(abi.D2H)})
		}},
	}
}
