package metrics

import (
	"context"
	"time"

	"github.com/nfcomms/nfcomms/bridge/abi"
	"github.com/nfcomms/nfcomms/internal/meter"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// traceTime bounds how long a scrape waits for a device whose calls it begins to trace. Tests on a
// busy machine need more.
var traceTime = 100 * time.Millisecond

// layerTable is what the calls of a device took in each layer, since somebody first scraped it.
type layerTable struct {
	tracer *trace.Tracer
	times  [2][len(paths)][trace.Layers]meter.Path // by direction and path

	lost, wrong uint64 // guarded by the collector
}

// layers are the sums of a layerTable, or of several.
type layers struct {
	times       [2][len(paths)][trace.Layers]nfcomms.PathProfile
	lost, wrong uint64
	clockError  time.Duration // zero where it is not known
}

// layersOf returns what is known of a device's layers, nil without Options.Trace. The first
// scrape of a device begins to trace its calls; one that cannot be traced now is tried again.
func (c *collector) layersOf(dev *nfcomms.Device) *layers {
	if c.options.Trace == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceTime)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.layers[dev]
	if t == nil {
		tracer, err := trace.Start(ctx, dev, trace.Options{Every: c.options.Trace})
		if err != nil {
			return nil
		}
		t = &layerTable{tracer: tracer}
		c.layers[dev] = t
	}
	return t.update(t.tracer.Take(ctx))
}

// endLayers ends the tracers of devices that are listed no more.
func (c *collector) endLayers(listed map[*nfcomms.Device]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for dev, t := range c.layers {
		if !listed[dev] {
			t.tracer.Close()
			delete(c.layers, dev)
		}
	}
}

// update adds the calls of a result, each to all layers of its operation, so that their means add
// up to that of the call.
func (t *layerTable) update(r trace.Result) *layers {
	for i := range r.Spans {
		s := &r.Spans[i]
		direction, path := abi.H2D, 0
		if s.Receive {
			direction = abi.D2H
		}
		if s.Transfer {
			path = 1
		}
		for l, took := range s.Layers {
			t.times[direction][path][l].Took(took, s.Bytes)
		}
	}
	t.lost += r.Lost
	t.wrong += r.Wrong
	all := &layers{lost: t.lost, wrong: t.wrong, clockError: r.ClockError}
	all.each(func(d, p, l int, to *nfcomms.PathProfile) { t.times[d][p][l].AddTo(to) })
	return all
}

// each calls fn for each layer of each operation.
func (a *layers) each(fn func(direction, path, layer int, p *nfcomms.PathProfile)) {
	for d := range a.times {
		for p := range a.times[d] {
			for l := range a.times[d][p] {
				fn(d, p, l, &a.times[d][p][l])
			}
		}
	}
}

// merge adds those of another device.
func (a *layers) merge(b *layers) {
	a.lost += b.lost
	a.wrong += b.wrong
	a.clockError = max(a.clockError, b.clockError)
	a.each(func(d, p, l int, to *nfcomms.PathProfile) { mergeProfile(to, &b.times[d][p][l]) })
}

// showLayers adds the layers that took any time.
func (s *snapshot) showLayers(out *scrape) {
	if s.layers == nil {
		return
	}
	out.count(fTraceLost, s.layers.lost, s.name)
	out.count(fTraceWrong, s.layers.wrong, s.name)
	if s.layers.clockError > 0 {
		out.add(fClockError, s.layers.clockError.Seconds(), s.name)
	}
	s.layers.each(func(d, p, l int, of *nfcomms.PathProfile) {
		if of.Time > 0 {
			out.durations(fLayerTime, of, layerBuckets, s.name, abi.Direction(d).String(), paths[p], trace.Layer(l).String())
		}
	})
}
