package shape

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/wire"
)

// Shape is what the SHAPE registers of a card say of an epoch. Zero: as the device likes.
type Shape struct {
	Channels, Mailboxes, Islands, Slots, Window uint32

	TimeoutMS uint32
	EMEM      uint64 // bytes, a multiple of a page
}

// Options are the options of an address that make a shape.
var Options = []string{"managers", "islands", "channels", "slots", "window", "emem", "target-timeout"}

// waitMax is what a register of milliseconds can hold.
const waitMax = (1<<32 - 1) * time.Millisecond

// Parse reads Options. Errors wrap bridge.ErrInvalid, and name what is allowed.
func Parse(a bridge.Address) (s Shape, err error) {
	for _, o := range []struct {
		name   string
		to     *uint32
		limits bridge.Limits[int]
	}{
		{"managers", &s.Mailboxes, bridge.Limits[int]{Min: 1, Max: wire.MailboxesMax}},
		{"islands", &s.Islands, bridge.Limits[int]{Min: 1, Max: wire.IslandsMax}},
		{"channels", &s.Channels, bridge.Limits[int]{Min: 1, Max: abi.ChannelsMax}},
		{"slots", &s.Slots, bridge.Limits[int]{Min: wire.SlotsMin, Max: wire.SlotsMax, Power: true}},
		{"window", &s.Window, bridge.Limits[int]{Min: 1, Max: wire.WindowMax, Power: true}},
	} {
		n := 0
		if err := a.Count(o.name, &n, o.limits); err != nil {
			return s, err
		}
		*o.to = uint32(n)
	}
	var wait time.Duration
	if err := a.Duration("target-timeout", &wait, bridge.Limits[time.Duration]{Max: waitMax}); err != nil {
		return s, err
	}
	s.TimeoutMS = uint32((wait + time.Millisecond - 1) / time.Millisecond)
	return s, a.Size("emem", &s.EMEM, bridge.Limits[uint64]{Min: abi.PageSize, Max: 1 << abi.MemoryShift, Step: abi.PageSize})
}

// Registers returns what the SHAPE registers hold, from the first to the last.
func (s Shape) Registers() [7]uint32 {
	return [7]uint32{s.Channels, s.Mailboxes, s.Islands, s.Slots, s.Window, s.TimeoutMS, uint32(s.EMEM / abi.PageSize)}
}
