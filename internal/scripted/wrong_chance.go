package scripted

import (
	"math/rand/v2"
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// byChance are the rows that a source of chance makes, one of most kinds: where
// they strike, and with what, decides what the host must make of them.
func byChance() []Wrong {
	return []Wrong{
		{Name: "count/any", chance: wrongCount},
		{Name: "early/any", chance: earlyDone},
		{Name: "id/any", Match: onlyTypes(aboutCalls), chance: wrongID},
		{Name: "epoch/any", chance: chanceHeader(func(r *rand.Rand, h *header) { h.epoch += 1 + uint8(r.IntN(255)) })},
		{Name: "type/any", chance: chanceHeader(wrongType)},
		{Name: "channel/any", chance: chanceHeader(wrongChannel)},
		{Name: "length/any", chance: chanceHeader(func(r *rand.Rand, h *header) { h.length = 57 + r.IntN(199) })},
		{Name: "phase/any", alter: func(m wire.Slot) []wire.Slot { m.Header ^= 1 << 7; return only(m) }},
		{Name: "state/any", chance: wrongState},
		{Name: "direction/any", chance: wrongDirection},
		{Name: "reserved/any", Match: onlyTypes(append(slices.Clone(notes), wire.TypeIndBegin, wire.TypeClose)), chance: reservedSet},
		{Name: "replay/any", alter: func(m wire.Slot) []wire.Slot { return only(m, m) }},
		{Name: "again/any", chance: again},
		{Name: "drop/any", alter: func(wire.Slot) []wire.Slot { return nil }},
		{Name: "garbage/any", chance: garbage},
	}
}

func onlyTypes(types []wire.Type) func(m *wire.Slot) bool {
	return func(m *wire.Slot) bool { return slices.Contains(types, kindOf(m)) }
}

// chanceHeader makes an alteration of one of the header.
func chanceHeader(change func(r *rand.Rand, f *header)) alteration {
	return func(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
		return []wire.Slot{withHeader(m, func(f *header) { change(r, f) })}
	}
}

// wrongType picks a type that no device sends.
func wrongType(r *rand.Rand, f *header) {
	bad := []wire.Type{
		wire.TypeNone, wire.TypeIndList, wire.TypeFin, wire.TypeAbort, wire.TypeHello, wire.TypeHeartbeat,
		wire.TypeOffer, wire.TypeCount, 0x7f, wire.TypeCount + wire.Type(r.IntN(0x60)),
	}
	f.kind = bad[r.IntN(len(bad))]
}

// wrongChannel picks a neighbour, or a channel that there is not.
func wrongChannel(r *rand.Rand, f *header) {
	bad := []uint32{f.channel + 1, f.channel ^ 1, 0, abi.ChannelsMax - 1, r.Uint32N(abi.ChannelsMax)}
	f.channel = bad[r.IntN(len(bad))]
}

// off returns a number that n is not: near, or absurd.
func off(r *rand.Rand, n uint64) uint64 {
	bad := []uint64{n + 1, n - 1, n + 1<<12, n ^ 1<<63, ^uint64(0), r.Uint64()}
	return bad[r.IntN(len(bad))]
}

// wrongCount changes one of the counts of a record.
func wrongCount(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	a := m.Ack()
	switch r.IntN(3) {
	case 0:
		a.Processed = off(r, a.Processed)
	case 1:
		a.Outstanding = off(r, a.Outstanding)
	default:
		a.Lists = uint32(off(r, uint64(a.Lists)))
	}
	return []wire.Slot{m}
}

// earlyDone makes a record of progress one of success.
func earlyDone(_ *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	a := m.Ack()
	a.State, a.Processed, a.Outstanding = wire.StateDone, a.Processed+a.Outstanding, 0
	return []wire.Slot{withHeader(m, func(f *header) { f.kind = wire.TypeDone })}
}

// wrongID names another transaction; the sequence in the header goes with it.
func wrongID(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	m.Payload[0] = off(r, m.Payload[0])
	return []wire.Slot{withHeader(m, func(f *header) { f.sequence = uint16(m.Payload[0]) })}
}

// wrongState makes a record say what no record says.
func wrongState(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	a := m.Ack()
	switch r.IntN(4) {
	case 0:
		a.State = wire.StateCount + wire.State(r.IntN(1000))
	case 1:
		a.Status = abi.StatusCount + abi.Status(r.IntN(1000))
	case 2:
		a.State = wire.State(r.IntN(int(wire.StateCount)))
	default:
		a.FaultIndex = 6 + r.Uint32N(1<<30)
		a.State, a.Status = wire.StateFailed, abi.ErrDMA
		return []wire.Slot{withHeader(m, func(f *header) { f.kind = wire.TypeError })}
	}
	return []wire.Slot{m}
}

// wrongDirection speaks of the other half, or of none.
func wrongDirection(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	bad := []uint32{1, 2, 7, ^uint32(0)}
	by := bad[r.IntN(len(bad))]
	if t := wire.Header(m.Header).Type(); slices.Contains(notes, t) {
		m.Note().Direction ^= by
	} else {
		m.Ack().Direction ^= by
	}
	return []wire.Slot{m}
}

// reservedSet sets a bit in the last word, which notes, begins and closes keep
// zero.
func reservedSet(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	m.Payload[6] |= 1 << r.IntN(64)
	return []wire.Slot{m}
}

// again repeats one of the last messages before this one.
func again(r *rand.Rand, m wire.Slot, old []wire.Slot) []wire.Slot {
	if len(old) == 0 {
		return []wire.Slot{m, m}
	}
	return []wire.Slot{old[r.IntN(len(old))], m}
}

// garbage puts a slot of random bytes before the message; half of the time it
// has the message's channel and epoch, so that it gets further.
func garbage(r *rand.Rand, m wire.Slot, _ []wire.Slot) []wire.Slot {
	var g wire.Slot
	for i := range g.Payload {
		g.Payload[i] = r.Uint64()
	}
	g.Header = r.Uint64() &^ (1 << 7)
	if h := wire.Header(m.Header); r.IntN(2) == 0 {
		g = withHeader(g, func(f *header) { f.epoch, f.channel = h.Epoch(), h.Channel() })
	}
	return []wire.Slot{g, m}
}
