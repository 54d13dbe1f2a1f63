package stack

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// Depths at which the gain is measured.
var gainDepths = []int{2, 4, 8}

const (
	gainSize    = 1 << 20      // of the largest chunk
	gainMemory  = 8 * gainSize // of the deepest group
	gainPayload = 2 << 20      // each way in a test, at most
	gainTests   = 5            // at least: of fewer one that was disturbed counts too much
)

// Gain is what chunks at once gain over one at a time, of the same chunks through the same
// channels.
type Gain struct {
	Size      int    `json:"size"`
	Direction string `json:"direction"`
	// SyncGBs is one chunk at a time.
	SyncGBs float64    `json:"synchronous_gb_s"` // of a group of the first depth
	Depths  []GainStep `json:"depths"`
}

// GainStep is one depth, as rates over that of one chunk at a time.
type GainStep struct {
	Depth    int     `json:"depth"`
	Futures  float64 `json:"overlapped"`
	Together float64 `json:"begun_together"`
}

// stackGainTests are the paths of one depth.
type stackGainTests struct {
	depth                   int
	sync, futures, together *stackPath
}

// measureGains runs the tests of all depths in turn, and leaves out the first of each.
func (r *stackRig) measureGains(ctx context.Context) error {
	for _, depth := range gainDepths {
		path := func(mode string) *stackPath { return r.path(mode, memoryHeap, depth, r.sent, r.got) }
		r.gains = append(r.gains, &stackGainTests{depth, path(Sync), path(Overlapped), path(stackTogether)})
	}
	for test := range max(r.plan.Tests, gainTests) + 1 {
		for _, size := range r.plan.gainSizes() {
			for _, g := range r.gains {
				for _, p := range []*stackPath{g.sync, g.futures, g.together} {
					if err := p.measure(ctx, size, min(r.plan.Payload, gainPayload), uint64(test)<<20, test == 0); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// gainSizes are those of the plan that depth is measured with.
func (p Plan) gainSizes() (sizes []int) {
	for _, size := range p.Sizes {
		if size <= gainSize {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// gainTable turns the tests into figures.
func (r *stackRig) gainTable() (list []Gain) {
	for _, size := range r.plan.gainSizes() {
		for d, direction := range compare.Directions {
			// The fastest: what else runs on the machine makes tests slower, and never faster.
			seconds := func(p *stackPath) float64 { return slices.Min(p.points[size].wall[d]) }
			g := Gain{Size: size, Direction: direction, SyncGBs: float64(size) / seconds(r.gains[0].sync) / 1e9}
			for _, t := range r.gains {
				one := seconds(t.sync)
				g.Depths = append(g.Depths, GainStep{t.depth, one / seconds(t.futures), one / seconds(t.together)})
			}
			list = append(list, g)
		}
	}
	return list
}

// gainOf is what one depth and mode gain in one direction.
type gainOf struct {
	what string
	mean float64 // over all sizes, the geometric one: noise of one size is no gain
	most float64
	size int // where that is
}

// bestGain returns the largest gain of a direction, by its mean; zero if none was measured.
func (r *Report) bestGain(direction string) (best gainOf) {
	for i, depth := range gainDepths {
		for _, m := range []struct {
			mode string
			gain func(GainStep) float64
		}{
			{"futures", func(s GainStep) float64 { return s.Futures }},
			{stackTogether, func(s GainStep) float64 { return s.Together }},
		} {
			this, product, sizes := gainOf{what: fmt.Sprint(depth, " ", m.mode)}, 1.0, 0.0
			for _, g := range r.Gains {
				if g.Direction != direction {
					continue
				}
				gain := m.gain(g.Depths[i])
				product, sizes = product*gain, sizes+1
				if gain > this.most {
					this.most, this.size = gain, g.Size
				}
			}
			if this.mean = math.Pow(product, 1/sizes); sizes > 0 && this.mean > best.mean {
				best = this
			}
		}
	}
	return best
}

// tableOfGains writes a row for each size and direction.
func (r *Report) tableOfGains(w io.Writer) {
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
		row := []string{cli.SizeText(g.Size), g.Direction, fmt.Sprintf("%.2f", g.SyncGBs)}
		for _, s := range g.Depths {
			row = append(row, fmt.Sprintf("%.2f", s.Futures), fmt.Sprintf("%.2f", s.Together))
		}
		t.Add(row...)
	}
	t.Write(w)
}
