package main

import (
	"fmt"
	"strconv"

	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// boardRecord is the card that a device is.
type boardRecord struct {
	Address  string        `json:"address" doc:"its place on the bus, as 0000:03:00.0"`
	VendorID uint32        `json:"vendor_id" doc:"its PCI vendor"`
	DeviceID uint32        `json:"device_id" doc:"its PCI device"`
	Serial   string        `json:"serial" doc:"its own number; empty if it has none"`
	NUMANode *int32        `json:"numa_node" doc:"the node of the machine that it is next to; null where there is none"`
	Link     busLinkRecord `json:"link" doc:"what it is connected by"`
	Vectors  int32         `json:"vectors" doc:"interrupt vectors in use"`
	Bars     []barRecord   `json:"bars" doc:"the windows that it offers the host, in their order"`
}

// busLinkRecord is a PCI Express link.
type busLinkRecord struct {
	Speed    float64 `json:"speed_transfers_per_second" doc:"present speed of a lane; 0 if nobody knows, as all that follows"`
	MaxSpeed float64 `json:"max_speed_transfers_per_second" doc:"the highest that the card can do"`
	Width    int32   `json:"width" doc:"present number of lanes"`
	MaxWidth int32   `json:"max_width" doc:"lanes that the card has"`
}

// barRecord is a window of a card.
type barRecord struct {
	Number       int32  `json:"number" doc:"0 to 5"`
	Kind         string `json:"kind" doc:"memory_32, memory_64 or io"`
	Prefetchable bool   `json:"prefetchable" doc:"true if reads of it change nothing"`
	Address      uint64 `json:"address" doc:"its place in the machine's memory or ports"`
	SizeBytes    uint64 `json:"size_bytes" doc:"its size"`
}

// giga is what the server counts transfers in.
const giga = 1e9

func boardOf(b *nfcommsv1.Board) *boardRecord {
	if b == nil {
		return nil
	}
	l := b.GetLink()
	r := &boardRecord{
		Address: b.GetAddress(), VendorID: b.GetVendorId(), DeviceID: b.GetDeviceId(), Serial: b.GetSerial(), NUMANode: b.NumaNode,
		Link:    busLinkRecord{Speed: giga * l.GetSpeedGts(), MaxSpeed: giga * l.GetMaxSpeedGts(), Width: l.GetWidth(), MaxWidth: l.GetMaxWidth()},
		Vectors: b.GetVectors(), Bars: []barRecord{},
	}
	for _, x := range b.GetBars() {
		r.Bars = append(r.Bars, barRecord{
			Number: x.GetNumber(), Kind: word(x.GetKind()), Prefetchable: x.GetPrefetchable(), Address: x.GetAddress(), SizeBytes: x.GetSizeBytes(),
		})
	}
	return r
}

// fields describe a card, or say of a device that was open that it is none.
func (b *boardRecord) fields(driver string) []field {
	switch {
	case driver == "":
		return nil
	case b == nil:
		return []field{{"card", "none: " + driver + " has no bus, bars, serial number or link", plainTint}}
	}
	serial, node := "no serial number", ""
	if b.Serial != "" {
		serial = "serial number " + b.Serial
	}
	if b.NUMANode != nil {
		node = ", next to NUMA node " + strconv.Itoa(int(*b.NUMANode))
	}
	return []field{
		{"card", fmt.Sprintf("%04x:%04x at %s, %s%s, %d interrupt vectors", b.VendorID, b.DeviceID, b.Address, serial, node, b.Vectors), plainTint},
		{"link", b.Link.text(), plainTint},
	}
}

func (l busLinkRecord) text() string {
	text := "unknown"
	if l.Speed > 0 && l.Width > 0 {
		text = fmt.Sprintf("%g GT/s, %d lanes", l.Speed/giga, l.Width)
	}
	if l.MaxSpeed > 0 && l.MaxWidth > 0 {
		text += fmt.Sprintf(", of %g GT/s and %d lanes", l.MaxSpeed/giga, l.MaxWidth)
	}
	return text
}

func writeBars(p *printer, bars []barRecord) {
	writeTable(p, []column[barRecord]{
		{title: "BAR", right: true, cell: func(b barRecord) string { return number(b.Number) }},
		{title: "KIND", cell: func(b barRecord) string { return b.kind() }},
		{title: "ADDRESS", right: true, cell: func(b barRecord) string { return fmt.Sprintf("%#x", b.Address) }},
		{title: "SIZE", right: true, cell: func(b barRecord) string { return units.Bytes(float64(b.SizeBytes)) }},
	}, bars)
}

func (b barRecord) kind() string {
	if b.Prefetchable {
		return b.Kind + " prefetchable"
	}
	return b.Kind
}
