package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nfcomms/nfcomms/pkg/group"
)

// result is what all members measured.
type result struct {
	*network
	place    string // where the members ran, as a label of all times
	wall     time.Duration
	stats    group.Stats // of this member
	accounts []account   // by rank
	samples  [][]sample  // by rank, by step
}

// verified reports whether every member received exactly what it should.
func (r *result) verified() bool {
	for _, a := range r.accounts {
		if a.Wrong > 0 {
			return false
		}
	}
	return true
}

// interval is the mean and the maximum over the members of one step.
type interval struct{ mean, most float64 }

func (r *result) intervals(of func(sample) float64) []interval {
	list := make([]interval, r.millis)
	for step := range list {
		for _, s := range r.samples {
			v := of(s[step])
			list[step].mean += v / float64(len(r.samples))
			list[step].most = max(list[step].most, v)
		}
	}
	return list
}

// print writes what happened, for people.
func (r *result) print(w io.Writer) {
	var all account
	for _, a := range r.accounts {
		all.Received += a.Received
		all.Delivered += a.Delivered
	}
	fmt.Fprintf(w, "%d members, 2 × %d cells, about %d connections each, %d ms in %v, %s\n",
		r.members, r.cells, r.connections, r.millis, r.wall.Round(time.Millisecond), r.place)
	finding := "every one is as its cell fired it"
	if !r.verified() {
		finding = "WRONG: not those that the cells fired"
	}
	fmt.Fprintf(w, "%d events exchanged and verified: %s; %d delivered to cells\n", all.Received, finding, all.Delivered)
	fmt.Fprintf(w, "algorithm: %s (%s)\n", r.stats.Algorithm, r.stats.Why)
	load := group.SpikeLoad(r.cells, r.members/2, r.connections, hertz, stepMillis, 16)
	fmt.Fprintf(w, "model: %.1f packages of %.0f bytes for a member in a step\n\n", load.Packages, load.Bytes)
	total := r.intervals(func(s sample) float64 { return s.Total })
	compute := r.intervals(func(s sample) float64 { return s.Total - s.Exchange })
	spikes := r.intervals(func(s sample) float64 { return float64(s.Out) })
	computing := "computing"
	if r.overlap {
		computing = "computing, not hidden"
	}
	fmt.Fprintln(w, "per interval, over the members     mean       maximum")
	for _, row := range []struct {
		name string
		list []interval
	}{{"total", total}, {computing, compute}} {
		var mean, most float64
		for _, i := range row.list {
			mean += i.mean / float64(len(row.list))
			most += i.most / float64(len(row.list))
		}
		fmt.Fprintf(w, "  %-24s %8.1f µs %10.1f µs\n", row.name, mean, most)
	}
	fmt.Fprintln(w, "\nwaiting for others, of all time")
	for rank, samples := range r.samples {
		var waiting, all float64
		for _, s := range samples {
			waiting, all = waiting+s.Waiting, all+s.Total
		}
		share := waiting / max(all, 1)
		fmt.Fprintf(w, "  rank %-4d %5.1f %% %s\n", rank, 100*share, strings.Repeat("#", int(40*share)))
	}
	fmt.Fprintf(w, "\n%d intervals, left to right\n", r.millis)
	picture(w, "total, maximum", "µs", total, func(i interval) float64 { return i.most })
	picture(w, "computing, mean", "µs", compute, func(i interval) float64 { return i.mean })
	picture(w, "spikes a member, mean", "", spikes, func(i interval) float64 { return i.mean })
}

// picture draws a row of bars, several steps to a bar where there are many.
func picture(w io.Writer, name, unit string, list []interval, of func(interval) float64) {
	const width = 66
	bars := []rune("▁▂▃▄▅▆▇█")
	n := min(len(list), width)
	values := make([]float64, n)
	top := 0.0
	for b := range values {
		from, to := b*len(list)/n, (b+1)*len(list)/n
		for _, i := range list[from:to] {
			values[b] += of(i) / float64(to-from)
		}
		top = max(top, values[b])
	}
	var row strings.Builder
	for _, v := range values {
		row.WriteRune(bars[min(int(v/max(top, 1e-9)*8), 7)])
	}
	fmt.Fprintf(w, "  %s (up to %.0f%s)\n  %s\n", name, top, strings.TrimRight(" "+unit, " "), row.String())
}

// save writes the files: a line for each step, a column for each member. Pairwise
// algorithms have wtimes and xtimes, those that gather ctimes.
func (r *result) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files := map[string]func(sample) float64{
		"ttimes":     func(s sample) float64 { return s.Total },
		"out_spikes": func(s sample) float64 { return float64(s.Out) },
		"in_spikes":  func(s sample) float64 { return float64(s.In) },
	}
	if r.gathers() {
		files["ctimes"] = func(s sample) float64 { return s.Exchange }
	} else {
		files["xtimes"] = func(s sample) float64 { return s.Exchange - s.Waiting }
		files["wtimes"] = func(s sample) float64 { return s.Waiting }
	}
	for name, of := range files {
		var b strings.Builder
		for step := range r.millis {
			for rank, s := range r.samples {
				if rank > 0 {
					b.WriteByte(' ')
				}
				fmt.Fprintf(&b, "%.0f", of(s[step]))
			}
			b.WriteByte('\n')
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// gathers reports whether the algorithm is a collective one.
func (r *result) gathers() bool {
	switch r.stats.Algorithm {
	case "allgather", "allgather-l", "fixed-buffer", "chunks":
		return true
	}
	return false
}
