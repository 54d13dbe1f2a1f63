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

// Delivered returns the counter of calls that delivered something, to be read.
func (c *Counter) Delivered() *atomic.Uint64 { return &c.messages }

// Stats returns what was counted.
func (c *Counter) Stats() bridge.PathStats {
	return bridge.PathStats{Messages: c.messages.Load(), Bytes: c.bytes.Load(), Errors: c.errors.Load()}
}
