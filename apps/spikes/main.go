// Command spikes is the artificial spiking network of the MUSIC report: members
// simulate cells, and exchange their spikes every millisecond of biological time.
// Each spike that arrives is checked against the clock of the cell that fired it.
//
//	go run ./apps/spikes
//	go run ./apps/spikes --members 8 --transport shm --algorithm cpex --out DIR
//	go run ./apps/spikes --members 8 --transport fabric
//
// With --out it writes files in microseconds and spikes, a line for a step and a
// column for a member. Four are the report's: ttimes (a step in all), ctimes (the
// exchange, where it gathers), out_spikes, in_spikes. Of a pairwise exchange the report
// has the time of sends and of receives, which overlap here: wtimes is the waiting for
// others in the exchange, xtimes the rest of it.
//
// With --overlap a step is computed while the spikes of the one before are exchanged, as a
// simulator may whose connections have delays of two steps.
//
// Algorithms whose names end in "-l" deliver each package inside of the exchange, as it
// arrives.
//
// Exit codes: 0 verified, 1 failed, 2 bad input, 130 interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/nfcomms/nfcomms/pkg/group"
	"github.com/nfcomms/nfcomms/pkg/group/torus"
	"github.com/nfcomms/nfcomms/pkg/nfcomms"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitInput       = 2
	exitInterrupted = 130
)

// inputError is a fault of the command line.
type inputError struct{ error }

func (e inputError) Unwrap() error { return e.error }

// settings is the command line.
type settings struct {
	network
	transport, address, algorithm, out, preset string
	force                                      bool
	delay                                      group.Delay
	// rank and name are those of a child process.
	rank int
	name string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	var r *result
	if err == nil {
		r, err = s.simulate(ctx, args, stdout, stderr)
	}
	if err == nil && r != nil {
		r.place = cmp.Or(r.place, places[s.transport])
		r.print(stdout)
		if s.out != "" {
			err = r.save(s.out)
		}
		if err == nil && !r.verified() {
			err = errors.New("events are wrong")
		}
	}
	var input inputError
	switch {
	case err == nil:
		return exitOK
	case ctx.Err() != nil:
		fmt.Fprintln(stderr, "spikes: interrupted")
		return exitInterrupted
	}
	fmt.Fprintf(stderr, "spikes: %v\n", err)
	if errors.As(err, &input) || errors.Is(err, group.ErrOptions) {
		return exitInput
	}
	return exitFailed
}

func parse(args []string, stderr io.Writer) (*settings, error) {
	s := &settings{}
	f := flag.NewFlagSet("spikes", flag.ContinueOnError)
	f.SetOutput(io.Discard) // one line for an error, written by run
	f.IntVar(&s.members, "members", 4, "`number` of members, even: half of them for each population")
	f.IntVar(&s.cells, "cells", 4096, "`number` of cells in each population")
	f.IntVar(&s.connections, "connections", 100, "`number` of connections to each cell, on average")
	f.IntVar(&s.millis, "ms", 200, "biological `milliseconds`, a step each")
	f.Uint64Var(&s.seed, "seed", 1, "`seed` of all that is drawn")
	f.StringVar(&s.transport, "transport", "mesh", "`transport`: mesh (goroutines), shm (processes, over rings in shared memory) or fabric (on the nodes of a torus)")
	f.StringVar(&s.address, "address", "sim:?torus=4x2x1", "`address` of a device in a fabric, for --transport fabric")
	f.StringVar(&s.algorithm, "algorithm", group.Auto, "`algorithm` of pkg/group")
	f.DurationVar(&s.delay.PerByte, "delay-byte", 0, "`time` that gathering algorithms wait for each byte gathered, between sizes and data")
	f.DurationVar(&s.delay.PerMember, "delay-member", 0, "`time` that they wait for each member")
	f.BoolVar(&s.delay.Random, "delay-random", false, "draw the waiting from zero to twice that time")
	f.BoolVar(&s.overlap, "overlap", false, "compute the next step while spikes are exchanged: connections have a delay of two steps")
	f.StringVar(&s.out, "out", "", "`folder` for the report's files")
	f.StringVar(&s.preset, "preset", "", "`preset`: paper for 2 × 2 M cells with 1,000 connections each")
	f.BoolVar(&s.force, "force", false, "run a preset that wants much memory")
	f.IntVar(&s.rank, "rank", -1, "the `rank` of a member process (internal)")
	f.StringVar(&s.name, "group", "", "the `name` of its group (internal)")
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stderr)
		f.Usage()
		return nil, err
	}
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return nil, inputError{err}
	}
	return s, nil
}

func (s *settings) check() error {
	switch s.preset {
	case "":
	case "paper":
		s.cells, s.connections, s.millis = 2<<20, 1000, 200
		if !s.force {
			return fmt.Errorf("--preset paper wants about %.0f GiB of memory for all members; --force runs it", s.memory()/(1<<30))
		}
	default:
		return fmt.Errorf("--preset %q is not paper", s.preset)
	}
	if !slices.Contains([]string{"mesh", "shm", "fabric"}, s.transport) {
		return fmt.Errorf("--transport %q is neither mesh, shm nor fabric", s.transport)
	}
	if s.delay.PerByte < 0 || s.delay.PerMember < 0 {
		return errors.New("--delay-byte and --delay-member are not negative")
	}
	if !slices.ContainsFunc(group.Algorithms(), func(a group.Algorithm) bool { return a.Name == s.algorithm }) {
		return fmt.Errorf("--algorithm %q is unknown", s.algorithm)
	}
	return s.network.check()
}

// handled is whether the algorithm hands packages over as they arrive.
func (s *settings) handled() bool {
	return slices.ContainsFunc(group.Algorithms(), func(a group.Algorithm) bool { return a.Name == s.algorithm && a.Process })
}

// simulate runs all members, or one of them in a child. A child other than rank 0
// returns no result.
func (s *settings) simulate(ctx context.Context, args []string, stdout, stderr io.Writer) (*result, error) {
	switch {
	case s.rank >= 0:
		r, err := s.member(ctx, rings(s.name), s.rank)
		if s.rank > 0 {
			r = nil
		}
		return r, err
	case s.transport == "shm":
		return nil, s.processes(ctx, args, stdout, stderr)
	case s.transport == "fabric":
		return s.nodes(ctx)
	}
	return s.goroutines(ctx, group.NewMesh(s.members))
}

// places are where members of transports without a device run.
var places = map[string]string{"mesh": "between goroutines, no device", "shm": "between processes of this machine, no device"}

// nodes runs all members in this process, placed on the nodes of a fabric.
func (s *settings) nodes(ctx context.Context) (r *result, err error) {
	dev, err := nfcomms.Open(ctx, s.address)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	t, err := torus.Open(ctx, dev, s.members)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if r, err = s.goroutines(ctx, t); err == nil {
		r.place = "on the nodes of a fabric, " + dev.Info().Kind() + " devices"
	}
	return r, err
}

// member is one member from joining to leaving.
func (s *settings) member(ctx context.Context, t group.Transport, rank int) (*result, error) {
	m := &member{network: &s.network, handled: s.handled()}
	o := group.Options{Rank: rank, Size: s.members, Algorithm: s.algorithm, Delay: s.delay, Measure: true}
	o.Delay.Seed = s.seed + uint64(rank)
	if m.handled {
		o.Handler = func(p group.Package) {
			if m.handle != nil {
				m.handle(p)
			}
		}
	}
	var err error
	if m.g, err = group.Join(ctx, t, o); err != nil {
		return nil, err
	}
	defer m.g.Close()
	return m.simulate(ctx)
}

// goroutines runs all members in this process.
func (s *settings) goroutines(ctx context.Context, t group.Transport) (*result, error) {
	type outcome struct {
		r   *result
		err error
	}
	ended := make(chan outcome, s.members) // one for each, so that none blocks
	for rank := range s.members {
		go func() {
			r, err := s.member(ctx, t, rank)
			ended <- outcome{r, err}
		}()
	}
	var last outcome
	for range s.members {
		o := <-ended
		if last.err == nil {
			last = o
		}
	}
	return last.r, last.err
}
