package metrics

import (
	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// sum is a snapshot of no device, to which others are merged.
func sum(name string) *snapshot { return &snapshot{name: name, failures: map[string]int{}} }

// merge adds a snapshot to a sum. A value that cannot be added up shows the worst.
func (s *snapshot) merge(b *snapshot) {
	for i, n := range b.states {
		s.states[i] += n
	}
	for code, n := range b.failures {
		s.failures[code] += n
	}
	if b.stats.Profile == nil {
		return
	}
	for i, level := range b.levels {
		s.levels[i] = max(s.levels[i], level)
	}
	s.age = max(s.age, b.age)
	s.info.Window = max(s.info.Window, b.info.Window)
	if b.layers != nil {
		if s.layers == nil {
			s.layers = new(layers)
		}
		s.layers.merge(b.layers)
	}
	mergeStats(&s.stats, &b.stats)
	mergeHealth(&s.health, &b.health)
}

func mergeHealth(a, b *nfcomms.Health) {
	a.Beat += b.Beat
	a.Processes += b.Processes
	a.Messages += b.Messages
	a.Bytes += b.Bytes
	a.Dropped += b.Dropped
	a.Queued += b.Queued
}

func mergeStats(a, b *nfcomms.Stats) {
	a.ChannelStats.Add(b.ChannelStats)
	a.Channels += b.Channels
	a.Wakeups += b.Wakeups
	a.Spurious += b.Spurious
	a.Doorbells += b.Doorbells
	a.Full += b.Full
	a.Dropped += b.Dropped
	a.Faults += b.Faults
	a.Resets += b.Resets
	a.LogDropped += b.LogDropped
	a.Regions += b.Regions
	a.RegionBytes += b.RegionBytes
	a.Mailboxes = append(a.Mailboxes, b.Mailboxes...)
	if a.Profile == nil {
		a.Profile = new(nfcomms.Profile)
	}
	for d := range abi.Direction(2) {
		mergeProfile(a.Profile.Direct.Of(d), b.Profile.Direct.Of(d))
		mergeProfile(a.Profile.Indirect.Of(d), b.Profile.Indirect.Of(d))
	}
}

func mergeProfile(a, b *nfcomms.PathProfile) {
	a.Every = max(a.Every, b.Every)
	a.Time += b.Time
	a.Bytes += b.Bytes
	mergeCounts(a.Errors[:], b.Errors[:])
	mergeCounts(a.Durations[:], b.Durations[:])
	mergeCounts(a.Sizes[:], b.Sizes[:])
}

func mergeCounts(a, b []uint64) {
	for i, n := range b {
		a[i] += n
	}
}
