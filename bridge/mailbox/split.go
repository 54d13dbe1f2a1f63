package mailbox

import "github.com/nfcomms/nfcomms/bridge/abi"

// split cuts a buffer into gather lists. It is pure, and list k is computed
// from k alone, so that a round can be sent again at any time.
type split struct {
	addr, size uint64
}

// head is the number of bytes before the buffer in its first page.
func (s split) head() uint64 { return s.addr & (abi.PageSize - 1) }

// lists returns the number of gather lists the buffer needs.
func (s split) lists() uint64 {
	pages := (s.head() + s.size + abi.PageSize - 1) / abi.PageSize
	if s.size == 0 {
		pages = 0
	}
	return (pages + abi.ListEntries - 1) / abi.ListEntries
}

// upTo returns the number of bytes in the lists before list k.
func (s split) upTo(k uint64) uint64 {
	if k == 0 {
		return 0
	}
	return min(k*abi.ListEntries*abi.PageSize-s.head(), s.size)
}

// fill writes list k, which must be below lists(), and returns its number of
// entries.
func (s split) fill(k uint64, g *abi.Gather) int {
	at, end := s.upTo(k), s.upTo(k+1)
	n := 0
	for at < end {
		a := s.addr + at
		room := abi.PageSize - a&(abi.PageSize-1)
		length := min(room, end-at)
		g.Entry[n] = abi.MakeEntry(a, int(length))
		at += length
		n++
	}
	clear(g.Entry[n:])
	g.Tail = abi.MakeTail(s.size-end, uint16(k))
	return n
}
