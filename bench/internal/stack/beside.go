package stack

import (
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
)

// Beside is one chunk by calls of C and of Go, in nanoseconds: the fastest test of each, as
// what else runs on the machine makes tests slower, and never faster.
type Beside struct {
	Mode      string  `json:"mode"`
	Direction string  `json:"direction"`
	Size      int     `json:"size"`
	GoNS      float64 `json:"go_ns"`
	CNS       float64 `json:"c_ns"`
	GoCPUNS   float64 `json:"go_cpu_ns"` // of the process, a simulated device included
	CCPUNS    float64 `json:"c_cpu_ns"`
}

// share returns what C takes more than Go, of the time that Go takes.
func (b Beside) share() float64 { return (b.CNS - b.GoNS) / b.GoNS }

// besideTable holds the C path's tests against the Go path's; nil if it was not measured.
func (r *stackRig) besideTable() (list []Beside) {
	for _, c := range r.paths {
		if c.native == nil || c.native.missing != "" {
			continue
		}
		i := slices.IndexFunc(r.paths, func(p *stackPath) bool { return p.native == nil && p.mode == c.mode && p.memory == c.memory })
		for d, direction := range compare.Directions {
			for _, size := range r.plan.Sizes {
				ours, theirs := r.paths[i].points[size], c.points[size]
				list = append(list, Beside{
					c.mode, direction, size, 1e9 * slices.Min(ours.wall[d]), 1e9 * slices.Min(theirs.wall[d]),
					1e9 * slices.Min(ours.cpu[d]), 1e9 * slices.Min(theirs.cpu[d]),
				})
			}
		}
	}
	return list
}

// BesideFindings hold the slides' expectation of two languages against these.
func (r *Report) BesideFindings() (list []Finding) {
	for _, direction := range compare.Directions {
		var first, last *Beside
		for i, b := range r.Beside {
			if b.Mode != Sync || b.Direction != direction {
				continue
			}
			if last = &r.Beside[i]; first == nil {
				first = last
			}
		}
		if first == nil {
			continue
		}
		what := func(b *Beside) string {
			return fmt.Sprintf("%s: C takes %+.1f %%", cli.SizeText(b.Size), 100*b.share())
		}
		list = append(list, found(direction+": large chunks hide the difference of the languages (less than 5 %)",
			math.Abs(last.share()) < stackShare, "%s, %s", what(first), what(last)))
	}
	return list
}

// tableOfBeside writes a row for each size, mode and direction.
func (r *Report) tableOfBeside(w io.Writer) {
	if len(r.Beside) == 0 {
		return
	}
	fmt.Fprintln(w, "\nC beside Go: libnfcomms in a process of its own, the same chunks in turn, one chunk of the fastest test")
	t := texttable.Numbers("chunk", "mode", "direction", "Go", "C", "C : Go", "CPU, Go", "CPU, C")
	for _, b := range r.Beside {
		t.Add(cli.SizeText(b.Size), b.Mode, b.Direction, units.Duration(b.GoNS), units.Duration(b.CNS), fmt.Sprintf("%.2f", b.CNS/b.GoNS),
			units.Duration(b.GoCPUNS), units.Duration(b.CCPUNS))
	}
	t.Write(w)
}
