package pattern

import "encoding/binary"

const (
	// SinkQuery begins a message that program "sink" answers with its counts.
	SinkQuery = "SINKSTAT"
	// ExpectWrite is set in a size that program "expect" is to write, not read.
	ExpectWrite = uint64(1) << 63
)

// Words packs little-endian words.
func Words(ws ...uint64) []byte {
	b := make([]byte, 0, 8*len(ws))
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// Byte is byte i of the pattern that program "source" generates.
func Byte(i, seed uint64) byte { return byte((i*0x9E3779B97F4A7C15 + seed) >> 56) }

// Fill writes the pattern from byte start on.
//
//go:norace
func Fill(b []byte, start, seed uint64) {
	x := start*0x9E3779B97F4A7C15 + seed
	for i := range b {
		b[i] = byte(x >> 56)
		x += 0x9E3779B97F4A7C15
	}
}

// Diff returns the first index that differs from the pattern, or -1.
//
//go:norace
func Diff(b []byte, start, seed uint64) int {
	x := start*0x9E3779B97F4A7C15 + seed
	for i := range b {
		if b[i] != byte(x>>56) {
			return i
		}
		x += 0x9E3779B97F4A7C15
	}
	return -1
}

// FNVOffset is the hash of no bytes.
const FNVOffset = 0xcbf29ce484222325

const fnvPrime = 0x100000001b3

// FNV continues an FNV-1a 64 hash; start with FNVOffset.
//
//go:norace
func FNV(h uint64, b []byte) uint64 {
	for _, x := range b {
		h = (h ^ uint64(x)) * fnvPrime
	}
	return h
}

// FNVZeros continues an FNV-1a 64 hash over n zero bytes.
func FNVZeros(h, n uint64) uint64 {
	for p := uint64(fnvPrime); n > 0; n >>= 1 {
		if n&1 != 0 {
			h *= p
		}
		p *= p
	}
	return h
}
