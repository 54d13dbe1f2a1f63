package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// Blocks are those of firmware/nfc_group.h.
const (
	version     = 1
	maxCall     = 64 << 20
	headSize    = 16
	packageSize = 8
	unit        = 8 // a package's bytes are filled up to a multiple of it
)

// call is what a process asks for.
type call uint32

const (
	callJoin call = 1 + iota
	callExchange
	callBarrier
	callAllgather
	callFlush
	callShrink
	callLeave
)

// reasons of a failed call, by number.
var reasons = []error{group.ErrLate, group.ErrGone, group.ErrRevoked, group.ErrDisagree, group.ErrBroken,
	group.ErrRank, group.ErrEventSize, group.ErrTooLarge}

const firstReason = 1000

func reasonOf(err error) uint32 {
	broken := errors.Is(err, group.ErrBroken) // such an error has the first one's reason, too
	for i, reason := range reasons {
		if errors.Is(err, reason) && (!broken || reason == group.ErrBroken) {
			return firstReason + uint32(i)
		}
	}
	return firstReason + uint32(len(reasons))
}

// parse sets s.packages to those of a call. They stay where they are.
func (s *server) parse(block []byte) (call, error) {
	if len(block) < headSize {
		return 0, fmt.Errorf("%w: %d bytes", ErrCall, len(block))
	}
	what, count := call(binary.LittleEndian.Uint32(block)), binary.LittleEndian.Uint32(block[4:])
	if v := binary.LittleEndian.Uint32(block[8:]); what == callJoin && v != version {
		return 0, fmt.Errorf("%w: version %d, and not %d", ErrCall, v, version)
	}
	s.packages = s.packages[:0]
	for block = block[headSize:]; len(block) >= packageSize; {
		rank, size := binary.LittleEndian.Uint32(block), uint64(binary.LittleEndian.Uint32(block[4:]))
		block = block[packageSize:]
		filled := (size + unit - 1) &^ (unit - 1)
		if filled > uint64(len(block)) {
			return 0, fmt.Errorf("%w: a package of %d bytes, of which %d are there", ErrCall, size, len(block))
		}
		s.packages = append(s.packages, group.Package{Rank: int(int32(rank)), Data: block[:size:size]})
		block = block[filled:]
	}
	if len(block) > 0 || uint64(len(s.packages)) != uint64(count) {
		return 0, fmt.Errorf("%w: %d packages and %d bytes, and not %d packages", ErrCall, len(s.packages), len(block), count)
	}
	return what, nil
}

// answer writes the result of a call, or the reason why it failed and the ranks that it is about.
func (s *server) answer(in []group.Package, err error) error {
	what, size := uint32(0), uint32(s.g.Size())
	if err != nil {
		what, in = reasonOf(err), nil
		if e := (*group.Error)(nil); errors.As(err, &e) {
			for _, r := range e.Ranks {
				in = append(in, group.Package{Rank: r})
			}
		}
	}
	if s.flushed {
		size = 0
	}
	s.out = binary.LittleEndian.AppendUint32(s.out[:0], what)
	s.out = binary.LittleEndian.AppendUint32(s.out, uint32(len(in)))
	s.out = binary.LittleEndian.AppendUint32(s.out, uint32(s.g.Rank()))
	s.out = binary.LittleEndian.AppendUint32(s.out, size)
	for _, p := range in {
		if uint64(len(p.Data)) > math.MaxUint32 {
			return fmt.Errorf("%w: %d bytes of rank %d", group.ErrTooLarge, len(p.Data), p.Rank)
		}
		s.out = binary.LittleEndian.AppendUint32(s.out, uint32(p.Rank))
		s.out = binary.LittleEndian.AppendUint32(s.out, uint32(len(p.Data)))
		s.out = append(s.out, p.Data...)
		s.out = append(s.out, make([]byte, -len(p.Data)&(unit-1))...)
	}
	return nil
}

func byRank(all [][]byte) []group.Package {
	in := make([]group.Package, len(all))
	for i, data := range all {
		in[i] = group.Package{Rank: i, Data: data}
	}
	return in
}

func stepsByRank(steps []uint64) []group.Package {
	in := make([]group.Package, len(steps))
	for i, n := range steps {
		in[i] = group.Package{Rank: i, Data: binary.LittleEndian.AppendUint64(nil, n)}
	}
	return in
}
