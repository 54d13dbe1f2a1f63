package papers

import "time"

// Card is a device on a PCI Express link, for the arithmetic of transfers. Nothing
// of it was measured here: NewCard lists what it assumes.
type Card struct {
	Lanes   Lanes
	TLP     TLP
	Payload int // bytes of a data packet
	// Read is how long the processor stands still for a register read, which is
	// a trip to the card and back; a trip of slots takes as long.
	Read time.Duration
	// Window is how many lists may be on their way.
	Window int
}

// NewCard is a card with packets of so many bytes, registers that take 0.8 µs to
// read and 64 lists on their way.
func NewCard(l Lanes, payload int) Card {
	return Card{Lanes: l, TLP: TLP{HeaderDW: 4}, Payload: payload, Read: 800 * time.Nanosecond, Window: 64}
}

// Wire is which capabilities of the device ABI host and device agreed on.
type Wire struct {
	Runs  bool // an entry covers a run of pages
	Eager int  // entries that an offer carries, 0: none
	// HostRings: what the device writes is in the host's memory.
	HostRings bool
}

// The device ABI's figures (firmware/nfc_abi.h).
const (
	pageBytes   = 4096
	listEntries = 6
	slotBytes   = 64
	runPages    = 1 << 16
)

// Transfer is what a transfer costs.
type Transfer struct {
	Bytes          uint64
	Entries, Lists uint64
	Down, Up       uint64 // slots to the card, and back
	Trips          uint64 // to the card and back, one after the other
	Reads          uint64 // of registers
	Setup, Move    time.Duration
}

// Send is a transfer of bytes from the host's memory, aligned to pages and in one
// piece on the bus.
func (c Card) Send(w Wire, bytes uint64) Transfer {
	t := Transfer{Bytes: bytes, Entries: Packets(bytes, 0, pageBytes)}
	if w.Runs {
		t.Entries = Packets(bytes, 0, pageBytes*runPages)
	}
	t.Down, t.Up, t.Trips = 1, 1, 1
	if t.Entries > uint64(w.Eager) {
		t.Lists = (t.Entries + listEntries - 1) / listEntries
		t.Down += t.Lists + 1 // and the commit
		if t.Lists > 1 {      // one says that the target is ready, some how far it is
			t.Up, t.Trips = 2+t.Lists/uint64(c.Window/2), 2
		}
	}
	if !w.HostRings {
		t.Reads = t.Up * slotBytes / 8
	}
	t.Setup = time.Duration(t.Trips+t.Reads) * c.Read
	t.Move = time.Duration(float64(bytes) / c.Lanes.Payload(c.TLP, c.Payload) * 1e9)
	return t
}

// Share is the part of the time that moves bytes.
func (t Transfer) Share() float64 { return float64(t.Move) / float64(t.Setup+t.Move) }

// SlotShare is what slots add to the bytes on the link to the card.
func (c Card) SlotShare(t Transfer) float64 {
	packet := float64(slotBytes + c.TLP.Overhead())
	return float64(t.Down) * packet / float64(t.Bytes)
}
