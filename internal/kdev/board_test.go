package kdev

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/nfcomms/nfcomms/bridge"
)

// emulated is what sysfs says of the machine's emulated card.
const emulated = `0x00000000fe800000 0x00000000fe800fff 0x0000000000040200
0x00000000fe801000 0x00000000fe801fff 0x0000000000040200
0x000000e000000000 0x000000e003ffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x000000000000c000 0x000000000000c01f 0x0000000000040101
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000fea00000 0x00000000fea0ffff 0x0000000000046200
`

// sysfsOf makes the folder of a node, whose card has these files, and returns it.
func sysfsOf(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	node, card := filepath.Join(root, "char", "240:0"), filepath.Join(root, "pci0000:00", "0000:03:00.0")
	require.NoError(t, os.MkdirAll(node, 0o700))
	require.NoError(t, os.MkdirAll(card, 0o700))
	require.NoError(t, os.Symlink(card, filepath.Join(node, "device")))
	for name, text := range files {
		dir := card
		if name == "serial" {
			dir = node // the module's own
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text+"\n"), 0o600))
	}
	return node
}

func TestBoardIsWhatSysfsSays(t *testing.T) {
	dir := sysfsOf(t, map[string]string{
		"resource": emulated, "vendor": "0x1234", "device": "0x4e46", "serial": "00-1b-21-ff-ff-a0-b1-c2", "numa_node": "1",
		"current_link_speed": "8.0 GT/s PCIe", "max_link_speed": "16.0 GT/s PCIe",
		"current_link_width": "4", "max_link_width": "8",
	})
	require.Equal(t, &bridge.Board{
		Address: "0000:03:00.0", Vendor: 0x1234, Device: 0x4e46, Serial: "00-1b-21-ff-ff-a0-b1-c2", NUMA: 1,
		Link: bridge.Link{Speed: 8, MaxSpeed: 16, Width: 4, MaxWidth: 8},
		Bars: []bridge.Bar{
			{Number: 0, Kind: bridge.BarMemory32, Address: 0xfe800000, Size: 4096},
			{Number: 1, Kind: bridge.BarMemory32, Address: 0xfe801000, Size: 4096},
			{Number: 2, Kind: bridge.BarMemory64, Prefetchable: true, Address: 0xe000000000, Size: 64 << 20},
			{Number: 4, Kind: bridge.BarIO, Address: 0xc000, Size: 32},
		},
	}, readBoard(dir))
	require.Equal(t, "kind 7", bridge.BarKind(7).String())
}

// TestBoardOfWhichLittleIsKnown: what the kernel does not know, or says in words that are
// none of ours, is absent.
func TestBoardOfWhichLittleIsKnown(t *testing.T) {
	plain := &bridge.Board{Address: "0000:03:00.0", NUMA: -1}
	for name, files := range map[string]map[string]string{
		"nothing":  {"resource": ""},
		"unknown":  {"resource": "", "current_link_speed": "Unknown", "current_link_width": "255", "numa_node": "-1"},
		"nonsense": {"resource": "0x1 0x2\nx y z\n9 8 0x200\n1 2 0x400\n", "vendor": "ffffff", "max_link_speed": "-1 GT/s", "max_link_width": "-3", "numa_node": "x"},
	} {
		require.Equal(t, plain, readBoard(sysfsOf(t, files)), name)
	}
	require.Nil(t, readBoard(""), "the node has no folder")
	require.Nil(t, readBoard(t.TempDir()), "it is no card")
	require.Nil(t, readBoard(sysfsOf(t, nil)), "it is no card of this bus")
}
