package main

import (
	"fmt"
	"math"
)

// network is the artificial network of the report: two populations of cells, each
// of which fires by a clock of its own and listens to cells of the other
// population. The seed and the GID of a cell determine its spikes, so that each member
// can compute the spikes that it should have received.
type network struct {
	cells       int // of each population; GIDs are in a row
	connections int // of each cell, on average
	members     int // half of them have one population, half the other
	millis      int // biological milliseconds, a step each
	seed        uint64
	overlap     bool // the delay of a connection is two steps, so that computing overlaps with exchanges
}

// Cells fire every 20 to 40 ms: 30 times a second and a little more.
const (
	shortest, longest = 20.0, 40.0
	hertz             = 30
	stepMillis        = 1
	spread            = 20 // connections vary by a twentieth
)

// spike is the event that members exchange: 16 bytes.
type spike struct {
	GID  uint64
	Time float64 // biological milliseconds
}

// hash mixes words to bits that look random (splitmix64).
func hash(words ...uint64) uint64 {
	x := uint64(0)
	for _, w := range words {
		x += w + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

// unit is a number from 0 to 1 of such bits.
func unit(bits uint64) float64 { return float64(bits>>11) / (1 << 53) }

// fires returns when a cell fires for the n-th time, given when it did before; the
// first time it is somewhere in its first interval.
func (w *network) fires(gid uint64, n int, before float64) float64 {
	interval := shortest + (longest-shortest)*unit(hash(w.seed, gid, uint64(n)))
	if n == 0 {
		return interval * unit(hash(w.seed, gid, math.MaxUint64))
	}
	return before + interval
}

// span returns the GIDs of a member's cells, [from, to).
func (w *network) span(member int) (from, to uint64) {
	half := w.members / 2
	base, i := uint64(member/half*w.cells), member%half
	return base + uint64(i*w.cells/half), base + uint64((i+1)*w.cells/half)
}

// owner returns the member that has a cell.
func (w *network) owner(gid uint64) int {
	half := w.members / 2
	population, i := int(gid)/w.cells, int(gid)%w.cells
	m := i * half / w.cells
	for (m+1)*w.cells/half <= i { // rounding
		m++
	}
	return population*half + m
}

// sources calls fn with each cell that one listens to; some come twice.
func (w *network) sources(gid uint64, fn func(gid uint64)) {
	vary := w.connections / spread
	n := w.connections - vary + int(hash(w.seed, gid, 1<<40)%uint64(2*vary+1))
	other := uint64(w.cells)
	if gid >= other {
		other = 0
	}
	for i := range n {
		fn(other + hash(w.seed, gid, 1<<41, uint64(i))%uint64(w.cells))
	}
}

// memory estimates the bytes that all members need: four for each connection, and
// for each cell its clock and what it counts.
func (w *network) memory() float64 {
	return 2 * float64(w.cells) * (4*float64(w.connections) + 64)
}

func (w *network) check() error {
	switch {
	case w.members < 2 || w.members%2 != 0 || w.members > 1024:
		return fmt.Errorf("--members %d is not an even number from 2 to 1024", w.members)
	case w.cells < w.members/2 || w.cells > 1<<30:
		return fmt.Errorf("--cells %d is not %d to 2^30", w.cells, w.members/2)
	case w.connections < 1 || w.connections > 1<<16:
		return fmt.Errorf("--connections %d is not 1 to 65536", w.connections)
	case w.millis < 1 || w.millis > 1<<20:
		return fmt.Errorf("--ms %d is not 1 to 2^20", w.millis)
	}
	return nil
}
