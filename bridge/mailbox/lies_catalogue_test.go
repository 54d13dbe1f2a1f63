package mailbox

import (
	"slices"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/scripted"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// honest are the slots that the device could put now, each the base of wrong ones.
func (l *liar) honest() (all []wire.Slot) {
	put := func(h wire.Header, s wire.Slot) {
		s.Header = uint64(h)
		all = append(all, s)
	}
	for d := abi.H2D; d <= abi.D2H; d++ {
		switch {
		case l.doing[d] == message && d == abi.H2D:
			put(l.record(wire.TypeAck, wire.Ack{Transaction: l.id[d], State: wire.StateConsumed}))
		case l.doing[d] == transferring:
			a := wire.Ack{
				Transaction: l.id[d], Direction: uint32(d), State: wire.StateMoving, Lists: uint32(l.sent[d]),
				Processed: l.cut[d].UpTo(l.sent[d]), Outstanding: l.cut[d].Size - l.cut[d].UpTo(l.sent[d]),
			}
			if a.Outstanding > 0 {
				put(l.record(wire.TypeAck, a))
			} else {
				a.State = wire.StateDone
				put(l.record(wire.TypeDone, a))
			}
		}
	}
	return all
}

// wrongOf returns what a row of the catalogue puts before an honest slot, or in
// its place; ok is false if that is nothing.
func (l *liar) wrongOf(w *scripted.Wrong) (s wire.Slot, ok bool) {
	for _, m := range l.honest() {
		if !w.Fits(&m) {
			continue
		}
		// The reply after the honest one is wrong then; a phase would only hide it.
		if out := w.Alter(l.rand, m, nil); len(out) > 0 && out[0] != m && wire.Header(out[0].Header).Phase() == 0 {
			return out[0], true
		}
	}
	return s, false
}

// elsewhere are kinds whose conclusion hangs on the channels, generations and the other half of the
// device they were written for; the wrong replies here have their own. So is the phase, which hides a slot.
var elsewhere = []string{"channel", "close", "direction", "note", "phase"}

// cataloguedLies are the rows of the scripted device's catalogue whose conclusion
// does not hang on what the device does besides.
func cataloguedLies() (all []lie) {
	want := map[scripted.Conclusion]classification{
		scripted.Faulted: latched, scripted.Dropped: dropped, scripted.Undecided: either, scripted.Refused: either,
	}
	for i := range scripted.Catalogue {
		w := &scripted.Catalogue[i]
		class, ok := want[w.Want]
		if !ok || slices.Contains(elsewhere, w.Kind()) || w.Nth > 0 || w.Mute || w.Still || w.Astray {
			continue
		}
		var made wire.Slot
		all = append(all, lie{w.Name, class,
			func(l *liar) (ok bool) { made, ok = l.wrongOf(w); return ok },
			func(*liar) (wire.Header, wire.Slot) { return wire.Header(made.Header), made },
		})
	}
	return all
}
