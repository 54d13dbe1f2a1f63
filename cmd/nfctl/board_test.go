package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/nfcomms/nfcomms/pkg/control/proto/nfcomms/v1"
)

// TestInfoOfACard: all that the server says of a card is shown, also where it is little, and
// of what is no card it says so.
func TestInfoOfACard(t *testing.T) {
	full := &nfcommsv1.Board{
		Address: "0000:03:00.0", VendorId: 0x1234, DeviceId: 0x4e46, Serial: "00-1b", NumaNode: proto.Int32(1), Vectors: 3,
		Link: &nfcommsv1.BusLink{SpeedGts: 8, MaxSpeedGts: 16, Width: 4, MaxWidth: 8},
		Bars: []*nfcommsv1.Bar{
			{Kind: nfcommsv1.Bar_KIND_MEMORY_32, Address: 0xfe800000, SizeBytes: 4096},
			{Number: 2, Kind: nfcommsv1.Bar_KIND_MEMORY_64, Prefetchable: true, Address: 0xe000000000, SizeBytes: 64 << 20},
		},
	}
	for name, c := range map[string]struct {
		board *nfcommsv1.Board
		says  []string
	}{
		"full": {full, []string{
			"1234:4e46 at 0000:03:00.0, serial number 00-1b, next to NUMA node 1, 3 interrupt vectors", "8 GT/s, 4 lanes, of 16 GT/s and 8 lanes",
			"\n  0  memory_32                 0xfe800000   4 KiB\n  2  memory_64 prefetchable  0xe000000000  64 MiB\n",
		}},
		"little": {&nfcommsv1.Board{Address: "0000:03:00.0"}, []string{"at 0000:03:00.0, no serial number, 0 interrupt vectors", "link:       unknown"}},
		"none":   {nil, []string{"card:       none: dev has no bus, bars, serial number or link"}},
	} {
		var out bytes.Buffer
		infoRecord{deviceRecord: deviceOf(&nfcommsv1.Device{Driver: "dev", Board: c.board})}.table(&printer{w: &out})
		for _, text := range c.says {
			require.Contains(t, out.String(), text, name)
		}
	}
}
