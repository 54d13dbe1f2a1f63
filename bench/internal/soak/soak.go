//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bridge"
	"github.com/nfcomms/nfcomms/internal/texttable"
	"github.com/nfcomms/nfcomms/internal/units"
)

// options are the flags of the command.
type options struct {
	duration time.Duration
	every    time.Duration
	clients  int
	device   string // command line of a device process; "": none is started
	state    string
	seed     uint64
	// spoil has one packet or message of so many be wrong: tests see that it is
	// found. 0: none.
	spoil uint64
	// joints has processes of nodes speak to each other, too.
	joints bool
}

// soakRing is the address of the ring in place of a device.
const soakRing = "ring:"

// New is the command line of nfsoak. The commands of its processes are hidden.
func New() *cobra.Command {
	var o options
	var c *cli.Flags
	cmd := &cobra.Command{
		Use:   "nfsoak",
		Short: "Checksums, kills and restarts, for minutes or weeks",
		Long: `Move data with checksums between processes that are killed, stopped and started again,
and hold the books: what one side handed over, the other one got, once, in order and
unchanged. --address ring: is a ring between two processes (docs/ring.md); any other
address is a device, on which --clients processes exchange messages and transfers with
the loopback program.

A round ends with a fault that is drawn by chance, about every --every. On a ring: the
writer or the reader is killed, the ring's creator goes, or the writer closes; a process
is also stopped for a moment and goes on. On a device: a client is killed that waits in a
call, or moves data, withdraws, maps memory, resets, comes and goes, as is drawn. The others
exchange; what they gave to a program that counts, it must have taken.

On a torus this process exchanges with all other nodes, and has a process of each node
exchange with one of the next by a channel of their own; links are cut and mended, and nodes
killed and started again, half of them without a hang-up, which who exchanged with them must
notice, and go on.

With --device the device of a shm: address is a process that this starts, and that is
killed, stopped for a moment or told to end as well. The clients must hear of it, find the
next one and go on; the device must keep nothing of clients that have gone.

With --state the books are in a file, written after each round: a run that was
interrupted, or whose machine was, goes on where it stopped, until --duration in all.
Exit codes: 0 nothing lost, 1 something was lost or wrong, or the soak failed, 2 bad input,
130 interrupted before there was a report.`,
		Example: `  nfsoak --address ring: --duration 2m
  nfsoak --address sim: --duration 504h --state soak.json
  nfsoak --address 'sim:?torus=3x3x1&errors=1e-5' --duration 10m
  nfsoak --address shm:/tmp/0.sock --device "nfsim --shm /tmp/0.sock" --duration 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return o.run(cmd, c)
		},
	}
	c = cli.NewFlags(cmd)
	o.flags(cmd.Flags())
	cmd.AddCommand(newSoakWrite(), newSoakRead(), newSoakClient())
	return cmd
}

func (o *options) flags(f *pflag.FlagSet) {
	f.DurationVar(&o.duration, "duration", 2*time.Minute, "time in all, that of earlier runs included")
	f.DurationVar(&o.every, "every", time.Second, "mean time of a round, which ends with a fault")
	f.IntVar(&o.clients, "clients", 2, "processes on a device")
	f.StringVar(&o.device, "device", "", "command of the device process of a shm: address, to be killed as well")
	f.BoolVar(&o.joints, "joints", true, "processes of a torus's nodes have channels to each other, too; needs a C compiler")
	f.StringVar(&o.state, "state", "", "file with the books, to go on later")
	f.Uint64Var(&o.seed, "seed", 1, "of what is drawn by chance")
	f.Uint64Var(&o.spoil, "spoil", 0, "make one packet or message of so many wrong")
	_ = f.MarkHidden("spoil") // it is there: it was defined above
}

func (o *options) check(c *cli.Flags) error {
	switch {
	case o.duration <= 0:
		return cli.Usagef("--duration %v is not a positive time", o.duration)
	case o.every < time.Millisecond:
		return cli.Usagef("--every %v is less than a millisecond", o.every)
	case o.clients < 1 || o.clients > 64:
		return cli.Usagef("--clients %d is not 1 to 64", o.clients)
	case o.device != "" && (strings.TrimSpace(o.device) == "" || !strings.HasPrefix(c.Address, "shm:")):
		return cli.Usagef("--device is the command of a process that serves a shm: address")
	}
	return c.Check()
}

// Report is the JSON of the command.
type Report struct {
	Command string      `json:"command"`
	Machine cli.Machine `json:"machine"`
	Label   string      `json:"label"`
	Books   Books       `json:"books"`
	// Seconds and Operations are of this run alone.
	Seconds    float64 `json:"run_seconds"`
	Operations uint64  `json:"run_operations"`
	State      string  `json:"state,omitempty"`
}

// soakRound is one round: until about end, then a fault, and the books of it.
type soakRound func(ctx context.Context, b *Books, chance *rand.Rand, length time.Duration) error

// run makes rounds until the time is over, something is lost, or the user ends it.
func (o *options) run(cmd *cobra.Command, c *cli.Flags) error {
	b, err := o.load(c.Address)
	if err != nil {
		return err
	}
	label := "measured between processes"
	if soakedInProcess(c.Address) {
		label = "measured in one process"
	}
	r := &Report{Command: "nfsoak", Machine: cli.ThisMachine(), Label: label, State: o.state}
	round, end, err := o.rounds(c.Address)
	if err != nil {
		return err
	}
	before := b
	bar := cli.NewProgress(cmd.ErrOrStderr(), int(o.duration.Seconds())+1, "soak")
	for b.Stopped = ""; b.Stopped == "" && err == nil; {
		begun := time.Now()
		chance := rand.New(rand.NewPCG(b.Seed, b.Rounds))
		length := o.every/2 + time.Duration(chance.Int64N(int64(o.every)))
		err = round(cmd.Context(), &b, chance, min(length, max(o.left(&b), time.Millisecond)))
		b.Rounds++
		b.Seconds += time.Since(begun).Seconds()
		b.Stopped = o.stopped(cmd.Context(), &b)
		err = errors.Join(err, o.save(&b))
		bar.At(int(b.Seconds), fmt.Sprintf("soak, round %d", b.Rounds))
	}
	bar.Done()
	if err = errors.Join(err, end()); err != nil {
		return err
	}
	r.Books, r.Seconds, r.Operations = b, b.Seconds-before.Seconds, b.Operations-before.Operations
	if err := c.Print(cmd.OutOrStdout(), r); err != nil {
		return err
	}
	if b.Losses+b.Wrong > 0 {
		return fmt.Errorf("%d lost, %d wrong: %s", b.Losses, b.Wrong, b.First)
	}
	return nil
}

// rounds is what is done at an address, and what ends it.
func (o *options) rounds(address string) (soakRound, func() error, error) {
	if address == soakRing {
		s := &soakedRing{o: o}
		return s.round, s.close, nil
	}
	if soakedInProcess(address) {
		s := &soakedFabric{o: o, address: address}
		return s.round, s.close, nil
	}
	s := &soakedDevice{o: o, address: address}
	if o.device != "" {
		device, err := newSoaked(o.device)
		if err != nil {
			return nil, nil, err
		}
		s.device = device
	}
	return s.round, s.close, nil
}

// soakedInProcess reports whether an address is of a fabric in this process.
func soakedInProcess(address string) bool {
	a, err := bridge.ParseAddress(address)
	return err == nil && a.Options.Has("torus")
}

// left is the time that is left.
func (o *options) left(b *Books) time.Duration {
	return o.duration - time.Duration(b.Seconds*1e9)
}

// stopped returns why there is no next round, "" if there is.
func (o *options) stopped(ctx context.Context, b *Books) string {
	where := fmt.Sprintf(" after round %d, %d operations", b.Rounds, b.Operations)
	switch {
	case b.Losses+b.Wrong > 0:
		return b.First + where
	case ctx.Err() != nil:
		return "interrupted" + where
	case o.left(b) <= 0:
		return "the time is over" + where
	}
	return ""
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) {
	b := r.Books
	fmt.Fprintf(w, "%s, %s\n%s\n\n", b.Address, r.Label, r.Machine.Text())
	t := texttable.Numbers("", "in all", "this run")
	t.Add("time", time.Duration(b.Seconds*1e9).Round(time.Second).String(), time.Duration(r.Seconds*1e9).Round(time.Second).String())
	t.Add("operations", fmt.Sprint(b.Operations), fmt.Sprint(r.Operations))
	t.Add("bytes", units.Bytes(float64(b.Bytes)), "")
	t.Add("rounds", fmt.Sprint(b.Rounds), "")
	for _, kind := range slices.Sorted(maps.Keys(b.Faults)) {
		t.Add("fault: "+kind, fmt.Sprint(b.Faults[kind]), "")
	}
	for _, kind := range slices.Sorted(maps.Keys(b.Noticed)) {
		n := b.Noticed[kind]
		t.Add(kind, fmt.Sprintf("%.0f ms, %.0f at most", n.MeanMs, n.MostMs), "")
	}
	t.Add("losses", fmt.Sprint(b.Losses), "")
	t.Add("wrong", fmt.Sprint(b.Wrong), "")
	t.Write(w)
	fmt.Fprintf(w, "\nstopped: %s\n", b.Stopped)
	if r.State != "" {
		fmt.Fprintf(w, "go on with --state %s and a longer --duration\n", r.State)
	}
}
