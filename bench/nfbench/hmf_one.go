//go:build linux

package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	sources "github.com/nfcomms/nfcomms"
)

// hmfPeers carry packets between the two processes of a pair; then there are the
// programs in C, which are such processes themselves.
var hmfPeers = append([]string{carryUnix, carryPipe, carryShmipc}, nativeNames()...)

// hmfPeerNames are the rows of reports.
var hmfPeerNames = map[string]string{
	carryUnix: "UNIX socket", carryPipe: "os.Pipe", carryShmipc: "shmipc-go",
}

// nativeRing is this project's ring in C, as another one who has it would use it.
var nativeRing = &nativeLibrary{id: "nfring", name: "ring", compiler: "cc", install: "Debian: gcc, libc6-dev"}

// builds are the compiler settings of --build.
var builds = []string{"O0", "O1", "O2", "O3"}

func (o *hmfOptions) checkPeers() error {
	for _, name := range o.peers {
		if !slices.Contains(hmfPeers, name) {
			return usagef("--peers %q is none of %s", name, strings.Join(hmfPeers, ", "))
		}
	}
	for _, build := range o.builds {
		if !slices.Contains(builds, build) {
			return usagef("--build %q is none of %s", build, strings.Join(builds, ", "))
		}
	}
	return nil
}

// natives builds the programs in C: the ring by each of --build, and the peers.
func (o *hmfOptions) natives(ctx context.Context) (all natives) {
	for _, build := range o.builds {
		p := &nativeProgram{library: nativeRing, name: "ring in C, -" + build, limit: nativeLimit}
		all = append(all, p.build(ctx, "-"+build, []embed.FS{nativeSources, sources.Ring},
			"native/peer.c", "native/nfring.c", "kmod/lib/ring.c", "kmod/lib/ring_owner.c"))
	}
	for _, name := range o.peers {
		if library := nativeNamed(name); library != nil {
			p := library.program(ctx)
			p.name = library.name + " in C"
			all = append(all, p)
		}
	}
	return all
}

// hmfSide is one of those who take turns.
type hmfSide struct {
	row    HMFRow
	stats  []Stat // milliseconds of a package, by round
	runOne func(ctx context.Context) (HMFRow, error)
	// optional is who may fail: the others go on without it.
	optional bool
	failed   error
}

// sides are the ring, memcpy and the peers, in this order.
func (o *hmfOptions) sides(others natives) []*hmfSide {
	all := []*hmfSide{
		{row: HMFRow{Name: "one pair"}, runOne: func(ctx context.Context) (HMFRow, error) {
			return o.pairsAtOnce(ctx, 1, o.ring, o.packet, "")
		}},
		{row: HMFRow{Name: nameMemcpy}, runOne: func(context.Context) (HMFRow, error) {
			return HMFRow{MS: o.memcpy().scaled(1e-6)}, nil
		}},
	}
	for _, name := range o.peers {
		if nativeNamed(name) == nil {
			run := func(ctx context.Context) (HMFRow, error) { return o.carried(ctx, name) }
			all = append(all, &hmfSide{row: HMFRow{Name: hmfPeerNames[name]}, runOne: run})
		}
	}
	for _, p := range others.there() {
		run := func(ctx context.Context) (HMFRow, error) { return o.native(ctx, p) }
		all = append(all, &hmfSide{row: HMFRow{Name: p.name}, runOne: run, optional: true})
	}
	for _, s := range all {
		s.row.Pairs, s.row.Ring, s.row.Packet = 1, o.ring, o.packet
	}
	return all
}

// one lets the ring, memcpy and the peers take turns.
func (r *HMFReport) one(cmd *cobra.Command, o *hmfOptions) error {
	each := *o
	each.packages = o.packages / o.rounds
	others := o.natives(cmd.Context())
	defer others.remove() // what is left is of no use
	r.NotMeasured = others.missing()
	sides := each.sides(others)
	bar := newProgress(cmd.ErrOrStderr(), o.rounds*len(sides), "one")
	defer bar.done()
	w, children := newWatch(cpuTime()), 0.0
	for range o.rounds {
		for _, s := range sides {
			if err := s.round(cmd.Context()); err != nil {
				return fmt.Errorf("%s: %w", s.row.Name, err)
			}
			bar.step(s.row.Name)
		}
	}
	for _, s := range sides {
		children += s.row.CPUS
	}
	busy := w.busy(cpuTime()+time.Duration(children*1e9), sides[1].means())
	for _, s := range sides {
		if s.failed != nil {
			r.NotMeasured = append(r.NotMeasured, fmt.Sprintf("%s: %s%v", s.row.Name, resultNotMeasured, s.failed))
			continue
		}
		s.row.setRates(o, merge(s.stats))
		r.Rows = append(r.Rows, s.row)
	}
	vs := spread(pairwise(sides[1].means(), sides[0].means()))
	r.VsMemcpy, r.Goals = &vs, o.goals(vs, &r.Rows[0], busy)
	r.Findings = o.buildFindings(r.Rows)
	return nil
}

// round has a side take its turn, unless it has failed.
func (s *hmfSide) round(ctx context.Context) error {
	if s.failed != nil {
		return nil
	}
	row, err := s.runOne(ctx)
	if err != nil && s.optional && ctx.Err() == nil {
		s.failed = err
		return nil
	}
	if err == nil {
		s.add(row)
	}
	return err
}

// buildFindings holds the slowest of --build against the fastest, each in its best
// package: if one were faster by orders of magnitude, the compiler would have taken
// away what is measured (H25).
func (o *hmfOptions) buildFindings(rows []HMFRow) []Finding {
	var best []float64
	for _, build := range o.builds {
		for _, row := range rows {
			if row.Name == "ring in C, -"+build {
				best = append(best, row.MS.Min)
			}
		}
	}
	if len(best) < 2 {
		return nil
	}
	ratio := slices.Max(best) / slices.Min(best)
	return []Finding{findingOf("no setting of the compiler takes the work away, best package of the slowest over the fastest", ratio, ratio < 10)}
}

// add adds a round.
func (s *hmfSide) add(row HMFRow) {
	s.stats = append(s.stats, row.MS)
	s.row.Packages += row.MS.N
	s.row.FirstMS, s.row.FirstPacketUS = max(s.row.FirstMS, row.FirstMS), max(s.row.FirstPacketUS, row.FirstPacketUS)
	s.row.Verified += row.Verified
	s.row.CPUS, s.row.WallS = s.row.CPUS+row.CPUS, s.row.WallS+row.WallS
}

// means are the times of a package, by round.
func (s *hmfSide) means() (ms []float64) {
	for _, stat := range s.stats {
		ms = append(ms, stat.Mean)
	}
	return ms
}

// goals decides T17: the rate of packets of 8 KiB that are read in place, or how many
// small ones a second.
func (o *hmfOptions) goals(vs Spread, ring *HMFRow, busy string) []Goal {
	switch {
	case o.verify != "flag" || o.access != "place":
		return nil
	case o.payload == messageSize:
		return []Goal{Goal{ID: "T17", What: fmt.Sprintf("ring: packets of 56 B, %d at once, M/s", max(o.batch, 1)), Value: ring.NetKiB * 1024 / messageSize / 1e6, Target: 20}.decide(busy)}
	case o.packet == 8<<10 && o.batch <= 1:
		return []Goal{Goal{ID: "T17", What: "ring: packets of 8 KiB : memcpy, net rate", Value: vs.Median, Target: 0.9}.decide(busy)}
	}
	return nil
}

// carried has a peer carry the packets.
func (o *hmfOptions) carried(ctx context.Context, by string) (HMFRow, error) {
	dir, err := os.MkdirTemp("", "nfbench")
	if err != nil {
		return HMFRow{}, err
	}
	defer os.RemoveAll(dir)
	j := o.job()
	j.Carry, j.Dir = by, dir
	run, err := runPair(ctx, j, nil)
	row := HMFRow{MS: run.sent.Stat.scaled(1e-6)}
	row.addRun(run)
	return row, err
}

// native runs a program in C.
func (o *hmfOptions) native(ctx context.Context, p *nativeProgram) (HMFRow, error) {
	number := map[bool]int{true: 1}
	run, err := p.run(ctx, 2, "stream", o.payload, o.ring, o.packages+1, o.perPackage, 0, number[o.verify == "full"], number[o.access == "copy"])
	if err == nil && len(run.batches) != o.packages+1 {
		err = fmt.Errorf("printed %d batches in place of %d", len(run.batches), o.packages+1)
	}
	if err != nil {
		return HMFRow{}, err
	}
	return HMFRow{
		MS: summarise(run.batches[1:]).scaled(1e-6), FirstMS: run.batches[0] / 1e6, CPUS: run.used.Seconds(),
		Verified: uint64((o.packages + 1) * o.perPackage),
	}, nil
}
