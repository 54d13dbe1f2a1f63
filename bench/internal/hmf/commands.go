//go:build linux

package hmf

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

func newHMFInit(c *cli.Flags, o *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init",
		Short: "What it costs to make a ring",
		Long: `INIT_TEST of the report: make a ring --repeat times, for each of --sizes, and give
it up again. With --lazy its memory is not touched, which moves most of the cost to
the first package.

A ring is made once and used by one pair after the other. The row "again" is what a
pair takes that finds one which another pair has left: to attach both sides and pass
a packet.`,
		Example: `  nfbench hmf init --sizes 24989,49999 --repeat 20`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if o.repeat < 1 {
				return cli.Usagef("--repeat %d is less than 1", o.repeat)
			}
			r := newHMFReport("init")
			bar := cli.NewProgress(cmd.ErrOrStderr(), len(o.sizes)*o.repeat, "init")
			defer bar.Done()
			for _, size := range o.sizes {
				if err := r.init(cmd.Context(), o, size, bar); err != nil {
					return err
				}
			}
			r.Paper = PaperInit
			return r.finish(cmd, c, o)
		},
	}
	cmd.Flags().IntSliceVar(&o.sizes, "sizes", []int{24989, 49999, 74959}, "ring sizes in packets")
	cmd.Flags().IntVar(&o.repeat, "repeat", 10, "rings made of each size")
	return cmd
}

// init adds what rings of one size take.
func (r *Report) init(ctx context.Context, o *Options, size int, bar cli.Progress) error {
	var made, again []float64 // milliseconds
	for range o.repeat {
		if err := ctx.Err(); err != nil {
			return err
		}
		m, a, err := InitTimes(ctx, o, size)
		if err != nil {
			return err
		}
		made, again = append(made, float64(m)/1e6), append(again, float64(a)/1e6)
		bar.Step("init " + strconv.Itoa(size))
	}
	row := Row{Name: "init", Ring: size, Packet: o.Packet, Packages: o.repeat, MS: stat.Summarise(made)}
	r.Rows = append(r.Rows, row)
	row.Name, row.MS = "again", stat.Summarise(again)
	r.Rows = append(r.Rows, row)
	return nil
}

func newHMFOne(c *cli.Flags, o *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "one",
		Short: "One pair, beside memcpy and other ways between two processes",
		Long: `ONE_PAIR of the report: one generator and one receiver. In --rounds, each of a fresh
pair, one process copies as many payloads into as much memory, and each peer of
--peers carries as many packets between the same two processes in place of the ring:
unix (a socket pair), pipe (os.Pipe), shmipc (a Go library for shared memory), and where
they are installed openmpi, openmpi-ssend (its synchronous send), ucx and iceoryx2, a
program in C each. All rows but memcpy's are streams from one process to another.

With --build the ring's own code in C, and a writer and reader in C, join them, once
for each of these settings of the compiler. As the report says: were one faster by
orders of magnitude, the compiler would have taken away what is measured.`,
		Example: `  nfbench hmf one --verify full --access copy
  nfbench hmf one --build O0,O3 --peers ""`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if err := o.checkPeers(); err != nil {
				return err
			}
			if o.rounds < 1 || o.rounds > o.Packages {
				return cli.Usagef("--rounds %d is not 1 to %d, the packages", o.rounds, o.Packages)
			}
			r := newHMFReport("one")
			if err := r.one(cmd, o); err != nil {
				return err
			}
			r.Paper = PaperOne
			if len(o.builds) > 0 {
				r.Paper = append(slices.Clone(PaperOne), PaperDebug...)
			}
			return r.finish(cmd, c, o)
		},
	}
	cmd.Flags().IntVar(&o.rounds, "rounds", 9, "how often all take turns")
	cmd.Flags().StringSliceVar(&o.peers, "peers", hmfPeers, "what else carries packets")
	cmd.Flags().StringSliceVar(&o.builds, "build", nil, "compile the ring in C with these settings, O0 to O3, and measure it")
	return cmd
}

// memcpy copies payloads into as much memory as the ring has, in nanoseconds per
// package.
func (o *Options) memcpy() stat.Stat {
	j := hmfJob{Payload: o.Payload}
	from, to, record := j.pattern(), make([]byte, o.Ring*o.Packet), stat.NewRecorder()
	clear(to) // touches it
	number := 0
	for range o.Packages {
		start := time.Now()
		for range o.PerPackage {
			copy(to[number%o.Ring*o.Packet:], from[number%hmfPatterns])
			number++
		}
		record.Record(time.Since(start))
	}
	return record.Stat(1)
}

func newHMFMulti(c *cli.Flags, o *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "multi",
		Short: "Several pairs at once",
		Long: `MULTI_PAIR of the report: so many pairs at the same time, each with a ring of its
own. The report found that together they carry more, while the time of a package
and above all its spread grow faster than the number of pairs.`,
		Example: `  nfbench hmf multi --pairs 1,2,4`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			r := newHMFReport("multi")
			bar := cli.NewProgress(cmd.ErrOrStderr(), len(o.pairs), "multi")
			defer bar.Done()
			for _, pairs := range o.pairs {
				if pairs < 1 || pairs > 64 {
					return cli.Usagef("--pairs %d is not 1 to 64", pairs)
				}
				row, err := o.PairsAtOnce(cmd.Context(), pairs, o.Ring, o.Packet, pairsText(pairs))
				if err != nil {
					return err
				}
				r.Rows = append(r.Rows, row)
				bar.Step(row.Name)
			}
			r.Paper, r.Findings = PaperMulti, PairFindings(r.Rows)
			return r.finish(cmd, c, o)
		},
	}
	cmd.Flags().IntSliceVar(&o.pairs, "pairs", []int{1, 2}, "numbers of pairs")
	return cmd
}

func newHMFSweep(c *cli.Flags, o *Options) *cobra.Command {
	var packets []string
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Ring sizes and packet sizes",
		Long: `The sweeps of the report's outlook: rings from three packets on, made and given up
one after another, and packets of other sizes than 8 KiB.`,
		Example: `  nfbench hmf sweep --sizes 3,7,61,1009 --packets 4KiB,8KiB,64KiB`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			var err error
			if o.packetsOf, err = cli.ParseSizes(packets); err != nil {
				return err
			}
			for _, packet := range o.packetsOf {
				if err := o.checkPacket(packet); err != nil {
					return err
				}
			}
			r := newHMFReport("sweep")
			bar := cli.NewProgress(cmd.ErrOrStderr(), len(o.sizes)*len(o.packetsOf), "sweep")
			defer bar.Done()
			for _, packet := range o.packetsOf {
				for _, size := range o.sizes {
					row, err := o.PairsAtOnce(cmd.Context(), 1, size, packet, "sweep")
					if err != nil {
						return err
					}
					r.Rows = append(r.Rows, row)
					bar.Step(fmt.Sprintf("%d packets of %s", size, cli.SizeText(packet)))
				}
			}
			r.Findings = sizeFindings(r.Rows)
			return r.finish(cmd, c, o)
		},
	}
	cmd.Flags().IntSliceVar(&o.sizes, "sizes", []int{3, 7, 61, 1009, 24989}, "ring sizes in packets")
	cmd.Flags().StringSliceVar(&packets, "packets", []string{"8KiB"}, "packet sizes")
	return cmd
}

func pairsText(n int) string {
	if n == 1 {
		return "one pair"
	}
	return fmt.Sprintf("%d pairs", n)
}

// PairFindings holds several pairs to the report's conclusions: the last row against the first. Two
// runs of the same may differ by 10 %.
func PairFindings(rows []Row) []cli.Finding {
	if len(rows) < 2 || rows[0].Pairs >= rows[len(rows)-1].Pairs {
		return nil
	}
	few, many := rows[0], rows[len(rows)-1]
	over := func(what string, ratio float64) cli.Finding {
		return cli.FindingOf(fmt.Sprintf("%s, by 10 %% at least, %d pairs over %d", what, many.Pairs, few.Pairs), ratio, ratio >= 1.1)
	}
	return []cli.Finding{
		over("more pairs carry more together", many.NetKiB/few.NetKiB),
		over("the time of a package grows with the pairs", many.MS.Mean/few.MS.Mean),
		over("its spread grows faster than its mean", relative(many)/relative(few)),
	}
}

// relative is the spread of a row's times beside their mean.
func relative(r Row) float64 {
	if r.MS.Mean == 0 {
		return 0
	}
	return r.MS.SD / r.MS.Mean
}

// sizeFindings reports whether the size of the ring matters, packet size by packet
// size; the least rings, in which the two sides take turns, do not count.
func sizeFindings(rows []Row) (all []cli.Finding) {
	const fair = 7 // packets from which a ring is none of turns
	least, most := make(map[int]float64), make(map[int]float64)
	var order []int
	for _, r := range rows {
		if r.Ring < fair {
			continue
		}
		if least[r.Packet] == 0 {
			order = append(order, r.Packet)
			least[r.Packet] = r.NetKiB
		}
		least[r.Packet], most[r.Packet] = min(least[r.Packet], r.NetKiB), max(most[r.Packet], r.NetKiB)
	}
	for _, packet := range order {
		ratio := most[packet] / least[packet]
		all = append(all, cli.FindingOf("the ring's size hardly matters, packets of "+cli.SizeText(packet), ratio, ratio < 1.5))
	}
	return all
}

// paperRow is a row of the report's data files: packages of 1,000 packets of
// 8 KiB, 7 KiB of them net, optimised builds.
func paperRow(name string, pairs, size int, lo, mean, hi, sd, gross, net float64) Row {
	return Row{
		Name: name, Pairs: pairs, Ring: size, Packet: 8 << 10, Packages: 1_000_000,
		MS: stat.Stat{Min: lo, Mean: mean, Max: hi, SD: sd}, GrossKiB: gross, NetKiB: net,
	}
}

// The report's tables A.4.1 to A.4.3. The row of six pairs has its columns in
// another order there; it is written here in the order of the others.
var (
	PaperInit = []Row{
		paperRow("init", 0, 24989, 103.734, 106.169, 124.207, 0.7883, 0, 0),
		paperRow("init", 0, 49999, 200.974, 205.1974, 217.922, 1.6418, 0, 0),
		paperRow("init", 0, 74959, 292.484, 300.6551, 320.287, 2.4141, 0, 0),
	}
	PaperOne = []Row{
		paperRow("one pair", 1, 24989, 0.8811951, 0.92466, 3.6139488, 0.0189712, 8651829, 7570350),
		paperRow("one pair", 1, 49999, 0.880003, 0.9286324, 3.6070347, 0.020274, 8614819, 7537966),
		paperRow("one pair", 1, 74959, 0.8819103, 0.9251911, 2.4299622, 0.0207769, 8646862, 7566005),
	}
	PaperDebug = []Row{ // built with -O0, where those of PaperOne are with -O3
		paperRow("one pair, -O0", 1, 24989, 0.8950233, 0.9383918, 3.7908554, 0.0173679, 8525223, 7459570),
		paperRow("one pair, -O0", 1, 49999, 0.9031296, 0.9527076, 3.0291080, 0.0192867, 8397120, 7347480),
		paperRow("one pair, -O0", 1, 74959, 0.8969307, 0.9403643, 3.1490326, 0.0204565, 8507341, 7443924),
	}
	PaperMulti = []Row{
		PaperOne[0],
		paperRow("2 pairs", 2, 24989, 0.9098053, 1.6375465, 4.3740273, 0.0400216, 9770746, 8549403),
		paperRow("3 pairs", 3, 49999, 0.9119511, 2.1991311, 10.1079941, 0.5903547, 11301591, 9888892),
		paperRow("4 pairs", 4, 49999, 0.8900166, 2.8359817, 74.7711658, 0.8632161, 11517232, 10077578),
		paperRow("6 pairs", 6, 74959, 1.0950565, 4.234499, 154.3040276, 2.9379332, 11816924, 10339808),
	}
)
