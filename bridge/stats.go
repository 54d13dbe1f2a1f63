package bridge

import (
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
)

// PathStats counts one direction of one path.
type PathStats struct {
	Messages uint64 // messages or transfers that were delivered
	Bytes    uint64
	Errors   uint64 // calls that ended with an error
}

// ChannelStats counts what a channel did, and what it does now.
type ChannelStats struct {
	Direct   Both[PathStats]
	Indirect Both[PathStats]
	Lists    uint64 // gather lists sent
	Repeated uint64 // rounds sent again on the device's request
	Sleeps   uint64 // times a call had to sleep
	// Registered counts transfers that were begun with memory of a region.
	Registered uint64
	// Unaligned counts transfers that were begun with a buffer which does not start at a multiple of
	// 8 bytes.
	Unaligned uint64
	// Corrupt counts transfers whose checksums differed, see ErrCorrupt.
	Corrupt uint64

	// Waiting is the number of calls that wait now, by direction: asleep,
	// for room in a ring, or for their turn behind another call.
	Waiting Both[int]
	// Transfers is the number of transfers under way now, by direction:
	// offered by the host, or moving.
	Transfers Both[int]
	// InFlight is the number of gather lists that were sent and not acked, by
	// the direction of their transfer. A transfer's credit is Info.Window
	// less this. Zero where a driver sends the lists and does not report it.
	InFlight Both[int]
}

// Add adds what another channel did and does.
func (s *ChannelStats) Add(other ChannelStats) {
	for d := range abi.Direction(2) {
		s.Direct.Of(d).add(*other.Direct.Of(d))
		s.Indirect.Of(d).add(*other.Indirect.Of(d))
		*s.Waiting.Of(d) += *other.Waiting.Of(d)
		*s.Transfers.Of(d) += *other.Transfers.Of(d)
		*s.InFlight.Of(d) += *other.InFlight.Of(d)
	}
	s.Lists += other.Lists
	s.Repeated += other.Repeated
	s.Sleeps += other.Sleeps
	s.Registered += other.Registered
	s.Unaligned += other.Unaligned
	s.Corrupt += other.Corrupt
}

func (s *PathStats) add(other PathStats) {
	s.Messages += other.Messages
	s.Bytes += other.Bytes
	s.Errors += other.Errors
}

// Stats counts what a device did since it was opened.
type Stats struct {
	ChannelStats
	Channels  int    // open now
	Blocked   int    // calls that wait now, those of the control channel too
	Wakeups   uint64 // doorbells from the device
	Spurious  uint64 // … that found nothing to take
	Doorbells uint64 // doorbells to the device
	Full      uint64 // messages and offers that found no room in their ring; zero where a driver does not report it
	Dropped   uint64 // messages from the device that were stale
	Faults    uint64 // times the device was latched as faulty
	Resets    uint64
	// LogDropped counts records for Options.Logger that found no room, because
	// its handler did not return.
	LogDropped uint64

	// Regions and RegionBytes are the registered memory there is now.
	Regions     int
	RegionBytes uint64

	// Age is the time since the last heartbeat, also when it is overdue; zero
	// where the clocks are not comparable.
	Age time.Duration
	// Mailboxes describes the rings, by mailbox; nil once the device is lost
	// and where a driver does not show them.
	Mailboxes []MailboxStats
	// Profile is the profile of calls; never nil.
	Profile *Profile
}

// MailboxStats describes the two rings of a mailbox as they are now.
type MailboxStats struct {
	// Slots is the size of each ring.
	Slots int
	// Used is the number of slots that the sender may not write, by direction: their
	// messages are not yet reported as consumed. The rest are the credits of the ring.
	Used Both[int]
}

// Profile describes the calls of all channels of a device since Open, the
// control channel excluded.
type Profile struct {
	Direct   Both[PathProfile]
	Indirect Both[PathProfile]
}

// PathProfile describes one direction of one path: why calls failed, and how
// long those took that delivered. A call takes from its first wait, for its
// turn or for an offer, until it returns.
type PathProfile struct {
	// Errors splits PathStats.Errors by the status that CodeOf knows.
	// Errors[abi.OK] counts errors that no status stands for, as those of a
	// function given to ReceiveFunc.
	Errors [abi.StatusCount]uint64
	// Every: one delivered call in Every was measured, 1 if all were. The fields below are about
	// those.
	Every int
	// Time is what they took together.
	Time time.Duration
	// Bytes is what they delivered together.
	Bytes uint64
	// Durations counts them by eighths of an octave: Durations[n] those of at
	// most 2^((n+1)/8 + DurationFirst) s that took longer than
	// 2^(n/8 + DurationFirst) s. The first and the last also count what is
	// beyond.
	Durations [DurationBuckets]uint64
	// Sizes[n] counts those of at most 2^n bytes that were larger than
	// 2^(n-1) bytes; Sizes[0] also counts those of none.
	Sizes [SizeBuckets]uint64
}

// Shape of a PathProfile's histograms.
const (
	// DurationFirst and durationLast are the binary logarithms of the seconds
	// between which Durations is exact: 60 ns and 16 s.
	DurationFirst, durationLast = -24, 4
	// DurationBuckets is the number of eighths of an octave between them.
	DurationBuckets = 8 * (durationLast - DurationFirst)
	// SizeBuckets reach to the largest transfer, 2^48 bytes.
	SizeBuckets = 49
)
