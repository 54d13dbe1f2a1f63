//go:build linux

package groups

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/compare"
	"github.com/nfcomms/nfcomms/bench/internal/plot"
	"github.com/nfcomms/nfcomms/pkg/group"
)

// Options are the flags of the command.
type Options struct {
	Members, Targets []int
	sizes            []string
	Algorithms       []string
	Transports       []string
	address          string
	Rounds           int
	Slice            time.Duration
	delay            group.Delay
	short, steps     bool
	plot             string

	Bytes []int // sizes, parsed
}

// Transports of members, and the most members of each.
const (
	TransportMesh   = "mesh"
	TransportShm    = "shm"
	transportFabric = "fabric"
	groupMost       = 1024 // members in one process
	groupRanks      = 64   // member processes
	grpcStreams     = 4096 // of the peer, one for each pair of neighbours
)

// groupTransports are the values of --transports.
var groupTransports = []string{TransportMesh, TransportShm, transportFabric}

// Add adds the command and the one of member processes, which is hidden.
func Add(root *cobra.Command, c *cli.Flags) {
	root.AddCommand(newGroup(c), newGroupMember())
}

func newGroup(c *cli.Flags) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "group",
		Short: "Members that exchange data every step, by the algorithms of the MUSIC report",
		Long: `Measure a step of pkg/group: every member has some bytes for each of so many
neighbours. Each transport (mesh: goroutines, shm: processes, fabric: goroutines whose
packages go over the nodes of a torus), number of members and size is a comparison of all
algorithms, in interleaved rounds, beside peers that do the same: between goroutines a
mutex and a slice for each member (the local optimum), a mesh of Go channels, memcpy, and
gRPC streams through a socket; between processes OpenMPI, where it is installed.

A time is that of a step of the slowest member: mean and maximum of batches, and spread of
the rounds. CPU is that of all members together. Algorithms whose names end in "-l" read
each package as it arrives, in the exchange, as a simulator processes spikes. Shapes of the report are held against
what is measured; its tables of volumes stand beside what the model says.`,
		Example: `  nfbench group --short
  nfbench group --members 8 --targets 4 --sizes 64,64KiB --plot group.svg
  nfbench group --transports fabric --members 8,64,1024 --sizes 16 --algorithms isend,bruck`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c, cmd.Flags().Changed); err != nil {
				return err
			}
			r, err := o.Measure(cmd.Context(), func(steps int) cli.Progress {
				return cli.NewProgress(cmd.ErrOrStderr(), steps, "group")
			})
			if err != nil {
				return err
			}
			if o.plot != "" {
				if err := r.Draw().Save(o.plot); err != nil {
					return err
				}
			}
			return c.Print(cmd.OutOrStdout(), r)
		},
	}
	o.flags(cmd.Flags())
	return cmd
}

// flags adds the flags of the command.
func (o *Options) flags(f *pflag.FlagSet) {
	f.IntSliceVar(&o.Members, "members", []int{5, 8, 16}, "numbers of members")
	f.IntSliceVar(&o.Targets, "targets", []int{4}, "numbers of neighbours that each has data for")
	f.StringSliceVar(&o.sizes, "sizes", []string{"16", "64", "1KiB", "8KiB", "64KiB"}, "bytes for each of them")
	f.StringSliceVar(&o.Algorithms, "algorithms", allAlgorithms(), "algorithms of pkg/group")
	f.StringSliceVar(&o.Transports, "transports", []string{TransportMesh, TransportShm}, "mesh, shm, fabric")
	f.StringVar(&o.address, "address", "sim:?torus=4x2x1", "device in a fabric, for the transport of that name")
	f.IntVar(&o.Rounds, "rounds", 5, "rounds of each comparison")
	f.DurationVar(&o.Slice, "slice", 50*time.Millisecond, "time of an algorithm in a round")
	f.DurationVar(&o.delay.PerByte, "delay-byte", 0, "time that gathering algorithms wait for each byte gathered, between sizes and data")
	f.DurationVar(&o.delay.PerMember, "delay-member", 0, "time that they wait for each member")
	f.BoolVar(&o.delay.Random, "delay-random", false, "draw the waiting from zero to twice that time")
	f.BoolVar(&o.steps, "steps", false, "the report's comparison of #2 and #3: isend and isend-irecv, 1,920 to 7,680 bytes")
	f.BoolVar(&o.short, "short", false, "a few sizes, members and rounds, in some seconds")
	f.Var(plot.Output(&o.plot), "plot", "draw the times over the sizes to this SVG file")
}

// groupAlgorithms are those without a handler, among which auto is to find the best one.
func groupAlgorithms() []string {
	return slices.DeleteFunc(allAlgorithms(), handled)
}

// allAlgorithms are the values of --algorithms.
func allAlgorithms() (names []string) {
	for _, a := range group.Algorithms() {
		names = append(names, a.Name)
	}
	return names
}

// handled is whether an algorithm hands packages over as they arrive.
func handled(name string) bool {
	return slices.ContainsFunc(group.Algorithms(), func(a group.Algorithm) bool { return a.Name == name && a.Process })
}

// stepSizes are those of the report's comparison of its modifications #2 and #3: 120 to 480 events of
// 16 bytes.
var stepSizes = []string{"1920", "2880", "3840", "4800", "5760", "6720", "7680"}

// shorten sets what --short is about, but for what was given.
func (o *Options) shorten(changed func(string) bool) {
	cli.Shorten(changed, map[string]func(){
		"members":    func() { o.Members = []int{5, 8} },
		"sizes":      func() { o.sizes = []string{"64", "64KiB"} },
		"algorithms": func() { o.Algorithms = []string{group.Auto, "isend", "isend-irecv", "cpex", "bruck", "allgather"} },
		"rounds":     func() { o.Rounds = 3 },
		"slice":      func() { o.Slice = 10 * time.Millisecond },
	})
}

// check refuses flags that make no sense.
func (o *Options) check(c *cli.Flags, changed func(string) bool) error {
	if o.steps {
		cli.Shorten(changed, map[string]func(){
			"sizes":      func() { o.sizes = stepSizes },
			"algorithms": func() { o.Algorithms = []string{"isend", "isend-irecv"} },
		})
	}
	if o.short {
		o.shorten(func(flag string) bool { return o.steps && (flag == "sizes" || flag == "algorithms") || changed(flag) })
	}
	for _, n := range o.Members {
		if n < 2 || n > groupMost {
			return cli.Usagef("--members %d is not 2 to %d", n, groupMost)
		}
	}
	for _, n := range o.Targets {
		if n < 1 {
			return cli.Usagef("--targets %d is less than 1", n)
		}
	}
	for _, name := range o.Algorithms {
		if !slices.Contains(allAlgorithms(), name) {
			return cli.Usagef("--algorithms %q is none of %v", name, allAlgorithms())
		}
	}
	for _, name := range o.Transports {
		if !slices.Contains(groupTransports, name) {
			return cli.Usagef("--transports %q is none of %v", name, groupTransports)
		}
	}
	switch {
	case len(o.Members) == 0 || len(o.Targets) == 0 || len(o.Algorithms) == 0 || len(o.Transports) == 0:
		return cli.Usagef("a list is empty")
	case o.delay.PerByte < 0 || o.delay.PerMember < 0:
		return cli.Usagef("--delay-byte and --delay-member are not negative")
	case o.Rounds < 1:
		return cli.Usagef("--rounds %d is less than 1", o.Rounds)
	case o.Slice <= 0:
		return cli.Usagef("--slice %v is not a positive time", o.Slice)
	}
	var err error
	if o.Bytes, err = cli.ParseSizes(o.sizes); err != nil {
		return err
	}
	return c.Check()
}

// exchangeShape is what is exchanged in one comparison.
type exchangeShape struct {
	transport              string
	members, targets, size int
}

// shapes lists the comparisons. A member has no more neighbours than there are.
func (o *Options) shapes() []exchangeShape {
	var list []exchangeShape
	for _, transport := range o.Transports {
		for _, members := range o.Members {
			if transport == TransportShm && members > groupRanks {
				continue
			}
			for _, targets := range o.Targets {
				for _, size := range o.Bytes {
					s := exchangeShape{transport, members, min(targets, members-1), size}
					if !slices.Contains(list, s) {
						list = append(list, s)
					}
				}
			}
		}
	}
	return list
}

// neighbour is the i-th of a member: one to the right, one to the left, two to the
// right …; neighbours are mutual.
func (s exchangeShape) neighbour(rank, i int) int {
	d := i/2 + 1
	if i%2 == 1 {
		d = s.members - d
	}
	return (rank + d) % s.members
}

// neighbours are those of a member. An odd number of them is not symmetric; then
// the sources are others.
func (s exchangeShape) neighbours(rank int) (targets, sources []int) {
	for i := range s.targets {
		to := s.neighbour(rank, i)
		targets = append(targets, to)
		sources = append(sources, (2*rank-to+2*s.members)%s.members)
	}
	return targets, sources
}

// options are those of a member, otherwise like some.
func (s exchangeShape) options(o group.Options, rank int) group.Options {
	o.Rank, o.Size = rank, s.members
	o.Delay.Seed = uint64(rank)
	if handled(o.Algorithm) {
		ones := 0
		o.Handler = func(p group.Package) { ones += readAll(p.Data) }
	}
	o.Targets, o.Sources = s.neighbours(rank)
	return o
}

// packages are what a member sends in each step.
func (s exchangeShape) packages(rank int) []group.Package {
	var out []group.Package
	targets, _ := s.neighbours(rank)
	for _, to := range targets {
		data := make([]byte, s.size)
		for i := range data {
			data[i] = byte(rank + i)
		}
		out = append(out, group.Package{Rank: to, Data: data})
	}
	return out
}

// batch is the steps between two looks at the clock: so many that it does not matter
// that processes begin them one after the other.
func (s exchangeShape) batch() int {
	return max(1, min(100, (32<<20)/(s.members*s.targets*s.size+1), 4000/s.members))
}

// warm is how many steps pass before what counts: auto takes some to choose.
func (s exchangeShape) warm(algorithm string) int {
	if algorithm == group.Auto {
		return autoChooses
	}
	return s.batch()
}

// autoChooses is more steps than the trials of all candidates take.
const autoChooses = 450

// Measure runs all comparisons.
func (o *Options) Measure(ctx context.Context, bar func(int) cli.Progress) (*Report, error) {
	r := newGroupReport()
	all := o.shapes()
	b := bar(len(all))
	defer b.Done()
	mpi := newGroupMPI(ctx)
	defer mpi.Remove() // what is left is of no use
	r.NotMeasured = append(compare.Natives{mpi}.Missing(), groupNoPeers)
	for _, s := range all {
		if err := o.compare(ctx, r, s, mpi); err != nil {
			return nil, fmt.Errorf("%s, %d members, %s: %w", s.transport, s.members, cli.SizeText(s.size), err)
		}
		b.Step(fmt.Sprintf("%s %d × %s", s.transport, s.members, cli.SizeText(s.size)))
	}
	r.conclude()
	return r, nil
}

// compare runs all algorithms and peers of one shape against each other.
func (o *Options) compare(ctx context.Context, r *Report, s exchangeShape, mpi *compare.NativeProgram) (err error) {
	t := &compare.Comparison{}
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	for _, name := range o.Algorithms {
		side, err := newGroupSide(ctx, s, o.address, group.Options{Algorithm: name, Delay: o.delay})
		if err != nil {
			return err
		}
		t.Contenders = append(t.Contenders, side)
		if _, err := side.Run(ctx, s.warm(name)); err != nil {
			return err
		}
	}
	if s.transport == TransportMesh {
		t.Contenders = append(t.Contenders, newLocalSide(s), newChannelSide(s), newCopySide(compare.NameMemcpy, s, false), newCopySide(nameCopyRead, s, true))
		for _, name := range []string{nameRead, nameShared} {
			side, err := newReadSide(ctx, s, name)
			if err != nil {
				return err
			}
			t.Contenders = append(t.Contenders, side)
		}
	}
	if s.transport == TransportMesh && s.members*s.targets <= grpcStreams {
		side, err := newStreamSide(ctx, s)
		if err != nil {
			return err
		}
		t.Contenders = append(t.Contenders, side)
	}
	if s.transport == TransportShm && mpi.Missing == "" {
		for _, name := range mpiNames {
			t.Contenders = append(t.Contenders, groupSide(mpi, s, name))
		}
	}
	if err := t.Play(ctx, o.Rounds, o.Slice, func(string) {}); err != nil {
		return err
	}
	for _, c := range t.Contenders {
		r.add(s, c, t.Busy)
	}
	r.NotMeasured = append(r.NotMeasured, t.Failed...)
	return nil
}
