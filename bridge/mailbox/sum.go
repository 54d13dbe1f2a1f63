package mailbox

import (
	"fmt"
	"hash/crc32"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/fault"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// castagnoli is the polynomial that processors have an instruction for.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumPart is how much is summed before the caller sees what became of the transfer, in bytes.
const sumPart = 256 << 10

// Verify has the later transfers of the channel, both ways, compared by a CRC32C: of the caller's
// buffer here, and of the device's memory there. A transfer whose sums differ is aborted, and its error
// is ErrCorrupt. ErrNotSupported if the device has no checksums, or another host is at the far end.
func (c *channel) Verify(on bool) error {
	if on && (c.relay || c.ep.Hello.Capabilities&wire.CapSum == 0) {
		return fmt.Errorf("checksums of transfers: %w", bridge.ErrNotSupported)
	}
	c.verify.Store(on)
	return nil
}

// sumUpTo adds the bytes of the buffer before an offset to the sum; false if they are in it. A page that
// cannot be reached is noted. Must hold queue.
func (x *transfer) sumUpTo(end uint64) bool {
	if !x.ledger.Cut.Sum || x.summed >= end {
		return false
	}
	part := x.buffer[x.summed:min(end, x.summed+sumPart)]
	if !fault.Try(func() { x.sum = crc32.Update(x.sum, castagnoli, part) }) {
		x.unreached(x.summed)
		return true
	}
	x.summed += uint64(len(part))
	return true
}

// add adds the next bytes of a transfer to the device to the sum, while the device moves them; false
// if there are none. Must hold queue.
func (x *transfer) add() bool { return x.h.dir == abi.H2D && x.sumUpTo(x.ledger.Cut.Size) }

// verify compares the sums of a transfer of which all has moved. Must hold queue.
func (x *transfer) verify() error {
	for x.sumUpTo(x.ledger.Cut.Size) {
		if x.bad != nil {
			return x.bad
		}
	}
	if !x.ledger.Cut.Sum || x.sum == x.theirs {
		return nil
	}
	x.h.corrupt.Add(1)
	return fmt.Errorf("%w: CRC32C %#08x of the host's bytes, %#08x of the device's", bridge.ErrCorrupt, x.sum, x.theirs)
}

// verified ends a transfer of which all has moved, but for its commit: it takes what is still to be copied,
// and compares the sums. With an error the transfer is aborted. Must hold queue.
func (x *transfer) verified() error {
	err := x.takeRest()
	if err == nil {
		err = x.verify()
	}
	if err == nil {
		return nil
	}
	if aborted := x.abort(err); aborted != nil {
		return aborted
	}
	return err
}
