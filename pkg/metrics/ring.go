//go:build unix

package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/ring"
)

// Metrics of rings between processes; all have the label "ring".
var (
	ringPackets    = ringDesc("packets", "Packets of the ring, which holds one less.")
	ringHead       = ringDesc("head_position", "Packet that a head stands on, counting from 0; -42 before its side has started.", "side")
	ringLag        = ringDesc("lag_packets", "Packets that were published and not yet released.")
	ringGeneration = ringDesc("generations_total", "Times a pair could begin: the first one counts.")
	ringFirstTouch = ringDesc("first_touch_seconds", "What making all memory present took this process; 0 if it did not.")
	ringDescs      = []*prometheus.Desc{ringPackets, ringHead, ringLag, ringGeneration, ringFirstTouch}
)

func ringDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("nfcomms_ring_"+name, help, append([]string{"ring"}, labels...), nil)
}

// NewRingCollector returns a collector of what rings lists at each scrape: those
// that this process created or opened, each by its name, in six series. It reads
// the heads in shared memory, and disturbs nobody; a ring that is closed has no
// series. rings is called by the goroutine that gathers, by several at once if
// several gather.
func NewRingCollector(rings func() iter.Seq[*ring.Ring]) prometheus.Collector {
	return ringCollector(rings)
}

type ringCollector func() iter.Seq[*ring.Ring]

// Describe sends what Collect may send.
func (c ringCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range ringDescs {
		ch <- d
	}
}

// Collect reads every ring.
func (c ringCollector) Collect(ch chan<- prometheus.Metric) {
	for r := range c() {
		s, err := r.Stats()
		if err != nil {
			continue
		}
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{r.Name()}, labels...)...)
		}
		send(ringPackets, gauge, float64(r.Packets()))
		send(ringHead, gauge, float64(s.Writer), "writer")
		send(ringHead, gauge, float64(s.Reader), "reader")
		send(ringLag, gauge, float64(s.Lag))
		send(ringGeneration, counter, float64(s.Generation))
		send(ringFirstTouch, gauge, s.FirstTouch.Seconds())
	}
}
