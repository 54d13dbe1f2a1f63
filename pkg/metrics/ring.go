//go:build unix

package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Metrics of rings between processes; all have the label "ring".
var (
	ringDescs = &descs{prefix: "nfcomms_ring_", label: "ring"}

	ringPackets    = ringDescs.desc("packets", "Packets of the ring, which holds one less.")
	ringHead       = ringDescs.desc("head_position", "Packet that a head stands on, counting from 0; -42 before its side has started.", "side")
	ringLag        = ringDescs.desc("lag_packets", "Packets that were published and not yet released.")
	ringGeneration = ringDescs.desc("generations_total", "Times a pair could begin: the first one counts.")
	ringFirstTouch = ringDescs.desc("first_touch_seconds", "What making all memory present took this process; 0 if it did not.")
)

// NewRingCollector returns a collector of what rings lists at each scrape: those
// that this process created or opened, each by its name, in six series. It reads
// the heads in shared memory, and disturbs nobody; a ring that is closed has no
// series. rings is called by the goroutine that gathers, by several at once if
// several gather.
func NewRingCollector(rings func() iter.Seq[*ring.Ring]) prometheus.Collector {
	each := func(yield func(string, *ring.Ring) bool) {
		for r := range rings() {
			if !yield(r.Name(), r) {
				return
			}
		}
	}
	return listed[*ring.Ring]{ringDescs, func() iter.Seq2[string, *ring.Ring] { return each }, readRing}
}

func readRing(r *ring.Ring, n named) {
	s, err := r.Stats()
	if err != nil {
		return
	}
	n.send(ringPackets, gauge, float64(r.Packets()))
	n.send(ringHead, gauge, float64(s.Writer), "writer")
	n.send(ringHead, gauge, float64(s.Reader), "reader")
	n.send(ringLag, gauge, float64(s.Lag))
	n.send(ringGeneration, counter, float64(s.Generation))
	n.send(ringFirstTouch, gauge, s.FirstTouch.Seconds())
}
