//go:build linux

package hmf

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
	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// hmfPeers carry packets between the two processes of a pair; then there are the
// programs in C, which are such processes themselves.
var hmfPeers = append([]string{carryUnix, carryPipe, carryShmipc}, compare.NativeNames()...)

// hmfPeerNames are the rows of reports.
var hmfPeerNames = map[string]string{
	carryUnix: "UNIX socket", carryPipe: "os.Pipe", carryShmipc: "shmipc-go",
}

// nativeRing is this project's ring in C, as another program would use it.
var nativeRing = &compare.NativeLibrary{ID: "nfring", Name: "ring", Compiler: "cc", Install: "Debian: gcc, libc6-dev"}

// builds are the compiler settings of --build.
var builds = []string{"O0", "O1", "O2", "O3"}

func (o *Options) checkPeers() error {
	for _, name := range o.peers {
		if !slices.Contains(hmfPeers, name) {
			return cli.Usagef("--peers %q is none of %s", name, strings.Join(hmfPeers, ", "))
		}
	}
	for _, build := range o.builds {
		if !slices.Contains(builds, build) {
			return cli.Usagef("--build %q is none of %s", build, strings.Join(builds, ", "))
		}
	}
	return nil
}

// natives builds the programs in C: the ring by each of --build, and the peers.
func (o *Options) natives(ctx context.Context) (all compare.Natives) {
	for _, build := range o.builds {
		p := &compare.NativeProgram{Library: nativeRing, Name: "ring in C, -" + build, Limit: compare.NativeLimit}
		all = append(all, p.Build(ctx, "-"+build, []embed.FS{compare.NativeSources, sources.Ring},
			"native/peer.c", "native/nfring.c", "kmod/lib/ring.c", "kmod/lib/ring_owner.c"))
	}
	for _, name := range o.peers {
		if library := compare.NativeNamed(name); library != nil {
			p := library.Program(ctx)
			p.Name = library.Name + " in C"
			all = append(all, p)
		}
	}
	return all
}

// hmfSide is one of those who take turns.
type hmfSide struct {
	row    Row
	stats  []stat.Stat // milliseconds of a package, by round
	runOne func(ctx context.Context) (Row, error)
	// optional: it may fail, and the others go on without it.
	optional bool
	failed   error
}

// sides are the ring, memcpy and the peers, in this order.
func (o *Options) sides(others compare.Natives) []*hmfSide {
	all := []*hmfSide{
		{row: Row{Name: "one pair"}, runOne: func(ctx context.Context) (Row, error) {
			return o.PairsAtOnce(ctx, 1, o.Ring, o.Packet, "")
		}},
		{row: Row{Name: compare.NameMemcpy}, runOne: func(context.Context) (Row, error) {
			return Row{MS: o.memcpy().Scaled(1e-6)}, nil
		}},
	}
	for _, name := range o.peers {
		if compare.NativeNamed(name) == nil {
			run := func(ctx context.Context) (Row, error) { return o.carried(ctx, name) }
			all = append(all, &hmfSide{row: Row{Name: hmfPeerNames[name]}, runOne: run})
		}
	}
	for _, p := range others.There() {
		run := func(ctx context.Context) (Row, error) { return o.native(ctx, p) }
		all = append(all, &hmfSide{row: Row{Name: p.Name}, runOne: run, optional: true})
	}
	for _, s := range all {
		s.row.Pairs, s.row.Ring, s.row.Packet = 1, o.Ring, o.Packet
	}
	return all
}

// Builds compiles the ring in C by each of these settings and has each carry the packets once. It
// returns why those that are left out are missing.
func (o *Options) Builds(ctx context.Context, settings ...string) (rows []Row, missing []string, err error) {
	each := *o
	each.builds, each.peers = settings, nil
	all := each.natives(ctx)
	defer all.Remove() // what is left is of no use
	for _, p := range all.There() {
		row, err := each.native(ctx, p)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		row.Name, row.Pairs, row.Ring, row.Packet = p.Name, 1, o.Ring, o.Packet
		row.setRates(o, row.MS)
		rows = append(rows, row)
	}
	return rows, all.Missing(), nil
}

// one lets the ring, memcpy and the peers take turns.
func (r *Report) one(cmd *cobra.Command, o *Options) error {
	each := *o
	each.Packages = o.Packages / o.rounds
	others := o.natives(cmd.Context())
	defer others.Remove() // what is left is of no use
	r.NotMeasured = others.Missing()
	sides := each.sides(others)
	bar := cli.NewProgress(cmd.ErrOrStderr(), o.rounds*len(sides), "one")
	defer bar.Done()
	w, children := cli.NewWatch(cli.CPUTime()), 0.0
	for range o.rounds {
		for _, s := range sides {
			if err := s.round(cmd.Context()); err != nil {
				return fmt.Errorf("%s: %w", s.row.Name, err)
			}
			bar.Step(s.row.Name)
		}
	}
	for _, s := range sides {
		children += s.row.CPUS
	}
	busy := w.Busy(cli.CPUTime()+time.Duration(children*1e9), sides[1].means())
	for _, s := range sides {
		if s.failed != nil {
			r.NotMeasured = append(r.NotMeasured, fmt.Sprintf("%s: %s%v", s.row.Name, cli.ResultNotMeasured, s.failed))
			continue
		}
		s.row.setRates(o, merge(s.stats))
		r.Rows = append(r.Rows, s.row)
	}
	vs := stat.SpreadOf(stat.Pairwise(sides[1].means(), sides[0].means()))
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

// buildFindings holds the slowest of --build against the fastest.
func (o *Options) buildFindings(rows []Row) []cli.Finding {
	var built []Row
	for _, build := range o.builds {
		for _, row := range rows {
			if row.Name == "ring in C, -"+build {
				built = append(built, row)
			}
		}
	}
	if len(built) < 2 {
		return nil
	}
	ratio := BuildRatio(built)
	return []cli.Finding{cli.FindingOf("no setting of the compiler takes the work away, best package of the slowest over the fastest", ratio, ratio < BuildBound)}
}

// BuildBound is the ratio of builds from which the compiler has taken away what is measured: one is
// faster by orders of magnitude.
const BuildBound = 10

// BuildRatio is the best package of the slowest row over that of the fastest.
func BuildRatio(rows []Row) float64 {
	var best []float64
	for _, row := range rows {
		best = append(best, row.MS.Min)
	}
	return slices.Max(best) / slices.Min(best)
}

// add adds a round.
func (s *hmfSide) add(row Row) {
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
func (o *Options) goals(vs stat.Spread, ring *Row, busy string) []cli.Goal {
	switch {
	case o.Verify != "flag" || o.Access != "place":
		return nil
	case o.Payload == compare.MessageSize:
		return []cli.Goal{cli.Goal{ID: "T17", What: fmt.Sprintf("ring: packets of 56 B, %d at once, M/s", max(o.batch, 1)), Value: ring.NetKiB * 1024 / compare.MessageSize / 1e6, Target: 20}.Decide(busy)}
	case o.Packet == 8<<10 && o.batch <= 1:
		return []cli.Goal{cli.Goal{ID: "T17", What: "ring: packets of 8 KiB : memcpy, net rate", Value: vs.Median, Target: 0.9}.Decide(busy)}
	}
	return nil
}

// carried has a peer carry the packets.
func (o *Options) carried(ctx context.Context, by string) (Row, error) {
	dir, err := os.MkdirTemp("", "nfbench")
	if err != nil {
		return Row{}, err
	}
	defer os.RemoveAll(dir)
	j := o.job()
	j.Carry, j.Dir = by, dir
	run, err := runPair(ctx, j, nil)
	row := Row{MS: run.sent.Stat.Scaled(1e-6)}
	row.addRun(run)
	return row, err
}

// native runs a program in C.
func (o *Options) native(ctx context.Context, p *compare.NativeProgram) (Row, error) {
	number := map[bool]int{true: 1}
	run, err := p.Run(ctx, 2, "stream", o.Payload, o.Ring, o.Packages+1, o.PerPackage, 0, number[o.Verify == "full"], number[o.Access == "copy"])
	if err == nil && len(run.Batches) != o.Packages+1 {
		err = fmt.Errorf("printed %d batches in place of %d", len(run.Batches), o.Packages+1)
	}
	if err != nil {
		return Row{}, err
	}
	return Row{
		MS: stat.Summarise(run.Batches[1:]).Scaled(1e-6), FirstMS: run.Batches[0] / 1e6, CPUS: run.Used.Seconds(),
		Verified: uint64((o.Packages + 1) * o.PerPackage),
	}, nil
}
