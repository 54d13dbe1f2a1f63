package compare

import (
	"bytes"
	"encoding/binary"
)

// Directions, in the order of every table.
var Directions = [2]string{"h2d", "d2h"}

// FillPattern fills b with words that differ from place to place and from seed to
// seed: a page in another's place shows, and so does one that a device kept from
// the test before.
func FillPattern(b []byte, seed uint64) {
	var word [8]byte
	for i := 0; i < len(b); i += len(word) {
		binary.LittleEndian.PutUint64(word[:], (seed<<40+uint64(i))*0x9e3779b97f4a7c15)
		copy(b[i:], word[:])
	}
}

// SamePrefix returns how many bytes a and b, of one length, have in common from
// the start.
func SamePrefix(a, b []byte) int {
	if bytes.Equal(a, b) {
		return len(a)
	}
	i := 0
	for a[i] == b[i] {
		i++
	}
	return i
}
