package stack

import (
	"fmt"
	"io"
	"slices"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/texttable"
)

// budgetNear is the part of the best rate from which a split counts as the best.
const budgetNear = 0.9

// Budget is an amount of memory in flight, and its splits into chunks.
type Budget struct {
	Bytes     int     `json:"bytes"`
	Direction string  `json:"direction"`
	Splits    []Split `json:"splits"` // the largest chunk first
	// Tuned is the index in Splits that the round trip chooses: the largest chunk beside which n½
	// bytes, what moves during a start-up, are in flight. -1 without a line of Hockney's.
	Tuned int `json:"tuned"`
}

// Split is one chunk size, as many at once as the memory holds.
type Split struct {
	Chunk  int     `json:"chunk"`
	Window int     `json:"window"`
	GBs    float64 `json:"gb_s"` // of futures or begun together, the faster
}

// best returns the rate of the fastest split.
func (b Budget) best() float64 {
	return slices.MaxFunc(b.Splits, func(x, y Split) int { return int(x.GBs*1e3) - int(y.GBs*1e3) }).GBs
}

// choose sets Tuned.
func (b *Budget) choose(half float64) {
	b.Tuned = slices.IndexFunc(b.Splits, func(s Split) bool { return float64(s.Chunk)+half <= float64(b.Bytes) })
	if b.Tuned < 0 {
		b.Tuned = len(b.Splits) - 1
	}
}

// budgetTable arranges the tests of depth by the memory that was in flight. An amount with a single
// split is no choice.
func (r *stackRig) budgetTable(at func(direction string) *Curve) (list []Budget) {
	for d, direction := range compare.Directions {
		splits := map[int][]Split{}
		add := func(size, window int, seconds float64) {
			splits[size*window] = append(splits[size*window], Split{size, window, float64(size) / seconds / 1e9})
		}
		sizes := r.plan.gainSizes()
		slices.Reverse(sizes)
		for _, size := range sizes {
			fastest := func(p *stackPath) float64 { return slices.Min(p.points[size].wall[d]) }
			add(size, 1, fastest(r.gains[0].sync))
			for _, g := range r.gains {
				add(size, g.depth, min(fastest(g.futures), fastest(g.together)))
			}
		}
		amounts := make([]int, 0, len(splits))
		for amount, all := range splits {
			if len(all) > 1 {
				amounts = append(amounts, amount)
			}
		}
		slices.Sort(amounts)
		for _, amount := range amounts {
			b := Budget{Bytes: amount, Direction: direction, Splits: splits[amount], Tuned: -1}
			if c := at(direction); c != nil && c.Hockney != nil {
				b.choose(c.Hockney.NHalf)
			}
			list = append(list, b)
		}
	}
	return list
}

// tunedFindings says in how many budgets the round trip chose as well as trying all splits.
func (r *Report) tunedFindings() []Finding {
	good, all := 0, 0
	for _, b := range r.Budgets {
		if b.Tuned >= 0 {
			all++
			if b.Splits[b.Tuned].GBs >= budgetNear*b.best() {
				good++
			}
		}
	}
	if all == 0 {
		return nil
	}
	return []Finding{found("the round trip chooses window and chunk of a memory budget", 2*good > all,
		"within %.0f %% of the best split in %d of %d budgets", 100*(1-budgetNear), good, all)}
}

// tableOfBudgets writes a row for each split.
func (r *Report) tableOfBudgets(w io.Writer) {
	if len(r.Budgets) == 0 {
		return
	}
	fmt.Fprintln(w, "\nWindow by chunk: the same memory in flight as fewer large chunks or more small ones; the round trip (n½) chooses one split")
	t := texttable.Numbers("memory", "direction", "chunk", "window", "GB/s", "of best", "")
	for _, b := range r.Budgets {
		for i, s := range b.Splits {
			chosen := ""
			if i == b.Tuned {
				chosen = "by round trip"
			}
			t.Add(cli.SizeText(b.Bytes), b.Direction, cli.SizeText(s.Chunk), fmt.Sprint(s.Window), fmt.Sprintf("%.2f", s.GBs),
				fmt.Sprintf("%.0f %%", 100*s.GBs/b.best()), chosen)
		}
	}
	t.Write(w)
}
