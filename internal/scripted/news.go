package scripted

import (
	"math/bits"
	"sync/atomic"

	"github.com/nfcomms/nfcomms/internal/wire"
)

// island is how the device finds messages of the host for one island, where the host reports them
// (wire.CapNews). The device's lock guards it.
type island struct {
	watched uint64 // 1 + the mailbox that needs no bit; 0: none. The host has a copy
	again   uint64 // mailboxes to look at once more
}

// reports reports whether the host says where it put a message.
func (a *area) reports() bool {
	h := &a.page().HostHello
	return wire.Header(atomic.LoadUint64(&h.Header)).Type() == wire.TypeHello && h.Hello().Capabilities&wire.CapNews != 0
}

// lookLocked takes what there is in the mailboxes of an island that have news. Must hold mu.
func (s *Device) lookLocked(number int) (worked bool) {
	per, reports := s.shape.Mailboxes/s.shape.Islands, s.area.reports()
	ends, look, had := s.area.mailboxes[number*per:][:per], ^uint64(0), uint64(0)
	if reports {
		look = s.area.news(number)
	}
	for on := range ends {
		if bit := uint64(1) << (on & 63); look&bit != 0 && s.drainLocked(&ends[on]) {
			had |= bit
		}
	}
	if reports {
		s.area.looked(number, had, per)
	}
	return had != 0
}

// news takes the bits of the mailboxes to look at.
func (a *area) news(number int) uint64 {
	i := &a.islands[number]
	look := i.again
	i.again = 0
	if i.watched != 0 {
		look |= 1 << (i.watched - 1)
	}
	return look | atomic.SwapUint64(&a.page().Island[number].News, 0) // SYNC: news
}

// looked notes which mailboxes had slots, and may have more. The one that alone had some is watched from now
// on, and the one before it looked at again: its host may not have set its bit.
func (a *area) looked(number int, had uint64, per int) {
	i := &a.islands[number]
	i.again = had
	if on := uint64(bits.TrailingZeros64(had)) + 1; per <= 64 && bits.OnesCount64(had) == 1 && on != i.watched {
		atomic.StoreUint64(&a.page().Island[number].Watched, on) // SYNC: news
		if i.watched != 0 {
			i.again |= 1 << (i.watched - 1)
		}
		i.watched = on
	}
}
