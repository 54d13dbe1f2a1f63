package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// contender is one side of a comparison.
type contender struct {
	name string
	does string // what an operation is, as it stands in reports
	size int    // bytes per operation
	// batch is the number of operations per sample of the percentiles.
	batch int
	// batches are made at most by each run, of one that is dear to start, which leaves
	// the times of those that it made in parts; 0: one.
	batches int
	parts   []time.Duration
	// run does n operations and returns the time that counts.
	run func(ctx context.Context, n int) (time.Duration, error)
	// cpu is the CPU time of all processes that take part, so far.
	cpu func() (time.Duration, error)
	// used is the CPU time of processes that it alone starts, all of it; nil if it
	// starts none.
	used func() time.Duration
	// chose is what it took of several ways at last, and why; nil: there is one.
	chose func() string
	// close releases what the contender holds; nil if there is nothing.
	close func() error
	// optional is who may fail: the others go on without it.
	optional bool
	failed   error

	samples *recorder
	rounds  []round
}

// round is what one contender did in one round.
type round struct {
	ops    int
	timed  time.Duration // the time that counts
	cpu    time.Duration // of everything in the round
	allocs uint64        // heap objects, this process
}

func (r round) ns() float64 { return float64(r.timed) / float64(r.ops) }

// ns returns the time per operation of each round.
func (c *contender) ns() []float64 {
	ns := make([]float64, len(c.rounds))
	for i, r := range c.rounds {
		ns[i] = r.ns()
	}
	return ns
}

// allocs is the fewest heap objects per operation of all rounds: what the
// rest of the program allocates now and then is not the operation's.
func (c *contender) allocs() float64 {
	per := make([]float64, len(c.rounds))
	for i, r := range c.rounds {
		per[i] = float64(r.allocs) / float64(r.ops)
	}
	return summarise(per).Min
}

func (c *contender) cpuNs() Spread {
	per := make([]float64, len(c.rounds))
	for i, r := range c.rounds {
		per[i] = float64(r.cpu) / float64(r.ops)
	}
	return spread(per)
}

// round runs batches for about the given time.
func (c *contender) round(ctx context.Context, slice time.Duration) error {
	var before, after runtime.MemStats
	cpu, err := c.cpu()
	if err != nil {
		return err
	}
	var r round
	runtime.ReadMemStats(&before)
	for r.ops == 0 || r.timed < slice {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := c.batch * max(c.batches, 1)
		d, err := c.run(ctx, n)
		if err != nil {
			return err
		}
		if c.batches == 0 {
			c.samples.record(d)
		}
		for _, part := range c.parts {
			c.samples.record(part)
		}
		if c.batches > 0 {
			n = c.batch * len(c.parts)
		}
		r.ops += n
		r.timed += d
	}
	runtime.ReadMemStats(&after)
	end, err := c.cpu()
	if err != nil {
		return err
	}
	r.cpu = end - cpu
	if c.used == nil { // else all that is allocated here is the harness's
		r.allocs = after.Mallocs - before.Mallocs
	}
	c.rounds = append(c.rounds, r)
	return nil
}

// comparison runs contenders against each other.
type comparison struct {
	contenders []*contender
	// busy is why the figures are not to be trusted, or is empty.
	busy string
	// failed says which contenders failed, and how.
	failed []string
}

// placed returns who is in place i of round r, of n contenders. In n rounds each follows each
// other once, or twice where n is odd (a design of Williams): who comes after processes that
// slept, or that left the caches to others, takes longer than who comes after its own kind.
func placed(r, i, n int) int {
	if i%2 == 0 {
		return (r + n - i/2) % n
	}
	return (r + i/2 + 1) % n
}

// play warms every contender up with one batch, then plays rounds of one slice of each.
func (t *comparison) play(ctx context.Context, rounds int, slice time.Duration, step func(string)) error {
	for _, c := range t.contenders {
		c.samples = newRecorder()
		_, err := c.run(ctx, c.batch)
		if err = c.excuse(ctx, err); err != nil {
			return err
		}
	}
	own, err := t.cpu()
	if err != nil {
		return err
	}
	w := newWatch(own)
	for r := range rounds {
		for i := range t.contenders {
			c := t.contenders[placed(r, i, len(t.contenders))]
			if c.failed == nil {
				if err := c.excuse(ctx, c.round(ctx, slice)); err != nil {
					return err
				}
			}
			step(c.name)
		}
	}
	if own, err = t.cpu(); err != nil {
		return err
	}
	t.busy = w.busy(own, t.ns(nameMemcpy))
	return t.dismiss()
}

// excuse takes note that an optional contender failed by itself.
func (c *contender) excuse(ctx context.Context, err error) error {
	if !c.optional || ctx.Err() != nil {
		return err
	}
	c.failed = err
	return nil
}

// dismiss leaves those out that failed: what they did before is not comparable.
func (t *comparison) dismiss() error {
	var errs []error
	t.contenders = slices.DeleteFunc(t.contenders, func(c *contender) bool {
		if c.failed != nil {
			t.failed = append(t.failed, fmt.Sprintf("%s, %s: %s%v", c.name, sizeText(c.size), resultNotMeasured, c.failed))
			errs = append(errs, c.end())
		}
		return c.failed != nil
	})
	return errors.Join(errs...)
}

// cpu is the CPU time of the contender that counts the most processes, and of the
// processes that no other one counts.
func (t *comparison) cpu() (time.Duration, error) {
	var most, alone time.Duration
	for _, c := range t.contenders {
		if c.used != nil {
			alone += c.used()
			continue
		}
		d, err := c.cpu()
		if err != nil {
			return 0, err
		}
		most = max(most, d)
	}
	return most + alone, nil
}

func (t *comparison) find(name string) *contender {
	for _, c := range t.contenders {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (t *comparison) ns(name string) []float64 {
	if c := t.find(name); c != nil {
		return c.ns()
	}
	return nil
}

// ratio is the time of a over the time of b, the median of the rounds.
func (t *comparison) ratio(a, b string) Spread {
	return spread(pairwise(t.ns(a), t.ns(b)))
}

// close releases all contenders.
func (t *comparison) close() error {
	var errs []error
	for _, c := range t.contenders {
		errs = append(errs, c.end())
	}
	return errors.Join(errs...)
}

// end releases what the contender holds.
func (c *contender) end() error {
	if c.close == nil {
		return nil
	}
	return c.close()
}

// selfCPU is the CPU time of this process, in the form of a contender.
func selfCPU() (time.Duration, error) { return cpuTime(), nil }

// timed measures one call.
func timed(fn func() error) (time.Duration, error) {
	start := time.Now()
	err := fn()
	return time.Since(start), err
}

// lineUp adds contenders until one cannot be had.
func (t *comparison) lineUp(makers ...func() (*contender, error)) error {
	for _, fn := range makers {
		c, err := fn()
		if err != nil {
			return err
		}
		t.contenders = append(t.contenders, c)
	}
	return nil
}

func ready(c *contender) func() (*contender, error) {
	return func() (*contender, error) { return c, nil }
}
