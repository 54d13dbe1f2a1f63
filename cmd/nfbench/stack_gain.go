package main

import (
	"context"
	"fmt"
	"io"

	"github.com/nfcomms/nfcomms/internal/texttable"
)

// What the gain of depth is measured with.
var gainDepths = []int{2, 4, 8}

const (
	gainSize    = 1 << 20      // of the largest chunk
	gainMemory  = 8 * gainSize // of the deepest group
	gainPayload = 8 << 20      // each way in a test, at most
)

// StackGain is what chunks at once gain over one at a time, of the same chunks through the same
// channels.
type StackGain struct {
	Size      int    `json:"size"`
	Direction string `json:"direction"`
	// SyncGBs is one chunk at a time.
	SyncGBs float64         `json:"synchronous_gb_s"` // of a group of the first depth
	Depths  []StackGainStep `json:"depths"`
}

// StackGainStep is one depth, as rates over that of one chunk at a time.
type StackGainStep struct {
	Depth    int     `json:"depth"`
	Futures  float64 `json:"overlapped"`
	Together float64 `json:"begun_together"`
}

// best returns the larger gain.
func (s StackGainStep) best() float64 { return max(s.Futures, s.Together) }

// stackGainTests are the paths of one depth.
type stackGainTests struct {
	depth                   int
	sync, futures, together *stackPath
}

// measureGains runs the tests of all depths in turn, and leaves out the first of each.
func (r *stackRig) measureGains(ctx context.Context) error {
	for _, depth := range gainDepths {
		path := func(mode string) *stackPath { return r.path(mode, memoryHeap, depth, r.sent, r.got) }
		r.gains = append(r.gains, &stackGainTests{depth, path(stackSync), path(stackOverlapped), path(stackTogether)})
	}
	for test := range r.plan.tests + 1 {
		for _, size := range r.plan.gainSizes() {
			for _, g := range r.gains {
				for _, p := range []*stackPath{g.sync, g.futures, g.together} {
					if err := p.measure(ctx, size, min(r.plan.payload, gainPayload), uint64(test)<<20, test == 0); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// gainSizes are those of the plan that depth is measured with.
func (p stackPlan) gainSizes() (sizes []int) {
	for _, size := range p.sizes {
		if size <= gainSize {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// gainTable turns the tests into figures.
func (r *stackRig) gainTable() (list []StackGain) {
	for _, size := range r.plan.gainSizes() {
		for d, direction := range directions {
			seconds := func(p *stackPath) float64 { return summarise(p.points[size].wall[d]).P50 }
			g := StackGain{Size: size, Direction: direction, SyncGBs: float64(size) / seconds(r.gains[0].sync) / 1e9}
			for _, t := range r.gains {
				one := seconds(t.sync)
				g.Depths = append(g.Depths, StackGainStep{t.depth, one / seconds(t.futures), one / seconds(t.together)})
			}
			list = append(list, g)
		}
	}
	return list
}

// bestGain returns the largest gain of a direction, and where it is; zero if none was measured.
func (r *StackReport) bestGain(direction string) (best StackGainStep, size int) {
	for _, g := range r.Gains {
		for _, s := range g.Depths {
			if g.Direction == direction && s.best() > best.best() {
				best, size = s, g.Size
			}
		}
	}
	return best, size
}

// tableOfGains writes a row for each size and direction.
func (r *StackReport) tableOfGains(w io.Writer) {
	if len(r.Gains) == 0 {
		return
	}
	fmt.Fprintln(w, "\nGain of depth: so many chunks at once over one at a time, the same chunks through the same channels")
	columns := []string{"chunk", "direction", "one, GB/s"}
	for _, s := range r.Gains[0].Depths {
		columns = append(columns, fmt.Sprintf("%d futures", s.Depth), fmt.Sprintf("%d begun together", s.Depth))
	}
	t := texttable.Numbers(columns...)
	for _, g := range r.Gains {
		row := []string{sizeText(g.Size), g.Direction, fmt.Sprintf("%.2f", g.SyncGBs)}
		for _, s := range g.Depths {
			row = append(row, fmt.Sprintf("%.2f", s.Futures), fmt.Sprintf("%.2f", s.Together))
		}
		t.Add(row...)
	}
	t.Write(w)
}
