package meter

import (
	"sync/atomic"

	"github.com/nfcomms/nfcomms/bridge"
)

// Counter counts the calls of one path of one direction of a channel. It is
// safe for concurrent use.
type Counter struct {
	Path *Path // measures them for the device; set before the first ends

	messages, bytes, errors atomic.Uint64
}

// Note counts a call that delivered n bytes, or failed; one that began at start
// is measured, unless start is zero.
func (c *Counter) Note(n int, err error, start Instant) {
	if err != nil {
		c.errors.Add(1)
		c.Path.Failed(err)
		return
	}
	c.messages.Add(1)
	c.bytes.Add(uint64(n))
	if start != 0 {
		c.Path.Delivered(start, n)
	}
}

// Stats returns what was counted.
func (c *Counter) Stats() bridge.PathStats {
	return bridge.PathStats{Messages: c.messages.Load(), Bytes: c.bytes.Load(), Errors: c.errors.Load()}
}

// AddStats adds the counts of one channel to those of others.
func AddStats(to *bridge.ChannelStats, of bridge.ChannelStats) {
	for d := range to.Direct {
		addPath(&to.Direct[d], of.Direct[d])
		addPath(&to.Indirect[d], of.Indirect[d])
		to.Waiting[d] += of.Waiting[d]
		to.InFlight[d] += of.InFlight[d]
		to.Transfers[d] += of.Transfers[d]
	}
	to.Lists += of.Lists
	to.Repeated += of.Repeated
	to.Parked += of.Parked
}

func addPath(to *bridge.PathStats, of bridge.PathStats) {
	to.Messages += of.Messages
	to.Bytes += of.Bytes
	to.Errors += of.Errors
}
