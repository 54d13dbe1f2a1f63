//go:build linux

package ring

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestLayout holds the fields to the table of docs/ring.md.
func TestLayout(t *testing.T) {
	var h header
	var d head
	var p packet
	for name, at := range map[string][2]uintptr{
		"version": {8, unsafe.Offsetof(h.Version)}, "packets": {16, unsafe.Offsetof(h.Packets)},
		"packet size": {24, unsafe.Offsetof(h.PacketSize)}, "data": {32, unsafe.Offsetof(h.Data)},
		"generation": {40, unsafe.Offsetof(h.Generation)}, "header": {48, unsafe.Sizeof(h)},
		"position": {0, unsafe.Offsetof(d.pos)}, "status": {8, unsafe.Offsetof(d.status)},
		"parked": {128, unsafe.Offsetof(d.parked)}, "done": {256, unsafe.Offsetof(d.done)},
		"number": {0, unsafe.Offsetof(p.Number)}, "length": {8, unsafe.Offsetof(p.Length)},
		"packet header": {packetHeader, unsafe.Sizeof(p)},
	} {
		require.Equal(t, at[0], at[1], name)
	}
	require.LessOrEqual(t, unsafe.Sizeof(d), uintptr(offReader-offGenerator))
	require.Equal(t, "NFCRING1", string(message(0)[:8]))
}
