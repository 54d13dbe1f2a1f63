package proto

import "github.com/nfcomms/nfcomms/bridge/abi"

// Split cuts a buffer into gather lists. List k is computed from k alone, so that a round can be
// sent again at any time.
type Split struct {
	Address uint64 // bus address of the first byte
	Size    uint64 // bytes, below 2^48
}

// head is the number of bytes before the buffer in its first page.
func (s Split) head() uint64 { return s.Address & (abi.PageSize - 1) }

// Lists returns the number of gather lists the buffer needs.
func (s Split) Lists() uint64 {
	if s.Size == 0 {
		return 0
	}
	pages := (s.head() + s.Size + abi.PageSize - 1) / abi.PageSize
	return (pages + abi.ListEntries - 1) / abi.ListEntries
}

// UpTo returns the number of bytes in the lists before list k.
func (s Split) UpTo(k uint64) uint64 {
	if k == 0 {
		return 0
	}
	return min(k*abi.ListEntries*abi.PageSize-s.head(), s.Size)
}

// Fill writes list k, which must be below Lists(), and returns its number of entries.
func (s Split) Fill(k uint64, g *abi.Gather) int {
	at, end := s.UpTo(k), s.UpTo(k+1)
	n := 0
	for at < end {
		a := s.Address + at
		length := min(abi.PageSize-a&(abi.PageSize-1), end-at)
		g.Entry[n] = abi.MakeEntry(a, int(length))
		at += length
		n++
	}
	clear(g.Entry[n:])
	g.Tail = abi.MakeTail(s.Size-end, uint16(k))
	return n
}
