package proto

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Split cuts a buffer into gather lists. List k is computed from k alone, so that a round can be
// sent again at any time.
type Split struct {
	Address uint64 // bus address of the first byte
	Size    uint64 // bytes, below 2^48
	Runs    bool   // entries are runs; the buffer ends at 2^48 at most
	Most    uint64 // bytes of a list at most, whole pages; 0: what its entries can have
	Sum     bool   // lists ask for a checksum of the bytes; then none is eager
}

// runsEnd is the end of what a run can address.
const runsEnd = 1 << 48

// Split cuts a buffer as host and device agreed to.
func (l *Layout) Split(address, size uint64) Split {
	runs := l.Hello.Capabilities&wire.CapRuns != 0 && address <= runsEnd && size <= runsEnd-address
	return Split{Address: address, Size: size, Runs: runs}
}

// EagerMost returns the most bytes that an eager transfer can have, wherever its buffer starts;
// zero if there are none.
func (l *Layout) EagerMost() int {
	entries := int(l.Hello.Eager)
	if l.Hello.Capabilities&wire.CapRuns != 0 {
		return min(entries, 1) * wire.EagerBytes
	}
	return entries * abi.PageSize
}

// head is the number of bytes before the buffer in its first page.
func (s Split) head() uint64 { return s.Address & (abi.PageSize - 1) }

// reach is the number of bytes from the start of an entry's first page to the end of its last, at
// most.
func (s Split) reach() uint64 {
	if s.Runs {
		return wire.RunPages * abi.PageSize
	}
	return abi.PageSize
}

// list is the number of bytes from the start of a list's first page to the end of its last, at most.
func (s Split) list() uint64 {
	list := wire.ListEntries * s.reach()
	if s.Most > 0 {
		list = min(list, s.Most)
	}
	return list
}

// Lists returns the number of gather lists the buffer needs.
func (s Split) Lists() uint64 {
	if s.Size == 0 {
		return 0
	}
	list := s.list()
	return (s.head() + s.Size + list - 1) / list
}

// UpTo returns the number of bytes in the lists before list k.
func (s Split) UpTo(k uint64) uint64 {
	if k == 0 {
		return 0
	}
	return min(k*s.list()-s.head(), s.Size)
}

// Place returns the gather list and the entry in it that have a byte of the buffer.
func (s Split) Place(at uint64) (list, entry uint32) {
	at += s.head()
	return uint32(at / s.list()), uint32(at % s.list() / s.reach())
}

// Fill writes list k, which must be below Lists(), and returns the length of its header: the number
// of entries, and whether they are runs.
func (s Split) Fill(k uint64, g *wire.Gather) (length int) {
	end := s.UpTo(k + 1)
	length = s.entries(s.UpTo(k), end, g.Entry[:])
	if s.Sum {
		length |= wire.ListSum
	}
	g.Tail = wire.MakeTail(s.Size-end, uint16(k))
	return length
}

// entries writes those of the bytes from at to end, for which there is room, and returns the length
// of a header.
func (s Split) entries(at, end uint64, to []wire.Entry) (length int) {
	n, reach := 0, s.reach()
	for at < end {
		a := s.Address + at
		bytes := min(reach-a&(abi.PageSize-1), end-at)
		if s.Runs {
			to[n] = wire.MakeRun(a, int((a&(abi.PageSize-1)+bytes+abi.PageSize-1)/abi.PageSize))
		} else {
			to[n] = wire.MakeEntry(a, int(bytes))
		}
		at += bytes
		n++
	}
	clear(to[n:])
	if s.Runs {
		n |= wire.ListRuns
	}
	return n
}

// IsEager reports whether the buffer may travel as an eager transfer of at most so many entries; of
// zero none may.
func (s Split) IsEager(entries uint64) bool {
	return entries > 0 && !s.Sum && s.Size <= wire.EagerBytes && s.head()+s.Size <= entries*s.reach()
}

// FillEager writes the size and the entries of an eager transfer and returns the length of its
// header, but for ListD2H.
func (s Split) FillEager(e *wire.Eager) (length int) {
	e.Size = s.Size
	return s.entries(0, s.Size, e.Entry[:])
}
