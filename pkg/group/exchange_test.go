package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var patterns = map[string]pattern{
	"empty":  func(*rand.Rand, int, int) int { return -1 },
	"dense":  func(r *rand.Rand, _, _ int) int { return 16 * r.IntN(20) },
	"sparse": func(r *rand.Rand, _, _ int) int { return r.IntN(600) - 500 },
	"skewed": func(r *rand.Rand, from, to int) int {
		if to == 0 {
			return 4_000 + r.IntN(1_000)
		}
		return r.IntN(16) * (from % 2)
	},
	"mixed": func(r *rand.Rand, _, _ int) int { // in one piece and in several
		if r.IntN(4) == 0 {
			return r.IntN(100_000)
		}
		return r.IntN(600)
	},
	"long": func(r *rand.Rand, from, to int) int { // over a packet of a ring
		if from == 1 && to == 0 {
			return 60_000 + r.IntN(100_000)
		}
		return -1
	},
}

// options are those that run an algorithm.
func options(a Algorithm, size int) Options {
	o := Options{Size: size, Algorithm: a.Name}
	if a.Process {
		o.Handler = func(Package) {}
	}
	return o
}

// steps exchanges so many steps of a pattern and checks each.
func steps(ctx context.Context, g *Group, seed uint64, p pattern, n int) error {
	for step := range n {
		in, err := g.Exchange(ctx, outOf(seed, p, step, g))
		if err == nil {
			err = checkIn(seed, p, step, g, in)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestAlgorithmsAgree: each hands over exactly what a copy in memory would, for
// whatever is sent.
func TestAlgorithmsAgree(t *testing.T) {
	for _, a := range Algorithms() {
		t.Run(a.Name, func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) {
				transport, most := "mesh", 6
				if rapid.IntRange(0, 19).Draw(r, "rings") == 0 {
					transport, most = "rings", 4
				}
				size := rapid.IntRange(1, most).Draw(r, "members")
				kind := rapid.SampledFrom(slices.Sorted(keys(patterns))).Draw(r, "pattern")
				seed := rapid.Uint64().Draw(r, "seed")
				o := options(a, size)
				o.Buffer = rapid.IntRange(64, 300).Draw(r, "buffer")
				play(t, transport, o, func(ctx context.Context, g *Group) error {
					return steps(ctx, g, seed, patterns[kind], 2)
				})
			})
		})
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// around is a graph in which some edges have no way back.
func around(rank, size int) (targets, sources []int) {
	for d := 1; d <= min(2, size-1); d++ {
		targets = append(targets, (rank+d)%size)
		sources = append(sources, (rank-d+size)%size)
	}
	return targets, sources
}

// TestVeryManyMembers: 1,024 of them send to neighbours straight, and in rounds through
// others; each gets what is for it, in its step.
func TestVeryManyMembers(t *testing.T) {
	const size = 1024
	ctx, cancel := context.WithTimeout(t.Context(), 10*patience) // of a busy machine, with the race detector
	defer cancel()
	for _, name := range []string{"isend", "bruck"} {
		mesh := NewMesh(size)
		var all sync.WaitGroup
		for rank := range size {
			all.Go(func() {
				assert.NoError(t, passAround(ctx, mesh, name, rank, size), "%s, member %d", name, rank)
			})
		}
		all.Wait()
	}
}

// passAround sends rank and step to the neighbours, three times.
func passAround(ctx context.Context, mesh *Mesh, name string, rank, size int) error {
	o := Options{Rank: rank, Size: size, Algorithm: name, JoinTimeout: 10 * patience}
	o.Targets, o.Sources = around(rank, size)
	g, err := Join(ctx, mesh, o)
	if err != nil {
		return err
	}
	defer g.Close()
	for step := range 3 {
		var out []Package
		for _, to := range o.Targets {
			out = append(out, Package{to, fmt.Appendf(nil, "%d to %d, %d", rank, to, step)})
		}
		in, err := g.Exchange(ctx, out)
		if err != nil {
			return err
		}
		if len(in) != len(o.Sources) {
			return fmt.Errorf("%d packages of step %d", len(in), step)
		}
		for _, p := range in {
			if want := fmt.Sprintf("%d to %d, %d", p.Rank, rank, step); !slices.Contains(o.Sources, p.Rank) || string(p.Data) != want {
				return fmt.Errorf("%q from %d, not %q", p.Data, p.Rank, want)
			}
		}
	}
	return nil
}

// TestOneWayEdges: only neighbours are waited for, and a member that is never sent
// to does not run away.
func TestOneWayEdges(t *testing.T) {
	const size, rounds = 5, 20
	for _, transport := range []string{"mesh", "rings"} {
		for _, a := range Algorithms() {
			var done [size]atomic.Int64
			connect := transports[transport](t, size)
			var all errs
			for rank := range size {
				all.Go(func() error {
					o := options(a, size)
					o.Rank = rank
					o.Targets, o.Sources = around(rank, size)
					g, err := Join(background(t), connect(rank), o)
					if err != nil {
						return err
					}
					defer g.Close()
					for step := range rounds {
						var out []Package
						for _, to := range o.Targets {
							out = append(out, Package{to, []byte(fmt.Sprint(rank, to, step))})
						}
						in, err := g.Exchange(background(t), out)
						if err != nil {
							return err
						}
						if len(in) != len(o.Sources) {
							return fmt.Errorf("%d packages", len(in))
						}
						for _, p := range in {
							if string(p.Data) != fmt.Sprint(p.Rank, rank, step) {
								return fmt.Errorf("%q from %d in step %d", p.Data, p.Rank, step)
							}
						}
						done[rank].Add(1)
						for _, to := range o.Targets {
							if ahead := int64(step) - done[to].Load(); ahead > 3 {
								return fmt.Errorf("%d steps ahead", ahead)
							}
						}
					}
					return nil
				})
			}
			require.NoError(t, all.Wait(), "%s over %s", a.Name, transport)
		}
	}
}

// TestCrossedTargets: two members send to the same two in opposite orders, and each
// of those, asleep by then, receives from one before the other can continue.
func TestCrossedTargets(t *testing.T) {
	edges := [4][2][]int{{{2, 3}, {}}, {{3, 2}, {}}, {{}, {0, 1}}, {{}, {0, 1}}}
	for _, a := range Algorithms() {
		t.Run(a.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mesh := NewMesh(len(edges))
				var all errs
				for rank, edge := range edges {
					all.Go(func() error { return crossed(t.Context(), mesh, a, rank, edge[0], edge[1]) })
				}
				require.NoError(t, all.Wait())
			})
		})
	}
}

func crossed(ctx context.Context, mesh *Mesh, a Algorithm, rank int, targets, sources []int) error {
	o := options(a, 4)
	o.Rank, o.Targets, o.Sources = rank, targets, sources
	g, err := Join(ctx, mesh, o)
	if err != nil {
		return err
	}
	defer g.Close()
	var out []Package
	for _, to := range targets {
		out = append(out, Package{to, []byte{byte(rank)}})
	}
	if len(out) > 0 {
		time.Sleep(time.Second) // the bubble's clock: the others sleep
	}
	in, err := g.Exchange(ctx, out)
	if err == nil && len(in) != len(sources) {
		err = fmt.Errorf("%d packages", len(in))
	}
	return err
}

// TestPackages: packages are yielded as they arrive; a loop that breaks off ends its
// step all the same.
func TestPackages(t *testing.T) {
	play(t, "mesh", Options{Size: 4, Algorithm: "isend"}, func(ctx context.Context, g *Group) error {
		for step := range 20 {
			n := 0
			for p, err := range g.Packages(ctx, outOf(5, patterns["dense"], step, g)) {
				if err != nil {
					return err
				}
				if want := stepBytes(5, patterns["dense"], step, p.Rank, g.Rank(), 4); string(want) != string(p.Data) {
					return errors.New("other bytes")
				}
				if n++; n > step%3 {
					break
				}
			}
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		for _, err := range g.Packages(cancelled, nil) {
			if !errors.Is(err, ErrCanceled) || !errors.Is(err, context.Canceled) {
				return fmt.Errorf("not canceled: %w", err)
			}
		}
		return nil
	})
}

// TestHandler: the algorithms that process call the handler with each package.
func TestHandler(t *testing.T) {
	for _, name := range []string{"isend-l", "allgather-l"} {
		var calls atomic.Int64
		o := Options{Size: 3, Algorithm: name, Handler: func(p Package) { calls.Add(int64(len(p.Data))) }}
		play(t, "mesh", o, func(ctx context.Context, g *Group) error {
			_, err := g.Exchange(ctx, []Package{{(g.Rank() + 1) % 3, make([]byte, 100)}})
			return err
		})
		require.Equal(t, int64(300), calls.Load())
	}
}

// TestDelay: both kinds of delay pass between sizes and data.
func TestDelay(t *testing.T) {
	for _, random := range []bool{false, true} {
		o := Options{Size: 2, Algorithm: "allgather", Delay: Delay{PerByte: 1, PerMember: 1000, Random: random}}
		play(t, "mesh", o, func(ctx context.Context, g *Group) error { return steps(ctx, g, 1, patterns["dense"], 3) })
	}
}

// TestFlush: members whose data end at different steps get all that the others
// still have, and start over together.
func TestFlush(t *testing.T) {
	for transport := range transports {
		for _, a := range Algorithms() {
			const size, most = 4, 7
			o := options(a, size)
			play(t, transport, o, func(ctx context.Context, g *Group) error {
				for round := range 3 {
					got, own := 0, most*g.Rank()/(size-1)
					for range own {
						in, err := g.Exchange(ctx, []Package{{(g.Rank() + 1) % size, []byte{byte(round)}}})
						if err != nil {
							return err
						}
						got += len(in)
					}
					for in, err := range g.Flush(ctx) {
						if err != nil {
							return err
						}
						for _, p := range in {
							if p.Data[0] != byte(round) {
								return fmt.Errorf("of round %d in %d", p.Data[0], round)
							}
						}
						got += len(in)
					}
					if want := most * ((g.Rank() + size - 1) % size) / (size - 1); got != want {
						return fmt.Errorf("%d packages of %d", got, want)
					}
					if err := g.Barrier(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

// TestFlushAndLeave: who has flushed may leave at once; the others, who still look for
// the end of the data, do not take it for lost.
func TestFlushAndLeave(t *testing.T) {
	for transport := range transports {
		for _, a := range Algorithms() {
			const size = 4
			for round := range 5 {
				play(t, transport, options(a, size), func(ctx context.Context, g *Group) error {
					for range 3 * ((g.Rank() + round) % size) {
						if _, err := g.Exchange(ctx, []Package{{(g.Rank() + 1) % size, []byte{1}}}); err != nil {
							return err
						}
					}
					for _, err := range g.Flush(ctx) {
						if err != nil {
							return fmt.Errorf("%s over %s: %w", a.Name, transport, err)
						}
					}
					return nil
				})
			}
		}
	}
}

// TestFlushWithoutOne: a flush ends at once when a member leaves that never flushed,
// although nobody has to wait for it.
func TestFlushWithoutOne(t *testing.T) {
	mesh := NewMesh(3)
	ctx := background(t)
	var all errs
	for rank := range 3 {
		all.Go(func() error {
			o := Options{Rank: rank, Size: 3, Algorithm: "isend", Targets: []int{}}
			if rank < 2 {
				o.Targets = []int{1 - rank}
			}
			o.Sources = o.Targets
			g, err := Join(ctx, mesh, o)
			if err != nil {
				return err
			}
			defer g.Close()
			if rank == 2 {
				return nil
			}
			for _, err := range g.Flush(ctx) {
				var e *Error
				if errors.As(err, &e) && (errors.Is(err, ErrRevoked) || errors.Is(err, ErrGone) && slices.Equal(e.Ranks, []int{2})) {
					return nil
				}
			}
			return errors.New("it does not name rank 2")
		})
	}
	require.NoError(t, all.Wait())
}

// TestNoAllocation: a step allocates nothing once memory is warm, whatever its
// packages are: small ones, those sent in pieces, events of a type, with a deadline and
// without copies.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		return // it allocates itself
	}
	for _, a := range Algorithms() {
		for transport := range transports {
			for what, c := range map[string]struct {
				least, most int
				change      func(*Options)
			}{
				"small":     {64, 2000, func(*Options) {}},
				"large":     {5_000, 200_000, func(o *Options) { o.Buffer = 64 << 10 }},
				"deadline":  {0, 64, func(o *Options) { o.Timeout = patience }},
				"zero copy": {0, 9_000, func(o *Options) { o.ZeroCopy = true }},
			} {
				o := options(a, 2)
				c.change(&o)
				play(t, transport, o, func(ctx context.Context, g *Group) error {
					if n, err := allocations(ctx, g, c.least, c.most); n > 0 || err != nil {
						return fmt.Errorf("%s over %s, %s: %v allocations a step: %w", a.Name, transport, what, n, err)
					}
					return nil
				})
			}
		}
	}
}

// allocations counts those of a step of two members, of sizes in turn.
func allocations(ctx context.Context, g *Group, least, most int) (n float64, err error) {
	data := make([]uint64, most/8)
	var out [1]Batch[uint64]
	at := 0
	step := func() {
		if err == nil {
			at++
			out[0] = Batch[uint64]{1 - g.Rank(), data[:(least+at%2*(most-least))/8]}
			_, err = Exchange(ctx, g, out[:])
		}
	}
	const warm, steps = 60, 100
	for range warm {
		step()
	}
	if g.Rank() == 0 {
		return testing.AllocsPerRun(steps, step), err
	}
	for range steps + 1 {
		step()
	}
	return 0, err
}
