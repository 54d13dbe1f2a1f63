package metrics

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// Options adjusts a collector. The zero value is valid.
type Options struct {
	// Channels adds series of each open channel. Default: none.
	Channels bool
	// Trace adds histograms of the layers of calls: one call in so many, of
	// each device from its first scrape on, is measured layer by layer (see
	// [trace.Start]). 0: none. NewCollector panics if it is negative
	// or over trace.MaxEvery.
	Trace int
	// MaxSeries bounds the series of the collector, of all devices and channels together; one sum
	// of devices is always shown. Series that do not fit are added up under the name "_other":
	// first channels, in the order in which they appear, then devices, the last by name first.
	// Default: 2000, which is enough for six devices, or two with Trace.
	MaxSeries int
}

// defaultMaxSeries is the default of Options.MaxSeries.
const defaultMaxSeries = 2000

// overflow is the label value under which devices and channels that would
// exceed Options.MaxSeries are added up.
const overflow = "_other"

// One lists a single device under a name, for NewCollector.
func One(name string, dev *nfcomms.Device) func() iter.Seq2[string, *nfcomms.Device] {
	return func() iter.Seq2[string, *nfcomms.Device] {
		return func(yield func(string, *nfcomms.Device) bool) { yield(name, dev) }
	}
}

// NewCollector returns a collector of what devices lists at each scrape: open
// devices by name, and nil for one that is configured but could not be opened.
// devices is called by the goroutine that gathers, by several at once if
// several gather.
func NewCollector(devices func() iter.Seq2[string, *nfcomms.Device], o Options) prometheus.Collector {
	if o.MaxSeries <= 0 {
		o.MaxSeries = defaultMaxSeries
	}
	if o.Trace < 0 || o.Trace > trace.MaxEvery {
		panic(fmt.Sprintf("metrics: trace one call in %d, 0 to %d", o.Trace, trace.MaxEvery))
	}
	return &collector{
		devices: devices, options: o,
		tables: map[*nfcomms.Device]*channelTable{}, layers: map[*nfcomms.Device]*layerTable{},
	}
}

type collector struct {
	devices func() iter.Seq2[string, *nfcomms.Device]
	options Options

	mu     sync.Mutex // guards what follows
	tables map[*nfcomms.Device]*channelTable
	layers map[*nfcomms.Device]*layerTable
}

// Describe sends what Collect may send.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, f := range families {
		ch <- f.desc
	}
}

// Collect reads every device.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	l := layout{budget: c.options.MaxSeries, rest: overflowSeries(c.options.Trace > 0)}
	listed := map[*nfcomms.Device]bool{}
	for s := range c.snapshots() {
		listed[s.dev] = true
		l.place(s)
	}
	c.endLayers(listed)
	if c.options.Channels {
		c.addChannels(&l)
	}
	for _, p := range l.pages {
		p.send(ch)
	}
	if l.others != nil {
		l.others.scrape().send(ch)
	}
}

// snapshots reads the devices in the order of their names.
func (c *collector) snapshots() iter.Seq[*snapshot] {
	type entry struct {
		name string
		dev  *nfcomms.Device
	}
	var all []entry
	for name, dev := range c.devices() {
		all = append(all, entry{safeName(name), dev})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return func(yield func(*snapshot) bool) {
		for _, e := range all {
			s := read(e.name, e.dev)
			if e.dev != nil {
				s.layers = c.layersOf(e.dev)
			}
			if !yield(s) {
				return
			}
		}
	}
}
