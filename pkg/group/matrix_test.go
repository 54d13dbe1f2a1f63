package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
)

// matrixSizes are those that something begins at: no package, one byte, an event, what
// a cell, an inbox and a packet of a ring hold, and one more.
var matrixSizes = []int{0, 1, 16, cellMost, cellMost + 1, smallFrame, smallFrame + 1, ringMost, ringMost + 1}

const (
	cellMost = 480
	ringMost = 68<<10 - 48
)

// matrix are the patterns that send the sizes above.
var matrix = map[string]pattern{
	"empty": func(*rand.Rand, int, int) int { return -1 },
	"dense": func(r *rand.Rand, _, _ int) int { return matrixSizes[r.IntN(5)] },
	"sparse": func(r *rand.Rand, _, _ int) int {
		if r.IntN(16) > 0 {
			return -1
		}
		return matrixSizes[r.IntN(len(matrixSizes)-r.IntN(2)*4)] // half of them: small ones
	},
	"skewed": func(r *rand.Rand, from, to int) int {
		if to == 0 && from < 8 {
			return matrixSizes[r.IntN(len(matrixSizes))]
		}
		return r.IntN(16) * (from % 2)
	},
}

// matrixMembers are so many members as each transport is tried with: alone, powers of
// two, and others.
var matrixMembers = map[string][]int{"mesh": {1, 2, 3, 8, 21, 64}, "rings": {1, 2, 5}, "relayed": {1, 3, 9}}

// TestMatrix: each algorithm over each transport hands over what a copy in memory would,
// in each pattern, among few members and many.
func TestMatrix(t *testing.T) {
	for transport, sizes := range matrixMembers {
		if transports[transport] == nil {
			continue // not on this system
		}
		for _, a := range Algorithms() {
			t.Run(transport+"/"+a.Name, func(t *testing.T) {
				for _, size := range sizes {
					o := options(a, size)
					o.Buffer = 8 << 10
					play(t, transport, o, func(ctx context.Context, g *Group) error {
						for _, name := range slices.Sorted(keys(matrix)) {
							if err := steps(ctx, g, uint64(size), matrix[name], 2); err != nil {
								return fmt.Errorf("%s: %w", name, err)
							}
						}
						return nil
					})
				}
			})
		}
	}
}

// TestSizes: from nothing to 16 MiB, one step after the other, between members that
// exchange and to one that only takes; over each transport.
func TestSizes(t *testing.T) {
	for transport := range transports {
		for _, a := range Algorithms() {
			o := options(a, 3)
			o.Buffer = 256 << 10 // 16 MiB in pieces of the default take 64 thousand frames
			play(t, transport, o, func(ctx context.Context, g *Group) error {
				size := 0
				large := func(_ *rand.Rand, from, to int) int {
					if from == 0 || size > 1<<20 && to != 2 {
						return -1
					}
					return size
				}
				for i, n := range []int{0, 1, 16, 256, 4 << 10, 64 << 10, 1 << 20, 16 << 20} {
					for _, size = range []int{n - 1, n, n + 1} {
						if n == 16<<20 && size != n || raceEnabled && n == 1<<20 && size != n {
							continue
						}
						if err := steps(ctx, g, uint64(i), large, 1); err != nil {
							return fmt.Errorf("%s over %s, %d bytes: %w", a.Name, transport, size, err)
						}
					}
				}
				return nil
			})
		}
	}
}

// disturbances are what may become of a member's step.
var disturbances = []func(ctx context.Context, r *rand.Rand) (context.Context, context.CancelFunc){
	func(ctx context.Context, r *rand.Rand) (context.Context, context.CancelFunc) { // canceled
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(time.Duration(r.IntN(100))*time.Microsecond, cancel)
		return ctx, func() { timer.Stop(); cancel() }
	},
	func(ctx context.Context, r *rand.Rand) (context.Context, context.CancelFunc) { // late by its deadline
		return context.WithTimeout(ctx, time.Duration(r.IntN(100))*time.Microsecond)
	},
	func(ctx context.Context, r *rand.Rand) (context.Context, context.CancelFunc) { // slow
		for range r.IntN(200) {
			runtime.Gosched()
		}
		return context.WithCancel(ctx)
	},
}

// TestDisturbed: members that are canceled, late and slow, one or two of them at once,
// in whatever step that hits: nothing is handed over twice, no step mixes with another,
// and all continue together.
func TestDisturbed(t *testing.T) {
	const size, rounds, most = 4, 8, 20
	for transport := range transports {
		for _, a := range Algorithms() {
			play(t, transport, options(a, size), func(ctx context.Context, g *Group) error {
				r := rand.New(rand.NewPCG(1, uint64(g.Rank())))
				for round := range uint64(rounds) {
					hit := g.Rank() == int(round)%size || round%3 == 0 && g.Rank() == int(round+1)%size
					for step := range most {
						inner, cancel := context.WithCancel(ctx)
						if hit && step >= 5 {
							cancel()
							inner, cancel = disturbances[r.IntN(len(disturbances))](ctx, r)
						}
						in, err := g.Exchange(inner, outOf(round, patterns["skewed"], step, g))
						cancel()
						if err == nil {
							err = checkIn(round, patterns["skewed"], step, g, in)
						}
						if err == nil {
							continue
						}
						if !errors.Is(err, ErrCanceled) && !errors.Is(err, ErrLate) && !errors.Is(err, ErrRevoked) {
							return fmt.Errorf("%s over %s: %w", a.Name, transport, err)
						}
						break
					}
					if _, err := g.Shrink(ctx); err != nil {
						return fmt.Errorf("%s over %s: %w", a.Name, transport, err)
					}
				}
				return nil
			})
		}
	}
}
