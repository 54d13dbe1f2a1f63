package bridgetest

import (
	"encoding/binary"
)

// What the programs of the suite say and understand, see Run.
const (
	sinkQuery   = "SINKSTAT"
	expectWrite = uint64(1) << 63
)

// words packs little-endian words.
func words(ws ...uint64) []byte {
	b := make([]byte, 0, 8*len(ws))
	for _, w := range ws {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

// patternByte is byte i of the pattern that program "source" generates.
func patternByte(i, seed uint64) byte { return byte((i*0x9E3779B97F4A7C15 + seed) >> 56) }

// fillPattern writes the pattern from byte start on.
//
//go:norace
func fillPattern(b []byte, start, seed uint64) {
	x := start*0x9E3779B97F4A7C15 + seed
	for i := range b {
		b[i] = byte(x >> 56)
		x += 0x9E3779B97F4A7C15
	}
}

// patternDiff returns the first index that differs from the pattern, or -1.
//
//go:norace
func patternDiff(b []byte, start, seed uint64) int {
	x := start*0x9E3779B97F4A7C15 + seed
	for i := range b {
		if b[i] != byte(x>>56) {
			return i
		}
		x += 0x9E3779B97F4A7C15
	}
	return -1
}

const (
	fnvOffset = 0xcbf29ce484222325
	fnvPrime  = 0x100000001b3
)

// fnvBytes continues an FNV-1a 64 hash; start with fnvOffset.
//
//go:norace
func fnvBytes(h uint64, b []byte) uint64 {
	for _, x := range b {
		h = (h ^ uint64(x)) * fnvPrime
	}
	return h
}

// fnvZeros continues an FNV-1a 64 hash over n zero bytes.
func fnvZeros(h, n uint64) uint64 {
	for p := uint64(fnvPrime); n > 0; n >>= 1 {
		if n&1 != 0 {
			h *= p
		}
		p *= p
	}
	return h
}
