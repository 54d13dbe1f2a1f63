package mailbox

import (
	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fault"
)

// stage has the bytes of the buffer pass through memory that the device reaches.
func (x *transfer) stage(s Stager, data []byte) (address uint64, err error) {
	x.h.mailbox.ep.asks()
	mem, address, err := s.Stage(len(data))
	x.h.mailbox.ep.answered()
	if err != nil {
		x.letGo()
		return 0, err
	}
	x.data, x.staged = data, mem
	return address, nil
}

// A transfer is copied in parts: the device moves one while the caller copies the next to it, or the
// one before from it. Each may have to wake the device; an eager transfer is one.
const (
	partLeast = 128 << 10
	partMost  = 2 << 20
	parts     = 16 // unless they were smaller or larger
)

// partOf returns the size of a part of so many bytes: whole pages.
func partOf(size uint64) uint64 {
	return min(max(size/parts, partLeast), partMost) &^ (abi.PageSize - 1)
}

// paced reports whether lists wait until their bytes are where the device reads them.
func (x *transfer) paced() bool { return x.staged != nil && x.h.dir == abi.H2D }

// fill copies the bytes of the next list to where the device reads them, or notes that some cannot
// be reached; false if all are there. Must hold queue.
func (x *transfer) fill() bool {
	l := &x.ledger
	if x.filled == l.Lists || !x.paced() {
		x.filled = l.Lists
		return false
	}
	at, end := l.Cut.UpTo(x.filled), l.Cut.UpTo(x.filled+1)
	if n, err := x.h.mailbox.ep.dev.stager.Fill(x.staged[at:end], x.data[at:end]); err != nil {
		x.unreached(at + uint64(n))
		return true
	}
	x.filled++
	return true
}

// unreached notes that the byte at an offset of the buffer cannot be copied. Must hold queue.
func (x *transfer) unreached(at uint64) {
	cut := x.ledger.Cut
	list, entry := cut.Place(at)
	x.bad = &bridge.TransferError{Processed: at, Outstanding: cut.Size - at, List: list, Entry: entry, Err: bridge.ErrDMA}
}

// take copies the bytes of the next list that the device has moved to where they belong, or notes
// that some cannot be reached; false if there are none. Must hold queue.
func (x *transfer) take() bool {
	if x.staged == nil || x.h.dir != abi.D2H {
		return false
	}
	x.mu.Lock()
	moved := x.taken < x.ledger.Acked
	x.mu.Unlock()
	if moved {
		x.takeUpTo(x.taken + 1)
	}
	return moved
}

// takeRest copies all bytes that take has not copied, of a transfer to the host that has arrived.
// The error is that of a page that cannot be reached. Must hold queue.
func (x *transfer) takeRest() error {
	if x.staged != nil && x.h.dir == abi.D2H {
		x.takeUpTo(x.ledger.Lists)
	}
	return x.bad
}

// takeUpTo copies the bytes of lists before one, or notes that some cannot be reached. Must hold queue.
func (x *transfer) takeUpTo(list uint64) {
	at, end := x.ledger.Cut.UpTo(x.taken), x.ledger.Cut.UpTo(list)
	if n, err := fault.Copy(x.data[at:end], x.staged[at:end]); err != nil {
		x.unreached(at + uint64(n))
		return
	}
	x.taken = list
}
