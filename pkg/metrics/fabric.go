package metrics

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/topology"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/fabric"
)

// Metrics of fabrics; all have the label "device".
var (
	fabricDescs = &descs{prefix: "nfcomms_fabric_", label: "device"}

	fabricNodes = fabricDescs.desc("nodes", "Nodes of the fabric, by their state as the device's node knows it.", "state")
	fabricLinks = fabricDescs.desc("links", "Links of the fabric, each counted once, by the worse of what both ends report.", "state")
	fabricNow   = [...]*prometheus.Desc{
		nowWindows:     fabricDescs.desc("windows", "Windows of memory of nodes that there are, which others put to and get from."),
		nowWindowBytes: fabricDescs.desc("window_bytes", "Bytes of those windows."),
	}
	fabricSums = [...]*prometheus.Desc{
		sumBytes:       fabricDescs.desc("link_bytes_total", "Bytes of packets that left by links, once for each link of their way."),
		sumPackets:     fabricDescs.desc("link_packets_total", "Packets that left by links, once for each link of their way."),
		sumRepeated:    fabricDescs.desc("repeated_packets_total", "Packets that links sent again."),
		sumErrors:      fabricDescs.desc("link_errors_total", "What was wrong of what came by links."),
		sumRestarts:    fabricDescs.desc("link_restarts_total", "Times that ends of links were aligned: when they come up, too."),
		sumForwarded:   fabricDescs.desc("forwarded_packets_total", "Packets of others that nodes passed on."),
		sumDetours:     fabricDescs.desc("detour_packets_total", "Packets, of their own too, that left dimension order at nodes, around what is broken."),
		sumUnreachable: fabricDescs.desc("unreachable_packets_total", "Packets that were lost because no way led on."),
		sumBlocked:     fabricDescs.desc("head_of_line_seconds_total", "Time that first packets of inputs of nodes waited for their output, and held up those behind."),
		sumPageHits:    fabricDescs.desc("window_page_hits_total", "Pages of windows that puts and gets found in the cache of those used last."),
		sumPageMisses:  fabricDescs.desc("window_page_misses_total", "Pages of windows that were not in that cache, and looked up."),
	}
)

// Gauges over all nodes.
const (
	nowWindows = iota
	nowWindowBytes
	nowCount
)

// Counters over all nodes.
const (
	sumBytes = iota
	sumPackets
	sumRepeated
	sumErrors
	sumRestarts
	sumForwarded
	sumDetours
	sumUnreachable
	sumBlocked // nanoseconds
	sumPageHits
	sumPageMisses
	sumCount
)

// fabricTime bounds how long a scrape waits for a device that is a node.
const fabricTime = time.Second

// fabricsMost is how many devices have fabric series of their own: 21 each.
const fabricsMost = 32

// NewFabricCollector returns a collector of the fabrics that the devices are nodes of, which
// devices lists as for NewCollector. It has 21 series for a device, however many nodes there are,
// and for 32 devices at most. Those after these by name are added up under the name
// overflow. Counters of a node that began anew continue.
func NewFabricCollector(devices func() iter.Seq2[string, *nfcomms.Device]) prometheus.Collector {
	return &fabricCollector{descs: fabricDescs, devices: devices, tables: map[*nfcomms.Device]*fabricTable{}}
}

type fabricCollector struct {
	*descs
	devices func() iter.Seq2[string, *nfcomms.Device]

	mu     sync.Mutex // guards tables and what they hold
	tables map[*nfcomms.Device]*fabricTable
}

// fabricTable is what is kept of a device between scrapes: counters of nodes as they
// were, and the sums of what they grew by.
type fabricTable struct {
	last [][sumCount]uint64
	sums [sumCount]uint64
}

// fabricPage is what a name shows.
type fabricPage struct {
	nodes, links [topology.States]int
	now          [nowCount]uint64
	sums         [sumCount]uint64
}

// stateOf asks a device.
func stateOf(dev *nfcomms.Device) (fabric.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), fabricTime)
	defer cancel()
	return fabric.Of(dev).State(ctx)
}

// Collect asks every device that is a node of a fabric.
func (c *fabricCollector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pages, kept := map[string]*fabricPage{}, map[*nfcomms.Device]*fabricTable{}
	for _, e := range c.open() {
		state, err := stateOf(e.dev)
		if err != nil {
			continue // it was closed meanwhile, or does not answer
		}
		table := c.tables[e.dev]
		if table == nil {
			table = &fabricTable{last: make([][sumCount]uint64, len(state.Nodes))}
		}
		kept[e.dev] = table
		name := e.name
		if pages[name] == nil && len(pages) >= fabricsMost {
			name = overflow
		}
		if pages[name] == nil {
			pages[name] = &fabricPage{}
		}
		table.grow(&state)
		pages[name].add(&state, table)
	}
	c.tables = kept
	for name, p := range pages {
		p.send(ch, name)
	}
}

// fabricEntry is a device that is a node of a fabric.
type fabricEntry struct {
	name string
	dev  *nfcomms.Device
}

// open lists the devices to ask, in the order of their names.
func (c *fabricCollector) open() (all []fabricEntry) {
	for name, dev := range c.devices() {
		if dev != nil && fabric.Of(dev) != nil {
			all = append(all, fabricEntry{safeName(name), dev})
		}
	}
	slices.SortStableFunc(all, func(a, b fabricEntry) int { return strings.Compare(a.name, b.name) })
	return all
}

// countersOf adds up what a node and its links counted.
func countersOf(n *bridge.FabricNodeState) (c [sumCount]uint64) {
	for i := range n.Links {
		l := &n.Links[i]
		c[sumBytes] += l.BytesSent
		c[sumPackets] += l.Packets
		c[sumRepeated] += l.Repeated
		c[sumErrors] += l.Errors
		c[sumRestarts] += l.Restarts
	}
	c[sumForwarded], c[sumDetours], c[sumUnreachable] = n.Forwarded, n.Detours, n.Unreachable
	c[sumBlocked] = uint64(n.Blocked)
	c[sumPageHits], c[sumPageMisses] = n.PageHits, n.PageMisses
	return c
}

// grow adds what the counters of nodes grew by. One that fell began anew.
func (t *fabricTable) grow(s *bridge.FabricState) {
	for i := range s.Nodes {
		now := countersOf(&s.Nodes[i])
		for j, v := range now {
			if before := t.last[i][j]; v >= before {
				v -= before
			}
			t.sums[j] += v
		}
		t.last[i] = now
	}
}

// add adds a fabric to what a name shows.
func (p *fabricPage) add(s *bridge.FabricState, t *fabricTable) {
	nodes, links := topology.Of(s).Count()
	for i := range nodes {
		p.nodes[i] += nodes[i]
		p.links[i] += links[i]
	}
	for i := range s.Nodes {
		p.now[nowWindows] += s.Nodes[i].Windows
		p.now[nowWindowBytes] += s.Nodes[i].WindowBytes
	}
	for i, v := range t.sums {
		p.sums[i] += v
	}
}

func (p *fabricPage) send(ch chan<- prometheus.Metric, name string) {
	for state := range topology.States {
		ch <- prometheus.MustNewConstMetric(fabricNodes, gauge, float64(p.nodes[state]), name, state.String())
		ch <- prometheus.MustNewConstMetric(fabricLinks, gauge, float64(p.links[state]), name, state.String())
	}
	for i, v := range p.now {
		ch <- prometheus.MustNewConstMetric(fabricNow[i], gauge, float64(v), name)
	}
	for i, v := range p.sums {
		sum := float64(v)
		if i == sumBlocked {
			sum /= float64(time.Second)
		}
		ch <- prometheus.MustNewConstMetric(fabricSums[i], counter, sum, name)
	}
}
