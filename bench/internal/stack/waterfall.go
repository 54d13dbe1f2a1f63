package stack

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/papers"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
	"github.com/nfcomms/nfcomms/pkg/nfcomms/trace"
)

// waterfallChunks is how many chunks of a size are traced.
const waterfallChunks = 64

// Waterfall says where the time of chunks of one size goes, one at a time from the heap.
type Waterfall struct {
	Size      int     `json:"size"`
	Direction string  `json:"direction"`
	Calls     int     `json:"calls"`
	Whole     TimeNS  `json:"whole"`
	Dominant  string  `json:"dominant"`
	Layers    []Layer `json:"layers"`    // their means add up to that of the whole
	TheoryNS  int64   `json:"theory_ns"` // a call and memcpy, as the curves have it; 0 where they have no such size
	Modelled  Cut     `json:"modelled"`
}

// Cut is how a card of the papers would cut a chunk that begins at a page.
type Cut struct {
	Pages   uint64 `json:"page_entries"`
	Lists   uint64 `json:"lists"`
	Packets uint64 `json:"packets"` // of PCI Express
}

// cutPayload is the bytes of a packet, as processors support them.
const cutPayload = 256

func cutOf(size int) Cut {
	t := papers.NewCard(papers.Lanes{Generation: 3, Width: 8}, cutPayload).Send(papers.Wire{}, uint64(size))
	return Cut{t.Entries, t.Lists, papers.Packets(uint64(size), 0, cutPayload)}
}

// TimeNS is a distribution of times in nanoseconds.
type TimeNS struct {
	Mean   int64 `json:"mean_ns"`
	Median int64 `json:"median_ns"`
	P99    int64 `json:"p99_ns"`
}

// Layer is what one layer takes.
type Layer struct {
	Layer string  `json:"layer"`
	Share float64 `json:"share"` // of the time of all calls together, 0 to 1
	TimeNS
	index trace.Layer
}

// waterfalls traces some chunks of each size, apart from what is timed.
func (r *stackRig) waterfalls(ctx context.Context, dev *nfcomms.Device) (list []Waterfall, clock time.Duration, err error) {
	t, err := trace.Start(ctx, dev, trace.Options{Every: 1, Keep: 2 * waterfallChunks})
	if err != nil {
		return nil, 0, err
	}
	defer t.Close()
	for _, size := range r.plan.Sizes {
		if _, _, _, err := r.paths[0].run(ctx, size, min(waterfallChunks*size, max(r.plan.Payload, size)), uint64(size)); err != nil {
			return nil, 0, err
		}
		trace := t.Take(ctx)
		clock = max(clock, trace.ClockError)
		for _, w := range slices.Backward(trace.Waterfalls()) { // to the device first
			list = append(list, stackWaterfall(size, w))
		}
	}
	return list, clock, nil
}

func stackWaterfall(size int, w trace.Waterfall) Waterfall {
	ns := func(t trace.Times) TimeNS { return TimeNS{int64(t.Mean), int64(t.P50), int64(t.P99)} }
	s := Waterfall{Size: size, Direction: compare.Directions[0], Calls: w.Calls, Whole: ns(w.Whole), Dominant: w.Dominant().Layer.String(), Modelled: cutOf(size)}
	if w.Receive {
		s.Direction = compare.Directions[1]
	}
	for _, l := range w.Layers {
		s.Layers = append(s.Layers, Layer{Layer: l.Layer.String(), Share: l.Share, TimeNS: ns(l.Times), index: l.Layer})
	}
	return s
}

// addTheory gives each waterfall the time that the curve of its direction has as theory.
func (r *Report) addTheory() {
	for i := range r.Waterfalls {
		f := &r.Waterfalls[i]
		if c := r.At(Sync, f.Direction); c != nil {
			for _, p := range c.Points {
				if p.Size == f.Size {
					f.TheoryNS = int64(float64(p.Size) / p.TheoryGBs)
				}
			}
		}
	}
}

// tableOfLayers writes the medians of the layers, a row for each size and direction.
func (r *Report) tableOfLayers(w io.Writer) {
	fmt.Fprintf(w, "\nWhere the time of a chunk goes, synchronous, heap, median and share of each layer; clocks compared to ±%s; page entries, lists and packets of %d B are modelled\n", units.Duration(r.ClockErrorNS), cutPayload)
	t := texttable.Numbers("chunk", "direction", "theory", "median", "p99", "most of it", "pages", "lists", "packets", "layers")
	for _, f := range r.Waterfalls {
		var layers []string
		for _, l := range f.Layers {
			if l.Share >= 0.005 {
				layers = append(layers, fmt.Sprintf("%s %s %.0f %%", l.Layer, units.Duration(float64(l.Median)), 100*l.Share))
			}
		}
		t.Add(cli.SizeText(f.Size), f.Direction, units.Duration(float64(f.TheoryNS)), units.Duration(float64(f.Whole.Median)), units.Duration(float64(f.Whole.P99)), f.Dominant,
			fmt.Sprint(f.Modelled.Pages), fmt.Sprint(f.Modelled.Lists), fmt.Sprint(f.Modelled.Packets), strings.Join(layers, ", "))
	}
	t.Write(w)
}
