package kdev

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nfcomms/nfcomms/bridge"
)

// Flags of a window in sysfs, as linux/ioport.h has them.
const (
	flagIO       = 0x100
	flagMemory   = 0x200
	flagPrefetch = 0x2000
	flagMemory64 = 0x100000
	barsMax      = 6 // the first lines of "resource"; ROM and bridges follow
	lanesMax     = 32
)

// readBoard reads what the kernel says of a card, in the folder of its node in sysfs.
// nil if the device is none; what is not known is zero.
func readBoard(dir string) *bridge.Board {
	if dir == "" {
		return nil
	}
	card := filepath.Join(dir, "device")
	text := func(name string) string { return readLine(filepath.Join(card, name)) }
	place, err := filepath.EvalSymlinks(card)
	resource, unread := os.ReadFile(filepath.Join(card, "resource"))
	if err != nil || unread != nil {
		return nil
	}
	b := &bridge.Board{
		Address: filepath.Base(place), Vendor: id(text("vendor")), Device: id(text("device")),
		Serial: readLine(filepath.Join(dir, "serial")), NUMA: -1, Bars: bars(string(resource)),
		Link: bridge.Link{
			Speed: speed(text("current_link_speed")), MaxSpeed: speed(text("max_link_speed")),
			Width: lanes(text("current_link_width")), MaxWidth: lanes(text("max_link_width")),
		},
	}
	if n, err := strconv.Atoi(text("numa_node")); err == nil {
		b.NUMA = n
	}
	return b
}

// readLine returns the one line of a file; empty if it is not there.
func readLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// id reads "0x1234".
func id(text string) uint16 {
	n, _ := strconv.ParseUint(text, 0, 16)
	return uint16(n)
}

// speed reads "8.0 GT/s PCIe"; zero for "Unknown".
func speed(text string) float64 {
	number, _, _ := strings.Cut(text, " GT/s")
	s, err := strconv.ParseFloat(number, 64)
	if err != nil || s < 0 || s > 1e6 {
		return 0
	}
	return s
}

// lanes reads a width; zero for what is none: the kernel writes 255 where nobody knows.
func lanes(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n <= lanesMax {
		return max(n, 0)
	}
	return 0
}

// bars reads the windows that are there: first and last address, and flags, of each.
func bars(resource string) []bridge.Bar {
	var found []bridge.Bar
	for i, line := range strings.SplitN(resource, "\n", barsMax+1) {
		var first, last, flags uint64
		if i == barsMax {
			break
		}
		if n, err := fmt.Sscanf(line, "%v %v %v", &first, &last, &flags); n != 3 || err != nil || last <= first {
			continue
		}
		b := bridge.Bar{Number: i, Kind: bridge.BarMemory32, Prefetchable: flags&flagPrefetch != 0, Address: first, Size: last - first + 1}
		switch {
		case flags&flagIO != 0:
			b.Kind = bridge.BarIO
		case flags&flagMemory == 0:
			continue
		case flags&flagMemory64 != 0:
			b.Kind = bridge.BarMemory64
		}
		found = append(found, b)
	}
	return found
}

// withVectors returns the card with its interrupt vectors; nil for none.
func withVectors(b *bridge.Board, vectors int) *bridge.Board {
	if b == nil {
		return nil
	}
	copied := *b
	copied.Vectors = vectors
	return &copied
}
