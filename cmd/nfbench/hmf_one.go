//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// carryMPI is a program in C, not one of what the hidden commands know.
const carryMPI = "mpi"

var hmfPeers = []string{carryUnix, carryPipe, carryShmipc, carryMPI}

// hmfPeerNames are the rows of reports.
var hmfPeerNames = map[string]string{
	carryUnix: "UNIX socket", carryPipe: "os.Pipe", carryShmipc: "shmipc-go", carryMPI: "OpenMPI, in C",
}

// hmfNoPeers is what is not compared with.
const hmfNoPeers = "iceoryx2, Aeron, UCX: not measured: nfbench has no peer for them"

func (o *hmfOptions) checkPeers() error {
	for _, name := range o.peers {
		if !slices.Contains(hmfPeers, name) {
			return usagef("--peers %q is none of %s", name, strings.Join(hmfPeers, ", "))
		}
	}
	return nil
}

// hmfSide is one of those who take turns.
type hmfSide struct {
	row    HMFRow
	stats  []Stat // milliseconds of a package, by round
	runOne func(ctx context.Context) (HMFRow, error)
}

// sides are the ring, memcpy and the peers, in this order.
func (o *hmfOptions) sides(mpi *mpiPeer) []*hmfSide {
	all := []*hmfSide{
		{row: HMFRow{Name: "one pair"}, runOne: func(ctx context.Context) (HMFRow, error) {
			return o.pairsAtOnce(ctx, 1, o.ring, o.packet, "")
		}},
		{row: HMFRow{Name: nameMemcpy}, runOne: func(context.Context) (HMFRow, error) {
			return HMFRow{MS: o.memcpy().scaled(1e-6)}, nil
		}},
	}
	for _, name := range o.peers {
		run := func(ctx context.Context) (HMFRow, error) { return o.carried(ctx, name) }
		if name == carryMPI {
			run = func(ctx context.Context) (HMFRow, error) { return o.overMPI(ctx, mpi) }
		}
		if name != carryMPI || mpi.missing == "" {
			all = append(all, &hmfSide{row: HMFRow{Name: hmfPeerNames[name]}, runOne: run})
		}
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
	mpi := &mpiPeer{}
	if slices.Contains(o.peers, carryMPI) {
		mpi = findMPI(cmd.Context(), "stream")
		defer mpi.remove()
	}
	sides := each.sides(mpi)
	bar := newProgress(cmd.ErrOrStderr(), o.rounds*len(sides), "one")
	defer bar.done()
	w, children := newWatch(cpuTime()), 0.0
	for range o.rounds {
		for _, s := range sides {
			row, err := s.runOne(cmd.Context())
			if err != nil {
				return fmt.Errorf("%s: %w", s.row.Name, err)
			}
			s.add(row)
			children += row.CPUS
			bar.step(s.row.Name)
		}
	}
	busy := w.busy(cpuTime()+time.Duration(children*1e9), sides[1].means())
	for _, s := range sides {
		s.row.setRates(o, merge(s.stats))
		r.Rows = append(r.Rows, s.row)
	}
	vs := spread(pairwise(sides[1].means(), sides[0].means()))
	r.VsMemcpy, r.Goals = &vs, o.goals(vs, &r.Rows[0], busy)
	if mpi.missing != "" {
		r.NotMeasured = append(r.NotMeasured, "OpenMPI: "+mpi.missing)
	}
	r.NotMeasured = append(r.NotMeasured, hmfNoPeers)
	return nil
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

// overMPI runs the peer in C.
func (o *hmfOptions) overMPI(ctx context.Context, m *mpiPeer) (HMFRow, error) {
	text, err := m.run(ctx, 2, o.payload, o.ring, o.packages+1, o.perPackage)
	if err != nil {
		return HMFRow{}, err
	}
	var ns []float64
	for line := range strings.Lines(text) {
		var v float64
		if _, err := fmt.Sscan(line, &v); err != nil {
			return HMFRow{}, fmt.Errorf("OpenMPI printed %q", line)
		}
		ns = append(ns, v)
	}
	if len(ns) != o.packages+2 {
		return HMFRow{}, fmt.Errorf("OpenMPI printed %d lines in place of %d", len(ns), o.packages+2)
	}
	return HMFRow{
		MS: summarise(ns[1 : len(ns)-1]).scaled(1e-6), FirstMS: ns[0] / 1e6, CPUS: ns[len(ns)-1] / 1e9,
		Verified: uint64((o.packages + 1) * o.perPackage),
	}, nil
}
