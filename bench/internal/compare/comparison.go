package compare

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/nfcomms/nfcomms/bench/internal/cli"
	"github.com/nfcomms/nfcomms/bench/internal/stat"
)

// Contender is one side of a comparison.
type Contender struct {
	Name string
	Does string // what an operation is, as it stands in reports
	Size int    // bytes per operation
	// batch is the number of operations per sample of the percentiles.
	Batch int
	// batches are made at most by each run, of one that is dear to start, which leaves
	// the times of those that it made in parts; 0: one.
	batches int
	parts   []time.Duration
	// run does n operations and returns the time that counts.
	Run func(ctx context.Context, n int) (time.Duration, error)
	// cpu is the CPU time of all processes that take part, so far.
	CPU func() (time.Duration, error)
	// used is the CPU time of processes that it alone starts, all of it; nil if it
	// starts none.
	Used func() time.Duration
	// chose is what it took of several ways at last, and why; nil: there is one.
	Chose func() string
	// close releases what the contender holds; nil if there is nothing.
	Close func() error
	// optional: it may fail, and the others go on without it.
	optional bool
	failed   error

	Samples *stat.Recorder
	Rounds  []round
}

// round is what one contender did in one round.
type round struct {
	Ops    int
	Timed  time.Duration // the time that counts
	cpu    time.Duration // of everything in the round
	allocs uint64        // heap objects, this process
}

// Ns returns the time per operation of each round of a contender, in nanoseconds.
func (r round) Ns() float64 { return float64(r.Timed) / float64(r.Ops) }

// Ns returns the time per operation of each round.
func (c *Contender) Ns() []float64 {
	ns := make([]float64, len(c.Rounds))
	for i, r := range c.Rounds {
		ns[i] = r.Ns()
	}
	return ns
}

// Allocs is the fewest heap objects per operation of all rounds: what the
// rest of the program allocates now and then is not the operation's.
func (c *Contender) Allocs() float64 {
	per := make([]float64, len(c.Rounds))
	for i, r := range c.Rounds {
		per[i] = float64(r.allocs) / float64(r.Ops)
	}
	return stat.Summarise(per).Min
}

// CPUNs is the CPU time per operation, in nanoseconds.
func (c *Contender) CPUNs() stat.Spread {
	per := make([]float64, len(c.Rounds))
	for i, r := range c.Rounds {
		per[i] = float64(r.cpu) / float64(r.Ops)
	}
	return stat.SpreadOf(per)
}

// round runs batches for about the given time.
func (c *Contender) round(ctx context.Context, slice time.Duration) error {
	var before, after runtime.MemStats
	cpu, err := c.CPU()
	if err != nil {
		return err
	}
	var r round
	runtime.ReadMemStats(&before)
	for r.Ops == 0 || r.Timed < slice {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := c.Batch * max(c.batches, 1)
		d, err := c.Run(ctx, n)
		if err != nil {
			return err
		}
		if c.batches == 0 {
			c.Samples.Record(d)
		}
		for _, part := range c.parts {
			c.Samples.Record(part)
		}
		if c.batches > 0 {
			n = c.Batch * len(c.parts)
		}
		r.Ops += n
		r.Timed += d
	}
	runtime.ReadMemStats(&after)
	end, err := c.CPU()
	if err != nil {
		return err
	}
	r.cpu = end - cpu
	if c.Used == nil { // else all that is allocated here is the harness's
		r.allocs = after.Mallocs - before.Mallocs
	}
	c.Rounds = append(c.Rounds, r)
	return nil
}

// Comparison runs contenders against each other.
type Comparison struct {
	Contenders []*Contender
	// busy is why the figures are not to be trusted, or is empty.
	Busy string
	// failed says which contenders failed, and how.
	Failed []string
}

// placed returns the contender in place i of round r, of n. In n rounds each follows each other
// once, or twice where n is odd (a design of Williams): a contender takes longer after processes
// that slept, or that left the caches to others, than after one of its own kind.
func placed(r, i, n int) int {
	if i%2 == 0 {
		return (r + n - i/2) % n
	}
	return (r + i/2 + 1) % n
}

// Play warms every contender up with one batch, then plays rounds of one slice of each.
func (t *Comparison) Play(ctx context.Context, rounds int, slice time.Duration, step func(string)) error {
	for _, c := range t.Contenders {
		c.Samples = stat.NewRecorder()
		_, err := c.Run(ctx, c.Batch)
		if err = c.excuse(ctx, err); err != nil {
			return err
		}
	}
	own, err := t.CPU()
	if err != nil {
		return err
	}
	w := cli.NewWatch(own)
	for r := range rounds {
		for i := range t.Contenders {
			c := t.Contenders[placed(r, i, len(t.Contenders))]
			if c.failed == nil {
				if err := c.excuse(ctx, c.round(ctx, slice)); err != nil {
					return err
				}
			}
			step(c.Name)
		}
	}
	if own, err = t.CPU(); err != nil {
		return err
	}
	t.Busy = w.Busy(own, t.Ns(NameMemcpy))
	return t.dismiss()
}

// excuse takes note that an optional contender failed by itself.
func (c *Contender) excuse(ctx context.Context, err error) error {
	if !c.optional || ctx.Err() != nil {
		return err
	}
	c.failed = err
	return nil
}

// dismiss leaves those out that failed: what they did before is not comparable.
func (t *Comparison) dismiss() error {
	var errs []error
	t.Contenders = slices.DeleteFunc(t.Contenders, func(c *Contender) bool {
		if c.failed != nil {
			t.Failed = append(t.Failed, fmt.Sprintf("%s, %s: %s%v", c.Name, cli.SizeText(c.Size), cli.ResultNotMeasured, c.failed))
			errs = append(errs, c.end())
		}
		return c.failed != nil
	})
	return errors.Join(errs...)
}

// CPU is the CPU time of the contender that counts the most processes, and of the
// processes that no other one counts.
func (t *Comparison) CPU() (time.Duration, error) {
	var most, alone time.Duration
	for _, c := range t.Contenders {
		if c.Used != nil {
			alone += c.Used()
			continue
		}
		d, err := c.CPU()
		if err != nil {
			return 0, err
		}
		most = max(most, d)
	}
	return most + alone, nil
}

// Find returns the contender of a name, nil if there is none.
func (t *Comparison) Find(name string) *Contender {
	for _, c := range t.Contenders {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Ns returns the time per operation of each round of a contender, in nanoseconds.
func (t *Comparison) Ns(name string) []float64 {
	if c := t.Find(name); c != nil {
		return c.Ns()
	}
	return nil
}

// Ratio is the time of a over the time of b, the median of the rounds.
func (t *Comparison) Ratio(a, b string) stat.Spread {
	return stat.SpreadOf(stat.Pairwise(t.Ns(a), t.Ns(b)))
}

// Close releases all contenders.
func (t *Comparison) Close() error {
	var errs []error
	for _, c := range t.Contenders {
		errs = append(errs, c.end())
	}
	return errors.Join(errs...)
}

// end releases what the contender holds.
func (c *Contender) end() error {
	if c.Close == nil {
		return nil
	}
	return c.Close()
}

// SelfCPU is the CPU time of this process, in the form of a contender.
func SelfCPU() (time.Duration, error) { return cli.CPUTime(), nil }

// Timed measures one call.
func Timed(fn func() error) (time.Duration, error) {
	start := time.Now()
	err := fn()
	return time.Since(start), err
}

// LineUp adds contenders until one cannot be had.
func (t *Comparison) LineUp(makers ...func() (*Contender, error)) error {
	for _, fn := range makers {
		c, err := fn()
		if err != nil {
			return err
		}
		t.Contenders = append(t.Contenders, c)
	}
	return nil
}

// Ready is for LineUp: a contender that cannot fail to be made.
func Ready(c *Contender) func() (*Contender, error) {
	return func() (*Contender, error) { return c, nil }
}
