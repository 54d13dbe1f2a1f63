package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// conclude turns tests into the report.
func (r *ThroughputReport) conclude(p throughputPlan, points []*point, d *directTest) {
	for i, direction := range directions {
		peak := 0.0
		for _, targets := range p.targets {
			c := ThroughputCurve{Direction: direction, Targets: targets}
			var size, ns []float64
			for _, pt := range points {
				if pt.targets != targets {
					continue
				}
				tp := pt.report(i, p.payload)
				r.Points = append(r.Points, tp)
				size = append(size, float64(pt.size))
				ns = append(ns, float64(pt.size)/tp.GBs.Mean)
				if tp.GbitS.Mean > c.PeakGbitS {
					c.PeakGbitS, c.PeakSize = tp.GbitS.Mean, pt.size
				}
			}
			c.Hockney = fitHockney(size, ns)
			paper := paperCurves[fmt.Sprintf("%s %d", direction, targets)]
			c.PaperGbitS, c.PaperNote = paper.gbitS, paper.note
			r.Curves = append(r.Curves, c)
			r.Goals = append(r.Goals, c.goals(size, ns, r.Busy)...)
			r.Goals = append(r.Goals, r.crowdGoal(direction, targets)...)
			peak = max(peak, c.PeakGbitS)
		}
		rate := DirectRate{Direction: direction, MbitS: summarise(d.mbit[i]), PaperMbitS: paperDirectMbitS}
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
func (c ThroughputCurve) goals(size, ns []float64, busy string) []Goal {
	name := configText(c.Direction, c.Targets)
	var goals []Goal
	if i := slices.Index(size, flatFrom); i >= 0 {
		goals = append(goals, Goal{ID: "T9", What: name + ": rate at " + sizeText(flatFrom) + " : peak",
			Value: 8 * size[i] / ns[i] / c.PeakGbitS, Target: flatness}.decide(busy))
	}
	if c.Hockney != nil {
		target := 16.0
		if c.Targets > 1 {
			target = 64
		}
		goals = append(goals, Goal{ID: "T10", What: name + ": start-up under 5 % from, KiB",
			Value: c.Hockney.N95 / 1024, Target: target, AtMost: true}.decide(busy))
	}
	return goals
}

// crowdGoal decides that more targets are never slower than one, at the size where
// they are slowest beside it.
func (r *ThroughputReport) crowdGoal(direction string, targets int) []Goal {
	one := make(map[int]float64)
	g := Goal{ID: "T9", What: configText(direction, targets) + " : 1 target, the worst size", Value: math.Inf(1), Target: 1}
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
	return []Goal{g.decide(r.Busy)}
}

// report summarises one direction of a point.
func (pt *point) report(direction, payload int) ThroughputPoint {
	tp := ThroughputPoint{Direction: directions[direction], Targets: pt.targets, Size: pt.size, Verified: len(pt.tests) > 0}
	var rate, memcpy, gbit []float64
	var wall, cpu time.Duration
	for _, e := range pt.tests {
		g := gbs(payload, e.moved[direction])
		rate = append(rate, g)
		gbit = append(gbit, 8*g)
		memcpy = append(memcpy, gbs(payload, e.copied[direction]))
		tp.VerifiedBytes += e.compared
		tp.Verified = tp.Verified && e.compared == payload
		wall += e.moved[direction]
		cpu += e.cpu
	}
	n := float64(len(pt.tests))
	tp.GBs, tp.GbitS, tp.MemcpyGBs = summarise(rate), summarise(gbit), summarise(memcpy)
	tp.OverMemcpy = spread(pairwise(rate, memcpy))
	tp.WallS = wall.Seconds() / n
	tp.CPUSPerGB = float64(cpu) / n / float64(2*payload)
	return tp
}

// colours of the curves, by direction.
var colours = [2][]string{
	{"#6baed6", "#08519c", "#3182bd", "#9ecae1"},
	{"#fd8d3c", "#a63603", "#e6550d", "#fdbe85"},
}

// plot draws the curves with their model lines.
func (r *ThroughputReport) plot() *plot {
	p := &plot{
		title: fmt.Sprintf("Throughput, %s, %s payload, %d tests", r.Device.Label, sizeText(r.Payload), r.Tests),
		note: fmt.Sprintf("%s on %s. Mean, band: one standard deviation; dashed: t0 + n/r∞ through the points",
			r.Device.Address, r.Machine.CPU),
		xLabel: "message size", yLabel: "Gb/s",
	}
	used := [2]int{}
	for _, c := range r.Curves {
		d := 0
		if c.Direction == directions[1] {
			d = 1
		}
		colour := colours[d][used[d]%len(colours[d])]
		used[d]++
		s := series{name: configText(c.Direction, c.Targets), colour: colour}
		model := series{colour: colour, dashed: true}
		for _, pt := range r.Points {
			if pt.Direction != c.Direction || pt.Targets != c.Targets {
				continue
			}
			s.x, s.y, s.sd = append(s.x, float64(pt.Size)), append(s.y, pt.GbitS.Mean), append(s.sd, pt.GbitS.SD)
			if c.Hockney != nil {
				model.x, model.y = append(model.x, float64(pt.Size)), append(model.y, 8*c.Hockney.rate(float64(pt.Size)))
			}
		}
		p.xTicks = s.x
		p.series = append(p.series, s)
		if c.Hockney != nil {
			p.series = append(p.series, model)
		}
	}
	return p
}

// rate is the mean of a point in Gb/s, 0 if it was not measured.
func (r *ThroughputReport) rate(direction string, targets, size int) float64 {
	for _, p := range r.Points {
		if p.Direction == direction && p.Targets == targets && p.Size == size {
			return p.GbitS.Mean
		}
	}
	return 0
}

// flatness is the least over the most of the rates from a size on.
func (r *ThroughputReport) flatness(direction string, targets, from int) float64 {
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
