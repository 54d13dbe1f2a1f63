package trace

import (
	"cmp"
	"slices"
	"time"
)

// Result is what a tracer measured in a time.
type Result struct {
	Spans []Span
	// Lost is how many calls were measured and found no room.
	Lost uint64
	// Wrong is how many had stamps of the device that cannot be true, because its clock
	// jumped or is wrong on purpose: they count as far as they can be true.
	Wrong uint64
	// ClockKnown: the device's clock was compared with the host's. Without it the ways to
	// the device and back count as equally long.
	ClockKnown bool
	// ClockError is how far the comparison may be off: by so much pick-up may be
	// too long and completion too short, or the other way round.
	ClockError time.Duration
}

// Times is a distribution of times.
type Times struct {
	Mean, P50, P99, Max time.Duration
}

// LayerTimes is what one layer takes of the calls of a waterfall.
type LayerTimes struct {
	Layer Layer
	Times
	// Share is the layer's part of the time of all calls together, 0 to 1.
	Share float64
}

// Waterfall describes the calls of one operation layer by layer.
type Waterfall struct {
	Op                string // as in Span
	Receive, Transfer bool

	Calls  int
	Bytes  uint64
	Whole  Times
	Layers []LayerTimes // those that took any time, in the order of a call
}

// Waterfalls sums a result up: one for each operation that there is, in alphabetical order. The means
// of the layers add up to that of the whole; their medians need not.
func (r Result) Waterfalls() []Waterfall {
	byOp := make(map[string][]Span)
	for _, s := range r.Spans {
		byOp[s.Op] = append(byOp[s.Op], s)
	}
	var list []Waterfall
	for op, spans := range byOp {
		list = append(list, waterfall(op, spans))
	}
	slices.SortFunc(list, func(a, b Waterfall) int { return cmp.Compare(a.Op, b.Op) })
	return list
}

// Dominant returns the layer that takes most of the time, the zero value if there is none.
func (w Waterfall) Dominant() LayerTimes {
	if len(w.Layers) == 0 {
		return LayerTimes{}
	}
	return slices.MaxFunc(w.Layers, func(a, b LayerTimes) int { return cmp.Compare(a.Share, b.Share) })
}

// waterfall sums the calls of one operation up.
func waterfall(op string, spans []Span) Waterfall {
	w := Waterfall{Op: op, Receive: spans[0].Receive, Transfer: spans[0].Transfer, Calls: len(spans)}
	times := make([]time.Duration, len(spans))
	for i, s := range spans {
		w.Bytes += uint64(s.Bytes)
		times[i] = s.Whole
	}
	whole := sum(times)
	w.Whole = timesOf(times)
	for l := range Layers {
		for i, s := range spans {
			times[i] = s.Layers[l]
		}
		if part := sum(times); part > 0 {
			w.Layers = append(w.Layers, LayerTimes{Layer: Layer(l), Share: float64(part) / float64(whole), Times: timesOf(times)})
		}
	}
	return w
}

func sum(times []time.Duration) (all time.Duration) {
	for _, t := range times {
		all += t
	}
	return all
}

// timesOf sorts times, and returns their distribution.
func timesOf(times []time.Duration) Times {
	slices.Sort(times)
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1)+0.5)] }
	return Times{Mean: sum(times) / time.Duration(len(times)), P50: at(0.5), P99: at(0.99), Max: at(1)}
}
