package models

import (
	"fmt"
	"io"
	"strconv"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// Transfer is what a transfer costs on a card, modelled.
type Transfer struct {
	Card  string `json:"card"`
	Wire  string `json:"wire"`
	Bytes uint64 `json:"bytes"`
	// Slots to the card and back, round trips one after the other, and registers
	// that the processor reads.
	SlotsDown uint64 `json:"slots_down"`
	SlotsUp   uint64 `json:"slots_up"`
	Trips     uint64 `json:"round_trips"`
	Reads     uint64 `json:"register_reads"`
	// SetupUs is trips and reads, MoveUs the bytes at the link's rate.
	SetupUs float64 `json:"setup_us"`
	MoveUs  float64 `json:"move_us"`
	// Share is the part of the time that moves bytes; SlotShare what slots add to
	// the bytes on the link to the card.
	Share     float64 `json:"share"`
	SlotShare float64 `json:"slot_share"`
}

var modelCards = []struct {
	name string
	card papers.Card
}{
	{"Gen3 x8", papers.NewCard(papers.Lanes{Generation: 3, Width: 8}, 256)},
	{"Gen5 x16", papers.NewCard(papers.Lanes{Generation: 5, Width: 16}, 512)},
}

var modelWires = []struct {
	name string
	wire papers.Wire
}{
	{"pages", papers.Wire{}},
	{"runs", papers.Wire{Runs: true}},
	{"runs, eager", papers.Wire{Runs: true, Eager: 4}},
	{"runs, eager, host rings", papers.Wire{Runs: true, Eager: 4, HostRings: true}},
}

// modelTransfers is the arithmetic of transfers on a card.
func modelTransfers() []Transfer {
	var all []Transfer
	for _, c := range modelCards {
		for _, bytes := range []uint64{56, 4 << 10, 64 << 10, 1 << 20, 64 << 20} {
			for _, w := range modelWires {
				t := c.card.Send(w.wire, bytes)
				all = append(all, Transfer{
					Card: c.name, Wire: w.name, Bytes: bytes, SlotsDown: t.Down, SlotsUp: t.Up, Trips: t.Trips, Reads: t.Reads,
					SetupUs: float64(t.Setup) / 1e3, MoveUs: float64(t.Move) / 1e3, Share: t.Share(), SlotShare: c.card.SlotShare(t),
				})
			}
		}
	}
	return all
}

func writeTransfers(w io.Writer, all []Transfer) {
	t := texttable.Numbers("a transfer to a card", "wire", "bytes", "slots down", "up", "trips", "register reads", "setup µs", "move µs", "moving %", "slots %")
	for _, x := range all {
		t.Add(x.Card, x.Wire, cli.SizeText(int(x.Bytes)), strconv.FormatUint(x.SlotsDown, 10), strconv.FormatUint(x.SlotsUp, 10),
			strconv.FormatUint(x.Trips, 10), strconv.FormatUint(x.Reads, 10), fmt.Sprintf("%.1f", x.SetupUs), fmt.Sprintf("%.3g", x.MoveUs),
			fmt.Sprintf("%.1f", 100*x.Share), fmt.Sprintf("%.2f", 100*x.SlotShare))
	}
	t.Write(w)
}
