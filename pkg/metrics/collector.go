package metrics

import (
	"iter"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Options adjusts a collector. The zero value is valid.
type Options struct {
	// Channels adds series of each open channel. Default: none.
	Channels bool
	// MaxSeries bounds the series of the collector, of all devices and
	// channels together. What does not fit is added up under the name
	// Overflow. Default 2,000; less than one device needs has no effect.
	MaxSeries int
}

// Overflow is the label value under which devices and channels that would
// exceed Options.MaxSeries are added up.
const Overflow = "_other"

// One lists a single device under a name, for NewCollector.
func One(name string, dev *nfcomms.Device) func() iter.Seq2[string, *nfcomms.Device] {
	return func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) { yield(name, dev) }
	}
}

// NewCollector returns a collector of what devices lists at each scrape: open
// devices by name, and nil for one that is configured but could not be opened.
// devices is called from the goroutine that gathers; it may be called by
// several at once.
func NewCollector(devices func() iter.Seq2[string, *nfcomms.Device], o Options) prometheus.Collector {
	return &collector{devices: devices, options: o}
}

type collector struct {
	devices func() iter.Seq2[string, *nfcomms.Device]
	options Options
}

var messages = prometheus.NewDesc("nfcomms_messages_total",
	"Messages (path direct) and transfers (path indirect) that were delivered.",
	[]string{"device", "direction", "path"}, nil)

// Describe sends what Collect will send.
func (c *collector) Describe(ch chan<- *prometheus.Desc) { ch <- messages }

// Collect reads every device.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	for name, dev := range c.devices() {
		if dev == nil {
			continue
		}
		s := dev.Stats()
		for d, direction := range []string{"h2d", "d2h"} {
			ch <- prometheus.MustNewConstMetric(messages, prometheus.CounterValue,
				float64(s.Direct[d].Messages), name, direction, "direct")
			ch <- prometheus.MustNewConstMetric(messages, prometheus.CounterValue,
				float64(s.Indirect[d].Messages), name, direction, "indirect")
		}
	}
}
