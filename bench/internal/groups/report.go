//go:build linux

package groups

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
	"github.com/nfcomms/nfcomms/internal/model"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/pkg/group"
)

// Report is what the command measured.
type Report struct {
	Command string      `json:"command"`
	Machine cli.Machine `json:"machine"`
	// Label means that no network took part.
	Label string `json:"label"`
	Rows  []Row  `json:"rows"`
	// NotMeasured says which peers are not there, and why.
	NotMeasured []string   `json:"not_measured,omitempty"`
	Goals       []cli.Goal `json:"goals"`
	// Sweep is auto in each comparison, the worst first.
	Sweep []Choice `json:"sweep,omitempty"`
	// Findings are the shapes of the MUSIC report.
	Findings []cli.Finding `json:"findings"`
	// Volumes are the report's, whose times are in pictures alone.
	Volumes []Volume `json:"volumes"`
}

// Row is one algorithm or peer in one comparison. Times are microseconds of a
// step.
type Row struct {
	Transport string `json:"transport"`
	Members   int    `json:"members"`
	Targets   int    `json:"targets"`
	Size      int    `json:"size_bytes"`
	Name      string `json:"name"`
	// Step is of the slowest member: the batches of all rounds.
	Step stat.Stat `json:"step_us"`
	// Rounds is the spread of the means of the rounds.
	Rounds stat.Spread `json:"rounds_us"`
	// CPU is of all members together, for a step.
	CPU stat.Spread `json:"cpu_us"`
	// Chose is what auto took at last, and why.
	Chose string `json:"chose,omitempty"`
	// Busy is why the figures are not to be trusted.
	Busy string `json:"busy,omitempty"`

	ByRound []float64 `json:"-"` // microseconds of a step in each round
}

// Choice is what auto took in one comparison, against the best algorithm of it.
type Choice struct {
	Transport string `json:"transport"`
	Members   int    `json:"members"`
	Targets   int    `json:"targets"`
	Size      int    `json:"size_bytes"`
	// Best is the algorithm that takes the least processor time, CPU that of auto over
	// it: the least of the rounds of each, which others on the machine disturb least.
	Best string  `json:"best"`
	CPU  float64 `json:"cpu_ratio"`
	// Time is the time of auto over that of the fastest, the median of the rounds; 0 on
	// a busy machine.
	Time float64 `json:"time_ratio,omitempty"`
}

// autoGoal is how many times the best algorithm auto may take.
const autoGoal = 1.2

// Volume is what a member sends in a biological second by appendix B: by the
// model, and as the report prints it (0: it has no such column).
type Volume struct {
	Members  int     `json:"members"`
	ModelKiB float64 `json:"model_kib"`
	PaperKiB float64 `json:"paper_kib,omitempty"`
	// Fastest is what the model takes for the fastest algorithm of a step.
	Fastest string `json:"fastest"`
}

func newGroupReport() *Report {
	return &Report{Command: "group", Machine: cli.ThisMachine(), Label: "measured within one machine, no device and no network"}
}

// add adds what a comparison found.
func (r *Report) add(s exchangeShape, c *compare.Contender, busy string) {
	rounds := c.Ns()
	for i := range rounds {
		rounds[i] /= 1e3
	}
	cpu := c.CPUNs()
	row := Row{
		Transport: s.transport, Members: s.members, Targets: s.targets, Size: s.size, Name: c.Name,
		Step: c.Samples.Stat(c.Batch).Scaled(1e-3), Rounds: stat.SpreadOf(rounds), Busy: busy, ByRound: rounds,
		CPU: stat.Spread{Median: cpu.Median / 1e3, Min: cpu.Min / 1e3, Max: cpu.Max / 1e3},
	}
	if c.Chose != nil {
		row.Chose = c.Chose()
	}
	r.Rows = append(r.Rows, row)
}

// find returns the row of a name in the comparison that another row is of.
func (r *Report) find(like Row, name string) *Row {
	for i := range r.Rows {
		b := &r.Rows[i]
		if b.Name == name && b.Transport == like.Transport && b.Members == like.Members && b.Targets == like.Targets && b.Size == like.Size {
			return b
		}
	}
	return nil
}

// Ratios are the time of a over that of b in the rounds of a comparison of a transport, members
// and size; 0 if there is none that others left the machine to.
func (r *Report) Ratios(transport string, members, size int, a, b string) stat.Spread {
	for _, row := range r.Rows {
		if row.Name != a || row.Transport != transport || row.Members != members || row.Size != size || row.Busy != "" {
			continue
		}
		if other := r.find(row, b); other != nil {
			return stat.SpreadOf(stat.Pairwise(row.ByRound, other.ByRound))
		}
	}
	return stat.Spread{}
}

func (r *Report) ratio(transport string, members, size int, a, b string) float64 {
	return r.Ratios(transport, members, size, a, b).Median
}

// conclude holds what was measured against goals and shapes.
func (r *Report) conclude() {
	goal := func(id, what string, value, target float64, atMost bool) {
		reason := ""
		if value == 0 {
			reason = r.Why()
		}
		r.Goals = append(r.Goals, cli.Goal{ID: id, What: what, Value: value, Target: target, AtMost: atMost}.Decide(reason))
	}
	mpi := max(r.ratio(TransportShm, 8, 64, group.Auto, mpiNames[0]), r.ratio(TransportShm, 8, 64, group.Auto, mpiNames[1]))
	goal("T16", "8 members, 64 B to 4: processes over the better OpenMPI", mpi, 1, true)
	goal("T16", "8 members, 64 B to 4: goroutines over mutex and slice", r.ratio(TransportMesh, 8, 64, group.Auto, nameLocal), 1.5, true)
	copied := r.ratio(TransportMesh, 8, 64<<10, compare.NameMemcpy, group.Auto)
	goal("G3", "8 members, 64 KiB to 4: rate over memcpy", copied, 0.9, false)
	read := r.ratio(TransportMesh, 8, 64<<10, nameCopyRead, nameRead)
	goal("G3", "the same, all of it read", read, 0.9, false)
	shared := r.ratio(TransportMesh, 8, 64<<10, nameCopyRead, nameShared)
	goal("G3", "the same with zero copy, all of it read", shared, 0.9, false)
	r.sweep()
	var time, cpu float64
	for _, c := range r.Sweep {
		time, cpu = max(time, c.Time), max(cpu, c.CPU)
	}
	goal("G4", "auto over the best, at worst", time, autoGoal, true)
	goal("G4", "the same by processor time", cpu, autoGoal, true)
	if r.Why() == cli.ReasonBusy {
		cli.Withhold(r.Goals, cli.ReasonBusy)
	}
	r.Findings = append(r.messageShape(), r.gatherShape()...)
	r.volumes()
}

// Why returns what there is no figure for.
func (r *Report) Why() string {
	if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.Busy != "" }) {
		return cli.ReasonBusy
	}
	return "not in this run"
}

// sweep holds auto against the best algorithm of each comparison.
func (r *Report) sweep() {
	for _, row := range r.Rows {
		if row.Name != group.Auto {
			continue
		}
		c := Choice{Transport: row.Transport, Members: row.Members, Targets: row.Targets, Size: row.Size}
		for _, name := range groupAlgorithms() {
			other := r.find(row, name)
			if other == nil || name == group.Auto {
				continue
			}
			if row.Busy == "" {
				c.Time = max(c.Time, stat.SpreadOf(stat.Pairwise(row.ByRound, other.ByRound)).Median)
			}
			if ratio := row.CPU.Min / other.CPU.Min; other.CPU.Min > 0 && ratio > c.CPU {
				c.Best, c.CPU = name, ratio
			}
		}
		if c.Best != "" {
			r.Sweep = append(r.Sweep, c)
		}
	}
	slices.SortStableFunc(r.Sweep, func(a, b Choice) int { return cmp.Compare(b.CPU, a.CPU) })
}

// messageShape: modification #3 is the fastest for large messages and scales badly
// with small ones.
func (r *Report) messageShape() []cli.Finding {
	var all []cli.Finding
	for _, transport := range groupTransports {
		var at []Row
		for _, row := range r.Rows {
			if row.Name == "isend-irecv" && row.Transport == transport && r.find(row, "isend") != nil {
				at = append(at, row)
			}
		}
		if len(at) == 0 {
			continue
		}
		least := slices.MinFunc(at, func(a, b Row) int { return a.Size - b.Size })
		most := slices.MaxFunc(at, func(a, b Row) int { return a.Size - b.Size })
		small := r.Ratios(transport, least.Members, least.Size, "isend-irecv", "isend")
		large := r.Ratios(transport, most.Members, most.Size, "isend-irecv", "isend")
		all = append(all,
			r.Finding(fmt.Sprintf("#3, isend-irecv, loses to #2, isend, with small messages (%s, %s)", transport, cli.SizeText(least.Size)), small, true),
			r.Finding(fmt.Sprintf("#3, isend-irecv, beats #2, isend, with large messages (%s, %s)", transport, cli.SizeText(most.Size)), large, false))
	}
	return all
}

// gatherShape: a gathering step takes longer with more members, although each has
// as much to say.
func (r *Report) gatherShape() []cli.Finding {
	var all []cli.Finding
	for _, transport := range groupTransports {
		var few, many *Row
		for i := range r.Rows {
			for k := range r.Rows {
				a, b := &r.Rows[i], &r.Rows[k]
				same := a.Name == "allgather" && a.Transport == transport && a.Size == b.Size && a.Targets == b.Targets
				if same && a.Busy+b.Busy == "" && b.Name == a.Name && b.Transport == transport && b.Members > a.Members && (many == nil || b.Members > many.Members) {
					few, many = a, b
				}
			}
		}
		if many == nil {
			continue
		}
		growth := stat.Pairwise(many.ByRound, few.ByRound)
		for i := range growth {
			growth[i] *= float64(few.Members) / float64(many.Members)
		}
		all = append(all, r.Finding(fmt.Sprintf("gathering does not scale (%s): a step of %d members over one of %d, per member",
			transport, many.Members, few.Members), stat.SpreadOf(growth), true))
	}
	return all
}

// Finding is whether the ratio is above 1 in each round, or below it if not over. Rounds that disagree
// decide nothing.
func (r *Report) Finding(what string, ratio stat.Spread, over bool) cli.Finding {
	switch {
	case ratio.Median == 0:
		return cli.Finding{What: what, Result: cli.ResultNotMeasured + r.Why(), Shape: cli.ShapeUnknown, Why: r.Why()}
	case ratio.Min <= 1 && ratio.Max > 1:
		why := "rounds disagree, " + stat.Times(ratio) + " times"
		return cli.Finding{What: what, Result: cli.ShapeOpen + ": " + why, Shape: cli.ShapeOpen, Why: why}
	}
	return cli.FindingOf(what, ratio.Median, over == (ratio.Min > 1))
}

// The network of the report.
const (
	paperCells, paperConnections = 2 << 20, 1000
	paperHertz, paperEvent       = 30, 16
)

// volumes computes appendix B, and goes on to the 32 K members on which the
// report's runs ended.
func (r *Report) volumes() {
	paper := map[int]float64{128: 983040, 256: 983040, 512: 983040, 1024: 960000, 2048: 480000, 4096: 240000, 8192: 120000}
	for members := 128; members <= 32<<10; members *= 2 {
		rate := float64(paperHertz * paperEvent)
		load := group.SpikeLoad(paperCells, members, paperConnections, paperHertz, 1, paperEvent)
		r.Volumes = append(r.Volumes, Volume{
			Members: members, PaperKiB: paper[members],
			ModelKiB: model.ExchangedBytes(paperCells, members, paperConnections, rate) / 1024,
			Fastest:  group.Predict(load, group.MeshCost())[0].Algorithm,
		})
	}
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Label, r.Machine.Text())
	t := texttable.Numbers("algorithm or peer", "transport", "members", "to", "size", "step µs", "max", "rounds", "CPU µs", "")
	for _, row := range r.Rows {
		t.Add(row.Name, row.Transport, fmt.Sprint(row.Members), fmt.Sprint(row.Targets), cli.SizeText(row.Size),
			fmt.Sprintf("%.2f", row.Step.Mean), fmt.Sprintf("%.1f", row.Step.Max),
			fmt.Sprintf("%.2f–%.2f", row.Rounds.Min, row.Rounds.Max), fmt.Sprintf("%.2f", row.CPU.Median), row.Busy)
	}
	t.Write(w)
	fmt.Fprintln(w)
	for _, row := range r.Rows {
		if row.Chose != "" {
			fmt.Fprintf(w, "%s, %s, %d to %d, %s: %s\n", row.Name, row.Transport, row.Members, row.Targets, cli.SizeText(row.Size), row.Chose)
		}
	}
	for _, why := range r.NotMeasured {
		fmt.Fprintln(w, why)
	}
	fmt.Fprintln(w)
	r.writeSweep(w)
	cli.WriteGoals(w, r.Goals)
	fmt.Fprintln(w)
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%s: %s\n", f.What, f.Result)
	}
	fmt.Fprintln(w, "\nbytes that a member sends in a biological second, 2 M cells with 1,000 connections (not measured)")
	v := texttable.Numbers("members", "model KiB", "the report KiB", "fastest by the model")
	for _, row := range r.Volumes {
		paper := "–"
		if row.PaperKiB > 0 {
			paper = fmt.Sprintf("%.0f", row.PaperKiB)
		}
		v.Add(fmt.Sprint(row.Members), fmt.Sprintf("%.0f", row.ModelKiB), paper, row.Fastest)
	}
	v.Write(w)
}

// sweepShown bounds the comparisons in the text; the JSON has them all.
const sweepShown = 5

// writeSweep shows where auto is furthest from the best.
func (r *Report) writeSweep(w io.Writer) {
	if len(r.Sweep) == 0 {
		return
	}
	within := 0
	for _, c := range r.Sweep {
		if c.CPU <= autoGoal {
			within++
		}
	}
	fmt.Fprintf(w, "auto takes up to %.1f times the processor time of the best algorithm in %d of %d comparisons; the furthest from it\n", autoGoal, within, len(r.Sweep))
	t := texttable.Numbers("transport", "members", "to", "size", "best by processor time", "auto over it")
	for _, c := range r.Sweep[:min(sweepShown, len(r.Sweep))] {
		t.Add(c.Transport, fmt.Sprint(c.Members), fmt.Sprint(c.Targets), cli.SizeText(c.Size), c.Best, fmt.Sprintf("%.2f", c.CPU))
	}
	t.Write(w)
	fmt.Fprintln(w)
}

// Draw plots the rate of all members together over the sizes, a curve for each
// algorithm and peer, of the transport and the members with the most sizes; over a mesh with the model's
// line beside each algorithm.
func (r *Report) Draw() *plot.Plot {
	first := r.Rows[0]
	p := &plot.Plot{
		Title: "nfbench group", YLabel: "GB/s of all members", XLabel: "bytes for each neighbour",
		Note: fmt.Sprintf("%s, %d members, %d neighbours each, %s; %s", first.Transport, first.Members, first.Targets, r.Machine.CPU, r.Label),
	}
	for _, row := range r.Rows {
		if row.Transport == first.Transport && row.Members == first.Members && row.Targets == first.Targets {
			rate := float64(row.Members*row.Targets*row.Size) / max(row.Rounds.Median, 1e-3) / 1e3
			p.Add(row.Name, float64(row.Size), rate)
		}
	}
	if first.Transport == TransportMesh {
		p.AddTheory(func(s plot.Series) []float64 { return predicted(first, s) })
		p.Note += "; dashed: the model's guess"
	}
	return p
}

// predicted is what the model of [group.Predict] has for a curve: nil if that is no algorithm of it.
func predicted(r Row, s plot.Series) (y []float64) {
	for _, size := range s.X {
		load := group.Load{Members: r.Members, Frames: float64(r.Targets), Packages: float64(r.Targets), Bytes: size}
		all := group.Predict(load, group.MeshCost())
		i := slices.IndexFunc(all, func(p group.Prediction) bool { return p.Algorithm == s.Name })
		if i < 0 {
			return nil
		}
		y = append(y, float64(r.Members*r.Targets)*size/float64(max(all[i].Time, 1)))
	}
	return y
}
