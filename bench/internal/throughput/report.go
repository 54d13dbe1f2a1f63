package throughput

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// conclude turns tests into the report.
func (r *Report) conclude(p Plan, points []*point, d *directTest) {
	for i, direction := range compare.Directions {
		peak := 0.0
		for _, targets := range p.Targets {
			c := Curve{Direction: direction, Targets: targets}
			var size, ns []float64
			for _, pt := range points {
				if pt.targets != targets {
					continue
				}
				tp := pt.report(i, p.Payload)
				r.Points = append(r.Points, tp)
				size = append(size, float64(pt.size))
				ns = append(ns, float64(pt.size)/tp.GBs.Mean)
				if tp.GbitS.Mean > c.PeakGbitS {
					c.PeakGbitS, c.PeakSize = tp.GbitS.Mean, pt.size
				}
			}
			c.Hockney = stat.FitHockney(size, ns)
			paper := paperCurves[fmt.Sprintf("%s %d", direction, targets)]
			c.PaperGbitS, c.PaperNote = paper.gbitS, paper.note
			r.Curves = append(r.Curves, c)
			r.Goals = append(r.Goals, c.goals(size, ns, r.Busy)...)
			r.Goals = append(r.Goals, r.crowdGoal(direction, targets)...)
			peak = max(peak, c.PeakGbitS)
		}
		rate := DirectRate{Direction: direction, MbitS: stat.Summarise(d.mbit[i]), PaperMbitS: paperDirectMbitS}
		r.Direct = append(r.Direct, rate)
		r.PeakRatio = append(r.PeakRatio, PeakRatio{
			Direction: direction, Ratio: 1e3 * peak / rate.MbitS.Mean, Paper: paperPeakRatio})
	}
}

// flatFrom is the size from which the curve should be flat, and flatness what
// that means: this part of the peak.
const (
	flatFrom = 256 << 10
	flatness = 0.9
)

// goals decides T9, where the size was measured, and T10.
func (c Curve) goals(size, ns []float64, busy string) []cli.Goal {
	name := ConfigText(c.Direction, c.Targets)
	var goals []cli.Goal
	if i := slices.Index(size, flatFrom); i >= 0 {
		goals = append(goals, cli.Goal{ID: "T9", What: name + ": rate at " + cli.SizeText(flatFrom) + " : peak",
			Value: 8 * size[i] / ns[i] / c.PeakGbitS, Target: flatness}.Decide(busy))
	}
	if c.Hockney != nil {
		target := 16.0
		if c.Targets > 1 {
			target = 64
		}
		goals = append(goals, cli.Goal{ID: "T10", What: name + ": start-up under 5 % from, KiB",
			Value: c.Hockney.N95 / 1024, Target: target, AtMost: true}.Decide(busy))
	}
	return goals
}

// crowdGoal decides that more targets are never slower than one, at the size where
// they are slowest beside it.
func (r *Report) crowdGoal(direction string, targets int) []cli.Goal {
	one := make(map[int]float64)
	g := cli.Goal{ID: "T9", What: ConfigText(direction, targets) + " : 1 target, the worst size", Value: math.Inf(1), Target: 1}
	for _, p := range r.Points {
		switch {
		case p.Direction != direction:
		case p.Targets == 1:
			one[p.Size] = p.GBs.Mean
		case p.Targets == targets && one[p.Size] > 0:
			g.Value = min(g.Value, p.GBs.Mean/one[p.Size])
		}
	}
	if math.IsInf(g.Value, 1) {
		return nil
	}
	return []cli.Goal{g.Decide(r.Busy)}
}

// report summarises one direction of a point.
func (pt *point) report(direction, payload int) Point {
	tp := Point{Direction: compare.Directions[direction], Targets: pt.targets, Size: pt.size, Verified: len(pt.tests) > 0}
	var rate, memcpy, gbit, summed, cost []float64
	var wall, cpu, sumCPU time.Duration
	for _, e := range pt.tests {
		g := cli.GBs(payload, e.moved[direction])
		rate = append(rate, g)
		gbit = append(gbit, 8*g)
		memcpy = append(memcpy, cli.GBs(payload, e.copied[direction]))
		if took := e.summed[direction]; took > 0 {
			s := cli.GBs(payload, took)
			summed, cost = append(summed, s), append(cost, 1-s/g)
		}
		tp.VerifiedBytes += e.compared
		tp.Verified = tp.Verified && e.compared == payload
		wall += e.moved[direction]
		cpu += e.cpu
		sumCPU += e.sumCPU
	}
	tp.GBs, tp.GbitS, tp.MemcpyGBs = stat.Summarise(rate), stat.Summarise(gbit), stat.Summarise(memcpy)
	n := float64(len(pt.tests))
	if len(summed) > 0 {
		s, c := stat.Summarise(summed), stat.SpreadOf(cost)
		tp.SummedGBs, tp.SumCost = &s, &c
		tp.SumCPUSPerGB = float64(sumCPU) / n / float64(2*payload)
	}
	tp.OverMemcpy = stat.SpreadOf(stat.Pairwise(rate, memcpy))
	tp.WallS = wall.Seconds() / n
	tp.CPUSPerGB = float64(cpu) / n / float64(2*payload)
	return tp
}

// colours of the curves, by direction.
var colours = [2][]string{
	{"#6baed6", "#08519c", "#3182bd", "#9ecae1"},
	{"#fd8d3c", "#a63603", "#e6550d", "#fdbe85"},
}

// Plot draws the curves with their model lines.
func (r *Report) Plot() *plot.Plot {
	p := &plot.Plot{
		Title: fmt.Sprintf("Throughput, %s, %s payload, %d tests", r.Device.Label, cli.SizeText(r.Payload), r.Tests),
		Note: fmt.Sprintf("%s on %s. Mean, band: one standard deviation; dashed: t0 + n/r∞ through the points",
			r.Device.Address, r.Machine.CPU),
		XLabel: "message size", YLabel: "Gb/s",
	}
	used := [2]int{}
	for _, c := range r.Curves {
		d := 0
		if c.Direction == compare.Directions[1] {
			d = 1
		}
		colour := colours[d][used[d]%len(colours[d])]
		used[d]++
		s := plot.Series{Name: ConfigText(c.Direction, c.Targets), Colour: colour}
		model := plot.Series{Colour: colour, Dashed: true}
		for _, pt := range r.Points {
			if pt.Direction != c.Direction || pt.Targets != c.Targets {
				continue
			}
			s.X, s.Y, s.Sd = append(s.X, float64(pt.Size)), append(s.Y, pt.GbitS.Mean), append(s.Sd, pt.GbitS.SD)
			if c.Hockney != nil {
				model.X, model.Y = append(model.X, float64(pt.Size)), append(model.Y, 8*c.Hockney.Rate(float64(pt.Size)))
			}
		}
		p.XTicks = s.X
		p.Series = append(p.Series, s)
		if c.Hockney != nil {
			p.Series = append(p.Series, model)
		}
	}
	return p
}

// Rate is the mean of a point in Gb/s, 0 if it was not measured.
func (r *Report) Rate(direction string, targets, size int) float64 {
	for _, p := range r.Points {
		if p.Direction == direction && p.Targets == targets && p.Size == size {
			return p.GbitS.Mean
		}
	}
	return 0
}

// Flatness is the least over the most of the rates from a size on.
func (r *Report) Flatness(direction string, targets, from int) float64 {
	least, most := 0.0, 0.0
	for _, p := range r.Points {
		if p.Direction != direction || p.Targets != targets || p.Size < from {
			continue
		}
		if least == 0 || p.GbitS.Mean < least {
			least = p.GbitS.Mean
		}
		most = max(most, p.GbitS.Mean)
	}
	if most == 0 {
		return 0
	}
	return least / most
}
